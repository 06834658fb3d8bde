"""Rates and link budgets of the radio technologies: numbers, without a clock."""

REGISTRY = {
    "fixed": "fedsim.radio.fixed:Fixed",
    "nb_iot": "fedsim.radio.nb_iot.radio:NbIot",
    "shannon": "fedsim.radio.shannon:Shannon",
    "trace": "fedsim.radio.trace:Trace",
}
