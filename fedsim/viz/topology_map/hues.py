"""A colour for each sensor, by what its uplink is like: signal-to-noise ratio, coverage class, or rate; bright is good.

The colours are viridis, by N. Smith and S. van der Walt: as different as the numbers, for the colour-blind and in grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap, LogNorm, Normalize, to_rgba
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import NDArray

from fedsim.units import si
from fedsim.viz.topology_map.detail import IDLE, Colour

__all__ = ["UNCOVERED", "UNKNOWN", "Hues", "Quantity"]

Quantity = Literal["snr", "class", "rate"]

UNCOVERED, UNKNOWN = -2, -1
"""The steps of a sensor that the air does not reach, and of one that it reaches though its number is not known."""
_STEPS = 256
_MOST_PIECES = 8
"""Different colours in one cell that stands for its sensors."""
_WORDS = {"snr": "SNR of the uplink", "class": "coverage class", "rate": "rate of the uplink"}
_CLASSES = ("normal", "robust", "extreme")


class Hues:
    """The colours of sensors at time zero of a *seed*.

    *values* are those of the sensors called *names*: decibels, classes or bit/s; not a number where there is none.
    *covered* says whom the air reaches now; one of them must have a finite value.
    """

    colours = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.97, _STEPS)), name="hues")
    """From the darkest to the lightest."""

    def __init__(
        self,
        quantity: Quantity,
        seed: int,
        names: Sequence[str],
        values: NDArray[np.float64],
        covered: NDArray[np.bool_],
    ) -> None:
        self.quantity, self.seed = quantity, seed
        known = covered & ~np.isnan(values)
        finite = values[known & np.isfinite(values)]
        low, high = float(finite.min()), float(finite.max())
        self.norm: Normalize
        """From values to 0 ... 1."""
        if quantity == "rate":
            self.norm = LogNorm(low, high) if low < high else LogNorm(low / 2, low * 2)
        elif quantity == "snr":
            self.norm = Normalize(low, high) if low < high else Normalize(low - 1, low + 1)
        else:
            self.norm = Normalize(-float(len(_CLASSES) - 1), 0.0)
        steps = np.where(covered, UNKNOWN, UNCOVERED)
        shown = np.clip(-values[known] if quantity == "class" else values[known], self.norm.vmin, self.norm.vmax)
        steps[known] = np.rint(self.norm(shown) * (_STEPS - 1))
        self.steps: dict[str, int] = dict(zip(names, steps.tolist(), strict=True))
        """By sensor: its place among the colours, or `UNCOVERED` or `UNKNOWN`."""

    @property
    def words(self) -> str:
        """What the colours show."""
        return _WORDS[self.quantity]

    @property
    def label(self) -> str:
        """Of its bar."""
        return f"{self.words}, {'dB' if self.quantity == 'snr' else 'bit/s'}"

    def colour(self, step: int) -> Colour:
        """White where nothing is known."""
        red, green, blue, opacity = IDLE if step < 0 else to_rgba(self.colours(step))
        return red, green, blue, opacity

    def piece(self, sensor: str) -> int:
        """The step of a sensor, one of a few."""
        step, wide = self.steps[sensor], _STEPS // _MOST_PIECES
        return step if step < 0 or self.quantity == "class" else step // wide * wide + wide // 2

    def classes(self) -> list[tuple[int, str]]:
        """The step and the name of each coverage class that some sensor is in."""
        if self.quantity != "class":
            return []
        of_class = {number: round(float(self.norm(-number)) * (_STEPS - 1)) for number in range(len(_CLASSES))}
        found = set(self.steps.values())
        names = {number: f"coverage class {number} ({name})" for number, name in enumerate(_CLASSES)}
        return [(step, names[number]) for number, step in of_class.items() if step in found]

    def marks(self) -> LogLocator | MaxNLocator:
        """Where its bar has marks."""
        low, high = float(self.norm.vmin or 0.0), float(self.norm.vmax or 1.0)
        if self.quantity == "rate" and high > 5 * low:
            return LogLocator(subs=(1.0,) if high > 3e3 * low else (1.0, 2.0, 5.0), numticks=20)
        return MaxNLocator(nbins=8 if self.quantity == "snr" else 5, steps=[1, 2, 5, 10])

    def text(self, value: float) -> str:
        """A mark of its bar."""
        if self.quantity == "rate":
            return si(value, "").strip()
        return f"{value:g}".replace("-", "\N{MINUS SIGN}")
