"""The colours of loads: one scale from idle to full, told apart by the colour-blind and in grey.

Its lightness falls evenly, so that a darker channel is a fuller one: magma, by N. Smith and S. van der Walt, without
its ends, of which the one is too pale for a line and the other as dark as a marker.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap, Normalize, to_rgba

from fedsim.viz.topology_map.loads import Load, Measured

__all__ = ["CASING", "DARK", "FAILING", "IDLE", "OWN_CHANNELS", "PLAIN_DISC", "PLAIN_WIRE", "Colour", "Scale"]

Colour = tuple[float, float, float, float]

DARK = "#33383e"
CASING = "#8d949c"
"""Around what may be pale."""
PLAIN_DISC = to_rgba("#e3e8ee")
PLAIN_WIRE = to_rgba("#8d959d")
"""Without loads."""
IDLE = to_rgba("#ffffff")
OWN_CHANNELS = "/////"
"""The hatch of a disc in which nothing can be full."""
FAILING = (0.0, (2.5, 1.0))
"""The dashes of a wire that will fail, in widths of the line."""
_COLOURS = ListedColormap(colormaps["magma_r"](np.linspace(0.06, 0.86, 256)), name="load")
_STEPS: list[Colour] = [to_rgba(colour) for colour in _COLOURS(np.arange(256))]


class Scale:
    """From all loads of a run to colours."""

    colours = _COLOURS
    """From the lightest to the darkest."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self._ceiling = measured.ceiling()
        self.norm = Normalize(0.0, self._ceiling)
        """From loads to 0 ... 1."""

    def colour(self, load: Load) -> Colour:
        """White where nothing was sent, grey where nothing can be full."""
        if load is None:
            return IDLE
        if math.isnan(load):
            return PLAIN_WIRE
        return _STEPS[int(min(load / self._ceiling, 1.0) * (len(_STEPS) - 1) + 0.5)]
