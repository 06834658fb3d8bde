"""Progress in a notebook: a live bar for each run, and a line that stays when the run has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape

from IPython.display import DisplayHandle, display

from fedsim.experiment.progress.display import Display, OneRun
from fedsim.viz.human import clock

__all__ = ["REDRAW_INTERVAL_S", "CellOutput", "NotebookBars"]

REDRAW_INTERVAL_S = 0.25  # each time, all lines are sent to the browser
BOX = "max-height: 24em; overflow: auto"  # hundreds of runs are scrolled
BAR = "width: 12em; vertical-align: middle"


class CellOutput:
    """One output of a cell, which is updated in place. It needs no widgets: HTML, or text where there is no HTML."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None

    def show(self, lines: Sequence[str], bars: Sequence[tuple[float | None, str]]) -> None:
        """Some *lines*, and below them *bars*: how much is over, if anything tells, and a text."""
        text = [f"<div>{escape(line)}</div>" for line in lines]
        text += [f"<div>{_bar(share)} {escape(said)}</div>" for share, said in bars]
        content = {
            "text/html": f'<div style="{BOX}">{"".join(text)}</div>',
            "text/plain": "\n".join([*lines, *(said for _, said in bars)]),
        }
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(content, raw=True)  # type: ignore[no-untyped-call]


class NotebookBars(Display):
    """In one output of a cell, a bar for each run; of one that has ended, a line."""

    _interval_s = REDRAW_INTERVAL_S

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(now)
        self._lines: list[str] = []
        self._output = CellOutput()

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
        self._output.show(self._lines, [(run.share, str(run)) for run in self._runs.values()])


def _bar(share: float | None) -> str:
    """A bar; one that only moves where nothing tells how far the run is.

    >>> _bar(0.5)
    '<progress style="width: 12em; vertical-align: middle" value="0.500"></progress>'
    """
    value = "" if share is None else f' value="{share:.3f}"'
    return f'<progress style="{BAR}"{value}></progress>'
