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


def without_time(model: str, protocol: dict[str, Any], *, rounds: int) -> dict[str, Any]:
    changes = NO_TIME | DATA | {"protocols": [protocol], "stop.rounds": rounds}
    return {key: value for key, value in changes.items() if not key.startswith("model")} | {"model": MODELS[model]}


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
    world = simulated(without_time(model, {**protocol, "clients": CLIENTS}, rounds=ROUNDS))
    table = world.model
    assert (table.bytes() > 4 * table.parameters()) == (model == "normalised")
    down, up = (table.bytes() + bytes_of(what, table) for what in beside)
    assert sent(world, up=False) == [[down] * CLIENTS] * ROUNDS
    assert sent(world, up=True) == [[up] * CLIENTS] * ROUNDS


@pytest.mark.parametrize("without_history", ["calibrate", "skip"])
@pytest.mark.parametrize(("accounting", "interval"), [("sent", 2), ("sent", 3), ("paper", 3)])
def test_what_is_beside_a_part_is_beside_that_part_alone(accounting: str, interval: int, without_history: str) -> None:
    """FedNova's, in full rounds and in calibration rounds; the scattered model has nothing beside it.

    Who skips its calibration sends what everybody sends.
    """
    lasp = {"name": "lasp", "scc": {"without_history": without_history}}
    server = {"name": "fednova", "accounting": accounting}
    protocol = {"name": "fednova", "clients": CLIENTS, "interval": interval, "exchange": lasp, "server": server}
    world = simulated(without_time("mlp", protocol, rounds=interval))
    w, classifier = world.model.bytes(), world.model.bytes("classifier")
    full, part = (w, classifier) if accounting == "paper" else (4.0, 4.0)
    assert sent(world, up=True) == [[w + full] * CLIENTS, *[[classifier + part] * CLIENTS] * (interval - 1)]
    full, part = (w, classifier) if accounting == "paper" else (0.0, 0.0)
    scattered = [w] * CLIENTS
    calibrations = [[classifier + part] * CLIENTS] * (interval - 1)
    assert sent(world, up=False) == [[w + full] * CLIENTS + scattered, *calibrations]
