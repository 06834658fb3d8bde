"""Server rules: how updates become the next model."""

REGISTRY = {
    "mean": "fedsim.learning.rules.mean:Mean",
    "gate_average": "fedsim.learning.rules.gate_average:GateAverage",
}
