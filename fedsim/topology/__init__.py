"""Who stands where and is linked to whom: sensors, base stations, edge servers and clouds."""

from __future__ import annotations

__all__ = ["REGISTRY"]

REGISTRY: dict[str, str] = {
    "star": "fedsim.topology.star:Star",
    "factory_park": "fedsim.topology.factory_park:FactoryPark",
    "tree": "fedsim.topology.tree:Tree",
    "ring": "fedsim.topology.ring:Ring",
    "regions": "fedsim.topology.regions:Regions",
    "explicit": "fedsim.topology.explicit:Explicit",
    "imported": "fedsim.topology.imported:Imported",
}
