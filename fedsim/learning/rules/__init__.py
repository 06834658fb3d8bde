"""Server rules: how updates become the next model."""

REGISTRY = {
    "mean": "fedsim.learning.rules.mean:Mean",
}
