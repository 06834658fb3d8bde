"""Protocols of one scenario whose clients train different models, each made of the scenario's own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from small_worlds import scenario

from fedsim.experiment.describe import describe
from fedsim.experiment.description.simulations import MOST_HOPS, Simulations
from fedsim.experiment.validate import validate
from fedsim.learning.learner import NoLearner
from fedsim.models.fusion import fused
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.scenario.build import build_world, gather_materials

HIDDEN, MODEL_BYTES = 3, 4.0 * (64 * 3 + 3 + 3 * 10 + 10)
FUSION = {"name": "fusion", "operator": "multi"}
CHANGES: dict[str, Any] = {
    "learn": True,
    "data": {"name": "digits"},
    "model": {"name": "mlp", "hidden": [HIDDEN]},
    "protocols": [
        {"name": "fedavg", "clients": 2},
        {"name": "fedfusion_multi", "clients": 2},
        {"name": "composed", "cohort": {"name": "random", "clients": 2}, "objective": FUSION},
        {"name": "fedfusion_conv", "clients": 2},
        {"name": "fedprox", "clients": 2, "mu": 0.1},
    ],
}
BYTES = (0.0, 4.0 * HIDDEN, 4.0 * HIDDEN, 4.0 * 2 * HIDDEN**2, 0.0)
"""More than the model's own, by protocol."""


def test_a_world_is_of_the_model_that_its_protocol_trains_and_equal_ones_are_one_object() -> None:
    whole = scenario(CHANGES)
    materials = gather_materials(whole, 1)
    worlds = [build_world(whole, protocol, materials, lambda *_: NoLearner()) for protocol in whole.protocols]
    for world in worlds:
        assert all(client.model is world.model for client in world.clients)
    fedavg, multi, composed, conv, fedprox = (world.model for world in worlds)
    assert fedavg is fedprox is materials.table
    assert multi is composed
    assert (multi, conv) == (fused(fedavg, "multi"), fused(fedavg, "conv"))
    assert list(materials.trained.values()) == [fedavg, multi, conv]
    assert materials.tables == (fedavg,)
    by_protocol = materials.by_protocol(whole.protocols)
    assert [one.models for one in by_protocol.values()] == [(fedavg,), (multi,), (multi,), (conv,), (fedavg,)]
    assert [one.trains_alone for one in by_protocol.values()] == [False, True, True, True, False]


def test_every_protocol_is_checked_in_its_own_world(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []
    check = Protocol.check

    def noted(protocol: Protocol, world: Any) -> None:
        seen.append((protocol.title, world.model.bytes() - MODEL_BYTES))
        check(protocol, world)

    monkeypatch.setattr(Protocol, "check", noted)
    whole = scenario(CHANGES)
    validate(whole)
    assert seen == list(zip((protocol.title for protocol in whole.protocols), BYTES, strict=True))


def test_describe_tells_what_each_protocol_sends() -> None:
    facts, _ = describe(scenario(CHANGES | {"stop": {"rounds": 2}}))
    assert facts["model"]["bytes"] == MODEL_BYTES
    assert facts["model"]["executor"]["name"] == "batched"
    assert facts["model"]["executor"]["remark"].startswith(
        "batched trains in the plain loop, client by client: fedfusion_multi, composed (batched cannot take "
        "their model: "
    )
    for protocol, more in zip(facts["protocols"], BYTES, strict=True):
        for one in protocol["rounds"]:
            assert one["downlink_bytes_per_client"] == one["uplink_bytes_per_client"] == MODEL_BYTES + more


def test_a_fresh_world_is_for_protocols_of_its_model() -> None:
    whole = scenario(CHANGES)
    materials = gather_materials(whole, 1)
    fedavg, multi, *_, fedprox = whole.protocols
    fresh = [build_world(whole, fedavg, materials, lambda *_: NoLearner())]
    simulations = Simulations(whole, materials, 1.0, MOST_HOPS, MOST_HOPS, fresh)
    for protocol, more, left in ((multi, 4.0 * HIDDEN, 1), (fedprox, 0.0, 0), (fedavg, 0.0, 0)):
        world = simulations.simulated(protocol, Stop(rounds=1), 1)
        assert world.loop.rounds_done[0].uplink_bytes == 2 * (MODEL_BYTES + more)
        assert len(fresh) == left


def test_work_is_that_of_the_model_that_is_trained() -> None:
    """A 1x1 convolution of 3 + 3 channels to 3: 18 products, 2 FLOPs each, three times a step."""
    compute = {"devices.classes.sensor.compute": {"name": "flops", "flops_per_s": 1e6}}
    whole = scenario(CHANGES | compute)
    materials = gather_materials(whole, 1)
    seconds = []
    for protocol in whole.protocols:
        world = build_world(whole, protocol, materials, lambda *_: NoLearner())
        seconds.append(world.compute_seconds(world.clients[0], 1_000))
    more = [other - one for one, other in pairwise(seconds)]
    assert more == pytest.approx([0, 0, 0.108, -0.108])
