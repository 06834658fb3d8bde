"""Compound steps and edge rounds against plain loops, and each way to compute them against the other."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from plain_loop import Loop
from tiers import mostly_long

from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.kernel.streams import Stream
from fedsim.scenario.schema import Scenario

EXACT = {"float32": 1e-6, "float64": 1e-12}
FACTORIES, DEVICES, STEPS, BATCH, ROUNDS = 3, 4, 5, 8, 3
PARK = {"topology": {"name": "factory_park", "factories": FACTORIES, "devices_per_factory": DEVICES}}
BASE: dict[str, Any] = PARK | {
    "data.partition": {"name": "quantity_skew", "alpha": 2.0},
    "training": {"learning_rate": 0.3, "batch_size": BATCH},
    "stop.rounds": ROUNDS,
}
MISSING: dict[str, Any] = {
    "network.cell.loss": {"probability": 0.1, "attempts": 1},
    "devices.classes.sensor.compute": {
        "name": "distribution",
        "law": "lognormal",
        "mean_seconds_per_sample": 0.01,
        "variation": 1.0,
        "per": "training",
    },
}
LATE = {"iteration_deadline_s": 0.2, "deadline_s": 0.6}
FEDGS = {"name": "fedgs", "iterations": STEPS, "devices": 3, "presampled": 1}

Weights = dict[str, torch.Tensor]


def scenario(protocols: list[dict[str, Any]], changes: dict[str, Any] | None = None) -> Scenario:
    return digit_runs.scenario(BASE | {"protocols": protocols} | (changes or {}))


def apart(one: Weights, other: Weights) -> float:
    """The largest difference between two models of the same tensors."""
    assert one.keys() == other.keys()
    return max((one[name].double() - other[name].double()).abs().max().item() for name in one)


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs of FedGS, fused and device by device; made when they are first asked for."""

    @cache
    def made(missing: bool, precision: str, executor: str) -> Results:
        keys = FEDGS | (LATE if missing else {})
        protocols = [{**keys, "label": str(fused), "fused": fused} for fused in (True, False)]
        whole = scenario(protocols, MISSING if missing else {})
        return run(whole, out=tmp_path_factory.mktemp("r") / "r", executor=executor, workers=1, precision=precision)

    return made


@pytest.mark.parametrize("missing", [False, True], ids=["all arrive", "some are lost or late"])
@pytest.mark.parametrize(
    ("precision", "executor"),
    mostly_long(itertools.product(EXACT, ["serial", "batched"]), now=[("float64", "serial"), ("float32", "batched")]),
)
def test_one_training_of_a_station_is_all_steps_of_its_devices(
    missing: bool, precision: str, executor: str, both_ways: Any
) -> None:
    results = both_ways(missing, precision, executor)
    hashes = {one["protocol"]: one["trace_hash"] for one in results.manifest["runs"]}
    assert hashes["True"] == hashes["False"]
    fused, apart_ = (digit_runs.weights(results, label) for label in ("True", "False"))
    assert apart(fused, apart_) <= EXACT[precision]
    assert set(results.transfers["outcome"]) == ({"arrived", "lost"} if missing else {"arrived"})
    assert results.rounds["late"].any() == missing


def of_factory(number: int) -> list[int]:
    return list(range(number * DEVICES, (number + 1) * DEVICES))


