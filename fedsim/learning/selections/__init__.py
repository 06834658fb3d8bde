"""Selections: which filters of a trained extractor a client sends."""

REGISTRY = {
    "none": "fedsim.learning.selections.selection:NoSelection",
    "uniform": "fedsim.learning.selections.by_norm:Uniform",
    "l2_global": "fedsim.learning.selections.by_norm:L2Global",
    "random": "fedsim.learning.selections.at_random:Random",
    "gnn_ppo": "fedsim.learning.selections.gnn_ppo:GnnPpo",
}
