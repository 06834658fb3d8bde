"""A network as a figure: one panel, or one for each protocol with its loads, and what is needed to read them.

All panels share the places and the scale. Leaves out how loads change during a run.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedsim.topology.graph import NodeKind
from fedsim.viz.names import legible, shortened
from fedsim.viz.style import DARK, GREY, RC, plain
from fedsim.viz.topology_map import drawing as marks
from fedsim.viz.topology_map.hues import UNCOVERED, Hues
from fedsim.viz.topology_map.loads import IDLE, UNSHARED, Measured
from fedsim.viz.topology_map.names import names_beside
from fedsim.viz.topology_map.places import Net, Places, counted, lay_out

__all__ = ["network_figure"]

_WIDTHS = {1: 560.0, 2: 380.0, 3: 300.0}  # columns -> of a panel; typographic points, as all lengths here
_LOOK = {**RC, "font.size": 8.0, "axes.titlesize": 9.5, "axes.titlepad": 26.0, "legend.borderpad": 0.0}
_LOOK = mpl.RcParams({**_LOOK, "legend.handletextpad": 0.5, "legend.handlelength": 1.6, "legend.columnspacing": 1.6})


def network_figure(
    title: str, net: Net, measured: Measured | None = None, seeds: int = 1, hues: Hues | None = None
) -> Figure:
    """The network *net*, without loads, or with what a run has *measured*, a panel for each protocol.

    The loads are means over so many *seeds*. Without loads, sensors may have *hues*.
    """
    protocols = list(measured.by_protocol) if measured else [""]
    columns = {1: 1, 2: 2, 4: 2}.get(len(protocols), 3)
    rows, wide, places = math.ceil(len(protocols) / columns), _WIDTHS[columns], lay_out(net, _WIDTHS[columns])
    scale, on_ground = measured or (hues if hues and hues.quantity != "class" else None), places.ground is not None
    width = columns * (wide + 12.0) + 44.0 * on_ground + (66.0 if scale else 0.0) + 12.0
    said = "\n".join(textwrap.wrap(" ".join(_caption(net, places, measured, seeds, hues)), int(width / 4.6)))
    bent = marks.bends(net, places)
    with mpl.rc_context(_LOOK):
        figure = Figure(figsize=(width / 72, 1.0), layout="compressed")
        FigureCanvasAgg(figure)
        figure.suptitle(plain(legible(shortened(title, 90))), x=0.01, ha="left", weight="bold", size=12, color=DARK)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for ax, protocol in zip(panels, protocols, strict=False):
            drawing = marks.Drawing(ax, net, places, measured, protocol, hues)
            drawing.draw(bent)
            if measured:
                ax.set_title(plain(legible(shortened(protocol, int(wide / 8)))))
                busiest = plain(legible(measured.busiest(protocol, int(wide / 15))))
                ax.annotate(busiest, (0, 1), (0, 2), "axes fraction", "offset points", size=8.0, color=GREY)
            ax.label_outer()
        for ax in panels[len(protocols) - columns : len(protocols)]:
            ax.tick_params(labelbottom=True)  # also where no panel follows in the last row
        for ax in panels[len(protocols) :]:
            ax.remove()
        if scale:
            words: dict[str, Any] = {"ticks": scale.ticks, "format": scale.format, "label": scale.label}
            bar = figure.colorbar(scale.scale, ax=panels[: len(protocols)], shrink=0.6, aspect=25, **words)
            bar.minorticks_off()
            bar.outline.set_visible(False)
        entries = list(_entries(net, places, measured, hues))
        for ncols in range(len(entries), 0, -1):
            legend = figure.legend(handles=entries, loc="outside lower left", ncols=ncols, title=said, alignment="left")
            extent = legend.get_window_extent()
            if extent.width <= 0.97 * figure.bbox.width or ncols == 1:
                break
            legend.remove()
        high = (places.frame[3] - places.frame[1]) / places.point
        height = 30 + rows * (high + 38 * bool(measured) + 10) + extent.height / figure.dpi * 72 + 34 * on_ground
        figure.set_size_inches(width / 72, height / 72)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # names are put where nothing moves any more
        parts = np.linspace(0.0, 1.0, 100)
        wires = [marks.curve(places.nodes[a], places.nodes[b], bend, parts) for (a, b), bend in bent.items()]
        names = names_beside(panels[0], net, places, wires)
        for ax in panels[: len(protocols)]:
            for name in names:
                ax.annotate(**name)
    return figure


def _entries(net: Net, places: Places, measured: Measured | None, hues: Hues | None) -> Iterator[Artist]:
    """A mark and what it means, with the number of those there are."""

    def mark(label: str, marker: str, face: Any, edge: Any, size: float) -> Line2D:
        style = {"marker": marker, "mfc": face, "mec": edge, "ms": size, "mew": 0.6}
        return Line2D([], [], linestyle="", label=plain(legible(label)), **style)

    sizes, counts, classes = places.sizes, sorted(map(len, net.cells.values())), net.class_sizes
    one_by_one = NodeKind.SENSOR in sizes
    for kind, (marker, noun) in marks.MARKERS.items():
        if kind in sizes and (count := len(net.of_kind(kind))):
            yield mark(counted(count, noun), marker, DARK, "white", 12.0 if kind == NodeKind.CLOUD else 7.0)
    if one_by_one and len(classes) == 1:
        yield mark(counted(sum(counts), "sensor"), "o", "white", DARK, 4.0)
    cells, most = counted(len(counts), "cell"), counted(counts[-1], "sensor")
    if not one_by_one:
        if NodeKind.BASE_STATION not in sizes and len(counts) > 1:
            cells = f"{len(counts):,} base stations, each a cell"
        cells += f" of {most}" if counts[0] == counts[-1] else f" of {counts[0]:,} to {most}"
    yield mark(cells, "o", marks.PLAIN_DISC, marks.OUTLINE, 10.0)
    for number, (name, count) in enumerate(classes.items()) if len(classes) > 1 else ():
        marker, colour = marks.class_look(number, coloured=not (measured or hues))
        shown = marker if one_by_one else "" if measured or hues else "s"
        yield mark(f"{count:,} of class {shortened(name, 24)}", shown, colour, DARK, 5.0)
    for step, label in hues.entries().items() if hues else ():
        edge = Hues.colour(step) if step == UNCOVERED else DARK
        shown = "s" if not one_by_one else "x" if step == UNCOVERED else "o"
        yield mark(label, shown, Hues.colour(step), edge, 5.0)
    if wires := net.wires.number_of_edges():
        yield Line2D([], [], color=UNSHARED, label=counted(wires, "wire"))
    if failing := len(net.failing):
        yield Line2D([], [], color=UNSHARED, linestyle=marks.FAILING, label=f"{failing:,} with planned outages")
    if measured and measured.has_idle:
        yield mark("nothing sent", "o", IDLE, marks.OUTLINE, 10.0)
    if measured and measured.has_unshared:
        yield mark("a channel for each sender", "o", UNSHARED, marks.OUTLINE, 10.0)


def _caption(net: Net, places: Places, measured: Measured | None, seeds: int, hues: Hues | None) -> Iterator[str]:
    """Sentences about the colours and the places."""
    if measured:
        utilised = "utilisation, the part of a channel's time that was used"
        what = utilised if measured.quantity == "utilisation" else "bytes put on a channel in the whole run"
        yield f"Colour: {what}{f', mean over {seeds} seeds' if seeds > 1 else ''}."
        yield "Each half of a wire has the colour of what the node at its end sends."
        shared = {len(loads) == 1 for every in measured.by_protocol.values() for loads in every.air.values()}
        halves = "uplink in its left half, downlink in its right half"
        both = "both directions together" + (f", or {halves}" if False in shared else ", as they share a channel")
        yield f"A disc is the air of a cell: {both if True in shared else halves}."
        if measured.has_unshared:
            yield "Where each sender has a channel of its own (grey) nothing can be full."
    elif hues:
        yield f"Colour: {hues.words} at time zero of seed {hues.seed}."
    if not measured and NodeKind.SENSOR not in places.sizes and (hues or len(net.class_sizes) > 1):
        yield f"Each cell is divided as its devices are among the {'colours' if hues else 'classes'}."
    yield from places.notes
