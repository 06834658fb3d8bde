"""Ways to spread samples over clients. One class and one line per partition."""

REGISTRY = {
    "natural": "fedsim.data.partition.natural:Natural",
    "iid": "fedsim.data.partition.iid:Iid",
    "dirichlet": "fedsim.data.partition.dirichlet:Dirichlet",
    "shards": "fedsim.data.partition.iid:Shards",
    "classes_per_client": "fedsim.data.partition.classes_per_client:ClassesPerClient",
    "factory_preference": "fedsim.data.partition.factory_preference:FactoryPreference",
    "quantity_skew": "fedsim.data.partition.dirichlet:QuantitySkew",
}
