"""Which display fits where the run was started: a notebook, a terminal, or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fedsim.experiment.progress.display import Display
from fedsim.experiment.progress.lines import Lines

__all__ = ["display_for", "in_notebook"]


@contextmanager
def display_for(progress: bool | None) -> Iterator[Display]:
    """What shows the runs of a ``with`` block: bars in a notebook, and bars on a terminal (standard error).

    Elsewhere, as on a pipe, there are lines if *progress* is True, and nothing if it is None. False shows nothing at
    all.
    """
    if progress is False:
        yield Display()
    elif in_notebook():
        from fedsim.experiment.progress.notebook import NotebookBars

        notebook = NotebookBars()
        with notebook.shown():
            yield notebook
    elif sys.stderr.isatty():
        from rich.console import Console

        from fedsim.experiment.progress.bars import Bars

        bars = Bars(Console(stderr=True))
        with bars.shown():
            yield bars
    else:
        yield Lines(sys.stderr) if progress else Display()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook. IPython is looked for only where it has been imported."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(get_ipython()).__mro__)
