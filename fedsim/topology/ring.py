"""Factories whose edge servers form a ring of wires, with one or several ways from the ring to the cloud.

When a wire of the ring breaks, the other way round remains. Leaves out the time that switches need to notice (the media
redundancy protocol, IEC 62439-2, has settings for at most 10 to 500 ms).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from annotated_types import Ge
from pydantic import model_validator

from fedsim.errors import Misfit
from fedsim.settings import DeviceCount, NonNegative, Positive, PositiveOrInfinite
from fedsim.topology.factories import FactorySettings
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import circle, numbered
from fedsim.topology.sketch import Sketch

__all__ = ["Ring"]


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

    @model_validator(mode="after")
    def _enough_factories(self) -> Self:
        if self.gateways > self.factories:
            problem = f"gateways={self.gateways} must be at most the number of factories, {self.factories}"
            raise Misfit(f"{problem}; a factory has one edge server", "gateways")
        return self

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
