"""What each round waited for, and the parts that its critical path is made of, against times worked out by hand.

A wire takes 1 s, the air 4 s down and 8 s up, and work 5 s.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import pytest
from chains import relayed
from critical_path_laws import parts_of
from hypothesis import given
from hypothesis import strategies as st
from simpy import Event
from small_worlds import NO_CONTENTION, RING, hall, prepared, simulated
from test_relay import THREE, away, failing
from test_stations import FEDGS, ran

from fedsim.kernel.trace import AT_DEADLINE, NOBODY, Pause
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.plain import Plain
from fedsim.metrics.critical_path import critical_paths
from fedsim.protocols.outside_rounds import train_outside_rounds
from fedsim.protocols.site import Site
from fedsim.protocols.world import World

ALONE = NO_CONTENTION | {"topology.devices": 1}
SLOW = {"compute": {"name": "per_sample", "seconds_per_sample": 1.8}}
FAST = {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}}
speeds = st.integers(1, 10**6).map(lambda number: number / 7)


def way(world: World, round_number: int = 1) -> list[tuple[str, int, float, float]]:
    """The pieces of a round: part, client, when."""
    pieces = (piece for piece in critical_paths(world.trace) if piece.round == round_number)
    return [(piece.part.name.lower(), piece.client, piece.start_s, piece.end_s) for piece in pieces]


def closed_by(world: World) -> list[int]:
    found: list[int] = world.trace.rounds.column("closed_by").tolist()
    return found


@given(up_bps=speeds, down_bps=speeds, sample_s=speeds, aggregation_s=speeds, parameters=st.integers(1, 10**9))
def test_of_one_client_and_one_hop_the_parts_have_a_closed_form(
    up_bps: float, down_bps: float, sample_s: float, aggregation_s: float, parameters: int
) -> None:
    world = simulated(
        ALONE
        | {
            "network.cell.radio": {"name": "fixed", "uplink_bps": up_bps, "downlink_bps": down_bps},
            "devices.classes.sensor.compute.seconds_per_sample": sample_s,
            "devices.aggregation_s": aggregation_s,
            "model.parameters": parameters,
        }
    )
    (parts,) = parts_of(world.trace)
    assert parts == pytest.approx(
        {
            "airtime": 32 * parameters / down_bps + 32 * parameters / up_bps,
            "work": 10 * sample_s,
            "server": aggregation_s,
        },
        rel=1e-12,
        abs=1e-9 + 1e-12 * world.env.now,
    )
    assert closed_by(world) == [0]


def test_over_several_hops_wires_count_with_their_delays() -> None:
    world = simulated({"topology.devices": 1, "network.link": {"rate_bps": 8_000, "delay_s": 0.25}})
    assert way(world) == [
        ("backhaul", 0, 0.0, 1.25),
        ("airtime", 0, 1.25, 5.25),
        ("work", 0, 5.25, 10.25),
        ("airtime", 0, 10.25, 18.25),
        ("backhaul", 0, 18.25, 19.5),
    ]


def test_in_a_serial_cell_the_second_client_waits_for_the_first() -> None:
    """Its model waits 1 s for the wire and 3 s for the air; its update 4 s, until the first one's is up at 18 s."""
    assert way(simulated()) == [
        ("queueing", 1, 0.0, 1.0),
        ("backhaul", 1, 1.0, 2.0),
        ("queueing", 1, 2.0, 5.0),
        ("airtime", 1, 5.0, 9.0),
        ("work", 1, 9.0, 14.0),
        ("queueing", 1, 14.0, 18.0),
        ("airtime", 1, 18.0, 26.0),
        ("backhaul", 1, 26.0, 27.0),
    ]


