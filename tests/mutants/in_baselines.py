"""Faults in server rules, and in what they send and are told."""

from __future__ import annotations

from mutants.fault import Fault

RULES = "fedsim/learning/rules/"
CONTROL_VARIATES = "fedsim/learning/objectives/control_variates.py"
LOOPS = "tests/laws/test_baselines_learn_like_plain_loops.py"
SENT = ("tests/protocols/test_bytes_of_baselines.py",)
COMPOSED = ("tests/protocols/test_what_composes.py::test_a_combination_runs_or_is_refused_for_a_reason",)
NORMALISED = f"{LOOPS}::test_running_statistics_are_averaged_and_parameters_are_stepped"


def loop(label: str, training: str = "momentum-batched") -> tuple[str, ...]:
    """The comparison of a baseline with the loop of its paper."""
    return (f"{LOOPS}::test_a_baseline_is_the_loop_of_its_paper[{training}-{label}]",)


FAULTS = (
    Fault(
        "running statistics are stepped",
        RULES + "optimiser.py",
        'if f"{part}.{name}" in self.averaged:',
        "if False:",
        (f"{NORMALISED}[fedadam]",),
    ),
    Fault(
        "FedNova normalises running statistics",
        RULES + "fednova.py",
        'mean if f"{part}.{name}" in self.averaged else change',
        "change",
        (f"{NORMALISED}[fednova]",),
    ),
    Fault(
        "FedNova divides by steps, whatever the momentum",
        "fedsim/protocols/round_trip.py",
        "world.training.gradient_weight(work.steps, task.objective.pull or 0.0)",
        "float(work.steps)",
        loop("fednova"),
    ),
    Fault(
        "SCAFFOLD divides by steps, whatever the momentum",
        CONTROL_VARIATES,
        "given.training.gradient_weight(given.steps)",
        "given.steps",
        loop("scaffold"),
    ),
    Fault(
        "a client's own control is not taken from its gradients",
        CONTROL_VARIATES,
        "gradient.sub_(own[name])",
        "pass",
        (f"{LOOPS}::test_who_is_missing_counts_nowhere[scaffold-finish]",),
    ),
    Fault(
        "the server's control is the mean of those who took part",
        RULES + "scaffold.py",
        "1 / at.clients",
        "1 / len(updates)",
        loop("scaffold"),
    ),
    Fault(
        "v begins at zero",
        RULES + "adaptive.py",
        "self.tau**2 if self.v0 is None else self.v0",
        "0.0",
        loop("fedadagrad"),
    ),
    Fault(
        "an accuracy below that of guessing counts",
        "fedsim/learning/operations/weigh.py",
        "max(self.least_accuracy, one)",
        "one",
        loop("ida_intrac floored"),
    ),
    Fault(
        "a part has what belongs to the whole model beside it",
        "fedsim/protocols/site.py",
        "self._rule.bytes_beside(table, part)",
        "self._rule.bytes_beside(table)",
        SENT,
    ),
    Fault(
        "who skips its calibration sends nothing beside its classifier",
        "fedsim/protocols/exchanges/calibration.py",
        "self.up_bytes - coded + in_full",
        "in_full",
        SENT,
    ),
    Fault(
        "who has not trained may have something to tell",
        "fedsim/protocols/combination.py",
        "objective.tells and not exchange.always_trains(interval)",
        "False",
        COMPOSED,
    ),
    Fault(
        "a rule steps what its round has not exchanged",
        RULES + "changes.py",
        "for part in updates[0].model}",
        'for part in state["model"]}',
        ("tests/laws/test_rules_step_the_parts_of_a_round.py",),
    ),
)
