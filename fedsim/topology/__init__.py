"""Who stands where and is linked to whom: sensors, base stations, edge servers and one cloud."""

from __future__ import annotations

__all__ = ["REGISTRY"]

REGISTRY: dict[str, str] = {
    "star": "fedsim.topology.star:Star",
    "factory_park": "fedsim.topology.factory_park:FactoryPark",
    "explicit": "fedsim.topology.explicit:Explicit",
}
