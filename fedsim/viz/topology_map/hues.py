"""A colour for each sensor, by what its uplink is like: signal-to-noise ratio, coverage class, or rate; bright is good.

The colours are viridis, by N. Smith and S. van der Walt: as different as the numbers, for the colour-blind and in grey.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm, Normalize, to_rgba
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator
from numpy.typing import NDArray

__all__ = ["UNCOVERED", "UNKNOWN", "Colour", "Hues", "Quantity"]

Colour = tuple[float, float, float, float]
Quantity = Literal["snr", "class", "rate"]

UNCOVERED, UNKNOWN = -2, -1
"""The steps of a sensor that the air does not reach, and of one that it reaches though its number is not known."""
_WORDS = {"snr": "SNR of the uplink", "class": "coverage class", "rate": "rate of the uplink"}
_CLASSES = {255: "0 (normal)", 128: "1 (robust)", 0: "2 (extreme)"}  # step -> coverage class
_COLOURS = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.97, 256)), name="hues")


class Hues:
    """The colours of sensors at time zero of a *seed*.

    *values* are those of the sensors called *names*: decibels, classes or bit/s; not a number where there is none.
    *covered* says whom the air reaches now; one of them must have a finite value.
    """

    def __init__(
        self,
        quantity: Quantity,
        seed: int,
        names: Sequence[str],
        values: NDArray[np.float64],
        covered: NDArray[np.bool_],
    ) -> None:
        self.quantity, self.seed, self.words = quantity, seed, _WORDS[quantity]
        known = covered & ~np.isnan(values)
        finite = values[known & np.isfinite(values)]
        low, high = float(finite.min()), float(finite.max())
        norm = Normalize(low, high) if low < high else Normalize(low - 1, low + 1)
        if quantity == "class":
            norm, values = Normalize(0.0, 2.0), 2.0 - values
        elif quantity == "rate":
            norm = LogNorm(low, high) if low < high else LogNorm(low / 2, low * 2)
        steps = np.where(covered, UNKNOWN, UNCOVERED)
        steps[known] = np.rint(norm(np.clip(values[known], norm.vmin, norm.vmax)) * 255)
        self.steps: dict[str, int] = dict(zip(names, steps.tolist(), strict=True))
        """By sensor: its place among the colours, or `UNCOVERED` or `UNKNOWN`."""
        self.scale, self.label = (
            ScalarMappable(norm, _COLOURS),
            f"{self.words}, {'dB' if quantity == 'snr' else 'bit/s'}",
        )
        close = quantity == "snr" or high <= 5 * low
        self.ticks = MaxNLocator(6) if close else LogLocator(subs=(1.0, 2.0, 5.0), numticks=20)
        self.format = EngFormatter() if quantity == "rate" else None
        """Of the scale: what it is called, where it has marks, and what these say."""

    @staticmethod
    def colour(step: int) -> Colour:
        """White where nothing is known, red where the air does not reach."""
        red, green, blue, opacity = (
            _COLOURS(step) if step >= 0 else to_rgba("#b3261e" if step == UNCOVERED else "white")
        )
        return red, green, blue, opacity

    def piece(self, sensor: str) -> int:
        """The step of a sensor, one of a few."""
        step = self.steps[sensor]
        return step if step < 0 or self.quantity == "class" else step // 32 * 32 + 16

    def entries(self) -> dict[int, str]:
        """The steps that no scale shows, with how many sensors have them, in words."""
        counts, named = Counter(self.steps.values()), {UNKNOWN: f"without {self.words}", UNCOVERED: "out of coverage"}
        if self.quantity == "class":
            named = {step: f"of coverage class {name}" for step, name in _CLASSES.items()} | named
        return {step: f"{counts[step]:,} {name}" for step, name in named.items() if counts[step]}
