"""What each round waited for, and the parts that its critical path is made of, against times worked out by hand.

A wire takes 1 s, the air 4 s down and 8 s up, and work 5 s.
"""

from __future__ import annotations

import math

import pytest
from chains import relayed
from critical_path_laws import parts_of
from hypothesis import given
from hypothesis import strategies as st
from small_worlds import NO_CONTENTION, RING, hall, simulated
from test_stations import FEDGS, ran

from fedsim.kernel.trace import AT_DEADLINE, NOBODY
from fedsim.metrics.critical_path import critical_paths
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
