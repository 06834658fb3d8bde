"""Cohorts: who takes part."""

REGISTRY = {
    "random": "fedsim.protocols.cohorts.random:RandomCohort",
    "grouped": "fedsim.protocols.cohorts.grouped:GroupedCohort",
    "super_nodes": "fedsim.protocols.cohorts.super_nodes:SuperNodes",
}
