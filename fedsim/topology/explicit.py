"""A network written out node by node: the form that every other one can be turned into.

Leaves out layouts and numbering schemes, apart from `count`, which repeats one sensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Strict

from fedsim.errors import Misfit, UserError
from fedsim.settings import DeviceCount, NonNegative, PositiveOrInfinite, Settings, Several, key_rule
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import numbered
from fedsim.topology.settings import Name, Position, TopologySettings, refuse_too_many
from fedsim.topology.sketch import Sketch

__all__ = ["Explicit", "LinkSettings", "NodeSettings", "explicit_form", "to_explicit"]


class NodeSettings(Settings):
    """One node, or a number of sensors alike."""

    kind: Annotated[NodeKind, Strict(False)]
    """What the node is."""
    position_m: Position | None = None
    """Where it stands: x and y in metres."""
    device: Name | None = None
    """Its device class; left out, the scenario's default class."""
    attach: Name | None = None
    """The base station of a sensor: short for an entry in `links`."""
    count: DeviceCount | None = None
    """Stands for so many sensors alike, called `cam-01`, `cam-02` and so on after the key `cam`."""

    @key_rule
    def _only_sensors_attach_and_repeat(self) -> None:
        if self.kind != NodeKind.SENSOR:
            if self.attach is not None:
                raise ValueError(
                    f"attach={self.attach!r} is for sensors, and this is of kind {self.kind}; write an entry in links"
                )
            if self.count is not None:
                raise ValueError(
                    f"count={self.count} is for sensors, and this is of kind {self.kind}; write out each node"
                )

    def names(self, key: str) -> list[str]:
        """The names of the nodes that stand under *key*.

        >>> NodeSettings(kind="sensor", count=10).names("cam")[8:]
        ['cam-09', 'cam-10']
        >>> NodeSettings(kind="sensor").names("cam")
        ['cam']
        """
        return [key] if self.count is None else numbered(key, self.count)


class LinkSettings(Settings):
    """A link, both ways, between two nodes."""

    between: Annotated[tuple[Name, Name], Strict(False)]
    """The two nodes."""
    rate_bps: PositiveOrInfinite | None = None
    """Rate of a wire in bit/s (`.inf` for no limit); left out, the scenario's default."""
    delay_s: NonNegative | None = None
    """Propagation delay of a wire in seconds; left out, the scenario's default."""


class Explicit(TopologySettings):
    """Every node and every link, written out in the scenario or in a file; wires may form rings and meshes.

    The order of the sensors in `nodes` is the order of the clients.

    >>> nodes = {"cloud": {"kind": "cloud"}, "bs": {"kind": "base_station"}}
    >>> nodes["cam"] = {"kind": "sensor", "count": 2, "attach": "bs"}
    >>> Explicit(nodes=nodes, links=[{"between": ["cloud", "bs"], "rate_bps": 1e9}]).build().sensors
    ('cam-1', 'cam-2')
    """

    name: Literal["explicit"] = "explicit"
    nodes: dict[Name, NodeSettings]
    """Name -> node."""
    links: Several[LinkSettings] = ()
    """The wires, and links of sensors that have no `attach`."""

    @key_rule
    def _is_a_network(self) -> None:
        sensors = sum(node.count or 1 for node in self.nodes.values() if node.kind == NodeKind.SENSOR)
        refuse_too_many("sensors", sensors, "nodes")
        try:
            self.build()
        except Misfit as error:
            section, *inside = error.key
            if section == "nodes" and len(inside) == 1:  # a node's name, which need not be its key
                raise Misfit(error.problem, *self.key_of(str(inside[0]))) from error
            raise
        except UserError as error:  # a ValueError gets the place in the file
            raise ValueError(str(error)) from error

    def key_of(self, node: str) -> tuple[str, ...]:
        """``nodes`` and the key of *node*, which may stand for several."""
        key = node if node in self.nodes else node.rpartition("-")[0]
        return ("nodes", key) if key in self.nodes else ()

    def build(self) -> Topology:
        """The network. Raises `UserError` for what `Topology` refuses, unknown and duplicate names and links."""
        return self._network

    @cached_property
    def _network(self) -> Topology:
        """Built once, as it was when it was checked: nobody changes a network."""
        sketch = Sketch()
        for key, node in self.nodes.items():
            self._add(sketch, key, node)
        for key, node in self.nodes.items():
            if node.attach is not None:
                try:
                    for name in node.names(key):
                        sketch.add_link(name, node.attach)
                except UserError as error:
                    raise Misfit(f"nodes.{key}.attach: {error}", "nodes", key, "attach") from error
        for index, link in enumerate(self.links):
            try:
                sketch.add_link(*link.between, rate_bps=link.rate_bps, delay_s=link.delay_s)
            except UserError as error:
                raise Misfit(f"links[{index}]: {error}", "links", index) from error
        return Topology.of(sketch)

    def _add(self, sketch: Sketch, key: str, node: NodeSettings) -> None:
        for name in node.names(key):
            if name in sketch:  # keys differ, so one of the two comes from a count
                raise Misfit(
                    f"nodes.{key}: there is another node called {name!r}, and names must differ; rename one "
                    "(an entry with a count makes numbered names)",
                    "nodes",
                    key,
                )
            sketch.add_node(name, node.kind, position_m=node.position_m, device=node.device)


def to_explicit(topology: Topology) -> dict[str, Any]:
    """*topology* written out: plain dicts, lists, texts and numbers that `Explicit` turns back into an equal one."""
    graph = topology.graph
    nodes = {
        name: {
            "kind": str(node["kind"]),
            "position_m": None if node["position_m"] is None else list(node["position_m"]),
            "device": node["device"],
        }
        for name, node in graph.nodes(data=True)
    }
    return explicit_form(nodes, graph.edges(data=True))


def explicit_form(
    nodes: Mapping[str, Mapping[str, Any]], links: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """What `Explicit` takes, with None left out; a sensor's first plain link to a base station becomes its `attach`.

    >>> nodes = {"cam": {"kind": "sensor", "device": None}, "bs": {"kind": "base_station"}}
    >>> explicit_form(nodes, [("bs", "cam", {})])["nodes"]
    {'cam': {'kind': 'sensor', 'attach': 'bs'}, 'bs': {'kind': 'base_station'}}
    """
    written = {name: _given(node) for name, node in nodes.items()}
    wires = []
    for a, b, link in links:
        attributes = _given(link)
        sensor, station = (a, b) if _kind(nodes, a) == NodeKind.SENSOR else (b, a)
        air = (_kind(nodes, sensor), _kind(nodes, station)) == (NodeKind.SENSOR, NodeKind.BASE_STATION)
        if air and not attributes and "attach" not in written[sensor]:
            written[sensor]["attach"] = station
        else:
            wires.append({"between": [a, b], **attributes})
    return {"name": "explicit", "nodes": written, "links": wires}


def _kind(nodes: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    return nodes[name]["kind"] if name in nodes else None


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None}
