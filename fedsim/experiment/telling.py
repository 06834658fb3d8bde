"""Remarks on their way to whoever has asked for a run: as warnings, or as lines that an observer hears."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from fedsim.errors import Remark
from fedsim.experiment.observer import Observer

__all__ = ["tell_of", "warn_of"]


def warn_of(remarks: Iterable[str], *, frames: int = 1) -> None:
    """Say *remarks* to who has called the caller, or stands so many *frames* above it."""
    for remark in remarks:
        warnings.warn(remark, Remark, stacklevel=2 + frames)


def tell_of(remarks: Iterable[str], observer: Observer) -> None:
    """Say *remarks* to *observer*."""
    for remark in remarks:
        observer.tell(f"Remark: {remark}")
