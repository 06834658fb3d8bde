"""Rounds, evaluations and the end of a run: every protocol's loop asks here whether there is another round.

The run ends at whatever comes first: a number of rounds, an amount of traffic (both looked at when a round ends), a
confirmed target accuracy or a model that has diverged (looked at when a model is evaluated), or a simulated time (the
clock stops there, and the round under way does not count). Learning never changes what happens on the
clock, except by ending the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from annotated_types import Interval
from pydantic import model_validator
from simpy import Environment

from fedsim.errors import UserError
from fedsim.kernel.trace import NOBODY, Trace
from fedsim.learning.divergence import diverged, why_it_ended
from fedsim.learning.learner import Learner, LocalTraining, Model, OwnModel
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.spread import spread_of_own
from fedsim.learning.target import first_confirmed
from fedsim.network.hop import Direction
from fedsim.network.network import Network
from fedsim.protocols.evaluate_settings import EvaluateSettings
from fedsim.settings import Count, Fraction, Positive, Settings

__all__ = ["NobodyLeft", "Round", "RunLoop", "Stop"]

LONGEST_S = 1e12
"""30,000 simulated years, in which the clock still resolves 0.1 ms. Later it would round whole transfers away."""
MOST_ROUNDS_NO_NEARER = 1_000
"""In a row, in which no simulated time and no traffic brings the end of the run nearer."""
MOST_ROUNDS_TO_A_TARGET = 10_000
"""The same, where a target accuracy may still end the run."""


class Stop(Settings):
    """When a run ends: whichever comes first."""

    rounds: Count | None = None
    """Number of rounds."""
    target_accuracy: Fraction | None = None
    """Accuracy of the first test set under ``evaluate.on``, confirmed by the next three evaluations."""
    sim_time_s: Annotated[float, Interval(gt=0, le=LONGEST_S)] | None = None
    """Simulated time; a round under way then does not count."""
    transfer_bytes: Positive | None = None
    """Bytes on the clients' own hops, up and down; looked at when a round ends."""

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if all(value is None for value in vars(self).values()):
            raise ValueError("a run must end: give rounds, target_accuracy, sim_time_s or transfer_bytes")
        return self


@dataclass(slots=True)
class Round:
    """What is known of a finished round. Bytes and time are counted from the start of the run."""

    number: int
    sim_time_s: float
    uplink_bytes: float
    downlink_bytes: float
    participants: int
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By test set; empty when the round was not evaluated."""
    by_class: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of clients' own models, by device class, where there are several of them."""


class NobodyLeft(Exception):
    """No device can ever take part again: the run ends here."""


