"""Where updates come together: whom a site sends out, what it waits for, what it makes of it, and what it reports.

Where nobody waits for the network, a round trip over the air takes 17 s: 4 down, 5 of work, 8 up. A wire takes 1 s.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest
from chains import on_the_wires, over_the_air
from plain_learner import PlainLearner, text
from simpy import Event
from small_worlds import NO_CONTENTION, hall, prepared

from fedsim.kernel.gather import Gathered
from fedsim.kernel.trip import Lost, Trip
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.protocols.site import RoundGate, Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World

ON_WIRES = NO_CONTENTION | {"network.link.rate_bps": 8_000}


@dataclass(frozen=True, slots=True)
class Unfit(Task):
    """Nobody has what it needs."""

    def suits(self, client: Client) -> bool:
        return False


def world_of(changes: dict[str, Any], *, learns: bool = True) -> World:
    world, _ = prepared(changes, **({"learner": lambda *_: PlainLearner()} if learns else {}))
    return world


def only(event: Event) -> Generator[Event, Any, Any]:
    return (yield event)


def task_of(site: Site, kind: type[Task] = Task) -> Task:
    return site.task(1, Plain(), Float32(), kind=kind)


def done(world: World, process: Generator[Any, Any, Any]) -> Any:
    """What a process returns, when it has ended; it begins at once, so whom it waits for may have failed already."""
    trip, ended = Trip(world.env, process), world.env.event()
    if trip.callbacks is not None:
        trip.callbacks.append(lambda _: ended.succeed())
        world.env.run(until=ended)
    if not trip.ok:
        trip.defused = True
        raise trip.value
    return trip.value


# -- visits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["out of reach", "busy", "unfit"])
def test_a_client_that_cannot_begin_has_failed_at_once_and_nothing_is_sent_to_it(why: str) -> None:
    world = world_of(NO_CONTENTION)
    cloud, client = Site(world), world.clients[0]
    if why == "out of reach":
        client.attachment.on = False
    elif why == "busy":
        world.start(client, only(world.env.timeout(1_000.0)))  # it never answers
    journey = client.journey
    trip = cloud.visit(client, task_of(cloud, Unfit if why == "unfit" else Task))
    assert not trip.is_alive and isinstance(trip.value, Lost)
    assert str(trip.value) == "'sensor-1' cannot begin"
    assert trip.of is client and client.journey is journey
    gathered: Gathered = done(world, cloud.collect([trip, cloud.visit(world.clients[1], task_of(cloud))]))
    assert [update.sender for update in gathered.arrived] == [1]
    assert (gathered.lost, gathered.late) == ([trip], [])
    assert over_the_air(world) == {"uplink": 1_000.0, "downlink": 1_000.0}


def test_a_visit_from_a_station_to_its_own_cell_crosses_no_wire() -> None:
    world = world_of(ON_WIRES | hall(a="east", b="west"))
    station = Site(world, world.clients[0].attachment.backbone)
    done(world, station.collect([station.visit(world.clients[0], task_of(station))]))
    assert (world.env.now, on_the_wires(world)) == (17.0, [])


def test_and_to_another_cell_those_between_the_stations() -> None:
    world = world_of(ON_WIRES | hall(a="east", b="west"))
    station = Site(world, world.clients[0].attachment.backbone)
    done(world, station.collect([station.visit(world.clients[1], task_of(station))]))
    assert world.env.now == 2 + 17.0 + 2
    assert [(wire, direction) for _, wire, direction, _ in on_the_wires(world)] == [
        ("edge -- east", "up"),
        ("edge -- west", "down"),
        ("edge -- west", "up"),
        ("edge -- east", "down"),
    ]


# -- what is waited for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_what_is_late_goes_on_or_is_given_up_before_the_round_ends(late_transfers: str) -> None:
    # The work ends at 9 s: at 10 s both are in the air for a second.
    world = world_of(NO_CONTENTION | {"network.late_transfers": late_transfers})
    cloud, gate = Site(world), RoundGate()
    trips = [cloud.visit(client, task_of(cloud)) for client in world.clients]
    gathered: Gathered = done(world, cloud.collect(trips, deadline_s=10.0, gate=gate))
    finishes = late_transfers == "finish"
    assert (world.env.now, gate.open) == (10.0, False)
    assert (gathered.arrived, gathered.lost, gathered.late) == ([], [], trips)
    assert [trip.is_alive for trip in trips] == [client.busy for client in world.clients] == [finishes] * 2
    world.env.run()
    assert over_the_air(world)["uplink"] == 2 * (1_000.0 if finishes else 125.0)


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_once_enough_have_arrived_the_others_are_late(late_transfers: str) -> None:
    world = world_of(ON_WIRES | hall(a="east", b="west") | {"network.late_transfers": late_transfers})
    station = Site(world, world.clients[0].attachment.backbone)
    trips = [station.visit(client, task_of(station)) for client in reversed(world.clients)]
    gathered: Gathered = done(world, station.collect(trips, count=1))
    assert world.env.now == 17.0
    assert ([update.sender for update in gathered.arrived], gathered.late) == ([0], trips[:1])
    assert trips[0].is_alive is world.clients[1].busy is (late_transfers == "finish")


def test_where_nobody_is_late_nothing_is_given_up_and_no_time_passes() -> None:
    world = world_of(NO_CONTENTION | {"network.late_transfers": "cancel"})
    cloud, gates = Site(world), (RoundGate(), RoundGate())
    nobody: Gathered = done(world, cloud.collect([], deadline_s=100.0, gate=gates[0]))
    assert (nobody, world.env.now) == (Gathered([], [], []), 0.0)
    trips = [cloud.visit(client, task_of(cloud)) for client in world.clients]
    got: Gathered = done(world, cloud.collect(trips, count=2, deadline_s=100.0, gate=gates[1]))
    assert ([update.sender for update in got.arrived], got.lost, got.late) == ([0, 1], [], [])
    assert (world.env.now, [gate.open for gate in gates]) == (17.0, [False, False])


def steps_at(site: Site, client: Client, number: int) -> Generator[Any, Any, list[float]]:
    """When each of so many steps at a site with one client has ended."""
    ends = []
    for _ in range(number):
        got = yield from site.collect([site.visit(client, task_of(site))])
        yield from site.fold(Mean(), got.arrived, round_number=1)
        ends.append(site.world.env.now)
    return ends


def test_two_sites_at_once_do_not_disturb_each_other() -> None:
    """Each has its own air, its own models and its own count of them."""
    alone, both = (world_of(ON_WIRES | hall(a="east", b="west") | {"devices.aggregation_s": 0.5}) for _ in range(2))
    one = Site(alone, alone.clients[0].attachment.backbone)
    expected = done(alone, steps_at(one, alone.clients[0], 3))
    assert expected == [17.5, 35.0, 52.5]
    east, west = sites = [Site(both, client.attachment.backbone) for client in both.clients]
    trips = [Trip(both.env, steps_at(*about)) for about in zip(sites, both.clients, (3, 2), strict=True)]
    both.env.run()
    assert [trip.value for trip in trips] == [expected, expected[:2]]
    assert (east.version, west.version) == (3, 2)
    assert east.state["model"] is not west.state["model"]
    trained = [(training.client, training.start) for training in both.learner.trainings]  # type: ignore[attr-defined]
    assert trained[:2] == [(0, "initial"), (1, "initial")]
    assert on_the_wires(both) == []


# -- what is made of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learns", [True, False])
def test_of_no_updates_no_model_is_made_in_no_time(learns: bool) -> None:
    world = world_of(NO_CONTENTION | {"devices.aggregation_s": 3.0}, learns=learns)
    cloud = Site(world)
    before = cloud.state
    done(world, cloud.fold(Mean(), [], round_number=1))
    assert cloud.state is before
    assert (cloud.version, world.env.now) == (0, 0.0)


@pytest.mark.parametrize("learns", [True, False])
def test_of_updates_one_more_model_is_made_and_it_takes_its_time(learns: bool) -> None:
    world = world_of(NO_CONTENTION | {"devices.aggregation_s": 3.0}, learns=learns)
    cloud = Site(world)
    got: Gathered = done(world, cloud.collect([cloud.visit(client, task_of(cloud)) for client in world.clients]))
    done(world, cloud.fold(Mean(), got.arrived, round_number=1))
    assert (cloud.version, world.env.now) == (1, 17.0 + 3.0)
    assert text(cloud.state["model"]) == ("mean of round 1" if learns else "")


# -- reports -----------------------------------------------------------------------------------------------------------


def test_a_station_reports_up_its_model_as_one_update_of_all_and_pays_its_own_wires() -> None:
    # Both over the air at the same time; then the model goes up two wires.
    world = world_of(ON_WIRES | hall(a="east", b="east", c="west") | {"training.epochs": 2})
    backbone = world.clients[0].attachment.backbone
    station = Site(world, backbone)
    trips = [station.visit(client, task_of(station)) for client in world.clients[:2]]
    got: Gathered = done(world, station.collect(trips))
    with pytest.raises(Lost, match="no client of the site has trained"):
        done(world, station.report_up())
    done(world, station.fold(Mean(), got.arrived, round_number=1))
    update = done(world, station.report_up())
    assert world.env.now == 22.0 + 2  # two epochs take 10 s
    assert on_the_wires(world) == [(-1, "edge -- east", "up", 1_000.0), (-1, "cloud -- edge", "up", 1_000.0)]
    assert over_the_air(world) == {"uplink": 2_000.0, "downlink": 2_000.0}
    assert (update.clients, update.samples, update.steps, update.weight) == (2, 20, 2 * 2 * 2, 20)
    assert (text(update.base), text(update.model)) == ("initial", "mean of round 1")
    assert update.bytes == 1_000.0


def test_a_report_that_the_wire_loses_is_lost() -> None:
    # The wire to the cloud fails in the middle of the report.
    faults = {"scheduled": [{"link": ["cloud", "edge"], "at_s": 18.5, "for_s": 1.0}], "messages": "lose"}
    world = world_of(ON_WIRES | hall(a="east") | {"faults": faults})
    station = Site(world, world.clients[0].attachment.backbone)
    got: Gathered = done(world, station.collect([station.visit(world.clients[0], task_of(station))]))
    done(world, station.fold(Mean(), got.arrived, round_number=1))
    with pytest.raises(Lost):
        done(world, station.report_up())
    assert on_the_wires(world)[-1] == (-1, "cloud -- edge", "up", 500.0)


def test_what_a_station_receives_comes_down_its_wires_and_begins_its_report_anew() -> None:
    world = world_of(ON_WIRES | hall(a="east", b="west"))
    cloud = Site(world)
    station = Site(world, world.clients[0].attachment.backbone, {"model": cloud.state["model"], "kept": {}})
    done(world, steps_at(station, world.clients[0], 2))
    done(world, steps_at(cloud, world.clients[1], 1))
    begun, wires = world.env.now, len(on_the_wires(world))
    done(world, station.receive(cloud))
    assert world.env.now == begun + 2
    assert on_the_wires(world)[wires:] == [
        (-1, "cloud -- edge", "down", 1_000.0),
        (-1, "edge -- east", "down", 1_000.0),
    ]
    assert station.state == {"model": cloud.state["model"], "kept": {}}
    with pytest.raises(Lost, match="no client of the site has trained"):
        done(world, station.report_up())
    done(world, steps_at(station, world.clients[0], 2))
    update = done(world, station.report_up())
    assert (update.version, update.samples, update.steps, update.clients) == (1, 10, 2 * 2, 1)
    assert text(update.base) == "mean of round 1" and update.base is cloud.state["model"]


def test_a_model_that_the_wire_loses_on_its_way_down_is_not_received() -> None:
    faults = {"scheduled": [{"link": ["cloud", "edge"], "at_s": 0.5, "for_s": 1.0}], "messages": "lose"}
    world = world_of(ON_WIRES | hall(a="east") | {"faults": faults})
    station = Site(world, world.clients[0].attachment.backbone)
    before = station.state
    with pytest.raises(Lost):
        done(world, station.receive(Site(world)))
    assert station.state is before
