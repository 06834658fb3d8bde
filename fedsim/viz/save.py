"""Figures as files: equal figures give equal bytes."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedsim.viz.style import RC

__all__ = ["save_figure"]


def save_figure(figure: Figure, path: Path) -> Path:
    """Write *figure* as the PNG, SVG or PDF that *path* ends in, without the date; returns *path*."""
    FigureCanvasAgg(figure)
    dates = {".svg": "Date", ".pdf": "CreationDate"}
    with mpl.rc_context(RC):
        figure.savefig(path, metadata={dates.get(path.suffix.lower(), "Software"): None})
    return path
