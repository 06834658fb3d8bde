"""An industrial network: sensors hang off base stations by air, and wires join these with edge servers and clouds.

Leaves out sensors that relay for others, sensors that move between base stations, and wires that go one way only.
What is broken for a while is not the topology's matter: `fedsim.topology.routing` finds ways around it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import networkx as nx

from fedsim.errors import UserError, nearest
from fedsim.topology.checks import NodeKind, refuse_islands, sensors_in_their_cells, some_clouds
from fedsim.topology.routing import next_hops
from fedsim.topology.sketch import Sketch

__all__ = ["NodeKind", "Topology"]


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """A checked, frozen network; two are equal when nodes, links, their attributes and the sensors' order are.

    *graph* is copied. A node has the attributes ``kind``, ``position_m`` (x, y in metres, or None) and ``device`` (the
    name of a device class, or None); a link has ``rate_bps`` (bit/s, may be infinite) and ``delay_s``, both None
    where the scenario's default holds. In the given graph only ``kind`` is required; other attributes are dropped.
    A link between a sensor and a base station is air, and its cell's radio sets its rate; every other link is a wire.
    Wires may form rings and meshes.

    Raises `UserError` unless there is a cloud, at least one sensor, every sensor is linked to exactly one base station
    and nothing else, everything is connected to the first cloud, and the numbers make sense.

    >>> graph = nx.Graph([("cam-1", "bs"), ("cam-2", "bs"), ("bs", "cloud")])
    >>> kinds = {"cam-1": "sensor", "cam-2": "sensor", "bs": "base_station", "cloud": "cloud"}
    >>> nx.set_node_attributes(graph, kinds, "kind")
    >>> topology = Topology(graph)
    >>> topology
    Topology(2 sensors, 1 base station, 0 edges, 1 cloud)
    >>> topology.route("cloud", "cam-2")
    ('cloud', 'bs', 'cam-2')
    """

    graph: nx.Graph[str]
    infrastructure: nx.Graph[str] = field(init=False)
    """The graph without its sensors: what relays, and the wires in between."""
    sensors: tuple[str, ...] = field(init=False)
    """In the order of the graph's nodes, which is canonical: a client's index is its position here."""
    clouds: tuple[str, ...] = field(init=False)
    """In the order of the graph's nodes."""
    _cells: dict[str, str] = field(init=False)
    """Sensor -> its base station."""
    _towards: dict[str, dict[str, str]] = field(init=False)
    """Target -> node -> the next node on its way there, for the targets asked for so far."""

    def __post_init__(self) -> None:
        self._settle(Sketch.of(self.graph).release())

    @classmethod
    def of(cls, sketch: Sketch) -> Topology:
        """The network that was drawn, without a copy: *sketch* is empty afterwards. Raises as the constructor does."""
        topology = cls.__new__(cls)
        topology._settle(sketch.release())
        return topology

    def _settle(self, graph: nx.Graph[str]) -> None:
        infrastructure = _without_sensors(graph)
        clouds = some_clouds(infrastructure)
        cells = sensors_in_their_cells(graph)
        _share_links(graph, cells)
        towards = {clouds[0]: next_hops(infrastructure, clouds[0])}
        refuse_islands(graph, infrastructure, clouds[0], towards[clouds[0]])
        object.__setattr__(self, "graph", nx.freeze(graph))
        object.__setattr__(self, "infrastructure", nx.freeze(infrastructure))
        object.__setattr__(self, "sensors", tuple(cells))
        object.__setattr__(self, "_cells", cells)
        object.__setattr__(self, "clouds", clouds)
        object.__setattr__(self, "_towards", towards)

    @property
    def cloud(self) -> str:
        """The first cloud: it holds the global model, unless the scenario's ``network.server`` names another node."""
        return self.clouds[0]

    @cached_property
    def station_of(self) -> array[int]:
        """For each sensor, the position of its base station among all base stations."""
        numbers = {station: number for number, station in enumerate(self._stations)}
        return array("l", (numbers[station] for station in self._cells.values()))

    @cached_property
    def mast_of(self) -> array[int]:
        """For each base station, the position of the first one at the same place, which may be itself."""
        nodes = self.infrastructure.nodes
        first: dict[Any, int] = {}
        for number, station in enumerate(self._stations):
            first.setdefault(nodes[station]["position_m"] or station, number)
        return array("l", (first[nodes[station]["position_m"] or station] for station in self._stations))

    @property
    def _stations(self) -> Iterator[str]:
        relays = self.infrastructure.nodes(data=True)
        return (name for name, node in relays if node["kind"] is NodeKind.BASE_STATION)

    def route(self, source: str, target: str) -> tuple[str, ...]:
        """The nodes on the way from *source* to *target*, both included, by the rule of `fedsim.topology.routing`.

        Many ways that share the end that is no sensor cost one search of the infrastructure, and O(hops) for each.
        Raises `UserError` when there is no such node.

        >>> ring = nx.cycle_graph(["cloud", "hall-1", "hall-2"])
        >>> ring.add_edge("hall-2", "cam")
        >>> kinds = {"cloud": "cloud", "hall-1": "edge", "hall-2": "base_station", "cam": "sensor"}
        >>> nx.set_node_attributes(ring, kinds, "kind")
        >>> Topology(ring).route("cam", "hall-1")
        ('cam', 'hall-2', 'hall-1')
        """
        first, last = self._relay(source), self._relay(target)
        if source == target:
            return (source,)
        if first == source and (source in self._towards or last != target):
            way = self._way(last, source)[::-1]  # which is the same one, and serves all ways that begin at the source
        else:
            way = self._way(first, last)
        return (*(source,)[: first != source], *way, *(target,)[: last != target])

    def towards(self, target: str) -> Mapping[str, str]:
        """For every node of the infrastructure but *target*, the next one on its way there; kept for the next time.

        Raises `UserError` when *target* is a sensor, or no node.
        """
        if target not in self._towards:
            graph = self.infrastructure if target in self.infrastructure else self.graph  # which explains what is wrong
            self._towards[target] = next_hops(graph, target)
        return MappingProxyType(self._towards[target])

    def cell_of(self, sensor: str) -> str:
        """The base station of *sensor*.

        Raises `UserError` when *sensor* is not a sensor.
        """
        cell = self._cells.get(sensor)
        if cell is None:
            self._require(sensor)
            kind = self.graph.nodes[sensor]["kind"]
            raise UserError(f"{sensor!r} is of kind {kind}; only a sensor has a cell, so name a sensor")
        return cell

    def _relay(self, node: str) -> str:
        """Where the wires begin for *node*: its base station if it is a sensor, else itself."""
        return node if node in self.infrastructure else self.cell_of(node)

    def _way(self, source: str, target: str) -> list[str]:
        towards = self.towards(target)
        way = [source]
        while way[-1] != target:
            way.append(towards[way[-1]])
        return way

    def _require(self, node: str) -> None:
        if node not in self.graph:
            raise UserError(f"the topology has no node {node!r}{nearest(node, self.graph)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return self.sensors == other.sensors and bool(nx.utils.graphs_equal(self.graph, other.graph))

    def __repr__(self) -> str:
        counts = Counter(node["kind"] for _, node in self.graph.nodes(data=True))
        parts = (f"{counts[kind]} {kind.replace('_', ' ')}{'' if counts[kind] == 1 else 's'}" for kind in NodeKind)
        return f"Topology({', '.join(parts)})"


def _share_links(graph: nx.Graph[str], cells: Mapping[str, str]) -> None:
    """Let all sensors of a base station have one mapping of neighbours: each has this one neighbour, by one link."""
    adjacency = graph._adj  # type: ignore[attr-defined]
    of_cell: dict[str, dict[str, Any]] = {}
    for sensor, station in cells.items():
        adjacency[sensor] = of_cell.setdefault(station, adjacency[sensor])


def _without_sensors(graph: nx.Graph[str]) -> nx.Graph[str]:
    """*graph*'s infrastructure, nodes and links in order; what is as it was there is shared with it."""
    infrastructure: nx.Graph[str] = nx.Graph()
    # networkx's own methods would copy each mapping: a hundred thousand of them in a large network
    relays, adjacency = infrastructure._node, infrastructure._adj  # type: ignore[attr-defined]
    relays.update((name, node) for name, node in graph.nodes(data=True) if node["kind"] != NodeKind.SENSOR)
    for name in relays:
        links = graph._adj[name]  # type: ignore[attr-defined]
        if links.keys() <= relays.keys():
            adjacency[name] = links
        else:
            adjacency[name] = {other: link for other, link in links.items() if other in relays}
    return infrastructure
