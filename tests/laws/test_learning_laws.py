"""Laws of learning: on a network that takes no time, a protocol is the plain PyTorch loop that its paper describes.

The loops here are written for the tests: their own module, their own averaging, `torch.optim.SGD`. They share with
fedsim the documented streams (``model/init``, ``selection``, ``batches``) and the documented arithmetic of the mean:
base + the sum of w_i (model_i - base), in float32, in client order, in an even number of partial sums of at most 8.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from fedsim.experiment.run import run
from fedsim.kernel.streams import Stream
from fedsim.scenario.build import gather_materials
from fedsim.scenario.schema import Scenario

DEVICES, HIDDEN, PARTIAL_SUM = 20, 16, 8
NAMES = {  # fedsim's name -> this file's
    "extractor.fc1.weight": "first.weight",
    "extractor.fc1.bias": "first.bias",
    "classifier.fc2.weight": "second.weight",
    "classifier.fc2.bias": "second.bias",
}

Weights = list[torch.Tensor]


class Net(torch.nn.Module):
    """64 pixels, one hidden layer, 10 digits."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, HIDDEN)
        self.second = torch.nn.Linear(HIDDEN, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(linear(x.flatten(1), self.first.weight, self.first.bias))
        return linear(hidden, self.second.weight, self.second.bias)


@dataclass
class Loop:
    """Everything that a plain training script would have as global variables."""

    scenario: Scenario
    mu: float | None = None
    uses: dict[int, int] = field(default_factory=dict)
    net: Net = field(default_factory=Net)

    def __post_init__(self) -> None:
        self.data = gather_materials(self.scenario, seed=1).dataset
        self.x, self.y = torch.tensor(self.data.x), torch.tensor(self.data.y)
        draw = Stream(1, "model/init").generator()
        with torch.no_grad():
            for layer in (self.net.first, self.net.second):
                bound = np.sqrt(6 / (layer.in_features + layer.out_features))
                uniform = 2 * draw.random((layer.out_features, layer.in_features)) - 1
                layer.weight.copy_(torch.tensor((bound * uniform).astype(np.float32)))
                layer.bias.zero_()

    @property
    def weights(self) -> Weights:
        return [parameter.detach().clone() for parameter in self.net.parameters()]

    def put(self, weights: Weights) -> None:
        with torch.no_grad():
            for parameter, weight in zip(self.net.parameters(), weights, strict=True):
                parameter.copy_(weight)

    def train(self, start: Weights, client: int, ids: np.ndarray) -> Weights:
        """One local training of *client* (-1: the cloud) on the samples *ids*."""
        settings = self.scenario.training
        self.put(start)
        optimiser = torch.optim.SGD(
            self.net.parameters(),
            lr=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        order = Stream(1, "batches", client, self.uses.get(client, 0)).generator()
        self.uses[client] = self.uses.get(client, 0) + 1
        for _ in range(settings.epochs):
            shuffled = ids[order.permutation(len(ids))]
            for batch in np.split(shuffled, range(settings.batch_size, len(ids), settings.batch_size)):
                optimiser.zero_grad()
                cross_entropy(self.net(self.x[batch]), self.y[batch]).backward()
                for parameter, weight in zip(self.net.parameters(), start, strict=True):
                    if self.mu is not None:
                        parameter.grad.add_(parameter.detach() - weight, alpha=self.mu)
                optimiser.step()
        return self.weights

    def train_on_a_stream(self, start: Weights, client: int, samples: int) -> Weights:
        """One local training on the next samples of the client's passes through its own, each pass shuffled anew."""
        own, use = self.data.train_ids[client], self.uses.get(client, 0)
        stream = [
            own[Stream(1, "data/pass", client, number).generator().permutation(len(own))]
            for number in range((use + 1) * samples // len(own) + 1)
        ]
        return self.train(start, client, np.concatenate(stream)[use * samples : (use + 1) * samples])

    def mean(self, base: Weights, models: Sequence[Weights], shares: Sequence[float]) -> Weights:
        """base + (d_1 + ... + d_5) + (d_6 + ... + d_9), d_i = share_i (model_i - base).

        A lone d is a sum; otherwise there are 2, 4, ... sums, the first few even number that leaves none with more
        than 8, and as many d in each as in any other, or one more in those that come first.
        """
        total: Weights = []
        sums = next(sums for sums in itertools.count(2, 2) if len(models) <= PARTIAL_SUM * sums)
        for numbers in np.array_split(np.arange(len(models)), 1 if len(models) == 1 else sums):
            some: Weights = []
            for number in numbers:
                change = [(new - old) * shares[number] for new, old in zip(models[number], base, strict=True)]
                some = [left + right for left, right in zip(some, change, strict=True)] if some else change
            total = [left + right for left, right in zip(total, some, strict=True)] if total else some
        return [left + right for left, right in zip(base, total, strict=True)]

    def accuracy(self) -> float:
        ids = torch.tensor(self.data.test_ids)
        with torch.no_grad():
            return (self.net(self.x[ids]).argmax(1) == self.y[ids]).double().mean().item()

    def averaging(self, cohort: int, weighting: str) -> tuple[dict[str, torch.Tensor], list[float]]:
        """Federated averaging; the final model, and the accuracy after each round."""
        model, accuracies = self.weights, []
        for number in range(1, self.scenario.stop.rounds + 1):
            chosen = sorted(Stream(1, "selection", 0, number).generator().permutation(DEVICES)[:cohort].tolist())
            samples = [len(self.data.train_ids[client]) if weighting == "samples" else 1 for client in chosen]
            models = [self.train(model, client, self.data.train_ids[client]) for client in chosen]
            model = self.mean(model, models, [number / sum(samples) for number in samples])
            self.put(model)
            accuracies.append(self.accuracy())
        return self.named(), accuracies

    def pooled(self) -> tuple[dict[str, torch.Tensor], list[float]]:
        """Plain SGD on everybody's samples; a round is one training."""
        pool, accuracies = np.concatenate(self.data.train_ids), []
        for _ in range(self.scenario.stop.rounds):
            self.put(self.train(self.weights, -1, pool))
            accuracies.append(self.accuracy())
        return self.named(), accuracies

    def named(self) -> dict[str, torch.Tensor]:
        state = self.net.state_dict()
        return {name: state[here] for name, here in NAMES.items()}


def differences(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> dict[str, float]:
    """Name -> largest difference, where there is any; empty when equal bit for bit."""
    assert one.keys() == other.keys()
    unequal = [name for name in one if not torch.equal(one[name], other[name])]
    return {name: (one[name] - other[name]).abs().max().item() for name in unequal}


@pytest.mark.parametrize("cohort", [1, 2, 8, 9, 16, 17, 20])
@pytest.mark.parametrize(
    ("weighting", "training"),
    [
        ("samples", {}),
        ("uniform", {"training.epochs": 2}),
        ("samples", {"training.momentum": 0.9, "training.weight_decay": 0.01, "training.batch_size": 7}),
    ],
    ids=["samples", "uniform-2-epochs", "samples-momentum-decay"],
)
def test_fedavg_without_delays_is_the_plain_loop_bit_for_bit(
    tmp_path: Path, cohort: int, weighting: str, training: dict[str, Any]
) -> None:
    protocol = {"name": "fedavg", "clients": cohort, "weighting": weighting}
    scenario = digit_runs.scenario({"protocols": [protocol], **training})
    results = run(scenario, out=tmp_path, executor="serial")
    expected, accuracies = Loop(scenario).averaging(cohort, weighting)
    assert differences(digit_runs.weights(results, "fedavg"), expected) == {}
    assert results.rounds["accuracy"].tolist() == accuracies
    assert results.rounds["sim_time_s"].tolist() == [0.0] * 3
    assert accuracies[-1] > accuracies[0] or cohort == 1, "or nothing was learned"


@pytest.mark.parametrize("samples", [5, 30, 200])
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


@pytest.mark.parametrize("mu", [0.0, 0.5])
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
    results = run(digit_runs.scenario({"protocols": protocols}), out=tmp_path)
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
        results = run(digit_runs.scenario({"topology": park(labels)}), out=folder)
        return digit_runs.outcome(folder), set(results.transfers["client"])

    one, names = outcome([f"sensor-{number:02}" for number in range(DEVICES)])
    other, other_names = outcome([f"zz-{99 - number}" for number in range(DEVICES)])  # in the other order of letters
    assert one == other
    assert not names & other_names


@pytest.mark.parametrize("change", [{"evaluate.every": 2}, {"evaluate.on": ["clients", "global"]}], ids=str)
def test_when_and_on_what_a_model_is_evaluated_does_not_change_it(tmp_path: Path, change: dict[str, Any]) -> None:
    base = {"stop.rounds": 5, "data.client_test_fraction": 0.2}
    once = run(digit_runs.scenario(base), out=tmp_path / "once")
    often = run(digit_runs.scenario(base | change), out=tmp_path / "often", checkpoint_interval_s=1e-9)
    assert differences(digit_runs.weights(once, "fedavg"), digit_runs.weights(often, "fedavg")) == {}


@pytest.mark.slow
def test_results_do_not_depend_on_the_seed_of_pythons_hashes(tmp_path: Path) -> None:
    program = "import json, sys; from fedsim.experiment.run import run; from fedsim.scenario.schema import Scenario; "
    program += "run(Scenario.model_validate(json.load(sys.stdin)), out=sys.argv[1])"
    protocols = [{"name": "fedavg", "clients": 9}, {"name": "centralised"}]
    changes: dict[str, Any] = {"protocols": protocols, "evaluate.on": ["global", "clients"]}
    content = json.dumps(digit_runs.data(changes | {"data.client_test_fraction": 0.2}))

    def outcome(hash_seed: str) -> Callable[[], dict[str, bytes]]:
        folder = tmp_path / hash_seed
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            text=True,
        )

        def finished() -> dict[str, bytes]:
            process.communicate(content, timeout=300)
            assert process.returncode == 0
            return digit_runs.outcome(folder)

        return finished

    one, other = [wait() for wait in [outcome("1"), outcome("4242")]]
    assert one == other
    assert len(one) == 1 + 2 * 3  # the rounds; of two protocols the trace and two parts
