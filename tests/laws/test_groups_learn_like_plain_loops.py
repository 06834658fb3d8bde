"""Protocols on groups, on a network that takes no time, are the plain PyTorch loops of their papers, bit for bit.

The loop (``group_loop.py``) is written from the papers, with one client after the other.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
import torch
from group_loop import GroupLoop
from plain_loop import DEVICES, differences
from tiers import mostly_long

from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.grouping.settings import RandomGroups
from fedsim.scenario.schema import Scenario

STREAM = {"data.stream": {"samples": 20}}
RANDOM = {"grouping": {"name": "random", "once": False}}
GROWING = {"name": "logarithmic", "beta": 4}


def learned(results: Results, *, label: str = "") -> tuple[dict[str, torch.Tensor], list[float]]:
    """The final model, and the accuracy after each round."""
    rounds = results.rounds[results.rounds["protocol"] == label] if label else results.rounds
    name = label or results.rounds["protocol"][0]
    return digit_runs.weights(results, name), rounds["accuracy"].tolist()


def trace_of(results: Results, label: str) -> str:
    (trace,) = [row["trace_hash"] for row in results.manifest["runs"] if row["protocol"] == label]
    return str(trace)


# -- groups of one, blocks of one, one group --------------------------------------------------------------------------


@pytest.fixture
def groups_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random groups that are not random: the first clients are the first group."""

    def equal_groups(self: RandomGroups, counts: Any, number: int, rng: object) -> np.ndarray:
        length = len(counts) // number
        return np.arange(number * length).reshape(number, length)

    monkeypatch.setattr(RandomGroups, "equal_groups", equal_groups)


@pytest.mark.usefixtures("groups_in_order")
@pytest.mark.parametrize(
    ("weighting", "changes"), mostly_long(product(["samples", "uniform"], [{}, STREAM]), now=[("samples", STREAM)])
)
def test_stp_with_one_client_in_each_group_is_fedavg(tmp_path: Path, weighting: str, changes: dict[str, Any]) -> None:
    growth = {"name": "constant", "beta": 1000}
    alone = {"name": "stp", "sampling_rate": 0.45, "growth": growth, **RANDOM}
    protocols = [{"name": "fedavg", "clients": 9}, alone]
    protocols = [protocol | {"weighting": weighting} for protocol in protocols]
    results = run(digit_runs.scenario({"protocols": protocols, **changes}), out=tmp_path, executor="serial")
    fedavg, stp = (learned(results, label=name) for name in ("fedavg", "stp"))
    assert differences(fedavg[0], stp[0]) == {}
    assert fedavg[1] == stp[1]
    assert fedavg[1][-1] > fedavg[1][0]
    moves = results.transfers.drop(columns="protocol")
    parts = [moves[results.transfers["protocol"] == name].reset_index(drop=True) for name in ("fedavg", "stp")]
    assert parts[0].equals(parts[1])


@pytest.mark.usefixtures("groups_in_order")
@pytest.mark.parametrize("changes", mostly_long([{}, STREAM], now=[STREAM]), ids=["static", "stream"])
def test_lasp_on_groups_of_one_is_lasp_on_a_cohort(tmp_path: Path, changes: dict[str, Any]) -> None:
    growth = {"name": "constant", "beta": 1000}
    same = {"interval": 3, "exchange": {"name": "lasp", "scc": {"capacity": 15}}, "weighting": "uniform"}
    alone = {"name": "stp", "sampling_rate": 0.45, "growth": growth, **RANDOM, **same}
    protocols = [{"name": "fedavg", "clients": 9, **same}, alone]
    scenario = digit_runs.scenario({"protocols": protocols, "stop.rounds": 9, **changes})
    results = run(scenario, out=tmp_path, executor="serial")
    fedavg, stp = (learned(results, label=name) for name in ("fedavg", "stp"))
    assert differences(fedavg[0], stp[0]) == {}
    assert fedavg[1] == stp[1]
    assert fedavg[1][-1] > fedavg[1][0]


