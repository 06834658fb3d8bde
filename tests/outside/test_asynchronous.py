"""FedAsync and FedBuff written outside of the package: how stale updates are, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asynchronous
import numpy as np
import pytest
import torch
from asynchronous import Buffered, Mixing
from critical_path_laws import parts_of
from learned import aggregation, train, update
from small_learner import CLIENTS, Small, small, tensors
from small_worlds import NO_TIME, prepared
from tiers import mostly_long

from fedsim.experiment.simulate import simulate
from fedsim.learning.graph import Graph, Handle
from fedsim.learning.learner import Model
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.init import Init
from fedsim.learning.rules.rule import ServerRule, State
from fedsim.metrics.critical_path import critical_paths
from fedsim.protocols.world import World

RANDOM_WORK = {"name": "distribution", "law": "exponential", "mean_seconds_per_sample": 0.1, "per": "training"}


def ran(devices: int, rounds: int, run: Small | None = None, **keys: Any) -> tuple[World, Any]:
    """A world without a network in which the protocol has made so many models, and the protocol."""
    protocol = {"path": f"{asynchronous.__file__}:Asynchronous", **keys}
    changes = {"protocols": [protocol], "topology.devices": devices, "stop.rounds": rounds}
    learner = {"learner": lambda *_: run.learner} if run else {}
    work = {"devices.classes.sensor.compute": RANDOM_WORK}
    world, found = prepared(NO_TIME | work | changes, **learner)
    simulate(world, found, world.loop.stop)
    return world, found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Small]:
    made = small(tmp_path)
    yield made
    made.store.close()


def forced(run: Small, model: Model) -> dict[str, torch.Tensor]:
    for handle in model.values():
        run.learner._forcer.force(handle)
    return tensors(model)


# -- how stale updates are ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "concurrency", "folded"),
    mostly_long(
        [(2, 2, 1), (8, 8, 1), (20, 8, 1), (8, 8, 3), (20, 8, 4), (16, 16, 10)], now=[(8, 8, 1), (8, 8, 3), (20, 8, 4)]
    ),
)
def test_mean_staleness_is_that_of_a_queue_that_is_always_full(devices: int, concurrency: int, folded: int) -> None:
    """(C - 1) / K, whatever the speeds: while one is at work, the other C - 1 come home once each."""
    updates = 2_400
    _, protocol = ran(devices, updates // folded, concurrency=concurrency, folded=folded)
    staleness = [stale for _, stale in protocol._seen]
    assert len(staleness) == updates
    assert np.mean(staleness) == pytest.approx((concurrency - 1) / folded, rel=0.02)


def test_a_fast_and_a_slow_client_take_turns_by_their_index() -> None:
    """Of 1 s and 3 s: every third time both are back in one instant, and what the slow one brings is three behind."""
    protocol = {"path": f"{asynchronous.__file__}:Asynchronous", "concurrency": 2}
    seconds = {"name": "per_sample", "seconds_per_sample": 0.1}
    devices = {"classes": {"fast": {"compute": seconds}, "slow": {"compute": seconds | {"seconds_per_sample": 0.3}}}}
    nodes = {"cloud": {"kind": "cloud"}, "bs": {"kind": "base_station"}}
    nodes |= {device: {"kind": "sensor", "attach": "bs", "device": device} for device in ("fast", "slow")}
    network = {key: value for key, value in NO_TIME.items() if key.startswith("network")}
    topology = {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "bs"]}]}
    changes = {"topology": topology, "devices": devices | {"default": "fast"}, "protocols": [protocol]}
    world, found = prepared(network | changes | {"stop.rounds": 10})
    simulate(world, found, world.loop.stop)
    assert " ".join(f"{'AB'[who]}{stale}" for who, stale in found._seen) == "A0 A0 A0 B3 A1 A0 A0 B3 A1 A0"


@pytest.mark.parametrize("folded", [1, 3])
def test_each_model_is_closed_by_the_last_update_that_it_is_made_of(folded: int) -> None:
    """As the protocol says, which waits with an inbox: and the path of a round ends with that client's work."""
    world, protocol = ran(8, 20, concurrency=8, folded=folded)
    rounds, seen = world.trace.rounds.array(), protocol._seen
    assert rounds["closed_by"].tolist() == [who for who, _ in seen[folded - 1 :: folded]]
    last = {piece.round: piece for piece in critical_paths(world.trace)}
    assert [last[number].client for number in rounds["round"].tolist()] == rounds["closed_by"].tolist()
    assert all(parts.keys() == {"work"} for parts in parts_of(world.trace))