@pytest.mark.parametrize("late", ["finish", "cancel"])
def test_what_is_late_is_waited_for_from_the_last_arrival_to_the_deadline(late: str) -> None:
    """The fast one is home at 17 s; the slow one would be at 30 s."""
    devices = {"classes": {"fast": FAST, "slow": SLOW}, "default": "fast"}
    stations = hall(a="hall", b="hall")
    stations["topology"]["nodes"]["b"]["device"] = "slow"
    protocol = {"name": "fedavg", "fraction": 1.0, "deadline_s": 22.0}
    world = simulated(
        NO_CONTENTION | stations | {"devices": devices, "network.late_transfers": late, "protocols": [protocol]}
    )
    assert closed_by(world) == [AT_DEADLINE]
    assert way(world) == [
        ("airtime", 0, 0.0, 4.0),
        ("work", 0, 4.0, 9.0),
        ("airtime", 0, 9.0, 17.0),
        ("deadline", -1, 17.0, 22.0),
    ]


def test_a_round_in_which_nobody_comes_home_waits_for_its_deadline_alone() -> None:
    world = simulated(ALONE | {"protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 10.0}]})
    assert (closed_by(world), way(world)) == ([AT_DEADLINE], [("deadline", -1, 0.0, 10.0)])


def test_a_lost_message_ends_its_clients_journey() -> None:
    fault = {"faults": {"scheduled": [{"node": "sensor-1", "at_s": 2.0, "for_s": 1.0}], "messages": "lose"}}
    world = simulated(ALONE | fault | {"stop.rounds": 2})
    assert closed_by(world) == [0, 0]
    assert way(world) == [("airtime", 0, 0.0, 2.0)]
    assert way(world, 2)[0] == ("outage", -1, 2.0, 3.0)


def test_raw_samples_that_are_lost_are_sent_again() -> None:
    fault = {"faults": {"scheduled": [{"node": "sensor-1", "at_s": 2.0, "for_s": 1.0}], "messages": "lose"}}
    cloud = {"devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.25}}}
    world = simulated(ALONE | fault | cloud | {"stop.rounds": 2, "protocols": [{"name": "centralised"}]})
    assert way(world) == [
        ("airtime", 0, 0.0, 2.0),
        ("outage", -1, 2.0, 3.0),
        ("airtime", 0, 3.0, 11.0),
        ("server", -1, 11.0, 13.5),
    ]
    assert (closed_by(world), way(world, 2)) == ([0, NOBODY], [("server", -1, 13.5, 16.0)])


def test_a_device_waits_for_its_samples() -> None:
    """One of the four is there; the third to arrive comes 6 s after the start, 2 s after the model."""
    arrival = {"samples_per_s": 0.5, "buffer_samples": 6, "buffered_at_start": 1}
    world = simulated(ALONE | {"data.stream": {"samples": 4, "arrival": arrival}})
    assert way(world) == [
        ("airtime", 0, 0.0, 4.0),
        ("samples", 0, 4.0, 6.0),
        ("work", 0, 6.0, 8.0),
        ("airtime", 0, 8.0, 16.0),
    ]


def test_a_device_to_which_nothing_comes_down_waits_for_the_server() -> None:
    """Its training, since 4 s, is given up at 6 s; 2 s later it trains on what it has."""
    world, _ = prepared(ALONE | {"network.late_transfers": "cancel"})
    cloud, (client,) = Site(world), world.clients

    def rounds() -> Generator[Event, Any, None]:
        for number in world.loop.rounds():
            visit = cloud.visit(client, cloud.task(number, Plain(), Float32()))
            yield from cloud.collect([visit], deadline_s=6.0)
            yield from world.pause(Pause.SERVER, 2.0)
            again = train_outside_rounds(world, client, 0.0, 10, 10, world.streams("again"))
            yield from cloud.collect([world.start(client, again)])
            world.loop.finish_round(cloud.state["model"], selected=1, participants=0)

    world.env.run(until=world.env.process(rounds()))
    assert way(world) == [("deadline", -1, 0.0, 6.0), ("server", -1, 6.0, 8.0), ("work", 0, 8.0, 13.0)]
    assert closed_by(world) == [0]


def test_a_chain_is_handed_over_from_device_to_device() -> None:
    world = relayed({"topology.devices": 3}, (2, 0, 1))
    assert closed_by(world) == [1]
    assert way(world) == [
        ("backhaul", 2, 0.0, 1.0),
        ("airtime", 2, 1.0, 5.0),
        ("work", 2, 5.0, 10.0),
        ("airtime", 2, 10.0, 18.0),
        ("airtime", 0, 18.0, 22.0),
        ("work", 0, 22.0, 27.0),
        ("airtime", 0, 27.0, 35.0),
        ("airtime", 1, 35.0, 39.0),
        ("work", 1, 39.0, 44.0),
        ("airtime", 1, 44.0, 52.0),
        ("backhaul", 1, 52.0, 53.0),
    ]


def test_of_chains_side_by_side_it_is_the_longest() -> None:
    world = relayed(NO_CONTENTION | {"topology.devices": 4}, (0,), (1, 2, 3))
    assert closed_by(world) == [3]
    assert [client for part, client, *_ in way(world) if part == "work"] == [1, 2, 3]


def test_a_turn_that_is_over_is_a_deadline() -> None:
    """A turn takes 17 s."""
    in_time = relayed(NO_CONTENTION | {"topology.devices": 2}, (0, 1), turn_s=18.0)
    assert "deadline" not in parts_of(in_time.trace)[0]
    late = relayed(NO_CONTENTION | {"topology.devices": 2, "network.late_transfers": "cancel"}, (0, 1), turn_s=16.0)
    assert parts_of(late.trace) == [{"deadline": 32.0}]  # neither is home within its turn
    assert (closed_by(in_time), closed_by(late)) == ([1], [AT_DEADLINE])


def test_a_chain_that_is_abandoned_has_waited_for_whom_it_has_lost() -> None:
    assert closed_by(relayed(failing(away(0, 6.0)), THREE, on_loss="abandon")) == [0]


def test_a_chain_has_not_waited_for_who_cannot_begin() -> None:
    """The third cannot be reached when it would be its turn, at 35 s: the station of the second sends the model up."""
    world = relayed(failing(away(2, 20.0, 40.0)), THREE)
    assert closed_by(world) == [1]
    assert way(world)[-2:] == [("airtime", 1, 27.0, 35.0), ("backhaul", -1, 35.0, 36.0)]


def test_a_chain_has_waited_for_its_last_client_that_was_lost() -> None:
    """The third fails at work, at 40 s, and is reachable again before the model is home: it was waited for."""
    world = relayed(failing(away(2, 40.0, 0.5)), THREE)
    assert closed_by(world) == [2]
    assert way(world)[-2:] == [("work", 2, 39.0, 40.0), ("backhaul", -1, 40.0, 41.0)]


def test_between_stations_a_chain_goes_by_wire() -> None:
    world = relayed({"topology": RING, "network.link.rate_bps": 8_000}, (0, 2))
    (parts,) = parts_of(world.trace)
    assert parts == {"airtime": 24.0, "work": 10.0, "backhaul": 2.0 + 4.0 + 2.0}


def test_at_stations_each_iteration_is_on_the_path() -> None:
    """The selection of devices takes 0.5 s, an aggregation 0.25 s; the stations report in turn, on one wire."""
    protocol = {**FEDGS, "selection_s": 0.5, "devices": 3, "presampled": 1}
    world = ran(protocol, {"devices.aggregation_s": 0.25})
    (parts,) = parts_of(world.trace)
    assert parts["work"] == pytest.approx(3 * 5.0)
    assert parts["server"] == pytest.approx(3 * 0.5 + 4 * 0.25)
    assert set(parts) == {"airtime", "work", "backhaul", "queueing", "server"}
    assert closed_by(world)[0] in range(6)


def test_a_station_that_waits_until_its_deadline_is_waited_for() -> None:
    protocol = {"name": "hierarchical", "clients": 6, "edge_rounds": 2, "iteration_deadline_s": 16.0}
    world = ran(protocol, {"network.late_transfers": "cancel"})
    (parts,) = parts_of(world.trace)
    assert closed_by(world) == [AT_DEADLINE]
    assert parts["deadline"] == 32.0


HIERARCHICAL = {"name": "hierarchical", "fraction": 1.0, "edge_rounds": 1}


def east_and_west(changes: dict[str, Any] | None = None, *, work_s: dict[str, float], wire_s: float) -> World:
    """Client b is in the west, the others in the east; only the wire to the east takes time."""
    stations = hall(**{client: "west" if client == "b" else "east" for client in work_s})
    for client in work_s:
        stations["topology"]["nodes"][client]["device"] = client
    stations["topology"]["links"][1]["rate_bps"] = 8_000 / wire_s
    devices = {
        client: {"compute": {"name": "per_sample", "seconds_per_sample": seconds / 10}}
        for client, seconds in work_s.items()
    }
    base = NO_CONTENTION | stations | {"devices": {"classes": devices, "default": "a"}, "protocols": [HIERARCHICAL]}
    return simulated(base | (changes or {}))


def test_at_the_station_whose_report_closes_a_round_the_path_stays_in_its_cell() -> None:
    """Both updates are up at 26 s, as the east sends for 16 s; the wire to the east takes 1 s each way."""
    radio = {"name": "fixed", "uplink_bps": 500, "downlink_bps": 2_000}
    world = east_and_west({"network.cells": {"east": {"radio": radio}}}, work_s={"a": 5.0, "b": 14.0}, wire_s=1.0)
    assert way(world) == [
        ("backhaul", -1, 0.0, 1.0),
        ("airtime", 0, 1.0, 5.0),
        ("work", 0, 5.0, 10.0),
        ("airtime", 0, 10.0, 26.0),
        ("backhaul", -1, 26.0, 27.0),
    ]
    assert closed_by(world) == [0]


def test_a_model_that_reaches_a_station_comes_before_an_update_that_reaches_another() -> None:
    """The east has its model at 14 s, when b is up."""
    world = east_and_west(work_s={"a": 5.0, "b": 2.0}, wire_s=14.0)
    assert way(world)[:2] == [("backhaul", -1, 0.0, 14.0), ("airtime", 0, 14.0, 18.0)]


def test_a_pause_of_that_station_comes_before_what_ends_elsewhere() -> None:
    """The east makes its model from 19 to 20 s; in that instant an update reaches the west, which takes 1 s, too."""
    world = east_and_west({"devices.aggregation_s": 1.0}, work_s={"a": 5.0, "b": 8.0}, wire_s=2.0)
    assert way(world)[-4:] == [
        ("airtime", 0, 11.0, 19.0),
        ("server", -1, 19.0, 20.0),
        ("backhaul", -1, 20.0, 22.0),
        ("server", -1, 22.0, 23.0),
    ]
    assert closed_by(world) == [0]


def test_a_deadline_of_that_station_comes_before_what_ends_elsewhere() -> None:
    """The east waits for c from 18 to 21 s; in that instant b is up, a second after the deadline of the west."""
    late = {"protocols": [HIERARCHICAL | {"iteration_deadline_s": 20.0}]}
    world = east_and_west(late, work_s={"a": 5.0, "b": 9.0, "c": 50.0}, wire_s=1.0)
    assert way(world)[-3:] == [
        ("airtime", 0, 10.0, 18.0),
        ("deadline", -1, 18.0, 21.0),
        ("backhaul", -1, 21.0, 22.0),
    ]
    assert closed_by(world) == [AT_DEADLINE]


def test_a_station_waits_for_samples() -> None:
    arrival = {"samples_per_s": 0.5, "buffer_samples": 20}
    world = ran(
        {**FEDGS, "name": "fedgs_random", "iterations": 1},
        {"data.stream": {"samples": 10, "arrival": arrival}},
    )
    (parts,) = parts_of(world.trace)
    assert parts["samples"] == pytest.approx(20.0 - 3.0)  # the tenth sample comes after 20 s, the model after 3 s


def test_before_anybody_can_be_reached_there_is_an_outage() -> None:
    fault = {"faults": {"scheduled": [{"node": "station", "at_s": 0.0, "for_s": 3.0}]}}
    world = simulated(ALONE | fault)
    assert way(world)[0] == ("outage", -1, 0.0, 3.0)


def test_what_takes_no_time_is_on_no_path() -> None:
    radio = {"network.cell.radio": {"name": "fixed", "uplink_bps": math.inf, "downlink_bps": math.inf}}
    assert way(simulated(ALONE | radio)) == [("work", 0, 0.0, 5.0)]
