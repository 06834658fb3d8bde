"""One cell: sensors around a single base station, and one wire from there to the cloud.

Leaves out factories and edge servers; `factory_park` has them.
"""

from __future__ import annotations

from itertools import repeat
from typing import Literal

from fedsim.settings import DeviceCount, NonNegative, Positive, PositiveOrInfinite
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import add_sensors, numbered
from fedsim.topology.settings import Name, TopologySettings
from fedsim.topology.sketch import Sketch

__all__ = ["Star"]


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
