"""Who trains in which round, and whose update arrives: drawn, or read from a trace in which some are missing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from plain_loop import DEVICES

from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.kernel.streams import Stream
from fedsim.kernel.trace import Outcome
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world
from fedsim.scenario.schema import Scenario

MISSING: dict[str, Any] = {
    "network.cell.loss": {"probability": 0.15, "attempts": 1},
    "devices.classes.sensor.compute": {
        "name": "distribution",
        "law": "lognormal",
        "mean_seconds_per_sample": 0.01,
        "variation": 1.0,
        "per": "training",
    },
    "stop.rounds": 6,
}
"""One transfer over the air in seven is lost, and one training in a few takes longer than a round lasts."""
LATE: dict[str, Any] = {"deadline_s": 1.0, "clients": 5}
"""Keys of a protocol whose rounds do not last longer."""


class Asked(NamedTuple):
    """A client that has finished its training in answer to a round."""

    client: int
    arrives: bool = True
    """Whether its update arrives while it is waited for."""


def selected(rounds: int, cohort: int) -> list[list[Asked]]:
    """Who is drawn in each round where everybody is free and everything arrives."""
    return [
        [Asked(int(client)) for client in Stream(1, "selection", 0, number).generator().permutation(DEVICES)[:cohort]]
        for number in range(1, rounds + 1)
    ]


def asked_in(world: World) -> list[list[Asked]]:
    """Who has trained in answer to which round, and whose update has arrived in time, by the trace of a star."""
    trips = _trips(world.trace.hops.array())
    down = {(trip.client, trip.end_s): trip.start_s for trip in trips if trip.arrived and not trip.uplink}
    up = {(trip.client, trip.start_s): trip.end_s for trip in trips if trip.arrived and trip.uplink}
    rounds = world.trace.rounds.array()
    answers: list[list[Asked]] = [[] for _ in rounds]
    for client, _, start_s, end_s, _, outcome in world.trace.work.array().tolist():
        if outcome == Outcome.ARRIVED:
            number = int(np.searchsorted(rounds["start_s"], down[client, start_s], side="right")) - 1
            in_time = up.get((client, end_s), math.inf) <= rounds["end_s"][number]
            answers[number].append(Asked(client, bool(in_time)))
    return answers


class _Trip(NamedTuple):
    client: int
    uplink: bool
    start_s: float
    end_s: float
    arrived: bool


def _trips(hops: npt.NDArray[Any]) -> list[_Trip]:
    """Transfers between the cloud and the clients, of two hops each."""
    rows: dict[int, list[Any]] = {}
    for row in hops:
        rows.setdefault(int(row["transfer"]), []).append(row)
    return [
        _Trip(
            int(some[0]["client"]),
            bool(some[0]["uplink"]),
            float(min(row["start_s"] for row in some)),
            float(max(row["end_s"] for row in some)),
            sum(int(row["outcome"]) == Outcome.ARRIVED for row in some) == 2,
        )
        for some in rows.values()
    ]


def with_worlds(scenario: Scenario, folder: Path) -> tuple[Results, dict[str, World]]:
    """A run in double precision, and the world of each protocol."""
    worlds: dict[str, World] = {}

    def noted(scenario: Scenario, protocol: Any, *given: Any) -> World:
        worlds[protocol.title] = world = build_world(scenario, protocol, *given)
        return world

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedsim.experiment.one_run.build_world", noted)
        return run(scenario, out=folder, executor="serial", precision="float64"), worlds
