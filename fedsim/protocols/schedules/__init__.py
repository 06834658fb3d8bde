"""Schedules: who waits for whom."""

REGISTRY = {
    "rounds": "fedsim.protocols.schedules.rounds:Rounds",
}
