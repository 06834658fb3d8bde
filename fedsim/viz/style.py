"""How figures look: one colour for a protocol in all of them, told apart by the colour-blind, and a calm background.

Colours: M. Okabe and K. Ito, *Color universal design*, 2008, without its yellow, which is too pale for a line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from matplotlib import RcParams
from matplotlib.colors import to_rgb

__all__ = ["COLOURS", "DARK", "GREY", "LINES", "PART_COLOURS", "RC", "Look", "looks", "plain"]

GREY = "#5f6670"
DARK = "#33383e"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Of protocols, in this order."""
PART_COLOURS = {
    "queueing": "#cc6677",
    "airtime": "#88ccee",
    "backhaul": "#332288",
    "work": "#ddcc77",
    "samples": "#44aa99",
    "server": "#117733",
    "deadline": "#aa4499",
    "outage": "#882255",
    "idle": "#dddddd",
}
"""Of the parts of a round, and of no protocol: P. Tol's muted colours (*Colour Schemes*, SRON technical note 2021)."""
Line: TypeAlias = Literal["-", "--", "-.", ":"]
LINES: tuple[Line, ...] = ("-", "--", "-.", ":")
"""Lines that lie on each other are still seen."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "*", "h")  # and told apart where there is no colour
_FADED = 0.45

RC = RcParams(
    {
        "axes.edgecolor": "#c3c8ce",
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.labelcolor": DARK,
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
        "pdf.fonttype": 42,  # letters stay letters, which journals ask for
        "svg.hashsalt": "fedsim",
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": DARK,
        "ytick.labelcolor": DARK,
    }
)
"""Settings of matplotlib that make equal results equal files."""


@dataclass(frozen=True)
class Look:
    """The look of one protocol's lines and bars."""

    colour: str
    line: Line
    marker: str = "o"

    def faded(self) -> tuple[float, float, float]:
        """The colour, lighter but opaque."""
        red, green, blue = (1 - _FADED * (1 - part) for part in to_rgb(self.colour))
        return red, green, blue

    def in_run(self, number: int) -> Look:
        """The same colour and marker, with the line of run *number*, from 0."""
        return Look(self.colour, LINES[number % len(LINES)], self.marker)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each of the names, by the order in which they first come; 56 of them differ.

    >>> looks(["fedavg", "fedprox", "fedavg"])["fedprox"]
    Look(colour='#D55E00', line='--', marker='s')
    """
    return {
        name: Look(COLOURS[position % len(COLOURS)], LINES[position % len(LINES)], _MARKERS[position % len(_MARKERS)])
        for position, name in enumerate(dict.fromkeys(names))
    }


def plain(title: str) -> str:
    """*title* as matplotlib shows it unchanged: a dollar is no mathematics, a leading underscore does not hide it.

    >>> plain("5$"), plain("_mine")
    ('5\\\\$', ' _mine')
    """
    shown = title.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
