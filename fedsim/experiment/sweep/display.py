"""How far a whole sweep has come: bars on a terminal, or lines on a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fedsim.scenario.scalars import printable

if TYPE_CHECKING:
    from fedsim.experiment.sweep.points import Point

__all__ = ["ALL_THERE", "Bars", "Happened", "Lines", "SweepDisplay"]

ALL_THERE = "all points are there already: nothing is run"
LINE_INTERVAL_S = 10.0  # of what is under way; each point that ends has a line


class Happened(Protocol):
    """What has happened to a point, as far as somebody is shown it."""

    @property
    def kind(self) -> str:
        """progress, done, put off, or why it has no result."""

    @property
    def text(self) -> str:
        """How far it is."""

    @property
    def share(self) -> float:
        """How much of it is over."""


class SweepDisplay:
    """Knows how far each point is; what it shows is up to the subclasses. This one shows nothing."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.ended = 0
        self.under_way: dict[str, tuple[str, float, str]] = {}
        """By key: what the point is called, how much of it is over, and how far it is."""

    def begins(self, there: int, at_once: int) -> None:
        """So many points are there already, and so many run at the same time."""
        self.ended = there

    def happened(self, point: Point, event: Happened) -> None:
        """Take note of it."""
        if event.kind == "progress":
            self.under_way[point.key] = (printable(point.said), event.share, printable(event.text))
        else:
            self.under_way.pop(point.key, None)
        self.ended += event.kind in ("done", "paused")

    @property
    def share(self) -> float:
        """How much of the sweep is over."""
        return (self.ended + sum(share for _, share, _ in self.under_way.values())) / self.total


class Lines(SweepDisplay):
    """A line for each point that has ended, and now and then one for all that are under way."""

    def __init__(
        self, total: int, stream: TextIO, said: str = "sweep", now: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(total)
        self._stream, self._said, self._now = stream, said, now
        self._written_s = now()

    def begins(self, there: int, at_once: int) -> None:
        """Say so."""
        super().begins(there, at_once)
        part = "" if self._said == "sweep" else f"{self._said}: "
        at_a_time = "one at a time" if at_once == 1 else f"{at_once} at a time"
        how = f"{self.total} points, of which {there} are there already; {at_a_time}"
        self._write(f"{part}{how if there < self.total else ALL_THERE}")

    def happened(self, point: Point, event: Happened) -> None:
        """Show it."""
        super().happened(point, event)
        if event.kind in ("done", "paused"):
            self._write(f"{self.ended}/{self.total} points: {printable(point.said)}")
        elif event.kind == "progress" and self._now() - self._written_s >= LINE_INTERVAL_S:
            self._write(
                f"{self.share:.0%}: " + "; ".join(f"{said}: {text}" for said, _, text in self.under_way.values())
            )
        elif event.kind not in ("progress", "put off"):
            self._write(f"{event.kind}: {printable(point.said)}")

    def _write(self, line: str) -> None:
        self._written_s = self._now()
        self._stream.write(line + "\n")
        self._stream.flush()


class Bars(SweepDisplay):
    """A bar for the whole and one for each point under way; a line for each that has ended."""

    def __init__(self, total: int, console: Console, said: str = "sweep") -> None:
        super().__init__(total)
        self.bars = Progress(
            TextColumn("{task.fields[said]}", markup=False),
            BarColumn(bar_width=12),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            console=console,
            transient=True,
            refresh_per_second=5,
        )
        self._whole = self.bars.add_task("", total=1.0, said=said, text="")
        self._tasks: dict[str, TaskID] = {}

    def begins(self, there: int, at_once: int) -> None:
        """Say so."""
        super().begins(there, at_once)
        self._draw_whole()
        if there == self.total:
            self.bars.console.print(ALL_THERE, markup=False, highlight=False)

    def happened(self, point: Point, event: Happened) -> None:
        """Show it."""
        super().happened(point, event)
        if event.kind == "progress":
            if point.key not in self._tasks:
                self._tasks[point.key] = self.bars.add_task("", total=1.0, said=printable(point.said), text="")
            self.bars.update(self._tasks[point.key], completed=event.share, text=printable(event.text))
        else:
            if (task := self._tasks.pop(point.key, None)) is not None:
                self.bars.remove_task(task)
            if event.kind != "put off":
                self.bars.console.print(f"{event.kind}: {printable(point.said)}", markup=False, highlight=False)
        self._draw_whole()

    def _draw_whole(self) -> None:
        self.bars.update(self._whole, completed=self.share, text=f"{self.ended}/{self.total} points")
