"""Queues to compare with theory: messages that come at random over one hop, and how far a mean is from its theory.

The estimate is regenerative (Crane and Iglehart, Operations Research 23, 1975): whenever the channel is empty the
queue begins anew, so sums over cycles are independent, and there is no warm-up to cut off. Cycles are pooled into
blocks. Much of what is random about a block came in by chance; quantities of that kind whose mean is known are control
variates (Lavenberg and Welch, Management Science 27, 1981): the deviation is the intercept of a regression on them.
They are made from the messages alone, never from what the network did, so no fault can hide in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import stats
from simpy import Environment, Event
from small_worlds import NO_LOSS, Line

from fedsim.kernel.gather import Lost
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Outcome
from fedsim.network.disciplines.channel import Channel
from fedsim.network.packets import Loss

__all__ = [
    *("ALPHA", "EFFECT", "POWER", "Deviation", "Kind", "Messages", "Served", "deviation", "serve"),
    *("constant", "exponential", "hyperexponential"),
]

BYTES_PER_S = 1_000.0
ALPHA = 1e-4
"""Chance that a test of a right mean fails, for a seed at random."""
EFFECT, POWER = 0.05, 0.99
"""A mean that is wrong by this part of it is seen with this chance at least, or the test fails for its weakness."""
BLOCKS = 200

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Kind:
    """Messages that come as a Poisson stream, with independent airtimes, and how they share the channel."""

    rate: float
    """Mean arrivals per second."""
    draw: Draw
    """Airtimes, in seconds at full rate."""
    mean_s: float
    second_moment_s2: float
    share: float = 1.0
    weight: float = 1.0


def exponential(rate: float, mean_s: float = 1.0) -> Kind:
    return Kind(rate, lambda rng, number: rng.exponential(mean_s, number), mean_s, 2 * mean_s**2)


def constant(rate: float, mean_s: float = 1.0) -> Kind:
    return Kind(rate, lambda _, number: np.full(number, mean_s), mean_s, mean_s**2)


def hyperexponential(rate: float, variance: float) -> Kind:
    """Of mean 1: a few are long, and make up half of the work ("balanced means")."""
    long = (1 - np.sqrt((variance - 1) / (variance + 1))) / 2

    def draw(rng: np.random.Generator, number: int) -> Floats:
        return rng.exponential(np.where(rng.random(number) < long, 1 / (2 * long), 1 / (2 * (1 - long))))

    return Kind(rate, draw, 1.0, 1 + variance)


@dataclass(frozen=True)
class Messages:
    """Messages of one kind or several, in the order of their arrival."""

    kinds: Sequence[Kind]
    kind: npt.NDArray[np.int64]
    gaps_s: Floats
    """Before each."""
    airtimes_s: Floats
    """At full rate, alone."""
    carriers: int = 1

    @classmethod
    def drawn(cls, purpose: str, number: int, *kinds: Kind, carriers: int = 1) -> Messages:
        """So many in all."""
        streams, rate = Streams(1), sum(kind.rate for kind in kinds)
        gaps_s = streams(f"test/{purpose}/gaps").generator().exponential(1 / rate, number)
        chances = [kind.rate / rate for kind in kinds]
        kind = streams(f"test/{purpose}/kinds").generator().choice(len(kinds), number, p=chances)
        drawn_s = [
            one.draw(streams(f"test/{purpose}/airtimes", which).generator(), number) for which, one in enumerate(kinds)
        ]
        return cls(kinds, kind, gaps_s, np.choose(kind, drawn_s), carriers)

    @property
    def rate(self) -> float:
        return sum(kind.rate for kind in self.kinds)

    @property
    def load(self) -> float:
        """The part of time that a channel is busy which always works on all carriers when it can."""
        return sum(kind.rate * kind.share * kind.mean_s for kind in self.kinds) / self.carriers

    @property
    def mean_work_found_s(self) -> float:
        """The mean of ``work_found_s``, which is also the mean wait in an M/G/1 queue (Pollaczek and Khinchine)."""
        squares = sum(kind.rate * kind.share**2 * kind.second_moment_s2 for kind in self.kinds)
        return squares / self.carriers**2 / (2 * (1 - self.load))

    @cached_property
    def work_found_s(self) -> Floats:
        """Time that what each finds undone when it comes takes, if all carriers always work (Lindley)."""
        works_s = self.airtimes_s * np.array([kind.share / self.carriers for kind in self.kinds])[self.kind]
        walk_s = np.concatenate([[0.0], np.cumsum(works_s[:-1] - self.gaps_s[1:])])
        return walk_s - np.minimum.accumulate(walk_s)

    def controls(self, *, work_found: bool = True) -> list[Floats]:
        """Numbers for each message, of mean zero, that say how much there was to do by chance, all and of each kind."""
        found = [np.append(self.gaps_s[1:], 1 / self.rate) - 1 / self.rate]
        for number, kind in enumerate(self.kinds):
            such, chance = self.kind == number, kind.rate / self.rate
            if number:
                found.append(such - chance)
            if work_found:
                found.append(such * self.work_found_s - chance * self.mean_work_found_s)
            if kind.second_moment_s2 > kind.mean_s**2:
                found.append(such * (self.airtimes_s - kind.mean_s))
                found.append(such * (self.airtimes_s**2 - kind.second_moment_s2))
        return found


@dataclass(frozen=True)
class Served:
    """What became of messages, in the order of their arrival."""

    messages: Messages
    start_s: Floats
    end_s: Floats
    lost: npt.NDArray[np.bool_]

    @property
    def sojourn_s(self) -> Floats:
        return self.end_s - self.start_s

    @property
    def cycles(self) -> npt.NDArray[np.int64]:
        """The number of the cycle of each: a new one begins with each that finds the channel empty."""
        before_s = np.concatenate([[-np.inf], np.maximum.accumulate(self.end_s)[:-1]])
        return np.cumsum(self.start_s >= before_s) - 1


def serve(messages: Messages, channel: Callable[[Environment, float], Channel], *, loss: Loss = NO_LOSS) -> Served:
    """Carry the messages over one hop of a network."""
    line = Line((8 * BYTES_PER_S,), channel=channel, loss=loss)
    [hop] = line.route
    routes = [(dataclasses.replace(hop, share=kind.share, weight=kind.weight),) for kind in messages.kinds]

    def carry(kind: int, size_bytes: float) -> Generator[Event, Outcome, None]:
        try:
            yield from line.network.carry(0, routes[kind], size_bytes)
        except Lost:
            return

    def arrivals() -> Generator[Event, None, None]:
        sizes_bytes = (messages.airtimes_s * BYTES_PER_S).tolist()
        for gap_s, kind, size_bytes in zip(messages.gaps_s.tolist(), messages.kind.tolist(), sizes_bytes, strict=True):
            yield line.env.timeout(gap_s)
            line.env.process(carry(kind, size_bytes))

    line.env.process(arrivals())
    line.env.run()
    hops = line.trace.hops.array()
    hops = hops[np.argsort(hops["transfer"])]
    return Served(messages, hops["start_s"].copy(), hops["end_s"].copy(), hops["outcome"] == Outcome.LOST)


@dataclass(frozen=True)
class Deviation:
    """How far a mean is from its theory, as a part of it."""

    relative: float
    error: float
    """Its standard error, on ``freedom`` degrees of freedom."""
    freedom: int

    def check(self) -> None:
        """There is none, and if there were one of `EFFECT` it would have been seen."""
        quantile = float(stats.t.isf(ALPHA / 2, self.freedom))
        assert (quantile + float(stats.t.isf(1 - POWER, self.freedom))) * self.error < EFFECT, "a weak test"
        assert abs(self.relative) <= quantile * self.error + 1e-9  # and what clocks round, where chance has no part


def deviation(served: Served, theory_s: float, *, kind: int | None = None, work_found: bool = True) -> Deviation:
    """Of the mean sojourn of all messages, or of one kind, from *theory_s*.

    Without *work_found* that is no control: where the sojourn follows from it, chance would have no part in the test.
    """
    cycles = served.cycles
    a_block = cycles[-1] // BLOCKS  # the last cycle was cut short when arrivals ended
    whole = cycles < a_block * BLOCKS
    block = cycles[whole] // a_block

    def sums(what: npt.NDArray[np.generic]) -> Floats:
        return np.bincount(block, weights=what[whole], minlength=BLOCKS)

    counted = np.ones(len(cycles)) if kind is None else served.messages.kind == kind
    excess_s = sums((served.sojourn_s - theory_s) * counted)
    regressors = np.column_stack([np.ones(BLOCKS), *map(sums, served.messages.controls(work_found=work_found))])
    coefficients, *_ = np.linalg.lstsq(regressors, excess_s)
    freedom = BLOCKS - regressors.shape[1]
    residual = float(np.sum((excess_s - regressors @ coefficients) ** 2)) / freedom
    error_s = float(np.sqrt(residual * np.linalg.inv(regressors.T @ regressors)[0, 0]))
    whole_s = theory_s * float(np.mean(sums(counted)))
    return Deviation(float(coefficients[0]) / whole_s, error_s / whole_s, freedom)
