"""Closed-form costs as papers print them, beside the simulation and never mixed into it."""

REGISTRY = {
    "hfedms": "fedsim.metrics.cost_models.hfedms:HFedMSCost",
    "fedgsp": "fedsim.metrics.cost_models.fedgsp:FedGSPCost",
    "fedgs": "fedsim.metrics.cost_models.fedgs:FedGSCost",
}
