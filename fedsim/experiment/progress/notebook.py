"""Progress in a notebook: a live bar for each run, and a line that stays when the run has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

from IPython.display import DisplayHandle, display

from fedsim.experiment.progress.display import Display, OneRun
from fedsim.viz.human import clock

__all__ = ["NotebookBars"]

REDRAW_INTERVAL_S = 0.25  # each time, all lines are sent to the browser
BOX = "max-height: 24em; overflow: auto"  # hundreds of runs are scrolled
BAR = "width: 12em; vertical-align: middle"


class NotebookBars(Display):
    """One output of a cell, which is updated in place. It needs no widgets: HTML, or text where there is no HTML."""

    _interval_s = REDRAW_INTERVAL_S

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(now)
        self._lines: list[str] = []
        self._output: DisplayHandle | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """After this block no bar is left: what has not ended by then is a line that says so."""
        try:
            yield
        finally:
            if self._runs:
                self._lines += [f"{run}, stopped" for run in self._runs.values()]
                self._runs.clear()
                self._draw()

    def tell(self, text: str) -> None:
        """Add a line."""
        self._lines.append(text)
        self._draw()

    def _opened(self, run: OneRun, clients: int) -> None:
        self._draw()

    def _show(self, run: OneRun) -> None:
        super()._show(run)
        self._draw()

    def _closed(self, run: OneRun) -> None:
        self._lines.append(f"{run}, real {clock(self._now() - run.began_s)}")
        self._draw()

    def _left(self, run: OneRun) -> None:
        self._draw()

    def _draw(self) -> None:
        lines = "".join(f"<div>{escape(line)}</div>" for line in self._lines)
        bars = "".join(f"<div>{_bar(run.share)} {escape(str(run))}</div>" for run in self._runs.values())
        content = {
            "text/html": f'<div style="{BOX}">{lines}{bars}</div>',
            "text/plain": "\n".join([*self._lines, *map(str, self._runs.values())]),
        }
        if self._output is None:
            self._output = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._output.update(content, raw=True)  # type: ignore[no-untyped-call]


def _bar(share: float | None) -> str:
    """A bar; one that only moves where nothing tells how far the run is.

    >>> _bar(0.5)
    '<progress style="width: 12em; vertical-align: middle" value="0.500"></progress>'
    """
    value = "" if share is None else f' value="{share:.3f}"'
    return f'<progress style="{BAR}"{value}></progress>'
