"""A regular tree: every node of a level has equally many below it, down to base stations with equally many sensors.

Its smallest form is a star: one cell, and one wire from there to the cloud. Leaves out spare wires; `ring` and
`regions` have some. A star leaves out factories and edge servers; `factory_park` has them.
"""

from __future__ import annotations

import math
from itertools import accumulate, cycle, repeat
from operator import mul
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen

from fedsim.errors import Misfit
from fedsim.settings import DeviceCount, NonNegative, Positive, PositiveOrInfinite, Several, key_rule
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import add_sensors, grid, numbered
from fedsim.topology.settings import Name, TopologySettings, WireSettings, refuse_too_many
from fedsim.topology.sketch import Sketch

__all__ = ["Star", "Tree"]


class Star(TopologySettings):
    """Sensors around one base station, which a wire links to the cloud.

    The nodes are called ``cloud``, ``station`` and ``sensor-001`` and so on, padded so that text order is client order.

    >>> Star(devices=10).build().route("sensor-01", "cloud")
    ('sensor-01', 'station', 'cloud')
    """

    name: Literal["star"] = "star"
    devices: DeviceCount
    """Number of sensors."""
    radius_m: Positive = 100.0
    """The sensors stand evenly spread within this distance of the base station, in metres."""
    device: Name | None = None
    """The sensors' device class; left out, the scenario's default class."""
    backhaul_rate_bps: PositiveOrInfinite | None = None
    """Rate of the wire from cloud to base station, in bit/s (`.inf` for no limit); left out, the scenario's default."""
    backhaul_delay_s: NonNegative | None = None
    """Propagation delay of that wire, in seconds; left out, the scenario's default."""

    def build(self) -> Topology:
        """The star, with the base station at (0, 0) and the cloud at no particular place."""
        sketch = Sketch()
        sketch.add_node("cloud", NodeKind.CLOUD)
        sketch.add_node("station", NodeKind.BASE_STATION, position_m=(0.0, 0.0))
        sketch.add_link("cloud", "station", rate_bps=self.backhaul_rate_bps, delay_s=self.backhaul_delay_s)
        sensors = numbered("sensor", self.devices)
        add_sensors(sketch, "station", (0.0, 0.0), sensors, self.radius_m, repeat(self.device))
        return Topology.of(sketch)


class Tree(TopologySettings):
    """A cloud, levels of edge servers, base stations and sensors; all nodes of a level branch alike.

    The nodes are called ``cloud``, ``edge-2``, ``edge-2/edge-07``, ``edge-2/edge-07/station-1``,
    ``edge-2/edge-07/station-1/sensor-017`` and so on, padded so that text order is client order.

    >>> tree = Tree(branching=(2, 10), devices_per_station=3).build()
    >>> tree
    Topology(60 sensors, 20 base stations, 2 edges, 1 cloud)
    >>> tree.route(tree.sensors[-1], "cloud")
    ('edge-2/station-10/sensor-3', 'edge-2/station-10', 'edge-2', 'cloud')
    """

    name: Literal["tree"] = "tree"
    branching: Annotated[Several[DeviceCount], MinLen(1), MaxLen(16)]
    """How many nodes hang below each one, on at most 16 levels from the cloud; those of the last are base stations."""
    devices_per_station: DeviceCount
    """Number of sensors of each base station."""
    wires: Several[WireSettings] = ()
    """What the wires are like, one entry for each level, from the cloud; left out, the scenario's default."""
    radius_m: Positive = 50.0
    """Sensors are spread evenly within this distance of their base station, in metres; cells touch but do not overlap,
    and what hangs below one node stands on a square grid around it."""
    device_classes: Several[Name] = ()
    """The sensors' device classes, dealt out in turn over the whole tree; `[a, a, b]` gives two of three sensors class
    `a`. Left out, the scenario's default class."""

    @key_rule
    def _wires_of_all_levels(self) -> None:
        if self.wires and len(self.wires) != len(self.branching):
            raise Misfit(
                f"the wires of {len(self.wires)} levels are described, and there are {len(self.branching)} in "
                "branching; give an entry for each, {} where the scenario's default holds",
                "wires",
            )

    @key_rule
    def _not_too_many(self) -> None:
        refuse_too_many("base stations and edge servers", sum(accumulate(self.branching, mul)), "branching")
        refuse_too_many("sensors", math.prod(self.branching) * self.devices_per_station, "devices_per_station")

    def build(self) -> Topology:
        """The tree, around (0, 0), with the cloud at no particular place."""
        sketch = Sketch()
        sketch.add_node("cloud", NodeKind.CLOUD)
        devices = cycle(self.device_classes or (None,))
        parents = [("cloud", "", (0.0, 0.0))]
        for level, branches in enumerate(self.branching):
            stations = level == len(self.branching) - 1
            kind, word = (NodeKind.BASE_STATION, "station") if stations else (NodeKind.EDGE, "edge")
            wire = self.wires[level] if self.wires else WireSettings()
            children = []
            for parent, prefix, centre_m in parents:
                places_m = grid(centre_m, branches, self._spacing_m(level))
                for name, place_m in zip(numbered(f"{prefix}{word}", branches), places_m, strict=True):
                    sketch.add_node(name, kind, position_m=place_m)
                    sketch.add_link(parent, name, rate_bps=wire.rate_bps, delay_s=wire.delay_s)
                    if stations:
                        sensors = numbered(f"{name}/sensor", self.devices_per_station)
                        add_sensors(sketch, name, place_m, sensors, self.radius_m, devices)
                    children.append((name, f"{name}/", place_m))
            parents = children
        return Topology.of(sketch)

    def _spacing_m(self, level: int) -> float:
        """The width of all that hangs below one node of *level*, counted from 0 below the cloud."""
        return 2 * self.radius_m * math.prod(math.ceil(math.sqrt(below)) for below in self.branching[level + 1 :])