@pytest.mark.parametrize("changes", mostly_long([{}, STREAM], now=[{}]), ids=["static", "stream"])
def test_hfedms_d_in_blocks_of_one_round_is_fedgsp(tmp_path: Path, changes: dict[str, Any]) -> None:
    same = {"growth": {"name": "logarithmic", "beta": 4}, "weighting": "samples"}
    protocols = [
        {"name": "fedgsp", **same},
        {"name": "hfedms_s", **same},
        {"name": "hfedms_d", "interval": 1, **same},
        {"name": "hfedms_d", "interval": 3, "label": "blocks", **same},
    ]
    results = run(digit_runs.scenario({"protocols": protocols, **changes}), out=tmp_path, executor="serial")
    model, accuracies = learned(results, label="fedgsp")
    for name in ("hfedms_s", "hfedms_d"):
        other, others = learned(results, label=name)
        assert differences(model, other) == {}
        assert accuracies == others
        assert trace_of(results, name) == trace_of(results, "fedgsp")
    assert differences(model, learned(results, label="blocks")[0])
    assert trace_of(results, "blocks") != trace_of(results, "fedgsp")


def test_fedavg_with_lasp_in_blocks_of_one_round_is_fedavg(tmp_path: Path) -> None:
    lasp = {"name": "fedavg", "clients": 9, "exchange": {"name": "lasp"}}
    protocols = [
        {"name": "fedavg", "clients": 9},
        lasp | {"interval": 1, "label": "one"},
        lasp | {"interval": 2, "label": "two"},
    ]
    results = run(digit_runs.scenario({"protocols": protocols, **STREAM}), out=tmp_path, executor="serial")
    model, accuracies = learned(results, label="fedavg")
    one, ones = learned(results, label="one")
    assert differences(model, one) == {}
    assert accuracies == ones
    assert trace_of(results, "one") == trace_of(results, "fedavg")
    assert differences(model, learned(results, label="two")[0])


@pytest.mark.parametrize("rounds", mostly_long([1, 3], now=[3]))
def test_one_group_of_all_is_sgd_over_one_client_after_the_other(tmp_path: Path, rounds: int) -> None:
    """The mean of one model is base + (model - base): in the last bit it need not be the model."""
    everybody = {"sampling_rate": 1.0, "growth": {"name": "constant", "beta": 1}, **RANDOM}
    scenario = digit_runs.scenario({"protocols": [{"name": "stp", **everybody}], "stop.rounds": rounds})
    found, accuracies = learned(run(scenario, out=tmp_path, executor="serial"))
    loop = GroupLoop(scenario, protocol=everybody)
    model = loop.weights
    for _, _, _, (members,) in loop.rounds():
        assert sorted(members) == list(range(DEVICES))
        trained = model
        for client in members:
            trained = loop.train(trained, client, loop.data.train_ids[client])
        model = loop.mean(model, [trained], [1.0])
        loop.score(model)
    assert differences(found, loop.named()) == {}
    assert accuracies == loop.accuracies


# -- several groups ----------------------------------------------------------------------------------------------------


CHAINS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fedgsp": ({"name": "fedgsp", "growth": {"name": "logarithmic", "beta": 3, "alpha": 1.5}}, {}),
    "samples": ({"name": "fedgsp", "growth": GROWING, "weighting": "samples"}, {"training.momentum": 0.5}),
    "samples-stream": ({"name": "fedgsp", "growth": GROWING, "weighting": "samples"}, STREAM),
    "nine-groups": ({"name": "stp", "growth": {"name": "constant", "beta": 11}, **RANDOM}, {"training.epochs": 2}),
    "blocks-of-two": ({"name": "stp", "growth": GROWING, "interval": 2, **RANDOM}, STREAM),
    "distilled": ({"name": "fedgsp", "growth": GROWING, "objective": {"name": "distilled", "coefficient": 0.5}}, {}),
    "shuffled": ({"name": "stp", "growth": GROWING, "interval": 2, "shuffle": "round", **RANDOM}, STREAM),
}


@pytest.mark.parametrize("setting", mostly_long(CHAINS, now=["samples", "nine-groups", "shuffled"]))
def test_groups_are_chains_whose_last_models_are_averaged(tmp_path: Path, setting: str) -> None:
    options, changes = CHAINS[setting]
    protocol = {"sampling_rate": 0.85} | options
    scenario = digit_runs.scenario({"protocols": [protocol], "stop.rounds": 4, **changes})
    found, accuracies = learned(run(scenario, out=tmp_path, executor="serial"))
    loop = GroupLoop(scenario, protocol=protocol)
    loop.sequential_to_parallel()
    assert differences(found, loop.named()) == {}
    assert accuracies == loop.accuracies
    assert accuracies[-1] > accuracies[0]


# -- LASP and SCC ------------------------------------------------------------------------------------------------------

