"""Factories, the building block of parks, rings and regions: one edge server, its base stations, sensors.

Leaves out how factories are joined, which is what the topologies differ in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import cycle, pairwise
from typing import Self

from pydantic import model_validator

from fedsim.errors import Misfit
from fedsim.settings import DeviceCount, NonNegative, Positive, PositiveOrInfinite, Several
from fedsim.topology.graph import NodeKind
from fedsim.topology.layout import add_sensors, grid, numbered
from fedsim.topology.settings import Name, TopologySettings, refuse_too_many
from fedsim.topology.sketch import Sketch

__all__ = ["FactorySettings"]


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

    @model_validator(mode="after")
    def _one_number_of_devices(self) -> Self:
        if (self.devices_per_factory is None) == (self.devices is None):
            given = "neither" if self.devices is None else "both"
            raise ValueError(f"give either devices_per_factory or devices; {given} of them is given")
        if self.devices is not None and self.devices < self.all_factories:
            problem = f"devices={self.devices} must be at least {self.all_factories}, one for each factory"
            raise Misfit(problem, "devices")
        return self

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        refuse_too_many("base stations", self.all_factories * self.stations_per_factory, "stations_per_factory")
        refuse_too_many("sensors", self.all_devices, "devices_per_factory")
        return self

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
