"""How far a whole sweep has come, in a notebook: a live bar for it and for each point under way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fedsim.experiment.progress.notebook import REDRAW_INTERVAL_S, CellOutput
from fedsim.experiment.sweep.display import ALL_THERE, Happened, SweepDisplay
from fedsim.scenario.scalars import printable
from fedsim.viz.human import clock

if TYPE_CHECKING:
    from fedsim.experiment.sweep.points import Point

__all__ = ["NotebookSweep"]


class NotebookSweep(SweepDisplay):
    """In one output of a cell, bars, and a line for each point that has no result."""

    def __init__(self, total: int, said: str = "sweep", now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(total)
        self._said, self._now = said, now
        self._began_s, self._drawn_s = now(), float("-inf")
        self._lines: list[str] = []
        self._output = CellOutput()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """After this block no bar is left: a line says how far it came."""
        try:
            yield
        finally:
            took = "stopped" if self.ended < self.total else f"real {clock(self._now() - self._began_s)}"
            self._lines.append(f"{self._whole}, {took}")
            self._output.show(self._lines, [])

    def begins(self, there: int, at_once: int) -> None:
        """Show the bar of the sweep."""
        super().begins(there, at_once)
        if there == self.total:
            self._lines.append(ALL_THERE)
        self._draw()

    def happened(self, point: Point, event: Happened) -> None:
        """Show it, unless all was shown just before."""
        super().happened(point, event)
        if event.kind not in ("progress", "done", "paused", "put off"):
            self._lines.append(f"{event.kind}: {printable(point.said)}")
        if self._now() - self._drawn_s >= REDRAW_INTERVAL_S:
            self._draw()

    @property
    def _whole(self) -> str:
        return f"{self._said}: {self.ended}/{self.total} points"

    def _draw(self) -> None:
        self._drawn_s = self._now()
        under_way = ((share, f"{said}: {text}") for said, share, text in self.under_way.values())
        self._output.show(self._lines, [(self.share, self._whole), *under_way])
