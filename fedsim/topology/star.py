"""One cell: sensors around a single base station, and one wire from there to the cloud.

Leaves out factories and edge servers; `factory_park` has them.
"""

from __future__ import annotations

from typing import Literal

import networkx as nx

from fedsim.settings import Count, NonNegative, Positive, PositiveOrInfinite
from fedsim.topology.graph import Topology
from fedsim.topology.kinds import NodeKind
from fedsim.topology.layout import around
from fedsim.topology.settings import Name, TopologySettings

__all__ = ["Star"]


class Star(TopologySettings):
    """Sensors around one base station, which a wire links to the cloud.

    The nodes are called ``cloud``, ``station`` and ``sensor-001`` and so on, padded so that text order is client order.

    >>> Star(devices=10).build().route("sensor-01", "cloud")
    ('sensor-01', 'station', 'cloud')
    """

    name: Literal["star"] = "star"
    devices: Count
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
        graph: nx.Graph[str] = nx.Graph()
        graph.add_node("cloud", kind=NodeKind.CLOUD)
        graph.add_node("station", kind=NodeKind.BASE_STATION, position_m=(0.0, 0.0))
        graph.add_edge("cloud", "station", rate_bps=self.backhaul_rate_bps, delay_s=self.backhaul_delay_s)
        digits = len(str(self.devices))
        for number, position_m in enumerate(around((0.0, 0.0), self.devices, self.radius_m), start=1):
            sensor = f"sensor-{number:0{digits}}"
            graph.add_node(sensor, kind=NodeKind.SENSOR, position_m=position_m, device=self.device)
            graph.add_edge("station", sensor)
        return Topology(graph)
