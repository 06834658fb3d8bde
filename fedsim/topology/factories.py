"""Factories, the building block of parks, rings and regions: one edge server, its base stations, sensors.

The topologies differ in how factories are joined. A park leaves out that they differ in size and machinery; `explicit`
lists a park node by node. In a ring, when a wire breaks, the other way round remains; left out is the time that
switches need to notice (the media redundancy protocol, IEC 62439-2, has settings for at most 10 to 500 ms). Of several
regions, the cloud of the first one holds the global model unless the scenario says otherwise; the others are the entry
points of their regions, and only relay. Left out are factories with wires to two clouds, which `explicit` can list.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, cycle, pairwise
from typing import Annotated, Literal

from annotated_types import Ge

from fedsim.errors import Misfit
from fedsim.settings import DeviceCount, NonNegative, Positive, PositiveOrInfinite, Several, key_rule
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import add_sensors, circle, grid, numbered
from fedsim.topology.settings import Name, TopologySettings, refuse_too_many
from fedsim.topology.sketch import Sketch

__all__ = ["FactoryPark", "FactorySettings", "Regions", "Ring"]


class FactorySettings(TopologySettings, ABC):
    """What is in a factory; the base of the topologies that are made of factories."""

    devices_per_factory: DeviceCount | None = None
    """Number of sensors in each factory."""
    devices: DeviceCount | None = None
    """Number of sensors in all factories together, shared out in order, as evenly as possible; instead of
    `devices_per_factory`."""
    stations_per_factory: DeviceCount = 1
    """Number of base stations in each factory; its sensors are shared out in order, as evenly as possible."""
    radius_m: Positive = 50.0
    """Sensors are spread evenly within this distance of their base station, in metres; stations are twice it apart."""
    device_classes: Several[Name] = ()
    """The sensors' device classes, dealt out in turn over the whole network; `[a, a, b]` gives two of three sensors
    class `a`. Left out, the scenario's default class."""
    backhaul_rate_bps: PositiveOrInfinite | None = None
    """Rate of a wire from cloud to edge server, in bit/s (`.inf` for no limit); left out, the scenario's default."""
    backhaul_delay_s: NonNegative | None = None
    """Propagation delay of that wire, in seconds; left out, the scenario's default."""
    lan_rate_bps: PositiveOrInfinite | None = None
    """Rate of a wire from edge server to base station, in bit/s; left out, the scenario's default."""
    lan_delay_s: NonNegative | None = None
    """Propagation delay of that wire, in seconds; left out, the scenario's default."""

    @property
    @abstractmethod
    def all_factories(self) -> int:
        """How many factories there are."""

    @property
    def all_devices(self) -> int:
        """How many sensors there are."""
        return self.devices or self.all_factories * (self.devices_per_factory or 0)

    @key_rule
    def _one_number_of_devices(self) -> None:
        if (self.devices_per_factory is None) == (self.devices is None):
            given = "neither" if self.devices is None else "both"
            raise ValueError(f"give either devices_per_factory or devices; {given} of them is given")
        if self.devices is not None and self.devices < self.all_factories:
            problem = f"devices={self.devices} must be at least {self.all_factories}, one for each factory"
            raise Misfit(problem, "devices")

    @key_rule
    def _not_too_many(self) -> None:
        refuse_too_many("base stations", self.all_factories * self.stations_per_factory, "stations_per_factory")
        refuse_too_many("sensors", self.all_devices, "devices_per_factory")

    def deal_devices(self) -> Iterator[str | None]:
        """The sensors' device classes, without end."""
        return cycle(self.device_classes or (None,))

    def factory_sizes(self) -> Iterator[int]:
        """Sensors in each factory, one after the other."""
        ends = (number * self.all_devices // self.all_factories for number in range(self.all_factories + 1))
        return (last - first for first, last in pairwise(ends))

    def add_factory(
        self, sketch: Sketch, factory: str, size: int, centre_m: tuple[float, float], devices: Iterator[str | None]
    ) -> str:
        """Add a factory of *size* sensors, whose nodes' names begin with *factory*; return its edge server.

        The edge server has no backhaul yet.
        """
        edge = f"{factory}/edge"
        sketch.add_node(edge, NodeKind.EDGE, position_m=centre_m)
        stations = numbered(f"{factory}/station", self.stations_per_factory)
        sensors = numbered(f"{factory}/sensor", size)
        first = 0
        places_m = grid(centre_m, len(stations), 2 * self.radius_m)
        for position, (station, station_m) in enumerate(zip(stations, places_m, strict=True), start=1):
            sketch.add_node(station, NodeKind.BASE_STATION, position_m=station_m)
            sketch.add_link(edge, station, rate_bps=self.lan_rate_bps, delay_s=self.lan_delay_s)
            last = position * len(sensors) // len(stations)
            add_sensors(sketch, station, station_m, sensors[first:last], self.radius_m, devices)
            first = last
        return edge

    def add_backhaul(self, sketch: Sketch, cloud: str, edge: str) -> None:
        """Join an edge server to its cloud."""
        sketch.add_link(cloud, edge, rate_bps=self.backhaul_rate_bps, delay_s=self.backhaul_delay_s)


class FactoryPark(FactorySettings):
    """Factories, each with an edge server, base stations and sensors, and a wire to the cloud.

    The nodes are called ``cloud``, ``factory-03/edge``, ``factory-03/station-1``, ``factory-03/sensor-017`` and so on,
    padded so that text order is client order.

    >>> park = FactoryPark(factories=2, devices_per_factory=3, stations_per_factory=2).build()
    >>> park.route("factory-1/sensor-3", "cloud")
    ('factory-1/sensor-3', 'factory-1/station-2', 'factory-1/edge', 'cloud')
    """

    name: Literal["factory_park"] = "factory_park"
    factories: DeviceCount
    """Number of factories."""
    factory_spacing_m: Positive = 500.0
    """Distance between neighbouring factories, which stand on a square grid, in metres."""

    @property
    def all_factories(self) -> int:
        """How many factories there are."""
        return self.factories

    def build(self) -> Topology:
        """The park, around (0, 0), with the cloud at no particular place."""
        sketch = Sketch()
        sketch.add_node("cloud", NodeKind.CLOUD)
        devices, sizes = self.deal_devices(), self.factory_sizes()
        places_m = grid((0.0, 0.0), self.factories, self.factory_spacing_m)
        for factory, centre_m in zip(numbered("factory", self.factories), places_m, strict=True):
            edge = self.add_factory(sketch, factory, next(sizes), centre_m, devices)
            self.add_backhaul(sketch, "cloud", edge)
        return Topology.of(sketch)


class Ring(FactorySettings):
    """Factories whose edge servers are joined in a ring, of which some are linked to the cloud.

    The nodes are called as in `factory_park`: ``cloud``, ``factory-03/edge``, ``factory-03/station-1``,
    ``factory-03/sensor-017`` and so on, padded so that text order is client order.

    >>> ring = Ring(factories=4, devices_per_factory=1).build()
    >>> ring.route("factory-4/sensor-1", "cloud")
    ('factory-4/sensor-1', 'factory-4/station-1', 'factory-4/edge', 'factory-1/edge', 'cloud')
    """

    name: Literal["ring"] = "ring"
    factories: Annotated[DeviceCount, Ge(3)]
    """Number of factories, at least three."""
    gateways: DeviceCount = 1
    """How many edge servers have a wire to the cloud: that of the first factory, and others evenly spread."""
    ring_rate_bps: PositiveOrInfinite | None = None
    """Rate of a wire from edge server to edge server, in bit/s; left out, the scenario's default."""
    ring_delay_s: NonNegative | None = None
    """Propagation delay of that wire, in seconds; left out, the scenario's default."""
    factory_spacing_m: Positive = 500.0
    """Distance between neighbouring factories, which stand on a circle, in metres."""

    @property
    def all_factories(self) -> int:
        """How many factories there are."""
        return self.factories

    @key_rule
    def _enough_factories(self) -> None:
        if self.gateways > self.factories:
            problem = f"gateways={self.gateways} must be at most the number of factories, {self.factories}"
            raise Misfit(f"{problem}; a factory has one edge server", "gateways")

    def build(self) -> Topology:
        """The ring, around (0, 0), with the cloud at no particular place."""
        sketch = Sketch()
        sketch.add_node("cloud", NodeKind.CLOUD)
        devices, sizes = self.deal_devices(), self.factory_sizes()
        places_m = circle((0.0, 0.0), self.factories, self.factory_spacing_m)
        edges = [
            self.add_factory(sketch, factory, next(sizes), centre_m, devices)
            for factory, centre_m in zip(numbered("factory", self.factories), places_m, strict=True)
        ]
        for number in range(self.gateways):
            self.add_backhaul(sketch, "cloud", edges[number * self.factories // self.gateways])
        for one, next_one in pairwise([*edges, edges[0]]):
            sketch.add_link(one, next_one, rate_bps=self.ring_rate_bps, delay_s=self.ring_delay_s)
        return Topology.of(sketch)


class Regions(FactorySettings):
    """Regions with a cloud and factories each; the clouds are joined in a mesh or a ring.

    The nodes are called ``region-2/cloud``, ``region-2/factory-03/edge``, ``region-2/factory-03/station-1``,
    ``region-2/factory-03/sensor-017`` and so on, padded so that text order is client order.

    >>> topology = Regions(regions=3, factories_per_region=1, devices_per_factory=2).build()
    >>> topology.clouds
    ('region-1/cloud', 'region-2/cloud', 'region-3/cloud')
    >>> topology.route("region-3/factory-1/edge", topology.cloud)
    ('region-3/factory-1/edge', 'region-3/cloud', 'region-1/cloud')
    """

    name: Literal["regions"] = "regions"
    regions: Annotated[DeviceCount, Ge(2)]
    """Number of regions, at least two; each has one cloud."""
    factories_per_region: DeviceCount
    """Number of factories in each region."""
    joined: Literal["mesh", "ring"] = "mesh"
    """mesh: every cloud has a wire to every other; ring: to the next one, and the last to the first."""
    core_rate_bps: PositiveOrInfinite | None = None
    """Rate of a wire from cloud to cloud, in bit/s; left out, the scenario's default."""
    core_delay_s: NonNegative | None = None
    """Propagation delay of that wire, in seconds; left out, the scenario's default."""
    factory_spacing_m: Positive = 500.0
    """Distance between neighbouring factories of a region, which stand on a square grid, in metres."""
    region_spacing_m: Positive = 50_000.0
    """Distance between the centres of neighbouring regions, which lie on a square grid, in metres."""

    @property
    def all_factories(self) -> int:
        """How many factories there are."""
        return self.regions * self.factories_per_region

    @key_rule
    def _not_too_many_wires(self) -> None:
        if self.joined == "mesh":
            refuse_too_many("wires between clouds", math.comb(self.regions, 2), "regions")

    def build(self) -> Topology:
        """The regions, around (0, 0), with the clouds at no particular places."""
        sketch = Sketch()
        devices, sizes = self.deal_devices(), self.factory_sizes()
        clouds = []
        places_m = grid((0.0, 0.0), self.regions, self.region_spacing_m)
        for region, region_m in zip(numbered("region", self.regions), places_m, strict=True):
            cloud = f"{region}/cloud"
            clouds.append(cloud)
            sketch.add_node(cloud, NodeKind.CLOUD)
            factories = numbered(f"{region}/factory", self.factories_per_region)
            centres_m = grid(region_m, self.factories_per_region, self.factory_spacing_m)
            for factory, centre_m in zip(factories, centres_m, strict=True):
                self.add_backhaul(sketch, cloud, self.add_factory(sketch, factory, next(sizes), centre_m, devices))
        for one, other in self._neighbours(clouds):
            sketch.add_link(one, other, rate_bps=self.core_rate_bps, delay_s=self.core_delay_s)
        return Topology.of(sketch)

    def _neighbours(self, clouds: Sequence[str]) -> Iterable[tuple[str, str]]:
        if self.joined == "mesh" or len(clouds) == 2:  # two in a ring have one wire, not two
            return combinations(clouds, 2)
        return pairwise([*clouds, clouds[0]])
