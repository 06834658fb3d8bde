"""An industrial park: the cloud, an edge server in every factory, base stations on its LAN, sensors around them.

Leaves out that factories differ in size and machinery; `explicit` lists a park node by node.
"""

from __future__ import annotations

from itertools import cycle
from typing import Literal

import networkx as nx

from fedsim.settings import Count, NonNegative, Positive, PositiveOrInfinite, Several
from fedsim.topology.graph import Topology
from fedsim.topology.kinds import NodeKind
from fedsim.topology.layout import around, grid
from fedsim.topology.settings import Name, TopologySettings

__all__ = ["FactoryPark"]


class FactoryPark(TopologySettings):
    """Factories of equal size, each with an edge server, base stations and sensors.

    The nodes are called ``cloud``, ``factory-03/edge``, ``factory-03/station-1``, ``factory-03/sensor-017`` and so on,
    padded so that text order is client order.

    >>> park = FactoryPark(factories=2, devices_per_factory=3, stations_per_factory=2).build()
    >>> park.route("factory-1/sensor-3", "cloud")
    ('factory-1/sensor-3', 'factory-1/station-2', 'factory-1/edge', 'cloud')
    """

    name: Literal["factory_park"] = "factory_park"
    factories: Count
    """Number of factories."""
    devices_per_factory: Count
    """Number of sensors in each factory."""
    stations_per_factory: Count = 1
    """Number of base stations in each factory; its sensors are shared out in order, as evenly as possible."""
    factory_spacing_m: Positive = 500.0
    """Distance between neighbouring factories, which stand on a square grid, in metres."""
    radius_m: Positive = 50.0
    """Sensors are spread evenly within this distance of their base station, in metres; stations are twice it apart."""
    device_classes: Several[Name] = ()
    """The sensors' device classes, dealt out in turn over the whole park; `[a, a, b]` gives two of three sensors class
    `a`. Left out, the scenario's default class."""
    backhaul_rate_bps: PositiveOrInfinite | None = None
    """Rate of the wire from cloud to edge server, in bit/s (`.inf` for no limit); left out, the scenario's default."""
    backhaul_delay_s: NonNegative | None = None
    """Propagation delay of that wire, in seconds; left out, the scenario's default."""
    lan_rate_bps: PositiveOrInfinite | None = None
    """Rate of the wire from edge server to base station, in bit/s; left out, the scenario's default."""
    lan_delay_s: NonNegative | None = None
    """Propagation delay of that wire, in seconds; left out, the scenario's default."""

    def build(self) -> Topology:
        """The park, around (0, 0), with the cloud at no particular place."""
        graph: nx.Graph[str] = nx.Graph()
        graph.add_node("cloud", kind=NodeKind.CLOUD)
        devices = cycle(self.device_classes or (None,))
        digits = len(str(self.factories))
        for number, centre_m in enumerate(grid((0.0, 0.0), self.factories, self.factory_spacing_m), start=1):
            self._add_factory(graph, f"factory-{number:0{digits}}", centre_m, devices)
        return Topology(graph)

    def _add_factory(
        self, graph: nx.Graph[str], factory: str, centre_m: tuple[float, float], devices: cycle[str | None]
    ) -> None:
        edge = f"{factory}/edge"
        graph.add_node(edge, kind=NodeKind.EDGE, position_m=centre_m)
        graph.add_edge("cloud", edge, rate_bps=self.backhaul_rate_bps, delay_s=self.backhaul_delay_s)
        station_digits, sensor_digits = len(str(self.stations_per_factory)), len(str(self.devices_per_factory))
        first = 1
        for number, station_m in enumerate(grid(centre_m, self.stations_per_factory, 2 * self.radius_m), start=1):
            station = f"{factory}/station-{number:0{station_digits}}"
            graph.add_node(station, kind=NodeKind.BASE_STATION, position_m=station_m)
            graph.add_edge(edge, station, rate_bps=self.lan_rate_bps, delay_s=self.lan_delay_s)
            last = number * self.devices_per_factory // self.stations_per_factory
            for sensor_number, position_m in enumerate(around(station_m, last - first + 1, self.radius_m), start=first):
                sensor = f"{factory}/sensor-{sensor_number:0{sensor_digits}}"
                graph.add_node(sensor, kind=NodeKind.SENSOR, position_m=position_m, device=next(devices))
                graph.add_edge(station, sensor)
            first = last + 1
