"""Cohorts: who takes part."""

REGISTRY = {
    "random": "fedsim.protocols.cohorts.random:RandomCohort",
    "grouped": "fedsim.protocols.cohorts.grouped:GroupedCohort",
}
