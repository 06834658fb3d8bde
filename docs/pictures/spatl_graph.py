"""Draws docs/images/spatl_graph.png: ResNet-20 as SPATL's agent sees it, and one of its convolutions.

``python docs/pictures/spatl_graph.py``
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedsim.models.convolutions import SAMPLES, skeleton_of
from fedsim.models.resnet import ResNet
from fedsim.viz.save import save_figure
from fedsim.viz.style import GREY, RC

PICTURE = Path(__file__).resolve().parents[1] / "images/spatl_graph.png"
CONVOLUTION, SHORTCUT = "#0072B2", "#D55E00"
SHOWN = 3
"""Channels of the convolution that is shown."""


def draw_model(axes: Axes) -> None:
    """Feature maps in two lines, the second from right to left."""
    graph = skeleton_of(ResNet(depth=20).table((3, 32, 32), 10)).graph()
    half = len(graph) // 2
    at = {
        node: (place, 0.0) if place < half else (2 * half - 1 - place, -1.0) for place, node in enumerate(graph.nodes)
    }
    labels = {node: SAMPLES if node == SAMPLES else str(data["filters"]) for node, data in graph.nodes(data=True)}
    nx.draw_networkx_nodes(graph, at, ax=axes, node_size=560, node_color="white", edgecolors=GREY)
    nx.draw_networkx_labels(graph, at, labels, ax=axes, font_size=6.5)
    for kind, colour, bend in (("convolution", CONVOLUTION, 0.0), ("shortcut", SHORTCUT, -0.5)):
        edges = [edge for edge in graph.edges if graph.edges[edge]["kind"] == kind]
        nx.draw_networkx_edges(
            graph,
            at,
            edges,
            ax=axes,
            edge_color=colour,
            node_size=560,
            arrowsize=8,
            connectionstyle=f"arc3,rad={bend}",
        )
    axes.set_title("the model: feature maps, with their filters")
    axes.set_ylim(-1.7, 0.7)


def draw_convolution(axes: Axes) -> None:
    """The small graph of one convolution."""
    graph, at = nx.DiGraph(), {"source": (0.0, 0.0), "sink": (3.0, 0.0)}
    for channel in range(SHOWN):
        nx.add_path(graph, ["source", f"in {channel + 1}", f"out {channel + 1}", "sink"])
        height = (SHOWN - 1) / 2 - channel
        at |= {f"in {channel + 1}": (1.0, height), f"out {channel + 1}": (2.0, height)}
    nx.draw_networkx(
        graph, at, ax=axes, node_size=700, node_color="white", edgecolors=GREY, font_size=7, edge_color=GREY
    )
    axes.set_title(f"one convolution, {SHOWN} channels")
    axes.margins(0.2)


def main() -> None:
    """Both, side by side."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(10.0, 3.2), layout="constrained")
        model, convolution = figure.subplots(1, 2, width_ratios=(2.6, 1.0))
        draw_model(model)
        draw_convolution(convolution)
        for axes in (model, convolution):
            axes.set_axis_off()
        lines = [Line2D([], [], color=colour) for colour in (CONVOLUTION, SHORTCUT)]
        figure.legend(lines, ["convolution", "shortcut"], loc="outside lower center", ncols=2)
        save_figure(figure, PICTURE)


if __name__ == "__main__":
    main()
