"""An industrial network is a tree: sensors hang off base stations by air, and wires lead from there to one cloud.

Leaves out redundant links and re-routing (between two nodes there is exactly one way), sensors that relay for others,
and sensors that move between base stations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import networkx as nx

from fedsim.errors import UserError, nearest
from fedsim.topology.checks import of_kind, only_cloud, parents_towards, refuse_misplaced_sensors, tidy
from fedsim.topology.kinds import NodeKind

__all__ = ["NodeKind", "Topology"]


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """A checked, frozen network; two are equal when nodes, links, their attributes and the sensors' order are.

    *graph* is copied. A node has the attributes ``kind``, ``position_m`` (x, y in metres, or None) and ``device`` (the
    name of a device class, or None); a link has ``rate_bps`` (bit/s, may be infinite) and ``delay_s``, both None
    where the scenario's default holds. In the given graph only ``kind`` is required; other attributes are dropped.
    A link between a sensor and a base station is air, and its cell's radio sets its rate; every other link is a wire.

    Raises `UserError` unless there is exactly one cloud, at least one sensor, every sensor is linked to exactly one
    base station and nothing else, everything is connected to the cloud, no links form a cycle, and the numbers make
    sense.

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
    sensors: tuple[str, ...] = field(init=False)
    """In the order of the graph's nodes, which is canonical: a client's index is its position here."""
    cloud: str = field(init=False)
    _parents: dict[str, str] = field(init=False)
    """Node -> next node towards the cloud."""

    def __post_init__(self) -> None:
        graph = tidy(self.graph)
        cloud = only_cloud(graph)
        refuse_misplaced_sensors(graph)
        object.__setattr__(self, "graph", nx.freeze(graph))
        object.__setattr__(self, "sensors", tuple(of_kind(NodeKind.SENSOR, graph)))
        object.__setattr__(self, "cloud", cloud)
        object.__setattr__(self, "_parents", parents_towards(cloud, graph))

    def route(self, source: str, target: str) -> tuple[str, ...]:
        """The nodes on the way from *source* to *target*, both included. Costs O(depth of the tree), not O(nodes).

        Raises `UserError` when there is no such node.
        """
        up, down = self._way_to_cloud(source), self._way_to_cloud(target)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:  # from the cloud back to where they meet
            up.pop()
            down.pop()
        return (*up, *reversed(down[:-1]))

    def cell_of(self, sensor: str) -> str:
        """The base station of *sensor*.

        Raises `UserError` when *sensor* is not a sensor.
        """
        self._require(sensor)
        kind = self.graph.nodes[sensor]["kind"]
        if kind != NodeKind.SENSOR:
            raise UserError(f"{sensor!r} is of kind {kind}; only a sensor has a cell, so name a sensor")
        return self._parents[sensor]

    def _way_to_cloud(self, node: str) -> list[str]:
        self._require(node)
        way = [node]
        while way[-1] != self.cloud:
            way.append(self._parents[way[-1]])
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
