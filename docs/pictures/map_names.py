"""Draws docs/images/map_names.png: maps of four parks by networkx with names by adjustText, and by fedsim.

``python -m pip install adjustText`` first: only this picture needs it. Then ``python docs/pictures/map_names.py``. It
also prints how long each map took, and how many of its names lie on a marker, its own or another one: as networkx and
adjustText draw it, as fedsim does, and with names by adjustText at fedsim's places, which is not in the picture.

Maps beside each other are equally large and have the same nodes, markers and letters, and names for the same nodes. Of
networkx's layouts, Kamada and Kawai's is used: no wires cross, and the names of 40 factories have room. adjustText is
told where the markers are, and keeps wider margins than by default, which halves the names of 40 factories on markers;
still wider ones and other forces were tried, and do not help more.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from PIL import Image

from fedsim.topology.factories import FactoryPark
from fedsim.topology.graph import NodeKind, Topology
from fedsim.viz.style import DARK, RC
from fedsim.viz.topology_map.drawing import MARKERS, OUTLINE
from fedsim.viz.topology_map.figure import network_figure
from fedsim.viz.topology_map.places import Net, Places, Point, counted, lay_out

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/images/map_names.png"
TEN, CAMERAS = (
    yaml.safe_load((ROOT / "topologies" / name).read_text())
    for name in ("park-10-factories.yaml", "park-368-cameras.yaml")
)
PARKS = {
    "1 factory": {**TEN, "factories": 1},
    "10 factories": TEN,
    "40 factories": {**TEN, "factories": 40},
    "10 factories with 368 cameras": CAMERAS,
}
ROUNDS = 200
"""Of adjustText, which would else stop after a second, and so draw other maps on a faster computer."""
WIDTH, DPI = 560.0, 100
"""Of fedsim's maps without a margin, in points; pixels to an inch of the picture."""
LINE = "#D55E00"
"""From a name to its node."""


def names_of(net: Net, places: Places) -> dict[str, str]:
    """Node -> its name, for those nodes that fedsim's maps name here."""
    cells = {} if NodeKind.SENSOR in places.sizes else net.cells
    names = {node: f"{node}\n{counted(len(cells[node]), 'sensor')}" if node in cells else node for node in net.kinds}
    return names | {sensor: sensor for sensor in net.class_of if len(net.class_of) <= 12}


def markers(ax: Axes) -> list[Any]:
    """The boxes around all markers."""
    from adjustText import get_bboxes  # only here and below: whoever tests the pages need not have it

    drawn = [marks for marks in ax.collections if isinstance(marks, PathCollection)]
    return [box for marks in drawn for box in get_bboxes(marks, ax=ax)]


def name_by_forces(ax: Axes, names: Mapping[str, str], at: Mapping[str, Point], sensors: Mapping[str, Any]) -> float:
    """Write *names* as adjustText places them; returns the seconds that it took."""
    from adjustText import adjust_text

    began_s = process_time()
    look = {"ha": "center", "va": "center", "color": DARK, "zorder": 9.0, "linespacing": 1.1}
    texts = [ax.text(*at[node], name, size=6.5 if node in sensors else 7.5, **look) for node, name in names.items()]
    lines = {"arrowstyle": "-", "color": LINE, "linewidth": 0.7}
    adjust_text(texts, ax=ax, objects=markers(ax), expand=(1.2, 1.6), iter_lim=ROUNDS, arrowprops=lines)
    return process_time() - began_s


def networkx_map(title: str, topology: Topology, net: Net, places: Places, size: tuple[float, float]) -> Figure:
    """The network at the places of networkx, with names by adjustText."""
    figure = Figure(figsize=size, dpi=DPI)
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.01, y=1.0 - 0.1 / size[1], ha="left", weight="bold", size=12, color=DARK)
    ax = figure.add_axes((0.01, 0.01, 0.98, 0.94), aspect="equal", adjustable="datalim")
    ax.margins(0.1)
    ax.set_axis_off()
    graph = topology.graph if NodeKind.SENSOR in places.sizes else topology.infrastructure
    at = nx.kamada_kawai_layout(graph)
    widths = [1.4 if edge in topology.infrastructure.edges else 0.5 for edge in graph.edges]
    nx.draw_networkx_edges(graph, at, ax=ax, edge_color=OUTLINE, width=widths)
    looks = {kind: (shape, DARK, "white") for kind, (shape, _) in MARKERS.items()}
    for kind, (shape, face, edge) in (looks | {NodeKind.SENSOR: ("o", "white", DARK)}).items():
        nodes = [node for node, its_kind in graph.nodes(data="kind") if its_kind == kind]
        area, width = places.sizes.get(kind, 0.0) ** 2, 0.16 * places.sizes.get(kind, 0.0)
        look = {"node_shape": shape, "node_color": face, "edgecolors": edge, "linewidths": min(0.8, width)}
        nx.draw_networkx_nodes(graph, at, nodes, node_size=area, ax=ax, **look)
    name_by_forces(ax, names_of(net, places), at, net.class_of)
    return figure


def on_markers(figure: Figure) -> int:
    """How many names of a map lie on a marker."""
    figure.draw_without_rendering()
    ax = figure.axes[0]
    spots = np.array([ax.transData.transform(box.get_points()).ravel() for box in markers(ax)])
    found = 0
    for name in (text.get_window_extent() for text in ax.texts):
        beside = (spots[:, :2] >= name.max - 1.0) | (spots[:, 2:] <= name.min + 1.0)  # who only touches lies beside
        found += not beside.any(axis=1).all()
    return found


def pixels(figure: Figure) -> Any:
    """A map as an image, with lines where the next ones follow."""
    file = BytesIO()
    figure.savefig(file, dpi=DPI, format="png")
    image = np.array(Image.open(file).convert("RGB"))
    image[-1:], image[:, -1:] = 0xC3, 0xC3
    return image


def row(name: str, settings: dict[str, Any]) -> Any:
    """Both maps of a park, as one image."""
    topology = FactoryPark.model_validate(settings).build()
    net = Net(topology)
    places = lay_out(net, WIDTH)
    names, found = names_of(net, places), {}

    began_s = process_time()
    own = network_figure(f"{name}: fedsim", net)
    took_s = process_time() - began_s
    assert len(own.axes[0].texts) == len(names)
    found["fedsim"] = took_s, on_markers(own)
    right = pixels(own)

    began_s = process_time()
    other = networkx_map(f"{name}: networkx, adjustText", topology, net, places, tuple(own.get_size_inches()))
    took_s = process_time() - began_s
    found["networkx, adjustText"] = took_s, on_markers(other)

    for text in list(own.axes[0].texts):
        text.remove()
    at = dict(places.nodes)
    for station, cell in net.cells.items():
        at |= zip(cell, map(tuple, places.sensors[station].tolist()), strict=True)
    took_s = name_by_forces(own.axes[0], names, at, net.class_of)
    found["only adjustText, at fedsim's places"] = took_s, on_markers(own)

    for what, (took_s, covering) in found.items():
        print(f"{name}: {what}: {took_s:.1f} s of a processor; {covering} of {len(names)} names on markers", flush=True)
    return np.hstack([pixels(other), right])


if __name__ == "__main__":
    with mpl.rc_context({**RC, "figure.dpi": DPI}):
        picture = np.vstack([row(name, settings) for name, settings in PARKS.items()])
    image = Image.fromarray(picture).quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    image.save(PICTURE, optimize=True)
    print(PICTURE)
