"""How figures look: one colour for a protocol in all of them, told apart by the colour-blind, and a calm background.

Colours: M. Okabe and K. Ito, *Color universal design*, 2008, without its yellow, which is too pale for a line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib import RcParams
from matplotlib.colors import to_rgb

__all__ = ["GREY", "RC", "Look", "looks", "plain"]

GREY = "#5f6670"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_LINES = ("-", "--", "-.", ":")  # lines that lie on each other are still seen
_FADED = 0.45

RC = RcParams(
    {
        "axes.edgecolor": "#c3c8ce",
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.labelcolor": "#33383e",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlepad": 10,
        "figure.constrained_layout.h_pad": 0.1,
        "figure.constrained_layout.w_pad": 0.1,
        "figure.dpi": 150,
        "font.family": ["DejaVu Sans"],
        "font.size": 9.5,
        "grid.color": "#e4e7ea",
        "grid.linewidth": 0.8,
        "legend.frameon": False,
        "svg.hashsalt": "fedsim",
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": "#33383e",
        "ytick.labelcolor": "#33383e",
    }
)
"""Settings of matplotlib that make equal results equal files."""


@dataclass(frozen=True)
class Look:
    """The look of one protocol's lines and bars."""

    colour: str
    line: str

    def faded(self) -> tuple[float, float, float]:
        """The colour, lighter but opaque."""
        red, green, blue = (1 - _FADED * (1 - part) for part in to_rgb(self.colour))
        return red, green, blue


def looks(protocols: Iterable[str]) -> dict[str, Look]:
    """A look for each of the protocols, by the order in which they are first named; 28 of them differ.

    >>> looks(["fedavg", "fedprox", "fedavg"])["fedprox"]
    Look(colour='#D55E00', line='--')
    """
    return {
        protocol: Look(_COLOURS[position % len(_COLOURS)], _LINES[position % len(_LINES)])
        for position, protocol in enumerate(dict.fromkeys(protocols))
    }


def plain(title: str) -> str:
    """*title* as matplotlib shows it unchanged: a dollar is no mathematics, a leading underscore does not hide it.

    >>> plain("5$"), plain("_mine")
    ('5\\\\$', ' _mine')
    """
    shown = title.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
