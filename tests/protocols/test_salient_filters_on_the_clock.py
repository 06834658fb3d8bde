"""SPATL on the network: what goes down and up, on every hop; what an agent's work takes; and what is refused."""

from __future__ import annotations

from typing import Any

import digit_runs
import pytest
from pydantic import ValidationError
from small_worlds import NO_CONTENTION, RING, simulated

from fedsim.errors import UserError
from fedsim.experiment.validate import validate
from fedsim.models.convolutions import skeleton_of
from fedsim.models.resnet import ResNet
from fedsim.models.table import EXTRACTOR
from fedsim.protocols.world import World

TABLE = ResNet(depth=20).table(None, None)
BONES = skeleton_of(TABLE)
DOWN, TRAINED = TABLE.bytes(EXTRACTOR), 4.0 * TABLE.parameters(EXTRACTOR)
CLASSIFIER = TABLE.bytes("classifier")
HALF = {"name": "uniform", "keep": 0.5}
HALVED = sum(one.filters // 2 for one in BONES.convolutions)
UP_HALF = 4.0 * sum(one.filters // 2 * one.filter_numbers for one in BONES.convolutions) + 4.0 * HALVED
UP_ALL = DOWN + 4.0 * BONES.filters
RING_OF_FOUR: dict[str, Any] = {"topology": RING, "model": {"name": "resnet"}, "stop.rounds": 2}
HOPS = 3
ROUNDS, CLIENTS = 2, 4


def bytes_of(world: World) -> tuple[float, float]:
    """(down, up) of each client in each round, the same for all, on all hops of its way."""
    hops = world.trace.hops.array()
    ways = []
    for uplink in (False, True):
        some = hops[hops["uplink"] == uplink]
        assert len(some) == HOPS * ROUNDS * CLIENTS and len(set(some["bytes"].tolist())) == 1
        ways.append(float(some["bytes"][0]))
    return ways[0], ways[1]


CASES: dict[str, tuple[dict[str, Any], float, float]] = {
    "half": ({"name": "spatl", "selection": HALF}, DOWN + TRAINED, UP_HALF),
    "half, at random": ({"name": "spatl", "selection": {"name": "random", "keep": 0.5}}, DOWN + TRAINED, UP_HALF),
    "half, declared": (
        {"name": "spatl", "selection": {"name": "gnn_ppo", "declared_keep": 0.5, "reward_samples": 2}},
        DOWN + TRAINED,
        UP_HALF,
    ),
    "half, of all filters": (
        {"name": "spatl", "selection": {"name": "l2_global", "keep": 0.4, "declared_keep": 0.5}},
        DOWN + TRAINED,
        UP_HALF,
    ),
    "control sent": (
        {"name": "spatl", "selection": HALF, "control": {"change": "sent"}},
        DOWN + TRAINED,
        UP_HALF + TRAINED,
    ),
    "no control": ({"name": "spatl_no_control", "selection": HALF}, DOWN, UP_HALF),
    "all, with their numbers": ({"name": "spatl_no_control", "selection": {**HALF, "keep": 1.0}}, DOWN, UP_ALL),
    "no selection": ({"name": "spatl_no_selection"}, DOWN + TRAINED, DOWN),
    "neither": ({"name": "spatl_no_control", "selection": {"name": "none"}}, DOWN, DOWN),
    "shared predictor": (
        {"name": "spatl_shared_predictor", "selection": HALF},
        DOWN + CLASSIFIER + TRAINED,
        UP_HALF + CLASSIFIER,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_goes_down_and_up_on_every_hop(case: str) -> None:
    protocol, down, up = CASES[case]
    assert bytes_of(simulated(RING_OF_FOUR | {"protocols": [{"fraction": 1.0, **protocol}]})) == (down, up)


def test_down_and_up_as_the_papers_model_has_them() -> None:
    """ResNet-20's extractor, and its control: 1,081,792 B and 4 x 269,072 B."""
    assert (DOWN, TRAINED, CLASSIFIER, UP_ALL) == (1_081_792.0, 1_076_288.0, 2_600.0, 1_084_544.0)


LEARNS: dict[str, Any] = {
    "topology.devices": 3,
    "network.link.rate_bps": 8e6,
    "network.cell.radio": {"name": "fixed", "uplink_bps": 1e6, "downlink_bps": 1e6},
    "data": {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.2},
    "model": {"name": "small_cnn"},
    "evaluate": {"on": ["own"]},
    "stop.rounds": 2,
}


def test_what_an_agent_rates_takes_the_devices_time() -> None:
    """10 samples, of which 2 are held back: 8 are trained on; in the first of two rounds 30 x 2 x 0.8 go forward."""
    agent = {"name": "gnn_ppo", "declared_keep": 0.5, "finetune_rounds": 1}
    protocol = {"name": "spatl_no_control", "fraction": 1.0, "selection": agent}
    declared = {"model": {"name": "resnet"}, "stop.rounds": 2, "protocols": [protocol]}
    work = simulated(NO_CONTENTION | declared).trace.work.array()
    seconds = sorted((work["end_s"] - work["start_s"]).tolist())
    assert seconds == pytest.approx([0.5 * 8] * 2 + [0.5 * (8 + 30 * 2 * 0.8 / 3)] * 2)


def test_samples_that_are_held_back_are_not_trained_on_by_the_clock_either() -> None:
    for most, trained in ((0, 10), (1, 9), (2, 8), (100, 8)):
        protocol = {"name": "fedavg", "fraction": 1.0, "hold_back": most}
        world = simulated(NO_CONTENTION | {"protocols": [protocol]})
        work = world.trace.work.array()
        assert (work["end_s"] - work["start_s"]).tolist() == pytest.approx([0.5 * trained] * 2)
        assert [client.samples for client in world.clients] == [trained] * 2


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no convolution": (
        {"protocols": [{"name": "spatl", "fraction": 1.0, "selection": HALF}], "model": {"name": "mlp", "hidden": [4]}},
        "protocols[0].selection: 'uniform' chooses filters of convolutions, and fedsim knows none in this model's "
        "extractor; choose a model with convolutions, such as small_cnn or resnet, or {name: none}",
    ),
    "one part": (
        {
            "protocols": [{"name": "fedavg", "fraction": 1.0, "server": {"name": "salient_mean"}}],
            "model": {"name": "softmax"},
        },
        "protocols[0].server: 'salient_mean' needs a model with an extractor; choose another, such as resnet or "
        "small_cnn",
    ),
    "too few to hold back": (
        {
            "topology.devices": 400,
            "protocols": [{"name": "spatl", "fraction": 0.1}],
            "data": {"name": "digits", "partition": {"name": "iid"}},
            "evaluate": {"on": ["global"]},
        },
        "at most one in 5 is held back; give every client 5 at least",
    ),
    "nothing may be held back": (
        {"protocols": [{"name": "spatl", "fraction": 1.0, "hold_back": 0}]},
        "protocols[0].hold_back: 0, and the selection has clients hold back 128 samples, as its own keys say; leave",
    ),
    "another number is held back": (
        {"protocols": [{"name": "spatl", "fraction": 1.0, "hold_back": 127}]},
        "protocols[0].hold_back: 127, and the selection has clients hold back 128 samples, as its own keys say; leave",
    ),
    "a scale without its parity": (
        {"protocols": [{"name": "spatl", "fraction": 1.0, "control": {"cv_scale": 0.5}}]},
        "0.5 is for parity: authors; leave it out",
    ),
    "not learned": (
        {"learn": False, "protocols": [{"name": "spatl", "fraction": 1.0}]},
        "the size of its updates is measured on what was learned; give declared_keep to run with learn: false "
        "(--no-training)",
    ),
    "controls of the whole model": (
        {
            "protocols": [
                {"name": "fedavg", "fraction": 1.0, "objective": {"name": "control_variates"}}
                | {"server": {"name": "salient_mean"}}
            ]
        },
        "protocols[0].server: objective 'control_variates' is about the whole model, and server rule 'salient_mean' "
        "about the extractor; choose server: {name: scaffold}",
    ),
    "controls of the extractor": (
        {
            "protocols": [
                {"name": "fedavg", "fraction": 1.0, "objective": {"name": "extractor_control"}}
                | {"server": {"name": "scaffold"}}
            ]
        },
        "protocols[0].server: objective 'extractor_control' is about the extractor, and server rule 'scaffold' about "
        "the whole model; choose server: {name: salient_mean}",
    ),
    "of the second protocol": (
        {
            "topology.devices": 400,
            "protocols": [{"name": "fedavg", "fraction": 0.1}, {"name": "fedper", "fraction": 0.1, "hold_back": 5}],
            "data": {"name": "digits", "partition": {"name": "iid"}},
            "evaluate": {"on": ["global"]},
        },
        "protocols[1]: client 0 has 4 training samples, and at most one in 5 is held back",
    ),
    "masks at stations": (
        {
            "evaluate": {"on": ["global"]},
            "protocols": [
                {"name": "hierarchical", "fraction": 1.0, "server": {"name": "salient_mean", "denominator": "count"}}
            ],
        },
        "protocols[0].server: server rule 'salient_mean' looks at 'kept' of each client, and a base station reports "
        "its model alone; choose denominator: clients",
    ),
    "in sequence": (
        {
            "protocols": [
                {"name": "composed", "cohort": {"name": "grouped", "sampling_rate": 1.0}}
                | {"exchange": {"name": "salient_filters", "selection": HALF}}
            ]
        },
        "protocols[0].exchange: filters are chosen from what one client has trained, and in a group several train; "
        "choose cohort: {name: random}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_its_reason(case: str) -> None:
    changes, reason = REFUSED[case]
    with pytest.raises((UserError, ValidationError)) as refused:
        validate(digit_runs.scenario(LEARNS | changes))
    assert reason in str(refused.value)


@pytest.mark.parametrize(("name", "size"), [("spatl", DOWN), ("spatl_shared_predictor", DOWN + CLASSIFIER)])
def test_before_a_timed_fine_tuning_goes_down_what_clients_have_in_common(name: str, size: float) -> None:
    tuned = {"evaluate": {"on": ["own"], "finetune_epochs": 1, "finetune_timed": True}, "stop.rounds": 1}
    changes = RING_OF_FOUR | tuned | {"protocols": [{"name": name, "fraction": 1.0, "selection": HALF}]}
    hops = simulated(changes).trace.hops.array()
    assert sorted(set(hops["bytes"][~hops["uplink"]].tolist())) == sorted({size, size + TRAINED})
