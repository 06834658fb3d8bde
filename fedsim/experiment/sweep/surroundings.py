"""Which display of a sweep fits where it was started: a notebook, a terminal, or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from fedsim.experiment.progress.surroundings import in_notebook
from fedsim.experiment.sweep.display import Bars, Lines, SweepDisplay

__all__ = ["sweep_display_for"]


@contextmanager
def sweep_display_for(progress: bool | None, *, total: int, said: str = "sweep") -> Iterator[SweepDisplay]:
    """What shows the sweep of a ``with`` block, of *total* points: bars in a notebook or a terminal (standard error).

    *said* is what it is called: a sweep, or a part of a search.

    Elsewhere there are lines if *progress* is True, and nothing if it is None. False shows nothing at all.
    """
    if progress is False:
        yield SweepDisplay(total)
    elif in_notebook():
        from fedsim.experiment.sweep.notebook import NotebookSweep

        notebook = NotebookSweep(total, said)
        with notebook.shown():
            yield notebook
    elif sys.stderr.isatty():
        bars = Bars(total, Console(stderr=True), said)
        with bars.bars:
            yield bars
    else:
        yield Lines(total, sys.stderr, said) if progress else SweepDisplay(total)