# -- what becomes of them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # Weights 1 and 0.5. First 0.4 (1, -2) + 0.6 (1.2, -2.4) = (1.12, -2.24), then 0.7 of it + 0.3 (0.8, -1).
        (Mixing(rate=0.6), (1.024, -1.868)),
        # Changes (0.2, -0.4) and, of the model that the second one began with, (-0.2, 1).
        (Buffered(), (1.05, -1.95)),
        (Buffered(rate=0.1), (1.005, -1.995)),
    ],
)
def test_two_updates_of_which_one_is_stale(rule: ServerRule, expected: tuple[float, float], run: Small) -> None:
    """w = (1, -2); the first update was made of it, the second of a model three versions before."""
    graph = Graph("given")

    def model(*numbers: float) -> Model:
        handle: Handle = graph.node(Init(str(numbers)), {}).output("given")
        handle.value = {"w": torch.tensor(numbers, dtype=torch.float64)}
        return {"given": handle}

    now = model(1.0, -2.0)
    weights = [(stale + 1) ** -0.5 for stale in (0, 3)]
    assert weights == [1.0, 0.5]
    fresh = update(0, model(1.2, -2.4), weights[0], now)
    # What the second one has sent mixes in as it is: only the rule of changes looks at what it was made of.
    before = model(1.0, -2.0) if isinstance(rule, Mixing) else model(1.5, -4.0)
    sent = model(0.8, -1.0) if isinstance(rule, Mixing) else model(1.3, -3.0)
    state: State = {"model": now, "more": now}
    after = rule.apply(run.learner, state, [fresh, update(1, sent, weights[1], before)], aggregation())
    assert after["more"] is now
    assert forced(run, after["model"])["given.w"].tolist() == pytest.approx(expected, abs=1e-12)


def test_one_after_the_other_without_mixing_is_sgd_from_client_to_client(run: Small) -> None:
    world, protocol = ran(CLIENTS, 6, run, concurrency=1, exponent=0.0, server=path("Mixing") | {"rate": 1.0})
    model, uses = run.learner.initial_model(), [0] * CLIENTS
    for number, (client, staleness) in enumerate(protocol._seen, start=1):
        assert staleness == 0
        model = train(run.learner, model, client, Plain(), use=uses[client], round_number=number).model
        uses[client] += 1
    assert max(uses) < 6
    expected = forced(run, model)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in forced(run, world.loop.model).items())


def test_a_buffer_of_all_who_set_out_together_is_fedavg(run: Small) -> None:
    """Bit for bit: the same trainings, of the same models, in the same order of additions."""
    keys = {"concurrency": CLIENTS, "folded": CLIENTS, "refill": "on_aggregation", "server": path("Buffered")}
    world, protocol = ran(CLIENTS, 4, run, **keys)
    assert {staleness for _, staleness in protocol._seen} == {0}
    fedavg = {"name": "fedavg", "fraction": 1.0, "weighting": "uniform"}
    changes = NO_TIME | {"protocols": [fedavg], "topology.devices": CLIENTS, "stop.rounds": 4}
    expected, protocol = prepared(changes, learner=lambda *_: run.learner)
    simulate(expected, protocol, expected.loop.stop)
    wanted = forced(run, expected.loop.model)
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in forced(run, world.loop.model).items())


def test_stale_updates_change_the_model_as_they_are_weighed(run: Small) -> None:
    """The whole protocol against a loop by hand: whom it folded, how stale they were, and what came of it."""
    versions, keys = 8, {"concurrency": CLIENTS, "server": path("Mixing")}
    models, uses = [run.learner.initial_model()], [0] * CLIENTS
    for number in range(1, versions + 1):
        world, protocol = ran(CLIENTS, number, run, **keys)
        models.append(world.loop.model)
    assert max(staleness for _, staleness in protocol._seen) > 1
    for number, (client, staleness) in enumerate(protocol._seen, start=1):
        begun = models[number - 1 - staleness]
        trained = forced(run, train(run.learner, begun, client, Plain(), use=uses[client], round_number=number).model)
        before, after = (forced(run, models[at]) for at in (number - 1, number))
        share = 0.6 * (staleness + 1) ** -0.5
        for name, tensor in after.items():
            torch.testing.assert_close(tensor, (1 - share) * before[name] + share * trained[name])
        uses[client] += 1


def path(rule: str) -> dict[str, Any]:
    return {"path": f"{asynchronous.__file__}:{rule}"}
