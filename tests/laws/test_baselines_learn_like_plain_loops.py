"""Each baseline is the plain loop of its paper, in double precision, whoever trains and whatever is lost or late."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import digit_runs
import normalised_net
import pytest
from baseline_loop import BaselineLoop, selected
from paper_servers import SERVERS, Weights
from tiers import mostly_long

from fedsim import registry
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.scenario.schema import Scenario

EXACT = 1e-10
ROUNDS, COHORT = 3, 6
KEYS: dict[str, dict[str, Any]] = {
    "fedavgm, slower": {"name": "fedavgm", "server": {"beta": 0.5, "learning_rate": 0.5}, "weighting": "uniform"},
    "fedadagrad from zero": {"name": "fedadagrad", "server": {"v0": 0.0, "beta1": 0.3, "tau": 1e-2}},
    "fedadam corrected": {"name": "fedadam", "server": {"bias_correction": True, "beta2": 0.9, "learning_rate": 0.02}},
    "fedyogi corrected": {"name": "fedyogi", "server": {"bias_correction": True, "beta1": 0.5}, "weighting": "uniform"},
    "fednova, all equal": {"name": "fednova", "weighting": "uniform"},
    "scaffold by samples": {"name": "scaffold", "server": {"learning_rate": 0.5}, "weighting": "samples"},
    "ida by samples": {"name": "ida", "server": {"norm": 2, "epsilon": 0.1}, "weighting": "samples"},
    "ida_intrac floored": {"name": "ida_intrac", "server": {"least_accuracy": 0.3}, "weighting": "samples"},
}
"""Each key of each rule, away from its default."""
CASES: dict[str, dict[str, Any]] = {name: {"name": name} for name in SERVERS} | KEYS
TRAININGS = {
    "plain": {"training.learning_rate": 0.1, "training.epochs": 2},
    "momentum": {"training.learning_rate": 0.02, "training.momentum": 0.9},
}
NORMALISED = {"model": {"name": "torch_module", "path": f"{normalised_net.__file__}:NormalisedNet"}}


STEPPED = [*SERVERS, "fedadam corrected", "scaffold by samples"]
"""Cases that are tried with batch normalisation: what other keys do is the same for any tensor."""


def scenario(training: str, *, normalised: bool = False) -> Scenario:
    """All cases on one seed."""
    labels = STEPPED if normalised else CASES
    protocols = [{**CASES[label], "clients": COHORT, "label": label} for label in labels]
    changes = {"protocols": protocols, "stop.rounds": ROUNDS, **TRAININGS[training]}
    return digit_runs.scenario(changes | (NORMALISED if normalised else {}))


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Results of all cases, made when they are first asked for."""

    @cache
    def made(training: str, executor: str, normalised: bool = False) -> Results:
        folder = tmp_path_factory.mktemp("run") / "run"
        whole = scenario(training, normalised=normalised)
        return run(whole, out=folder, executor=executor, workers=1, precision="float64")

    return made


def apart(one: Weights, other: Weights) -> float:
    """The largest difference between two models of the same tensors."""
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def test_every_server_rule_is_held_to_its_paper() -> None:
    """Or its preset is missing here."""
    presets = {name: registry.load("protocols", name) for name in registry.names("protocols")}
    own = {name for name, preset in presets.items() if (rule := preset.model_fields.get("server")) and (
        rule.default is not None and rule.default.name != "mean")}
    assert own == SERVERS.keys()
    rules = {presets[name].model_fields["server"].default.name for name in own}
    assert rules | {"mean"} == set(registry.names("rules"))


@pytest.mark.parametrize("label", CASES)
@pytest.mark.parametrize(
    ("training", "executor"),
    mostly_long(product(TRAININGS, ["serial", "batched"]), now=[("plain", "serial"), ("momentum", "batched")]),
)
def test_a_baseline_is_the_loop_of_its_paper(label: str, training: str, executor: str, learned: Any) -> None:
    loop = BaselineLoop(scenario(training), CASES[label])
    expected = loop.run(selected(ROUNDS, COHORT))
    assert len(loop.steps_seen) > 3  # or FedNova would be FedAvg
    found = digit_runs.weights(learned(training, executor), label)
    assert apart(found, expected) < EXACT


@pytest.mark.parametrize("label", STEPPED)
def test_running_statistics_are_averaged_and_parameters_are_stepped(label: str, learned: Any) -> None:
    loop = BaselineLoop(scenario("momentum", normalised=True), CASES[label], normalised=True)
    start = loop.w
    expected = loop.run(selected(ROUNDS, COHORT))
    assert set(loop.server.statistics) == {"norm.running_mean", "norm.running_var"}
    assert all((loop.w[name] - start[name]).abs().max() > 1e-3 for name in start)
    found = digit_runs.weights(learned("momentum", "serial", normalised=True), label)
    assert apart(found, expected) < EXACT