class SingleSteps:
    """Each device's step by itself, from its station's model; means of weights, in double precision."""

    def __init__(self, whole: Scenario) -> None:
        self.loop = Loop(whole)
        self.loop.net.double()
        self.loop.x = self.loop.x.double()
        self.used = dict.fromkeys(range(FACTORIES * DEVICES), 0)

    def batch(self, client: int) -> Any:
        """The client's next mini-batch: pass after pass, each in an order of its own."""
        own, first = self.loop.data.train_ids[client], self.used[client] * BATCH
        self.used[client] += 1
        positions = range(first, first + BATCH)
        orders = {
            number: Stream(1, "data/pass", client, number).generator().permutation(len(own))
            for number in {position // len(own) for position in positions}
        }
        return own[[orders[position // len(own)][position % len(own)] for position in positions]]

    def step(self, start: list[torch.Tensor], batch: Any) -> list[torch.Tensor]:
        self.loop.put(start)
        loss = self.loop.loss(batch)
        gradients = torch.autograd.grad(loss, list(self.loop.net.parameters()))
        return [w - self.loop.scenario.training.learning_rate * g for w, g in zip(start, gradients, strict=True)]

    def run(self, chosen: Any, steps: int, *, threshold: float | None = None) -> Weights:
        """With a *threshold*, a station reports changes above it, and keeps the rest for its next report."""
        model = [weight.double() for weight in self.loop.weights]
        rests = [[torch.zeros_like(weight) for weight in model] for _ in range(FACTORIES)]
        for number in range(1, ROUNDS + 1):
            ends = []
            for factory in range(FACTORIES):
                own = model
                for step in range(steps):
                    made = [self.step(own, self.batch(client)) for client in chosen(factory, number, step)]
                    own = [torch.stack(some).mean(dim=0) for some in zip(*made, strict=True)]
                if threshold is not None:
                    due = [w - m + rest for w, m, rest in zip(own, model, rests[factory], strict=True)]
                    sent = [change * (change.abs() > threshold) for change in due]
                    rests[factory] = [change - some for change, some in zip(due, sent, strict=True)]
                    own = [m + some for m, some in zip(model, sent, strict=True)]
                ends.append(own)
            model = [torch.stack(some).mean(dim=0) for some in zip(*ends, strict=True)]
        self.loop.put(model)
        return self.loop.named()


def drawn(factory: int, number: int, step: int) -> list[int]:
    """As `fedgs_random` draws them: some by a permutation, the others by the selector's, of those who are left."""
    rng = Stream(1, f"selection/station/{factory}", step, number).generator()
    order = rng.permutation(DEVICES).tolist()
    presampled, others = order[:1], sorted(order[1:])
    some = rng.choice(len(others), 2, replace=False)
    return sorted(of_factory(factory)[at] for at in [*presampled, *(others[at] for at in some)])


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("who", ["all", "some"])
def test_compound_steps_are_the_papers_loop(who: str, fused: bool, tmp_path: Any) -> None:
    keys = {"devices": DEVICES, "presampled": 0} if who == "all" else {"devices": 3, "presampled": 1}
    whole = scenario([{"name": "fedgs_random", "iterations": STEPS, "fused": fused, **keys}])
    expected = SingleSteps(whole).run(drawn if who == "some" else lambda factory, *_: of_factory(factory), STEPS)
    results = run(whole, out=tmp_path / "r", executor="serial", precision="float64")
    assert apart(digit_runs.weights(results, "fedgs_random"), expected) < 1e-12


@pytest.mark.parametrize("fused", [True, False])
def test_a_codec_acts_on_what_stations_report(fused: bool, tmp_path: Any) -> None:
    codec = {"path": f"{Path(__file__).parents[1] / 'outside' / 'sparse.py'}:Sparse", "threshold": 0.02}
    keys = {"iterations": STEPS, "devices": DEVICES, "presampled": 0, "fused": fused, "codec": codec}
    whole = scenario([{"name": "fedgs_random", **keys}])
    expected = SingleSteps(whole).run(lambda factory, *_: of_factory(factory), STEPS, threshold=0.02)
    results = run(whole, out=tmp_path / "r", executor="serial", precision="float64")
    assert apart(digit_runs.weights(results, "fedgs_random"), expected) < 1e-12


def big_batch_steps(whole: Scenario, steps: int) -> Weights:
    """SGD on the mini-batches of all devices together."""
    loop = SingleSteps(whole)
    model = [weight.double() for weight in loop.loop.weights]
    for _ in range(steps):
        together = [sample for client in range(FACTORIES * DEVICES) for sample in loop.batch(client)]
        model = loop.step(model, together)
    loop.loop.put(model)
    return loop.loop.named()


ONE_STATION = {"topology": {"name": "star", "devices": FACTORIES * DEVICES}}


@pytest.mark.parametrize("precision", EXACT)
@pytest.mark.parametrize(
    ("keys", "changes", "steps"),
    [({"iterations": 1}, {}, ROUNDS), ({"iterations": STEPS}, ONE_STATION, ROUNDS * STEPS)],
    ids=["one iteration", "one factory"],
)
def test_all_devices_in_step_are_synchronous_sgd(
    keys: dict[str, Any], changes: dict[str, Any], steps: int, precision: str, tmp_path: Any
) -> None:
    everybody = {"devices": FACTORIES * DEVICES}
    whole = scenario([{"name": "fedgs", **keys, **everybody}], changes)
    results = run(whole, out=tmp_path / "r", executor="batched", precision=precision)
    assert apart(digit_runs.weights(results, "fedgs"), big_batch_steps(whole, steps)) < EXACT[precision]


@pytest.mark.parametrize("precision", EXACT)
@pytest.mark.parametrize("where", ["one edge round", "one station"])
def test_hierarchical_is_fedavg(where: str, precision: str, tmp_path: Any) -> None:
    """Of one edge round, or with one station, each of whose edge rounds is a round of FedAvg."""
    rounds, clients = (1, 7) if where == "one edge round" else (2, FACTORIES * DEVICES)
    protocols = [
        {"name": "hierarchical", "clients": clients, "edge_rounds": rounds},
        {"name": "fedavg", "clients": clients, "stop": {"rounds": ROUNDS * rounds}},
    ]
    whole = scenario(protocols, {"training.batch_size": 16} | (ONE_STATION if where == "one station" else {}))
    results = run(whole, out=tmp_path / "r", executor="batched", precision=precision)
    one, other = (digit_runs.weights(results, name) for name in ("hierarchical", "fedavg"))
    assert apart(one, other) < EXACT[precision]
