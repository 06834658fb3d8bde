"""How those who send at the same time share a channel."""

REGISTRY = {
    "serial": "fedsim.network.disciplines.serial:Serial",
    "dedicated": "fedsim.network.disciplines.dedicated:Dedicated",
    "fair": "fedsim.network.disciplines.fair:Fair",
}
