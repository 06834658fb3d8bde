"""What each baseline sends, in closed form, for each client and round: w is the model, P its trained parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_worlds import NO_TIME, simulated

from fedsim.models.table import ModelTable
from fedsim.protocols.world import World

CLIENTS, ROUNDS = 3, 2
MODELS: dict[str, dict[str, Any]] = {
    "mlp": {"name": "mlp", "hidden": [5]},
    "normalised": {"name": "resnet"},
}
"""The second has running statistics, which travel with the model, and no control variate."""
DATA = {"data": {"name": "digits", "partition": {"name": "iid"}}, "topology.devices": 5}
IDA = {"name": "inverse_distance"}
BESIDE: dict[str, tuple[dict[str, Any], str, str]] = {
    "fedavg": ({"name": "fedavg"}, "", ""),
    "fedavgm": ({"name": "fedavgm"}, "", ""),
    "fedadagrad": ({"name": "fedadagrad"}, "", ""),
    "fedadam": ({"name": "fedadam"}, "", ""),
    "fedadam, corrected": ({"name": "fedadam", "server": {"bias_correction": True}}, "", ""),
    "fedyogi": ({"name": "fedyogi"}, "", ""),
    "ida": ({"name": "ida"}, "", ""),
    "ida_fedavg": ({"name": "ida_fedavg"}, "", ""),
    "ida_intrac": ({"name": "ida_intrac"}, "", "one number"),
    "fednova": ({"name": "fednova"}, "", "one number"),
    "fednova, as papers count": ({"name": "fednova", "server": {"accounting": "paper"}}, "model", "model"),
    "scaffold": ({"name": "scaffold"}, "control", "control"),
    "the rule in fedavg": ({"name": "fedavg", "server": {"name": "fednova"}}, "", "one number"),
}
"""What goes down and what comes up beside the model."""


def sent(world: World, *, up: bool) -> list[list[float]]:
    """The bytes of each client's messages over the air, by round."""
    hops, ends = world.trace.hops.array(), world.trace.rounds.array()["hops"]
    return [
        [float(row["bytes"]) for row in some if row["access"] and row["uplink"] == up]
        for some in np.split(hops, ends)[:-1]
    ]


def bytes_of(what: str, table: ModelTable) -> float:
    sizes = {"": 0.0, "one number": 4.0, "model": table.bytes(), "control": 4.0 * table.parameters()}
    return sizes[what]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", BESIDE)
def test_a_message_has_the_model_and_what_the_paper_sends_beside_it(name: str, model: str) -> None:
    protocol, *beside = BESIDE[name]
    protocols = [{**protocol, "clients": CLIENTS}]
    changes = NO_TIME | DATA | {"model": MODELS[model], "protocols": protocols, "stop.rounds": ROUNDS}
    changes.pop("model.training_flops_per_sample")
    world = simulated(changes)
    table = world.model
    assert (table.bytes() > 4 * table.parameters()) == (model == "normalised")
    down, up = (table.bytes() + bytes_of(what, table) for what in beside)
    assert sent(world, up=False) == [[down] * CLIENTS] * ROUNDS
    assert sent(world, up=True) == [[up] * CLIENTS] * ROUNDS


@pytest.mark.parametrize("interval", [2, 3])
def test_where_a_part_is_exchanged_one_number_more_comes_up_with_each_part(interval: int) -> None:
    """FedNova's, in full rounds and in calibration rounds; the scattered model has nothing beside it."""
    protocol = {"name": "fednova", "clients": CLIENTS, "interval": interval, "exchange": {"name": "lasp"}}
    changes = NO_TIME | DATA | {"model": MODELS["mlp"], "protocols": [protocol], "stop.rounds": interval}
    changes.pop("model.training_flops_per_sample")
    world = simulated(changes)
    w, classifier = world.model.bytes(), world.model.bytes("classifier")
    assert sent(world, up=True) == [[w + 4] * CLIENTS, *[[classifier + 4] * CLIENTS] * (interval - 1)]
    assert sent(world, up=False) == [[w] * 2 * CLIENTS, *[[classifier] * CLIENTS] * (interval - 1)]
