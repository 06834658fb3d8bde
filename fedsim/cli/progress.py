"""What ``fedsim run`` shows on standard error while it works."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from fedsim.experiment.progress.display import Display
from fedsim.experiment.progress.surroundings import display_for

__all__ = ["progress"]


@contextmanager
def progress(*, quiet: bool) -> Iterator[Display]:
    """What shows a run: nothing when *quiet*, not even warnings, else what the surroundings are fit for."""
    if quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield Display()
    else:
        with display_for(True) as display:
            yield display