class RunLoop:
    """Hands out rounds until the run is over."""

    def __init__(
        self,
        env: Environment,
        trace: Trace,
        network: Network,
        learner: Learner,
        *,
        stop: Stop,
        evaluate: EvaluateSettings,
        learning_rates: Sequence[str],
        on_round: Callable[[Round], None] = lambda _: None,
    ) -> None:
        self.rounds_done: list[Round] = []
        self.model: Model = {}
        """The scenario's model at the end of the last finished round."""
        self.further: Mapping[str, Model] = {}
        """The models of device classes that have others, by their tables' digests."""
        self.own_models: Callable[[], Sequence[OwnModel]] = tuple
        """Asks for each client's own model."""
        self.device_classes: Sequence[str] = ()
        """Of each client, where there are several."""
        self.closed_by = NOBODY
        """What the cloud waited for last in this round: a client's index, `AT_DEADLINE` or `NOBODY`."""
        self.cut_short: str | None = None
        """Why the run ended before its time; None when it did not."""
        self._env = env
        self._trace = trace
        self._network = network
        self._learner = learner
        self.stop = stop
        self._evaluate = evaluate
        self._learning_rates = learning_rates
        self._on_round = on_round
        self._start_s = env.now
        self._over = False

    def rounds(self) -> Iterator[int]:
        """Round numbers from 1, until the run is over. Each must end with `finish_round`."""
        while not self._over:
            self._check_that_the_end_comes_nearer()
            self._start_s, self.closed_by = self._env.now, NOBODY
            yield len(self.rounds_done) + 1

    def finish_round(
        self,
        model: Model,
        further: Mapping[str, Model] | None = None,
        /,
        *,
        selected: int,
        participants: int,
        lost: int = 0,
        late: int = 0,
        closed_by: int | None = None,
    ) -> None:
        """The round ends now, with *model*. Evaluates it if it is its turn, and decides whether the run is over.

        Where device classes have models of their own, *further* are those, by their tables' digests. *closed_by* is the
        index of the client that the round waited for last; a `Site` that collects journeys knows it by itself.
        """
        traffic = self._network.access_bytes
        number = len(self.rounds_done) + 1
        self._check_the_clock(number)
        hops = len(self._trace.hops)
        closed_by = self.closed_by if closed_by is None else closed_by
        counts = (selected, participants, lost, late, hops, closed_by)
        self._trace.rounds.append((number, self._start_s, self._env.now, *counts))
        done = Round(number, self._env.now, traffic[Direction.UPLINK], traffic[Direction.DOWNLINK], participants)
        self.rounds_done.append(done)
        self.model = model
        self.further = further or {}
        self._over = self._enough(done)
        if self._over or number % self._evaluate.every == 0:
            self._score(done)
            self._over = self._over or self.target_round is not None
            if not self._over and any(map(diverged, done.metrics.values())):
                self.cut_short = why_it_ended(number, self._learning_rates)
                self._over = True
        self._on_round(done)

    @property
    def over(self) -> bool:
        """Whether the last round has ended."""
        return self._over

    def conclude(self) -> None:
        """Evaluate the last model, if that has not been done: the run may have been ended by the clock."""
        if self.rounds_done and not self.rounds_done[-1].metrics:
            self._score(self.rounds_done[-1])

    def timed_epochs(self, number: int) -> int:
        """Epochs of fine-tuning that take simulated time before round *number* ends; 0: none.

        An evaluation because the run has ended otherwise than by its number of rounds is not known before.
        """
        due = number % self._evaluate.every == 0 or number == self.stop.rounds
        return self._evaluate.finetune_epochs if self._evaluate.finetune_timed and due else 0

    @property
    def target_round(self) -> Round | None:
        """The round at which the target accuracy was reached, once that is confirmed."""
        target = self.stop.target_accuracy
        evaluated = [done for done in self.rounds_done if done.metrics]
        if target is None:
            return None
        position = first_confirmed([done.metrics[self._evaluate.on[0]]["accuracy"] for done in evaluated], target)
        return None if position is None else evaluated[position]

    def _enough(self, done: Round) -> bool:
        rounds, traffic = self.stop.rounds, self.stop.transfer_bytes
        return (rounds is not None and done.number >= rounds) or (traffic is not None and _traffic(done) >= traffic)

    def _check_the_clock(self, number: int) -> None:
        if self._env.now > LONGEST_S:
            raise UserError(
                f"round {number} ends at {self._env.now:g} s of simulated time, and the clock resolves transfers up to "
                f"{LONGEST_S:g} s (30,000 years) only; give higher rates and speeds, shorter times, or fewer rounds"
            )

    def _check_that_the_end_comes_nearer(self) -> None:
        stop = self.stop
        most = MOST_ROUNDS_NO_NEARER if stop.target_accuracy is None else MOST_ROUNDS_TO_A_TARGET
        if stop.rounds is not None or len(self.rounds_done) <= most:
            return
        before, last = self.rounds_done[-most - 1], self.rounds_done[-1]
        never = []
        if stop.sim_time_s is not None and before.sim_time_s == last.sim_time_s:
            never.append(f"{most:,} rounds take no simulated time, so sim_time_s={stop.sim_time_s:g} is never reached")
        if stop.transfer_bytes is not None and _traffic(before) == _traffic(last):
            never.append(
                f"nothing was sent over the air in {most:,} rounds, so transfer_bytes={stop.transfer_bytes:g} is never "
                "reached"
            )
        if never and len(never) == (stop.sim_time_s is not None) + (stop.transfer_bytes is not None):
            target = "" if stop.target_accuracy is None else f", nor was target_accuracy={stop.target_accuracy:g}"
            raise UserError(
                f"{', and '.join(never)}{target}; give stop.rounds too, or rates and speeds that are not infinite"
            )

    def _score(self, done: Round) -> None:
        for name in self._evaluate.on:
            if name == "own":
                self._score_own(done)
            elif (metrics := self._learner.evaluate(self.model, name, round_number=done.number)) is not None:
                done.metrics[name] = metrics

    def _score_own(self, done: Round) -> None:
        scores = self._learner.evaluate_own(self._scored_models(done.number), round_number=done.number)
        if scores is None:
            return
        done.metrics["own"] = spread_of_own([*scores.values()])
        by_class: dict[str, list[Mapping[str, Any]]] = {}
        for client, score in scores.items() if self.device_classes else ():
            by_class.setdefault(self.device_classes[client], []).append(score)
        done.by_class = {kind: spread_of_own(each) for kind, each in by_class.items()}

    def _scored_models(self, number: int) -> Sequence[OwnModel]:
        """Each client's own model, fine-tuned if the scenario says so.

        Batches are drawn for the client, not for the round, so a model that has not changed is not tuned again.
        """
        own, epochs = self.own_models(), self._evaluate.finetune_epochs
        if not epochs:
            return own
        tasks = (
            LocalTraining(number, one.client, 0, Plain(), table=one.table, epochs=epochs, stream="finetune")
            for one in own
        )
        return [
            one._replace(model=self._learner.train(task, one.model, state={}, further={}).model)
            for one, task in zip(own, tasks, strict=True)
        ]


def _traffic(done: Round) -> float:
    return done.uplink_bytes + done.downlink_bytes
