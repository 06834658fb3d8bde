"""What simulated devices can do: compute time per sample, and whether they are busy."""

REGISTRY = {
    "flops": "fedsim.devices.flops:Flops",
    "per_sample": "fedsim.devices.per_sample:PerSample",
    "distribution": "fedsim.devices.distribution:Distribution",
}
