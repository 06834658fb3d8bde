"""A network as a figure: one panel, or one for each protocol with its loads, and what is needed to read them.

All panels share the places and the scale. Leaves out how loads change during a run.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, replace
from functools import cached_property

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fedsim.viz.names import legible, shortened
from fedsim.viz.style import GREY, RC, plain
from fedsim.viz.topology_map.detail import DARK, Scale
from fedsim.viz.topology_map.drawing import draw_network
from fedsim.viz.topology_map.ground import on_the_ground
from fedsim.viz.topology_map.hues import Hues
from fedsim.viz.topology_map.labels import text_width
from fedsim.viz.topology_map.layers import in_layers
from fedsim.viz.topology_map.legend import caption, handles
from fedsim.viz.topology_map.loads import Measured
from fedsim.viz.topology_map.places import Net, Places

__all__ = ["lay_out", "network_figure"]

_WIDTHS = {1: 560.0, 2: 380.0, 3: 300.0}  # columns -> of a panel; typographic points, as all lengths here
_EDGE, _GAP = 12.0, 18.0
_TITLE = 24.0
_HEADER = 38.0  # of a panel
_BAR = 66.0
_TICKS = (42.0, 34.0)  # left of and below the ground's axes
_FONT = 8.0
_LINE = 11.5
_LEGEND_ROW = 16.0


def lay_out(net: Net, width: float) -> Places:
    """Places in a frame of *width* typographic points: on the ground if they differ and nodes are seen there."""
    if len({*net.positions.values(), *net.sensor_positions.values()}) < 2:
        return in_layers(net, width)
    return on_the_ground(net, width) or replace(in_layers(net, width), crowded=True)


def network_figure(
    title: str, net: Net, measured: Measured | None = None, seeds: int = 1, hues: Hues | None = None
) -> Figure:
    """The network *net*, without loads, or with what a run has *measured*, a panel for each protocol.

    The loads are means over so many *seeds*. Without loads, sensors may have *hues*.
    """
    panels = len(measured.by_protocol) if measured else 1
    columns = panels if panels <= 3 else 2 if panels == 4 else 3
    places = lay_out(net, _WIDTHS[columns])
    sheet = _Sheet(
        net, places, Scale(measured) if measured else None, columns, math.ceil(panels / columns), seeds, hues
    )
    with mpl.rc_context(RC):
        figure = Figure(figsize=(sheet.width / 72, sheet.height / 72))
        sheet.write(figure, _EDGE, sheet.height - _EDGE, shortened(title, 90), size=12, weight="bold")
        for number in range(panels):
            sheet.panel(figure, number)
        if sheet.has_bar:
            sheet.colour_bar(figure)
        sheet.foot(figure)
    return figure


@dataclass(frozen=True)
class _Sheet:
    """Where things stand on the paper, measured from its lower left."""

    net: Net
    places: Places
    scale: Scale | None
    columns: int
    rows: int
    seeds: int
    hues: Hues | None

    @property
    def has_bar(self) -> bool:
        """Whether colours are numbers."""
        return self.scale is not None or (self.hues is not None and self.hues.quantity != "class")

    @property
    def width(self) -> float:
        """Of the paper."""
        panels = self.columns * _WIDTHS[self.columns] + (self.columns - 1) * _GAP
        return _EDGE + self._left + panels + (_BAR if self.has_bar else 0.0) + _EDGE

    @property
    def height(self) -> float:
        """Of the paper."""
        below = _TICKS[1] if self.places.in_metres else 0.0
        return _EDGE + _TITLE + self.rows * (self._header + self.places.height_points) + below + self._foot + _EDGE

    @property
    def _left(self) -> float:
        return _TICKS[0] if self.places.in_metres else 0.0

    @property
    def _header(self) -> float:
        return _HEADER if self.scale else 0.0

    @property
    def _foot(self) -> float:
        return 4.0 + _LEGEND_ROW * len(self._legend_rows) + _LINE * len(self._caption)

    @cached_property
    def _caption(self) -> list[str]:
        text = " ".join(caption(self.net, self.places, self.scale, self.seeds, self.hues))
        letters = int((self.width - 2 * _EDGE) / (text_width("abcdefghij klmnopqrst", _FONT) / 21))
        return textwrap.wrap(text, letters)

    @cached_property
    def _legend_rows(self) -> list[list[Artist]]:
        """As many handles in a row as fit."""
        rows: list[list[Artist]] = [[]]
        left = 0.0
        for handle in handles(self.net, self.places, self.scale, self.hues):
            wide = text_width(str(handle.get_label()), _FONT) + 3.8 * _FONT
            if rows[-1] and left + wide > self.width - 2 * _EDGE:
                rows.append([])
                left = 0.0
            rows[-1].append(handle)
            left += wide
        return rows

    def write(self, figure: Figure, x: float, y: float, text: str, size: float, weight: str = "normal") -> None:
        """Text whose upper left is at a place."""
        colour = DARK if weight == "bold" else GREY
        place = (x / self.width, y / self.height)
        figure.text(
            *place, plain(legible(text)), va="top", fontsize=size, weight=weight, color=colour, linespacing=1.15
        )

    def panel(self, figure: Figure, number: int) -> None:
        """One protocol's network, or the network alone."""
        row, column = divmod(number, self.columns)
        wide, high = _WIDTHS[self.columns], self.places.height_points
        left = _EDGE + self._left + column * (wide + _GAP)
        top = self.height - _EDGE - _TITLE - row * (self._header + high) - self._header
        ax = figure.add_axes(
            (left / self.width, (top - high) / self.height, wide / self.width, high / self.height),
        )
        if self.scale is None:
            draw_network(ax, self.net, self.places, hues=self.hues)
            return
        protocol = list(self.scale.measured.by_protocol)[number]
        draw_network(ax, self.net, self.places, self.scale.measured.by_protocol[protocol], self.scale)
        self.write(figure, left, top + _HEADER - 2.0, shortened(protocol, int(wide / 8)), size=9.5, weight="bold")
        self.write(
            figure, left, top + _HEADER - 15.0, self.scale.measured.busiest(protocol, int(wide / 15)), size=_FONT
        )
        if column > 0:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
        if number + self.columns < len(self.scale.measured.by_protocol):
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)

    def colour_bar(self, figure: Figure) -> None:
        """What the colours mean, right of the panels."""
        high = self.places.height_points
        long = min(high, 260.0)
        top = self.height - _EDGE - _TITLE - self._header - (high - long) / 2
        cax = figure.add_axes(
            (
                (self.width - _EDGE - _BAR + 14.0) / self.width,
                (top - long) / self.height,
                11.0 / self.width,
                long / self.height,
            )
        )
        shown = self.hues or self.scale
        assert shown is not None
        bar = figure.colorbar(ScalarMappable(shown.norm, shown.colours), cax=cax)
        bar.minorticks_off()
        bar.locator = shown.marks()
        bar.formatter = FuncFormatter(lambda value, _: shown.text(value))
        bar.update_ticks()
        bar.set_label(shown.label)
        cax.tick_params(labelsize=_FONT)
        bar.outline.set_visible(False)

    def foot(self, figure: Figure) -> None:
        """What the marks mean, below the panels."""
        y = _EDGE + self._foot - 4.0
        for row in self._legend_rows:
            figure.legend(
                handles=row,
                loc="upper left",
                bbox_to_anchor=(_EDGE / self.width, y / self.height),
                ncols=len(row),
                fontsize=_FONT,
                borderpad=0.0,
                borderaxespad=0.0,
                handletextpad=0.5,
                handlelength=1.6,
                columnspacing=1.6,
            )
            y -= _LEGEND_ROW
        self.write(figure, _EDGE, y - 2.0, "\n".join(self._caption), size=_FONT)