FEW = {"interval": 3, "growth": {"name": "constant", "beta": 5}, "sampling_rate": 0.6}
"""12 of 20 clients in each block."""
SETTINGS: dict[str, dict[str, Any]] = {
    "scc": {},
    "small-capacity": {"scc": {"capacity": 15}},
    "samples": {"scc": {"capacity": 30}, "weighting": "samples", "shuffle": "round"},
    "growing": {"scc": {"capacity": 30}, "growth": {"name": "logarithmic", "beta": 3}},
    "interval-2": {"scc": {"capacity": 30}, "interval": 2},
    "lasp-alone": {"scc": None},
    "compensation-none": {"scc": {"compensation": "none", "capacity": 30}},
    "compensation-mean": {"scc": {"compensation": "mean", "capacity": 30}},
    "absent-mean": {"scc": {"absent": "mean", "capacity": 30}},
    "oracle": {"scc": {"keep": "samples", "capacity": 30}},
    "random": {"scc": {"storage": "random", "capacity": 30}},
    "quota": {"scc": {"quota": "per_class", "capacity": 33}},
    "random-quota": {"scc": {"quota": "per_class", "storage": "random", "capacity": 33}},
    "local": {"scc": {"first_extractor": "local", "capacity": 30}},
    "skip": {"scc": {"without_history": "skip", "capacity": 30}},
    "distilled": {"scc": {"capacity": 30}, "objective": {"name": "distilled", "coefficient": 0.5}},
    "three-epochs": {"scc": {"capacity": 30}, "calibration_epochs": 3},
}


def streams(options: dict[str, Any], *, rounds: int = 9) -> Scenario:
    """In blocks of two or three rounds, on streams of 20 samples."""
    protocol = {"name": "hfedms_d"} | options
    changes = {"protocols": [protocol], "stop.rounds": rounds, "training.learning_rate": 0.2}
    return digit_runs.scenario(changes | STREAM)


@cache
def loop_of(setting: str) -> GroupLoop:
    """The plain loop, after its last round."""
    options = FEW | SETTINGS[setting]
    loop = GroupLoop(streams(options), protocol=options)
    loop.layer_wise()
    return loop


OF_EACH_KIND = ("samples", "absent-mean", "oracle", "random-quota", "local")
"""What is stored, by which rule, for whom, and what whoever comes again begins with."""


@pytest.mark.parametrize("setting", mostly_long(SETTINGS, now=OF_EACH_KIND))
def test_hfedms_is_the_loop_of_lasp_and_scc(tmp_path: Path, setting: str) -> None:
    options = FEW | SETTINGS[setting]
    found, accuracies = learned(run(streams(options), out=tmp_path, executor="serial"))
    loop = loop_of(setting)
    assert differences(found, loop.named()) == {}
    assert accuracies == loop.accuracies
    assert max(accuracies) > accuracies[0] + 0.1
    came_again_after_a_pause = [memory for memory in loop.memories.values() if {1, 3} == set(memory.blocks)]
    assert came_again_after_a_pause or options["interval"] == 2


@pytest.mark.long
def test_each_option_of_scc_makes_a_difference(tmp_path: Path) -> None:
    """Or the loops would agree for the wrong reason."""
    ends: dict[str, str] = {}
    for setting in SETTINGS:
        loop = loop_of(setting)
        ends[setting] = str([weight.double().sum().item() for weight in loop.weights])
        if setting == "small-capacity":
            assert loop.compensated > 10
            assert loop.absent > 10
    assert len(set(ends.values())) == len(SETTINGS)


# -- whoever trains ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", mostly_long(["small-capacity", "oracle", "local", "quota"], now=["small-capacity"]))
def test_clients_that_train_together_remember_the_same(tmp_path: Path, setting: str) -> None:
    """In double precision, so that nothing but rounding is left of the differences between executors."""
    scenario = streams(FEW | SETTINGS[setting], rounds=6)
    one, other = (
        learned(run(scenario, out=tmp_path / executor, executor=executor, workers=1, precision="float64"))
        for executor in ("serial", "batched")
    )
    assert max(differences(one[0], other[0]).values(), default=0.0) < 1e-12
    assert one[1] == other[1]


def test_any_number_of_workers_remembers_the_same_bytes(tmp_path: Path) -> None:
    """With two, checkpoints are written at every occasion: while workers are busy."""
    scenario = streams(FEW | SETTINGS["local"], rounds=6)
    for workers, interval_s in ((1, 30.0), (2, 1e-9)):
        folder = tmp_path / str(workers)
        run(scenario, out=folder, executor="batched", workers=workers, checkpoint_interval_s=interval_s)
    assert digit_runs.outcome(tmp_path / "1") == digit_runs.outcome(tmp_path / "2")
