"""A journey that is interrupted is abandoned, wherever it is, and so is a group with whoever's turn it is."""

from __future__ import annotations

from typing import Any

import pytest
from small_worlds import NO_CONTENTION, prepared

from fedsim.kernel.gather import gather, give_up
from fedsim.kernel.trace import Outcome
from fedsim.kernel.trip import Abandoned, Lost, Trip
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.round_trip import round_trip
from fedsim.protocols.schedules.relay import Relay, Turns
from fedsim.protocols.site import RoundGate, Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import World

PLACES = pytest.mark.parametrize(
    ("at_s", "hops", "work"),
    [
        (3.0, [("cancelled", 750.0)], []),
        (7.0, [("arrived", 1_000.0)], ["cancelled"]),
        (13.0, [("arrived", 1_000.0), ("cancelled", 500.0)], ["arrived"]),
    ],
    ids=["on its way down", "at work", "on its way up"],
)
"""It goes down until 4 s, works until 9 s and is back at 17 s."""


def world_of(devices: int) -> World:
    world, _ = prepared(NO_CONTENTION | {"topology.devices": devices})
    return world


def task_of(world: World) -> Task:
    return Site(world).task(1, Plain(), Float32())


def on_the_air(world: World) -> list[tuple[str, float]]:
    """How each crossing of the air has ended, and after how many bytes."""
    hops = world.trace.hops.array()
    rows = hops[hops["access"]][["outcome", "bytes"]].tolist()
    return [(Outcome(outcome).name.lower(), sent_bytes) for outcome, sent_bytes in rows]


def works(world: World) -> list[str]:
    return [Outcome(outcome).name.lower() for outcome in world.trace.work.array()["outcome"].tolist()]


def interrupted(world: World, trip: Trip, at_s: float) -> None:
    world.env.timeout(at_s).callbacks.append(lambda _: give_up([trip], "too late"))
    gather(world.env, [trip])
    world.env.run()
    assert isinstance(trip.value, Abandoned) and str(trip.value) == "too late"
    assert not any(client.busy for client in world.clients)


@PLACES
def test_a_journey_is_abandoned_wherever_it_is(at_s: float, hops: list[Any], work: list[str]) -> None:
    world = world_of(1)
    (client,) = world.clients
    interrupted(world, world.start(client, round_trip(world, client, task_of(world))), at_s)
    assert (on_the_air(world), works(world)) == (hops, work)


@PLACES
def test_and_a_group_with_the_journey_of_whoever_has_his_turn(at_s: float, hops: list[Any], work: list[str]) -> None:
    world = world_of(2)
    group = Relay().relay(world, world.clients, task_of(world), RoundGate(), Turns())
    interrupted(world, Trip(world.env, group), 17.0 + at_s)
    assert (on_the_air(world), works(world)) == ([("arrived", 1_000.0)] * 2 + hops, ["arrived", *work])


def test_a_client_whose_journey_fails_at_once_is_free() -> None:
    world = world_of(1)
    (client,) = world.clients

    def nowhere() -> Any:
        raise Lost("there is no way")
        yield

    gathered = gather(world.env, [world.start(client, nowhere())])
    world.env.run()
    assert (len(gathered.value.lost), client.busy, client.journey) == (1, False, None)
