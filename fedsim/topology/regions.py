"""Several regional clouds, each with factories of its own, joined with each other or in a ring.

The cloud of the first region holds the global model unless the scenario says otherwise; the others are the entry points
of their regions, and only relay. Leaves out factories with wires to two clouds, which `explicit` can list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Annotated, Literal, Self

from annotated_types import Ge
from pydantic import model_validator

from fedsim.settings import DeviceCount, NonNegative, Positive, PositiveOrInfinite
from fedsim.topology.factories import FactorySettings
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import grid, numbered
from fedsim.topology.settings import refuse_too_many
from fedsim.topology.sketch import Sketch

__all__ = ["Regions"]


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

    @model_validator(mode="after")
    def _not_too_many_wires(self) -> Self:
        if self.joined == "mesh":
            refuse_too_many("wires between clouds", math.comb(self.regions, 2), "regions")
        return self

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
