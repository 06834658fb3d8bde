"""Networks to draw, tables of links for them, and what their pictures say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import matplotlib as mpl
import networkx as nx
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from fedsim.network.settings import NetworkSettings
from fedsim.topology.factories import FactoryPark, Regions, Ring
from fedsim.topology.graph import Topology
from fedsim.topology.tree import Star, Tree
from fedsim.viz.style import RC
from fedsim.viz.topology_map.figure import network_figure
from fedsim.viz.topology_map.hues import Hues
from fedsim.viz.topology_map.loads import Measured
from fedsim.viz.topology_map.places import Net

USED = {
    ("cell bs-1", "uplink"): 0.3,
    ("cell bs-1", "downlink"): 0.4,
    ("cell bs-2", "uplink"): 0.1,
    ("cell bs-2", "downlink"): 0.0,
    ("cloud -- edge", "uplink"): 0.02,
    ("cloud -- edge", "downlink"): 0.05,
}
Position = tuple[float, float]


def network(nodes: dict[str, str], links: Iterable[tuple[str, str]], at: dict[str, Position] | None = None) -> Topology:
    """A topology of named kinds; the nodes that *at* names have positions."""
    graph: nx.Graph[str] = nx.Graph()
    for name, kind in nodes.items():
        graph.add_node(name, kind=kind, position_m=(at or {}).get(name))
    graph.add_edges_from(links)
    return Topology(graph)


def plant(at: dict[str, Position] | None = None) -> Topology:
    """Cloud - edge - two base stations, with two sensors and one."""
    kinds = {"cloud": "cloud", "edge": "edge", "bs-1": "base_station", "bs-2": "base_station"}
    links = [("cloud", "edge"), ("edge", "bs-1"), ("edge", "bs-2"), ("bs-1", "a"), ("bs-1", "b"), ("bs-2", "c")]
    return network({**kinds, "a": "sensor", "b": "sensor", "c": "sensor"}, links, at)


def ring_of_edges(size: int, clouds: int = 1) -> Topology:
    """Edge servers in a ring, each with a base station and a sensor; every cloud is linked to one of them."""
    kinds = {f"cloud-{i}": "cloud" for i in range(clouds)}
    links = [(f"cloud-{i}", f"edge-{i * size // clouds}") for i in range(clouds)]
    for i in range(size):
        kinds |= {f"edge-{i}": "edge", f"bs-{i}": "base_station", f"cam-{i}": "sensor"}
        links += [(f"edge-{i}", f"edge-{(i + 1) % size}"), (f"edge-{i}", f"bs-{i}"), (f"bs-{i}", f"cam-{i}")]
    return network(kinds, links)


def without_positions(topology: Topology) -> Topology:
    """The same network, but nobody knows where anything stands."""
    graph = nx.Graph(topology.graph)
    nx.set_node_attributes(graph, None, "position_m")
    return Topology(graph)


@cache
def many() -> dict[str, Topology]:
    """Networks of all sorts."""
    park = FactoryPark(factories=10, devices_per_factory=37)
    return {
        "three nodes": network({"c": "cloud", "b": "base_station", "s": "sensor"}, [("c", "b"), ("b", "s")]),
        "plant": plant(),
        "plant in place": plant({"edge": (0.0, 0.0), "bs-1": (-40.0, 5.0), "bs-2": (40.0, 5.0)}),
        "star": Star(devices=12).build(),
        "park": park.build(),
        "park without positions": without_positions(park.build()),
        "halls": FactoryPark(factories=4, devices_per_factory=60, stations_per_factory=3).build(),
        "ring": Ring(factories=10, devices_per_factory=37, gateways=2).build(),
        "ring without positions": ring_of_edges(8),
        "ring with two clouds": ring_of_edges(9, clouds=2),
        "regions": Regions(regions=4, factories_per_region=6, devices_per_factory=20).build(),
        "tree": Tree(branching=(3, 4), devices_per_station=10).build(),
        "deep tree": Tree(branching=(2, 2, 2, 2), devices_per_station=3).build(),
        "wide tree": without_positions(Tree(branching=(10, 10), devices_per_station=2).build()),
    }


def settings(duplex: str = "shared", discipline: str = "serial", **more: Any) -> NetworkSettings:
    """Air of this kind, and wires."""
    return NetworkSettings.model_validate({"cell": cell(duplex, discipline), "link": {"rate_bps": 1e9}, **more})


def cell(duplex: str = "shared", discipline: str = "serial") -> dict[str, Any]:
    """Settings of a cell."""
    radio = {"name": "fixed", "uplink_bps": 1e6, "downlink_bps": 1e6}
    return {"radio": radio, "duplex": duplex, "discipline": {"name": discipline}}


def links_table(
    topology: Topology,
    utilisation: Callable[[str, str], float],
    protocols: Iterable[str] = ("fedavg",),
    seeds: Iterable[int] = (1,),
) -> pd.DataFrame:
    """What a run would leave, with this utilisation by link and direction, and a megabyte for each per cent."""
    cells = [f"cell {station}" for station in dict.fromkeys(map(topology.cell_of, topology.sensors))]
    wires = [f"{a} -- {b}" for a, b in topology.infrastructure.edges]
    rows = [
        (protocol, seed, link, direction, link in cells, 1e8 * used, used)
        for protocol in protocols
        for seed in seeds
        for link in (*cells, *wires)
        for direction in ("uplink", "downlink")
        for used in [utilisation(link, direction)]
    ]
    columns = ["protocol", "seed", "link", "direction", "access", "bytes", "utilisation"]
    return pd.DataFrame(rows, columns=columns)


def used(link: str, direction: str) -> float:
    """The utilisation of a channel of the `plant`."""
    return USED.get((link, direction), 0.01)


def picture(
    topology: Topology | Net, loads: Measured | None = None, seeds: int = 1, hues: Hues | None = None
) -> Figure:
    """A network as it is drawn."""
    net = topology if isinstance(topology, Net) else Net(topology)
    with mpl.rc_context(RC):
        figure = network_figure("tiny", net, loads, seeds, hues)
        FigureCanvasAgg(figure).draw()
    return figure


def entries(figure: Figure) -> list[str]:
    """What the legend says."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def caption(figure: Figure) -> str:
    """What stands above the legend."""
    return figure.legends[0].get_title().get_text().replace("\n", " ")


def scattered(figure: Figure) -> dict[str, list[PathCollection]]:
    """The markers of the first panel, by what they are."""
    found: dict[str, list[PathCollection]] = {}
    for drawn in figure.axes[0].collections:
        if type(drawn) is PathCollection and len(drawn.get_offsets()):
            found.setdefault(str(drawn.get_label()), []).append(drawn)
    return found
