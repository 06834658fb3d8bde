"""Models that clients have to themselves: FedPer and FedAvg then fine-tune are the plain PyTorch loops of their papers.

The loops (``own_loop.py``) are written from the papers. What is compared is each client's accuracy on its own tests:
its least, its greatest, its mean and its deviation in every round, and the tensors of the last model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
from asked import LATE, MISSING, asked_in, selected, with_worlds
from own_loop import BASE, OwnLoop
from plain_loop import DEVICES, NAMES, differences
from tiers import mostly_long

from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.scenario.schema import Scenario

OWN: dict[str, Any] = {"data.client_test_fraction": 0.3, "evaluate": {"on": ["own"]}, "training.momentum": 0.5}
FEDPER = {"protocols": [{"name": "fedper", "clients": 6}]}
ROUNDS = selected(3, 6)
TUNED = OWN | {"evaluate": {"on": ["own"], "finetune_epochs": 2}}
EVERY_EXECUTOR = pytest.mark.parametrize("executor", mostly_long(["serial", "batched", "processes"], now=["batched"]))


def scored(results: Results) -> np.ndarray:
    return results.rounds[["accuracy_mean", "accuracy_std", "accuracy_min", "accuracy_max"]].to_numpy()


def by_hand(accuracies: Sequence[Sequence[float]]) -> np.ndarray:
    own = np.array(accuracies)
    return np.stack([own.mean(1), own.std(1), own.min(1), own.max(1)], axis=1)


def loop_of(scenario: Scenario) -> OwnLoop:
    loop = OwnLoop(scenario)
    took_part = [client for asked in ROUNDS for client, _ in asked]
    assert len(set(took_part)) < DEVICES, "somebody never takes part"
    assert len(took_part) > len(set(took_part)), "somebody does again"
    return loop


@EVERY_EXECUTOR
def test_fedper_is_its_plain_loop(tmp_path: Path, executor: str) -> None:
    scenario = digit_runs.scenario(OWN | FEDPER)
    results = run(scenario, out=tmp_path, executor=executor, workers=1)
    loop = loop_of(scenario)
    initial = loop.named()
    initial = {name: tensor.clone() for name, tensor in initial.items()}
    base, accuracies = loop.fedper(ROUNDS)
    assert scored(results) == pytest.approx(by_hand(accuracies), abs=1e-5)
    final = digit_runs.weights(results, "fedper")
    for name, expected in zip(list(NAMES)[:BASE], base, strict=True):
        assert final[name] == pytest.approx(expected, abs=1e-5), name
    for name in list(NAMES)[BASE:]:
        assert final[name].equal(initial[name]), "nobody else gets a classifier that somebody has trained"


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_who_is_missing_keeps_its_classifier_and_sends_no_extractor(tmp_path: Path, late_transfers: str) -> None:
    protocols = [{"name": "fedper", **LATE}]
    scenario = digit_runs.scenario(OWN | MISSING | {"network.late_transfers": late_transfers, "protocols": protocols})
    results, worlds = with_worlds(scenario, tmp_path / "run")
    rounds, answers = results.rounds, asked_in(worlds["fedper"])
    assert [sum(one.arrives for one in asked) for asked in answers] == rounds["participants"].tolist()
    assert rounds["lost"].sum() > 2 and rounds["late"].sum() > 1
    loop = OwnLoop(scenario)
    loop.net.double()
    loop.x = loop.x.double()
    base, accuracies = loop.fedper(answers)
    assert scored(results)[-1] == pytest.approx(by_hand(accuracies)[-1], abs=1e-12)
    final = digit_runs.weights(results, "fedper")
    for name, expected in zip(list(NAMES)[:BASE], base, strict=True):
        assert final[name] == pytest.approx(expected, abs=1e-10), name


@EVERY_EXECUTOR
def test_fedavg_then_fine_tune_is_its_plain_loop(tmp_path: Path, executor: str) -> None:
    scenario = digit_runs.scenario(TUNED | {"protocols": [{"name": "fedavg", "clients": 6}]})
    results = run(scenario, out=tmp_path, executor=executor, workers=1)
    loop = loop_of(scenario)
    model, accuracies = loop.weights, []
    for asked in ROUNDS:
        chosen = sorted(client for client, _ in asked)
        samples = [len(loop.data.train_ids[client]) for client in chosen]
        models = [loop.train(model, client, loop.data.train_ids[client]) for client in chosen]
        model = loop.mean(model, models, [count / sum(samples) for count in samples], samples)
        accuracies.append(loop.tuned(model, epochs=2))
    assert scored(results) == pytest.approx(by_hand(accuracies), abs=1e-5)
    loop.put(model)
    final = digit_runs.weights(results, "fedavg")
    for name, expected in loop.named().items():
        assert final[name] == pytest.approx(expected, abs=1e-5), name


def test_fine_tuning_moves_no_bit_of_a_run_but_its_scores(tmp_path: Path) -> None:
    protocols = {"protocols": [{"name": "fedavg", "clients": 6}, {"name": "fedper", "clients": 6}]}
    results = {
        epochs: run(
            digit_runs.scenario(OWN | protocols | {"evaluate": {"on": ["own", "clients"], "finetune_epochs": epochs}}),
            out=tmp_path / f"{epochs}",
            executor="batched",
            workers=1,
        )
        for epochs in (0, 1)
    }
    for name in ("fedavg", "fedper"):
        assert differences(*(digit_runs.weights(one, name) for one in results.values())) == {}
    traces = [[row["trace_hash"] for row in one.manifest["runs"]] for one in results.values()]
    assert traces[0] == traces[1]
    before, after = (one.rounds for one in results.values())
    moved = {name for name in before if not before[name].equals(after[name])}
    assert moved == {"accuracy", "loss", "accuracy_mean", "accuracy_std", "accuracy_min", "accuracy_max"} & set(before)


def test_who_has_not_changed_is_not_tuned_again(tmp_path: Path) -> None:
    """All clients are late, so nobody's model changes in three evaluations."""
    changes = TUNED | {"protocols": [{"name": "fedavg", "clients": 2, "deadline_s": 1e-3}], "stop.rounds": 3}
    changes |= {"devices.classes": {"sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 1.0}}}}
    results = run(digit_runs.scenario(changes), out=tmp_path, executor="serial")
    assert results.rounds["participants"].tolist() == [0, 0, 0]
    computed = [row["operation"] for row in digit_runs.ledger(tmp_path / "store") if row["event"] == "computed"]
    assert computed.count("train") == computed.count("evaluate_own") == DEVICES


def test_who_is_not_scored_is_not_tuned(tmp_path: Path) -> None:
    partition = {"data": {"name": "digits", "partition": {"name": "quantity_skew", "alpha": 0.3}}}
    changes = partition | TUNED | {"data.client_test_fraction": 0.05, "protocols": [{"name": "fedavg", "clients": 1}]}
    scenario = digit_runs.scenario(changes | {"stop.rounds": 1})
    run(scenario, out=tmp_path, executor="serial")
    held = sum(map(bool, map(len, OwnLoop(scenario).data.client_test_ids)))
    computed = [row["operation"] for row in digit_runs.ledger(tmp_path / "store") if row["event"] == "computed"]
    assert computed.count("train") == 1 + held < 1 + DEVICES


def test_in_chains_the_executors_agree_on_whose_classifier_is_trained(tmp_path: Path) -> None:
    """The extractor is handed on within a chain, and the classifier is not, though both are computed together."""
    stp = {"name": "stp", "grouping": {"name": "random"}, "growth": {"name": "constant", "beta": 3}}
    changes = OWN | {"protocols": [stp | {"exchange": {"name": "extractor"}, "sampling_rate": 1.0}], "stop.rounds": 2}
    scenario = digit_runs.scenario(changes | {"topology.devices": 9})
    one, other = (run(scenario, out=tmp_path / name, executor=name, workers=1) for name in ("serial", "batched"))
    assert scored(one) == pytest.approx(scored(other), abs=1e-5)
    final = digit_runs.weights(one, "stp")
    for name, expected in digit_runs.weights(other, "stp").items():
        assert final[name] == pytest.approx(expected, abs=1e-5), name
