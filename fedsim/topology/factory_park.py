"""An industrial park: the cloud, an edge server in every factory, base stations on its LAN, sensors around them.

Leaves out that factories differ in size and machinery; `explicit` lists a park node by node.
"""

from __future__ import annotations

from typing import Literal

from fedsim.settings import DeviceCount, Positive
from fedsim.topology.factories import FactorySettings
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import grid, numbered
from fedsim.topology.sketch import Sketch

__all__ = ["FactoryPark"]


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
