"""Laws of learning: on a network that takes no time, a protocol is the plain PyTorch loop that its paper describes.

The loop (``plain_loop.py``) is written for the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from plain_loop import DEVICES, NAMES, Loop, differences
from tiers import mostly_long

from fedsim.experiment.run import run
from fedsim.kernel.streams import Stream

TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "samples": ("samples", {}),
    "uniform-2-epochs": ("uniform", {"training.epochs": 2}),
    "samples-momentum-decay": (
        "samples",
        {"training.momentum": 0.9, "training.weight_decay": 0.01, "training.batch_size": 7},
    ),
}
COHORTS = (1, 2, 8, 9, 16, 17, 20)
AT_ONCE = {("samples", 1), ("uniform-2-epochs", 9), ("samples-momentum-decay", 17)}
"""Each training, and cohorts whose sums are in one part, two or four."""


@pytest.mark.parametrize(("training", "cohort"), mostly_long(product(TRAININGS, COHORTS), now=AT_ONCE))
def test_fedavg_without_delays_is_the_plain_loop_bit_for_bit(tmp_path: Path, training: str, cohort: int) -> None:
    weighting, changes = TRAININGS[training]
    protocol = {"name": "fedavg", "clients": cohort, "weighting": weighting}
    scenario = digit_runs.scenario({"protocols": [protocol], **changes})
    results = run(scenario, out=tmp_path, executor="serial")
    expected, accuracies = Loop(scenario).averaging(cohort, weighting)
    assert differences(digit_runs.weights(results, "fedavg"), expected) == {}
    assert results.rounds["accuracy"].tolist() == accuracies
    assert results.rounds["sim_time_s"].tolist() == [0.0] * 3
    assert accuracies[-1] > accuracies[0] or cohort == 1, "or nothing was learned"


@pytest.mark.parametrize("samples", mostly_long([5, 30, 200], now=[200]))
def test_fedavg_on_streams_is_the_plain_loop_bit_for_bit(tmp_path: Path, samples: int) -> None:
    """Up to several passes through a client's own samples in one training."""
    protocol = {"name": "fedavg", "clients": 9}
    scenario = digit_runs.scenario({"protocols": [protocol], "data.stream": {"samples": samples}})
    results = run(scenario, out=tmp_path, executor="serial")
    loop = Loop(scenario)
    model = loop.weights
    for number in range(1, 4):
        chosen = sorted(Stream(1, "selection", 0, number).generator().permutation(DEVICES)[:9].tolist())
        models = [loop.train_on_a_stream(model, client, samples) for client in chosen]
        model = loop.mean(model, models, [samples / (9 * samples)] * 9)
    loop.put(model)
    assert differences(digit_runs.weights(results, "fedavg"), loop.named()) == {}
    assert results.rounds["accuracy"].tolist()[-1] == loop.accuracy()


@pytest.mark.parametrize("mu", mostly_long([0.0, 0.5], now=[0.5]))
def test_fedprox_without_delays_is_its_plain_loop_bit_for_bit(tmp_path: Path, mu: float) -> None:
    protocol = {"name": "fedprox", "clients": 9, "mu": mu}
    scenario = digit_runs.scenario({"protocols": [protocol], "training.momentum": 0.5})
    results = run(scenario, out=tmp_path, executor="serial")
    expected, accuracies = Loop(scenario, mu=mu).averaging(9, "samples")
    assert differences(digit_runs.weights(results, "fedprox"), expected) == {}
    assert results.rounds["accuracy"].tolist() == accuracies


def test_fedprox_with_mu_zero_is_fedavg_and_with_another_it_is_not(tmp_path: Path) -> None:
    protocols = [
        {"name": "fedavg", "clients": 9},
        {"name": "fedprox", "clients": 9, "mu": 0.0, "label": "zero"},
        {"name": "fedprox", "clients": 9, "mu": 0.5, "label": "half"},
    ]
    scenario = digit_runs.scenario({"protocols": protocols, "stop.rounds": 2})
    results = run(scenario, out=tmp_path, executor="serial")
    fedavg, zero, half = (digit_runs.weights(results, name) for name in ("fedavg", "zero", "half"))
    assert differences(zero, fedavg) == {}
    assert len(differences(half, fedavg)) == len(NAMES)
    table = results.rounds.drop(columns="protocol")
    parts = [table[results.rounds["protocol"] == name].reset_index(drop=True) for name in ("fedavg", "zero")]
    assert parts[0].equals(parts[1])


def test_centralised_training_is_plain_sgd_on_the_pooled_samples_bit_for_bit(tmp_path: Path) -> None:
    scenario = digit_runs.scenario({"protocols": [{"name": "centralised"}], "training.momentum": 0.9})
    results = run(scenario, out=tmp_path, executor="serial")
    expected, accuracies = Loop(scenario).pooled()
    assert differences(digit_runs.weights(results, "centralised"), expected) == {}
    assert results.rounds["accuracy"].tolist() == accuracies


def test_labels_of_clients_change_nothing_but_labels(tmp_path: Path) -> None:
    def park(labels: Iterable[str]) -> dict[str, Any]:
        nodes = {"cloud": {"kind": "cloud"}, "station": {"kind": "base_station"}}
        sensors = {label: {"kind": "sensor", "attach": "station"} for label in labels}
        return {"name": "explicit", "nodes": nodes | sensors, "links": [{"between": ["cloud", "station"]}]}

    def outcome(labels: list[str]) -> tuple[dict[str, bytes], set[str]]:
        folder = tmp_path / labels[0]
        changes = {"topology": park(labels), "stop.rounds": 1}
        results = run(digit_runs.scenario(changes), out=folder, executor="serial")
        numbered = digit_runs.outcome(folder)
        for number, label in enumerate(labels):  # as in rounds.csv, of whoever closed the round
            numbered = {name: content.replace(label.encode(), b"#%d" % number) for name, content in numbered.items()}
        return numbered, set(results.transfers["client"])

    one, names = outcome([f"sensor-{number:02}" for number in range(DEVICES)])
    other, other_names = outcome([f"zz-{99 - number}" for number in range(DEVICES)])  # in the other order of letters
    assert one == other
    assert not names & other_names


def test_when_and_on_what_a_model_is_evaluated_does_not_change_it(tmp_path: Path) -> None:
    base = {"stop.rounds": 3, "data.client_test_fraction": 0.2}
    once = run(digit_runs.scenario(base), out=tmp_path / "once", executor="batched", workers=1)
    for name, change in {"every": {"evaluate.every": 2}, "on": {"evaluate.on": ["clients", "global"]}}.items():
        options: dict[str, Any] = {"executor": "batched", "workers": 1, "checkpoint_interval_s": 1e-9}
        other = run(digit_runs.scenario(base | change), out=tmp_path / name, **options)
        assert differences(digit_runs.weights(once, "fedavg"), digit_runs.weights(other, "fedavg")) == {}
