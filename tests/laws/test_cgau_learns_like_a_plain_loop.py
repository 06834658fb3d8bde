"""CGAU: FedAvg of the scenario's model, then FedAvg of gated units, against a loop of plain tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
import torch
from asked import LATE, MISSING, Asked, asked_in, selected, with_worlds
from plain_loop import DEVICES, Loop
from tiers import mostly_long
from torch.nn.functional import cross_entropy

import fedsim
from fedsim.kernel.streams import Stream
from fedsim.scenario.build import gather_materials

UNITS, PRETRAINED, ROUNDS, COHORT, HIDDEN, CLASSES = 6, 2, 5, 7, 16, 10
CHANGES: dict[str, Any] = {
    "stop.rounds": ROUNDS,
    "training.momentum": 0.5,
    "data": {**digit_runs.BASE["data"], "client_test_fraction": 0.3},
    "evaluate": {"on": ["global", "clients"]},
}

Weights = dict[str, torch.Tensor]


def protocol(layers: int = 1) -> dict[str, Any]:
    about = {"clients": COHORT, "pretraining_rounds": PRETRAINED, "layers": layers, "units": UNITS}
    return {"name": "cgau", **about}


def uniform(draw: np.random.Generator, outputs: int, inputs: int) -> torch.Tensor:
    bound = np.sqrt(6 / (inputs + outputs))
    return torch.tensor((bound * (2 * draw.random((outputs, inputs)) - 1)).astype(np.float32)).double()


def begun(layers: int) -> Weights:
    """What the second phase's model would start from: the extractor's numbers are drawn first."""
    draw = Stream(1, "model/init").generator()
    uniform(draw, HIDDEN, 64)
    weights: Weights = {}
    for number, inputs in enumerate((HIDDEN, UNITS)[:layers], start=1):
        for which in "fg":
            weights[f"gated{number}.weight_{which}"] = uniform(draw, UNITS, inputs)
        for which in "fg":
            weights[f"gated{number}.client_{which}"] = torch.zeros(UNITS, DEVICES, dtype=torch.float64)
    weights["scores.weight"] = uniform(draw, CLASSES, UNITS)
    return weights | {"scores.bias": torch.zeros(CLASSES, dtype=torch.float64)}


def scores(weights: Weights, x: torch.Tensor, client: int | None, layers: int) -> torch.Tensor:
    """``y = tanh(W_f x + V_f h) * sigmoid(W_g x + V_g h)``, h one-hot, or the same for all clients."""
    h = torch.full((DEVICES,), 1 / DEVICES, dtype=torch.float64)
    if client is not None:
        h = torch.nn.functional.one_hot(torch.tensor(client), DEVICES).double()
    y = (x.flatten(1) @ weights["fc1.weight"].T + weights["fc1.bias"]).clamp(min=0)
    for number in range(1, layers + 1):
        f, g = (
            y @ weights[f"gated{number}.weight_{which}"].T + weights[f"gated{number}.client_{which}"] @ h
            for which in "fg"
        )
        y = f.tanh() * g.sigmoid()
    return y @ weights["scores.weight"].T + weights["scores.bias"]


class TwoPhases:
    """The loop, in double precision."""

    def __init__(self, scenario: Any, layers: int) -> None:
        self.plain = Loop(scenario)
        self.plain.net.double()
        self.plain.x = self.plain.x.double()
        self.layers, self.settings = layers, scenario.training

    def run(self, rounds: Sequence[Sequence[Asked]]) -> Weights:
        weights = dict(enumerate(self.plain.weights))
        for asked in rounds[:PRETRAINED]:
            weights = self.averaged(weights, asked, self.pretrain)
        weights = {"fc1.weight": weights[0], "fc1.bias": weights[1], **begun(self.layers)}
        for asked in rounds[PRETRAINED:]:
            weights = self.averaged(weights, asked, self.train)
        return weights

    def averaged(self, weights: Any, asked: Sequence[Asked], train: Callable[[Any, int], Any]) -> Any:
        """By samples, of those who arrive."""
        models = {client: train(weights, client) for client, _ in asked}
        samples = {client: len(self.plain.data.train_ids[client]) for client, arrives in asked if arrives}
        whole = sum(samples.values())
        return {
            name: sum(count / whole * models[client][name] for client, count in samples.items()) if whole else weight
            for name, weight in weights.items()
        }

    def pretrain(self, start: dict[int, torch.Tensor], client: int) -> dict[int, torch.Tensor]:
        return dict(enumerate(self.plain.train(list(start.values()), client, self.plain.data.train_ids[client])))

    def train(self, start: Weights, client: int) -> Weights:
        ids, use = self.plain.data.train_ids[client], self.plain.uses.get(client, 0)
        self.plain.uses[client] = use + 1
        order = Stream(1, "batches", client, use).generator().permutation(len(ids))
        weights = {name: tensor.clone().requires_grad_() for name, tensor in start.items()}
        sgd = torch.optim.SGD(weights.values(), lr=self.settings.learning_rate, momentum=self.settings.momentum)
        for batch in np.split(ids[order], range(self.settings.batch_size, len(ids), self.settings.batch_size)):
            sgd.zero_grad()
            cross_entropy(scores(weights, self.plain.x[batch], client, self.layers), self.plain.y[batch]).backward()
            sgd.step()
        return {name: tensor.detach() for name, tensor in weights.items()}

    def accuracy(self, weights: Weights, ids: np.ndarray, client: int | None) -> float:
        at = torch.tensor(ids)
        told = scores(weights, self.plain.x[at], client, self.layers).argmax(1)
        return float((told == self.plain.y[at]).double().mean())


@pytest.mark.parametrize("executor", mostly_long(["serial", "processes", "batched"], now=["batched"]))
@pytest.mark.parametrize("layers", [1, 2])
def test_both_phases_are_those_of_a_plain_loop(layers: int, executor: str, tmp_path: Path) -> None:
    scenario = digit_runs.scenario({**CHANGES, "protocols": [protocol(layers)]})
    results = fedsim.run(scenario, out=tmp_path, executor=executor, precision="float64")
    loop = TwoPhases(scenario, layers)
    expected = loop.run(selected(ROUNDS, COHORT))
    found = {name.partition(".")[2]: tensor for name, tensor in digit_runs.weights(results, "cgau").items()}
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-10, atol=1e-12)
    last, data = results.rounds.iloc[-1], loop.plain.data
    assert last["accuracy"] == pytest.approx(loop.accuracy(expected, data.test_ids, None))
    own = [(client, ids) for client, ids in enumerate(data.client_test_ids) if len(ids)]
    right = sum(loop.accuracy(expected, ids, client) * len(ids) for client, ids in own)
    assert last["accuracy_clients"] == pytest.approx(right / sum(len(ids) for _, ids in own))
    assert float(expected["gated1.client_f"].abs().max()) > 1e-4, "or clients were all alike"
    module = results.load_model("cgau", 1)
    assert sum(one.numel() for one in module.parameters()) == sum(one.numel() for one in expected.values())


def test_both_phases_are_on_the_clock_with_their_own_bytes(tmp_path: Path) -> None:
    """Without training too; a model that is larger takes longer to compute."""
    slow = {"compute": {"name": "flops", "flops_per_s": 1e6}}
    changes = {**CHANGES, "protocols": [protocol()], "devices.classes": {"sensor": slow}, "learn": False}
    results = fedsim.run(digit_runs.scenario(changes), out=tmp_path)
    plain = 4 * (64 * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES)
    gated = 4 * (64 * HIDDEN + HIDDEN + 2 * UNITS * (HIDDEN + DEVICES) + UNITS * CLASSES + CLASSES)
    each = [plain] * PRETRAINED + [gated] * (ROUNDS - PRETRAINED)
    for direction in ("uplink_bytes", "downlink_bytes"):
        assert results.rounds[direction].diff().fillna(results.rounds[direction]).tolist() == [
            COHORT * one for one in each
        ]
    seconds = results.rounds["sim_time_s"].diff().fillna(results.rounds["sim_time_s"]).tolist()
    data = gather_materials(digit_runs.scenario(changes), 1).dataset
    for number, took in enumerate(seconds, start=1):
        chosen = Stream(1, "selection", 0, number).generator().permutation(DEVICES)[:COHORT].tolist()
        products = 64 * HIDDEN + (HIDDEN * CLASSES if number <= PRETRAINED else 2 * UNITS * HIDDEN + UNITS * CLASSES)
        slowest = max(len(data.train_ids[client]) for client in chosen)
        assert took == pytest.approx(slowest * 3 * 2 * products / 1e6)


def test_a_run_that_ends_in_pretraining_is_fedavg(tmp_path: Path) -> None:
    fedavg = {"name": "fedavg", "clients": COHORT}
    changes = {**CHANGES, "stop.rounds": PRETRAINED, "protocols": [protocol(), fedavg]}
    results = fedsim.run(digit_runs.scenario(changes), out=tmp_path)
    ours, theirs = (digit_runs.weights(results, name) for name in ("cgau", "fedavg"))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    results.load_model("cgau", 1)


@pytest.mark.parametrize("server", [{"name": "momentum"}, {"name": "adam"}, {"name": "fednova"}])
def test_a_servers_memory_of_the_old_classifier_goes_with_it(server: dict[str, Any], tmp_path: Path) -> None:
    results = fedsim.run(
        digit_runs.scenario({**CHANGES, "protocols": [{**protocol(), "server": server}]}), out=tmp_path
    )
    assert len(results.rounds) == ROUNDS
    assert "classifier.gated1.weight_f" in digit_runs.weights(results, "cgau")


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_who_is_missing_counts_nowhere_in_either_phase(late_transfers: str, tmp_path: Path) -> None:
    changes = {**CHANGES, **MISSING, "network.late_transfers": late_transfers, "protocols": [protocol() | LATE]}
    scenario = digit_runs.scenario(changes)
    results, worlds = with_worlds(scenario, tmp_path / "run")
    rounds, answers = results.rounds, asked_in(worlds["cgau"])
    assert [sum(one.arrives for one in asked) for asked in answers] == rounds["participants"].tolist()
    assert rounds["lost"].sum() > 2 and rounds["late"].sum() > 1
    expected = TwoPhases(scenario, layers=1).run(answers)
    for name, tensor in digit_runs.weights(results, "cgau").items():
        torch.testing.assert_close(tensor, expected[name.partition(".")[2]], rtol=1e-10, atol=1e-12)
