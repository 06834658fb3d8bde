"""Faults in closed-form costs, and in what a run tells them."""

from __future__ import annotations

from mutants.fault import Fault

FEDGS = "fedsim/metrics/cost_models/fedgs.py"
CLOSED_FORMS = "fedsim/scenario/closed_forms.py"
SCHEMA = "fedsim/scenario/schema.py"
TIMES = "tests/paper/test_fedgs_times.py"
COSTS = "tests/metrics/test_cost_models.py"

FAULTS = (
    Fault(
        "selecting devices takes no time in FedGS's formula",
        FEDGS,
        "* (self.selection_s + self.update_s),",
        "* self.update_s,",
        (f"{TIMES}::test_the_cost_model_is_fedgs_on_this_network",),
    ),
    Fault(
        "the rounds of FedGS's formula are FedAvg's",
        FEDGS,
        "if facts.at_stations is not None:",
        "if facts.at_stations is not None and not facts.rounds:",
        (f"{TIMES}::test_the_cost_model_is_fedgs_on_this_network",),
    ),
    Fault(
        "more devices take part in a formula than a station has",
        CLOSED_FORMS,
        "min(cohort.devices, max(members))",
        "cohort.devices",
        (f"{COSTS}::test_of_stations_the_formulas_know_how_many_devices_take_part",),
    ),
    Fault(
        "a formula is not asked for what it lacks for stations",
        SCHEMA,
        "if form.at_stations:",
        "if not self.protocols:",
        (f"{COSTS}::test_iterations_at_base_stations_have_a_formula_of_their_own",),
    ),
)
