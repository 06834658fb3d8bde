"""Who stands where and is linked to whom: sensors, base stations, edge servers and clouds."""

REGISTRY = {
    "star": "fedsim.topology.tree:Star",
    "factory_park": "fedsim.topology.factories:FactoryPark",
    "tree": "fedsim.topology.tree:Tree",
    "ring": "fedsim.topology.factories:Ring",
    "regions": "fedsim.topology.factories:Regions",
    "explicit": "fedsim.topology.explicit:Explicit",
    "imported": "fedsim.topology.imported:Imported",
}
