"""Progress on a terminal: a live bar for each run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fedsim.experiment.progress.display import Display, OneRun
from fedsim.viz.human import clock

__all__ = ["Bars"]

REDRAW_INTERVAL_S = 0.1


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

    def _opened(self, run: OneRun, clients: int) -> None:
        self._tasks[run.name] = self._bars.add_task(run.name, total=1.0, run=run)

    def _show(self, run: OneRun) -> None:
        super()._show(run)
        share = run.share
        total = None if share is None else 1.0  # without a limit that counts, the bar only pulses
        self._bars.update(self._tasks[run.name], completed=share or 0.0, total=total)

    def _closed(self, run: OneRun) -> None:
        self._bars.remove_task(self._tasks.pop(run.name))
        real = clock(self._now() - run.began_s)
        self._bars.console.print(f"{run}, real {real}", markup=False, highlight=False)

    def _left(self, run: OneRun) -> None:
        self._bars.remove_task(self._tasks.pop(run.name))
