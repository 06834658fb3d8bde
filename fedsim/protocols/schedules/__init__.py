"""Schedules: who waits for whom."""

REGISTRY = {
    "rounds": "fedsim.protocols.schedules.rounds:Rounds",
    "compound_steps": "fedsim.protocols.schedules.compound_steps:CompoundSteps",
    "edge_rounds": "fedsim.protocols.schedules.edge_rounds:EdgeRounds",
}
