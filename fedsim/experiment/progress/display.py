"""How far each run has come, whatever shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedsim.errors import some
from fedsim.experiment.observer import Observer
from fedsim.learning.divergence import diverged
from fedsim.metrics.chosen import chosen_column
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round, Stop
from fedsim.viz.human import clock, number, size

__all__ = ["Display", "OneRun", "done_share"]


@dataclass
class OneRun:
    """A protocol on a seed, and how far it has come."""

    name: str
    stop: Stop
    began_s: float
    latest: Round | None = None
    score_text: str = ""
    """Accuracy, or the error of a model that predicts numbers; or that it has diverged."""
    shown_s: float = float("-inf")

    def take(self, done: Round) -> None:
        """Come as far as *done*."""
        self.latest = done
        if any(map(diverged, done.metrics.values())):
            self.score_text = "the model diverged"
        elif done.metrics:
            metrics = next(iter(done.metrics.values()))  # the first test set is the one that a target reads
            self.score_text = _score_text(metrics)

    @property
    def share(self) -> float | None:
        """How much of it is over; None when nothing tells."""
        return 0.0 if self.latest is None else done_share(self.stop, self.latest)

    @property
    def round_text(self) -> str:
        """Its round, of how many."""
        number, limit = self.latest.number if self.latest else 0, self.stop.rounds
        return f"round {number}" if limit is None else f"round {number}/{limit}"

    @property
    def clock_text(self) -> str:
        """Its simulated time."""
        return clock(self.latest.sim_time_s if self.latest else 0.0)

    @property
    def bytes_text(self) -> str:
        """What the clients have sent and received."""
        return size(self.latest.uplink_bytes + self.latest.downlink_bytes if self.latest else 0.0)

    def __str__(self) -> str:
        facts = (self.round_text, f"simulated {self.clock_text}", self.score_text, self.bytes_text)
        return f"{self.name}: {', '.join(filter(None, facts))}"


def _score_text(metrics: Mapping[str, Any]) -> str:
    """The accuracy, or the error; this in its unit, where that is known.

    >>> _score_text({"accuracy": 0.8125}), _score_text({"rmse": 0.1861, "rmse_cycles": 23.26, "rmse_std": 0.01})
    ('accuracy 0.812', 'rmse 23.3 cycles')
    """
    if "accuracy" in metrics:
        return f"accuracy {metrics['accuracy']:.3f}"
    for name, value in metrics.items():
        if (column := chosen_column(name)) and column.unit:
            return f"rmse {number(value)} {column.unit}"
    return f"rmse {metrics['rmse']:.3f}"


def done_share(stop: Stop, done: Round) -> float | None:
    """How much of a run is over, by the limit that is nearest; None when only a target accuracy ends it.

    >>> done_share(Stop(rounds=40, sim_time_s=100.0), Round(10, 60.0, 0, 0, 1))
    0.6
    """
    limits = (
        (stop.rounds, done.number),
        (stop.sim_time_s, done.sim_time_s),
        (stop.transfer_bytes, done.uplink_bytes + done.downlink_bytes),
    )
    return max((min(1.0, value / limit) for limit, value in limits if limit is not None), default=None)


class Display(Observer):
    """Knows how far each run has come; what it shows is up to the subclasses. This one shows nothing."""

    _interval_s = float("inf")  # real seconds between two rounds that are shown

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.saw_a_run = False
        self._now = now
        self._runs: dict[tuple[str, int], OneRun] = {}

    def begin(self, protocol: Protocol, seed: int, stop: Stop, clients: int) -> None:
        """Open the run's display."""
        self.saw_a_run = True
        run = self._runs[protocol.title, seed] = OneRun(f"{protocol.title} seed {seed}", stop, self._now())
        self._opened(run, clients)

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        """Show the round, unless another one was shown just before."""
        run = self._runs[protocol.title, seed]
        run.take(done)
        if self._now() - run.shown_s >= self._interval_s:
            self._show(run)

    def end(self, protocol: Protocol, seed: int) -> None:
        """Show the last round and close the run's display."""
        run = self._runs.pop((protocol.title, seed))
        if run.latest is not None:
            run.take(run.latest)  # the last model may have been evaluated after its round
        self._closed(run)

    def put_off(self, protocol: Protocol, seed: int) -> None:
        """Close the run's display; it opens again."""
        self._left(self._runs.pop((protocol.title, seed)))

    def waits(self, holders: Sequence[str]) -> None:
        """Say for whom."""
        self.tell(f"Other runs train all that is left, into the same store; this one waits for {some(holders)}")

    def _show(self, run: OneRun) -> None:
        run.shown_s = self._now()

    def _opened(self, run: OneRun, clients: int) -> None:
        pass

    def _closed(self, run: OneRun) -> None:
        pass

    def _left(self, run: OneRun) -> None:
        pass
