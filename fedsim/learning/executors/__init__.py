"""How the graph's operations are computed on this machine."""

REGISTRY = {
    "serial": "fedsim.learning.executors.serial:Serial",
    "processes": "fedsim.learning.executors.processes:Processes",
    "batched": "fedsim.learning.executors.batched.executor:Batched",
}
