"""Server rules: how updates become the next model."""

REGISTRY = {
    "mean": "fedsim.learning.rules.mean:Mean",
    "momentum": "fedsim.learning.rules.momentum:Momentum",
    "adagrad": "fedsim.learning.rules.adaptive:Adagrad",
    "adam": "fedsim.learning.rules.adaptive:Adam",
    "yogi": "fedsim.learning.rules.adaptive:Yogi",
    "fednova": "fedsim.learning.rules.fednova:NormalisedMean",
    "scaffold": "fedsim.learning.rules.scaffold:ControlledMean",
    "salient_mean": "fedsim.learning.rules.salient_mean:SalientMean",
    "inverse_distance": "fedsim.learning.rules.inverse_distance:InverseDistance",
    "gate_average": "fedsim.learning.rules.gate_average:GateAverage",
}
