"""Each baseline is the plain loop of its paper, in double precision, whoever trains and whatever is lost or late."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product
from typing import Any

import digit_runs
import normalised_net
import pytest
from asked import LATE, MISSING, asked_in, selected, with_worlds
from baseline_loop import BaselineLoop
from paper_servers import SERVERS, Weights
from plain_loop import DEVICES
from tiers import mostly_long

from fedsim import registry
from fedsim.experiment.gc_policy import set_aside_for_good
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.protocols.world import World
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
    "ida by samples": {"name": "ida", "server": {"norm": "l2", "epsilon": 0.1}, "weighting": "samples"},
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
        set_aside_for_good()  # PyTorch has been loaded by now; each protocol's end would look at all of it
        return run(whole, out=folder, executor=executor, workers=1, precision="float64")

    return made


def apart(one: Weights, other: Weights) -> float:
    """The largest difference between two models of the same tensors."""
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def test_every_server_rule_is_held_to_its_paper() -> None:
    """Or its preset is missing here, or in another file of loops."""
    presets = {name: registry.load("protocols", name).model_fields.get("server") for name in SERVERS}
    rules = {server.default.name for server in presets.values() if server is not None}
    assert rules | {"mean", "gate_average", "salient_mean"} == set(registry.names("rules"))


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


# -- lost and late -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def missed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Results and worlds of all protocols where updates are lost and late, made when they are first asked for."""

    @cache
    def made(late_transfers: str) -> tuple[Scenario, Results, dict[str, World]]:
        protocols = [{"name": name, **LATE} for name in SERVERS]
        changes = MISSING | TRAININGS["momentum"] | {"protocols": protocols, "network.late_transfers": late_transfers}
        whole = digit_runs.scenario(changes)
        set_aside_for_good()
        results, worlds = with_worlds(whole, tmp_path_factory.mktemp("missed") / "run")
        return whole, results, worlds

    return made


each_end = pytest.mark.parametrize("late_transfers", ["finish", "cancel"])


@each_end
@pytest.mark.parametrize("name", SERVERS)
def test_who_is_missing_counts_nowhere(name: str, late_transfers: str, missed: Any) -> None:
    whole, results, worlds = missed(late_transfers)
    answers = asked_in(worlds[name])
    rounds = results.rounds[results.rounds["protocol"] == name]
    assert [sum(one.arrives for one in asked) for asked in answers] == rounds["participants"].tolist()
    assert rounds["lost"].sum() > 2 and rounds["late"].sum() > 1
    assert not all(one.arrives for asked in answers for one in asked)
    expected = BaselineLoop(whole, {"name": name}).run(answers)
    assert apart(digit_runs.weights(results, name), expected) < EXACT


@each_end
def test_a_client_whose_update_is_lost_keeps_its_new_control_and_the_server_never_hears_of_it(
    late_transfers: str, missed: Any
) -> None:
    whole, results, worlds = missed(late_transfers)
    answers = asked_in(worlds["scaffold"])
    kept, forgotten = (
        BaselineLoop(whole, {"name": "scaffold"}).run(answers, forgets_what_is_lost=forgets)
        for forgets in (False, True)
    )
    found = digit_runs.weights(results, "scaffold")
    assert apart(found, kept) < EXACT
    assert apart(found, forgotten) > 1e-4  # somebody came again, and what was lost made a difference


@each_end
def test_who_has_trained_has_a_control_through_rounds_without_it_and_nobody_else_has(
    late_transfers: str, missed: Any
) -> None:
    """That it is the same one after a pause, the loop above says."""
    _, _, worlds = missed(late_transfers)
    world, answers = worlds["scaffold"], asked_in(worlds["scaffold"])
    rounds = {client: [n for n, asked in enumerate(answers) if client in dict(asked)] for client in range(DEVICES)}
    assert max(later - before for of in rounds.values() for before, later in pairwise(of)) > 1
    kept = {client.index: set(client.kept.get("objective", {})) for client in world.clients}
    assert kept == {client: {"own_control"} if of else set() for client, of in rounds.items()}
    senders = set(world.trace.hops.column("client").tolist())
    never_asked = [client for client in world.clients if client.index not in senders]
    assert never_asked
    assert not any(client.kept for client in never_asked)
