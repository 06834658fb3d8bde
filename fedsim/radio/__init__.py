"""Rates and link budgets of the radio technologies: numbers, without a clock."""

REGISTRY = {
    "fixed": "fedsim.radio.fixed:Fixed",
    "lte": "fedsim.radio.lte.radio:Lte",
    "lte_m": "fedsim.radio.lte_m.radio:LteM",
    "nb_iot": "fedsim.radio.nb_iot.radio:NbIot",
    "nr": "fedsim.radio.nr.radio:Nr",
    "redcap": "fedsim.radio.nr.redcap:RedCap",
    "shannon": "fedsim.radio.shannon:Shannon",
    "trace": "fedsim.radio.trace:Trace",
}
