"""A run while it goes on, on standard error: live bars on a terminal, plain lines on a pipe."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fedsim.experiment.run import Observer
from fedsim.learning.divergence import diverged
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round, Stop
from fedsim.viz.human import clock, size

__all__ = ["Bars", "Display", "Lines", "done_share", "progress"]

LINE_INTERVAL_S = 2.0  # at most one line in so many real seconds
REDRAW_INTERVAL_S = 0.1


@dataclass
class _Run:
    """A protocol on a seed, and how far it has come."""

    name: str
    stop: Stop
    began_s: float
    latest: Round | None = None
    score_text: str = ""
    """Accuracy, or the error of a model that predicts numbers; or that it has diverged."""
    shown_s: float = float("-inf")

    def take(self, done: Round) -> None:
        self.latest = done
        if any(map(diverged, done.metrics.values())):
            self.score_text = "the model diverged"
        elif done.metrics:
            metrics = next(iter(done.metrics.values()))  # the first test set is the one that a target reads
            name = "accuracy" if "accuracy" in metrics else "rmse"
            self.score_text = f"{name} {metrics[name]:.3f}"

    @property
    def share(self) -> float | None:
        return 0.0 if self.latest is None else done_share(self.stop, self.latest)

    @property
    def round_text(self) -> str:
        number, limit = self.latest.number if self.latest else 0, self.stop.rounds
        return f"round {number}" if limit is None else f"round {number}/{limit}"

    @property
    def clock_text(self) -> str:
        return clock(self.latest.sim_time_s if self.latest else 0.0)

    @property
    def bytes_text(self) -> str:
        return size(self.latest.uplink_bytes + self.latest.downlink_bytes if self.latest else 0.0)

    def __str__(self) -> str:
        facts = (self.round_text, f"simulated {self.clock_text}", self.score_text, self.bytes_text)
        return f"{self.name}: {', '.join(filter(None, facts))}"


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
        self._runs: dict[tuple[str, int], _Run] = {}

    def begin(self, protocol: Protocol, seed: int, stop: Stop, clients: int) -> None:
        """Open the run's display."""
        self.saw_a_run = True
        run = self._runs[protocol.title, seed] = _Run(f"{protocol.title} seed {seed}", stop, self._now())
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

    def _show(self, run: _Run) -> None:
        run.shown_s = self._now()

    def _opened(self, run: _Run, clients: int) -> None:
        pass

    def _closed(self, run: _Run) -> None:
        pass


class _WhileRead:
    """A stream that is written to for as long as it can be: progress that nobody reads any more ends no run.

    Its reader may have gone, its disk be full, its terminal closed.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_read = True

    def write(self, text: str) -> int:
        if self._is_read:
            try:
                return self._stream.write(text)
            except OSError:
                self._is_read = False
        return len(text)

    def flush(self) -> None:
        if self._is_read:
            try:
                self._stream.flush()
            except OSError:
                self._is_read = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Lines(Display):
    """A line for a round, and not too many of them."""

    _interval_s = LINE_INTERVAL_S

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(now)
        self._stream = _WhileRead(stream)
        self._written = ""

    def tell(self, text: str) -> None:
        """Write it."""
        self._write(text)

    def _opened(self, run: _Run, clients: int) -> None:
        self._write(f"{run.name}: begins with {clients} clients")

    def _show(self, run: _Run) -> None:
        super()._show(run)
        self._write(str(run))

    def _closed(self, run: _Run) -> None:
        if str(run) != self._written:
            self._show(run)

    def _write(self, line: str) -> None:
        self._written = line
        self._stream.write(line + "\n")
        self._stream.flush()


class Bars(Display):
    """A bar for each run under way; one that has ended becomes a line above them."""

    _interval_s = REDRAW_INTERVAL_S

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(now)
        self._bars = Progress(
            TextColumn("{task.fields[run].name}", markup=False),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[run].round_text}", markup=False),
            TextColumn("sim {task.fields[run].clock_text}", markup=False),
            TextColumn("real"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[run].score_text}", markup=False),
            TextColumn("{task.fields[run].bytes_text}", markup=False),
            console=console,
            transient=True,
            refresh_per_second=5,
        )
        self._tasks: dict[str, TaskID] = {}

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The bars are on the terminal inside this block, and gone after it."""
        with self._bars:
            yield

    def tell(self, text: str) -> None:
        """Write it above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)

    def _opened(self, run: _Run, clients: int) -> None:
        self._tasks[run.name] = self._bars.add_task(run.name, total=1.0, run=run)

    def _show(self, run: _Run) -> None:
        super()._show(run)
        share = run.share
        total = None if share is None else 1.0  # without a limit that counts, the bar only pulses
        self._bars.update(self._tasks[run.name], completed=share or 0.0, total=total)

    def _closed(self, run: _Run) -> None:
        self._bars.remove_task(self._tasks.pop(run.name))
        real = clock(self._now() - run.began_s)
        self._bars.console.print(f"{run}, real {real}", markup=False, highlight=False)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Display]:
    """What shows a run: nothing when *quiet*, else what standard error is fit for."""
    if quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield Display()
    elif sys.stderr.isatty():
        bars = Bars(Console(file=cast(TextIO, _WhileRead(sys.stderr))))
        with bars.shown():
            yield bars
    else:
        yield Lines(sys.stderr)
