"""Devices and networks that fail under a protocol: what is lost, what a device remembers, and who is asked meanwhile.

Where nobody waits for anybody, a journey takes 17 s: down from 0 to 4, work until 9, up until 17. In the base world the
wire takes 1 s more each way: down from 1 to 5, work until 10, up until 18, there at 19.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_learner import PlainLearner
from small_worlds import EVERYTHING_HAPPENS, NO_CONTENTION, RING, prepared, simulated

from fedsim.kernel.trace import Outcome
from fedsim.protocols.world import World

ALONE = {"topology": {"name": "star", "devices": 1}}
FEDAVG = {"name": "fedavg", "fraction": 1.0}


def failing(*scheduled: dict[str, Any], **also: Any) -> dict[str, Any]:
    return {"faults": {"scheduled": list(scheduled), **also}}


def away(at_s: float, for_s: float | None, node: str = "sensor-1") -> dict[str, Any]:
    return {"node": node, "at_s": at_s, "for_s": for_s}


def hops(world: World) -> list[tuple[Any, ...]]:
    """(up, over the air, end, outcome, bytes) of each hop."""
    rows = world.trace.hops.array()[["uplink", "access", "end_s", "outcome", "bytes"]].tolist()
    return [(up, access, end_s, Outcome(outcome).name.lower(), bytes_) for up, access, end_s, outcome, bytes_ in rows]


def work(world: World) -> list[tuple[Any, ...]]:
    rows = world.trace.work.array()[["client", "start_s", "end_s", "outcome"]].tolist()
    return [(client, start_s, end_s, Outcome(outcome).name.lower()) for client, start_s, end_s, outcome in rows]


def rounds(world: World, *columns: str) -> list[Any]:
    return world.trace.rounds.array()[list(columns)].tolist()


COUNTS = ("end_s", "selected", "participants", "lost", "late")


# -- where the message or the work is ----------------------------------------------------------------------------------

DOWN = [(False, False, 1.0, "arrived", 1_000.0), (False, True, 5.0, "arrived", 1_000.0)]
UP = [(True, True, 18.0, "arrived", 1_000.0), (True, False, 19.0, "arrived", 1_000.0)]


@pytest.mark.parametrize("messages", ["wait", "restart", "lose"])
@pytest.mark.parametrize(
    ("fault", "expected_hops", "expected_work", "end_s"),
    [
        # The device is back in the end, but what it was doing is not: its memory is empty of it.
        (away(3.0, 0.5), [DOWN[0], (False, True, 3.0, "lost", 500.0)], [], 3.0),
        (away(7.0, 0.5), DOWN, [(0, 5.0, 7.0, "cancelled")], 7.0),
        (away(14.0, 0.5), [*DOWN, (True, True, 14.0, "lost", 500.0)], [(0, 5.0, 10.0, "arrived")], 14.0),
        # On the wire, a message goes on: it is lost at the air when the device is still away.
        (away(0.5, 0.25), DOWN + UP, [(0, 5.0, 10.0, "arrived")], 19.0),
        (away(0.5, 2.0), [DOWN[0], (False, True, 1.0, "lost", 0.0)], [], 1.0),
        (away(18.5, 2.0), DOWN + UP, [(0, 5.0, 10.0, "arrived")], 19.0),
        (away(18.5, None), DOWN + UP, [(0, 5.0, 10.0, "arrived")], 19.0),
        # What is done in the very instant is through, and what begins in it is not.
        (away(5.0, 0.5), DOWN, [(0, 5.0, 5.0, "cancelled")], 5.0),
        (away(10.0, 0.5), [*DOWN, (True, True, 10.0, "lost", 0.0)], [(0, 5.0, 10.0, "arrived")], 10.0),
        (away(18.0, 0.5), DOWN + UP, [(0, 5.0, 10.0, "arrived")], 19.0),
    ],
    ids=["down", "work", "up", "wire, back", "wire, away", "up the wire", "dead", "at 5", "at 10", "at 18"],
)
def test_a_failing_device_loses_what_it_does_and_what_is_on_its_air(
    fault: dict[str, Any], expected_hops: list[Any], expected_work: list[Any], end_s: float, messages: str
) -> None:
    world = simulated(ALONE | failing(fault, messages=messages))
    assert hops(world) == expected_hops
    assert work(world) == expected_work
    arrived = end_s == 19.0
    assert rounds(world, *COUNTS) == [(end_s, 1, int(arrived), int(not arrived), 0)]


@pytest.mark.parametrize("discipline", ["serial", "dedicated", "fair"])
@pytest.mark.parametrize(
    ("at_s", "for_s", "down"),
    [
        (5.5, 2.0, (False, True, 6.0, "lost", 1_000.0)),  # the last bit was sent at 5, and comes at 6: nobody is there
        (5.5, 0.25, (False, True, 6.0, "arrived", 1_000.0)),
        (6.0, 0.25, (False, True, 6.0, "arrived", 1_000.0)),
        (14.5, 9.0, (False, True, 6.0, "arrived", 1_000.0)),
    ],
)
def test_what_is_on_its_way_through_the_air_needs_somebody_to_receive_it(
    discipline: str, at_s: float, for_s: float, down: tuple[Any, ...]
) -> None:
    air = {"network.cell.delay_s": 1.0, "network.cell.discipline": {"name": discipline}}
    assert hops(simulated(ALONE | air | failing(away(at_s, for_s))))[1] == down


@pytest.mark.parametrize("order", [1, -1])
def test_a_device_is_away_until_all_that_is_wrong_with_it_is_repaired(order: int) -> None:
    # The model comes at 1, when the second of two failures that overlap is not over yet.
    faults = [away(0.25, 0.5), away(0.5, 1.0)]
    assert hops(simulated(ALONE | failing(*faults[::order])))[1] == (False, True, 1.0, "lost", 0.0)


def test_what_a_device_has_sent_gets_through_though_it_fails_before_that_is_received() -> None:
    world = simulated(ALONE | {"network.cell.delay_s": 5.0} | failing(away(25.0, 1.0)))
    assert hops(world)[2] == (True, True, 28.0, "arrived", 1_000.0)  # sent from 15 to 23
    assert rounds(world, *COUNTS) == [(29.0, 1, 1, 0, 0)]


def test_another_device_does_not_notice() -> None:
    calm, world = (
        simulated(NO_CONTENTION | changes) for changes in ({}, failing(away(3.0, 5.0), away(9.5, 1.0), away(12.0, 5.0)))
    )
    for table in ("hops", "work"):
        ours, others = (one.trace.tables[table].array() for one in (calm, world))
        mine = others[others["client"] == 1][["start_s", "end_s", "outcome"]].tolist()
        assert mine == ours[ours["client"] == 1][["start_s", "end_s", "outcome"]].tolist() != []


def test_a_device_that_idles_may_fail_unnoticed() -> None:
    # It is wanted at 0 and at 19 only.
    changes = ALONE | {"stop": {"rounds": 2}, "devices.aggregation_s": 10.0}
    calm, world = simulated(changes), simulated(changes | failing(away(20.0, 5.0)))
    assert world.trace.digest() == calm.trace.digest()


# -- what a device remembers -------------------------------------------------------------------------------------------


def test_work_that_a_failure_stops_consumes_no_batches_and_leaves_the_state_as_it_was() -> None:
    # Round 1 until 17; round 2's work from 21 to 26 fails at 24; back at 25; round 3 from 24 on has to wait for it.
    learner = PlainLearner()
    changes = NO_CONTENTION | ALONE | {"stop": {"rounds": 3}} | failing(away(24.0, 1.0))
    world = simulated(changes, learner=lambda *_: learner)
    assert rounds(world, *COUNTS) == [(17.0, 1, 1, 0, 0), (24.0, 1, 0, 1, 0), (42.0, 1, 1, 0, 0)]
    assert work(world) == [(0, 4.0, 9.0, "arrived"), (0, 21.0, 24.0, "cancelled"), (0, 29.0, 34.0, "arrived")]
    assert [(training.round_number, training.use, training.memory) for training in learner.trainings] == [
        (1, 0, None),
        (3, 1, "0 after training 0"),
    ]
    (client,) = world.clients
    assert (client.trainings, client.attempts) == (2, 3)


@pytest.mark.parametrize(
    ("device_memory", "remembered"), [("kept", [None, "0 after training 0"]), ("lost", [None, None])]
)
@pytest.mark.parametrize("at_s", [10.0, 16.5, 17.0, 18.0])
def test_a_device_that_comes_back_remembers_its_last_finished_training_or_nothing(
    at_s: float, device_memory: str, remembered: list[str | None]
) -> None:
    learner = PlainLearner()
    changes = NO_CONTENTION | ALONE | {"stop": {"sim_time_s": 60.0}}
    simulated(changes | failing(away(at_s, 1.0), device_memory=device_memory), learner=lambda *_: learner)
    assert [training.memory for training in learner.trainings][:2] == remembered
    assert learner.uses(0)[:2] == [0, 1]  # the batches are drawn by the count of trainings, memory or not


def test_only_the_device_that_failed_forgets() -> None:
    learner = PlainLearner()
    fault = failing(away(16.5, 0.25), device_memory="lost")
    simulated(NO_CONTENTION | {"stop": {"rounds": 2}} | fault, learner=lambda *_: learner)
    second = {training.client: training.memory for training in learner.trainings if training.round_number == 2}
    assert second == {0: None, 1: "1 after training 0"}


def test_a_network_outage_takes_no_devices_memory() -> None:
    learner = PlainLearner()
    fault = failing(away(16.5, 2.0, "station"), device_memory="lost")
    simulated(NO_CONTENTION | ALONE | {"stop": {"rounds": 2}} | fault, learner=lambda *_: learner)
    assert [training.memory for training in learner.trainings] == [None, "0 after training 0"]


# -- who is asked ------------------------------------------------------------------------------------------------------


def test_a_device_that_is_away_is_not_asked_and_is_asked_again_when_it_is_back() -> None:
    # Rounds begin at 0, 17, 34 and 51.
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 4}} | failing(away(16.0, 30.0), away(46.0, 4.0)))
    assert rounds(world, *COUNTS) == [
        (17.0, 2, 1, 1, 0),
        (34.0, 1, 1, 0, 0),
        (51.0, 1, 1, 0, 0),
        (68.0, 2, 2, 0, 0),
    ]


def test_a_failure_in_the_very_instant_of_the_choice_comes_first() -> None:
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 2}} | failing(away(17.0, 4.0)))
    assert rounds(world, "selected") == [(2,), (1,)]
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 2}} | failing(away(10.0, 7.0)))
    assert rounds(world, "selected") == [(2,), (2,)]  # so does a repair


@pytest.mark.parametrize("node", ["station", "cloud"])
def test_where_an_outage_parts_everybody_from_the_cloud_the_choice_waits_for_its_end(node: str) -> None:
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 2}} | failing(away(17.0, 13.0, node)))
    assert rounds(world, "start_s", *COUNTS) == [(0.0, 17.0, 2, 2, 0, 0), (17.0, 47.0, 2, 2, 0, 0)]


def test_a_wire_that_is_closed_parts_those_behind_it_only() -> None:
    fault = failing({"link": ["cloud", "east"], "at_s": 17.0, "for_s": 10.0})
    chosen = simulated(NO_CONTENTION | {"topology": RING, "stop": {"rounds": 3}} | fault).trace.work.array()["client"]
    assert [sorted(chosen[:4]), sorted(chosen[4:6]), sorted(chosen[6:])] == [[0, 1, 2, 3], [2, 3], [0, 1, 2, 3]]


def test_all_who_are_back_in_one_instant_can_be_chosen() -> None:
    faults = failing(away(17.0, 5.0), away(16.5, 5.5, "sensor-2"))
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 2}} | faults)
    assert rounds(world, "selected", "end_s") == [(2, 17.0), (2, 22.0 + 17.0)]


def test_a_busy_device_is_waited_for_though_another_one_never_comes_back() -> None:
    # The second one dies at 1; the first one is late, and still busy until 17.
    changes = {"protocols": [FEDAVG | {"deadline_s": 10.0}], "stop": {"rounds": 2}}
    world = simulated(NO_CONTENTION | changes | failing(away(1.0, None, "sensor-2")))
    assert rounds(world, "start_s", *COUNTS) == [(0.0, 10.0, 2, 0, 1, 1), (10.0, 27.0, 1, 0, 0, 1)]


def asked(world: World) -> list[list[int]]:
    """The cohorts of two, by the models that were sent down to them."""
    rows = world.trace.hops.array()
    down = np.sort(rows[rows["access"] & ~rows["uplink"]], order=("start_s", "client"))
    return down["client"].reshape(-1, 2).tolist()


def test_once_everybody_is_back_the_same_are_chosen_as_if_nobody_had_failed() -> None:
    # Each round draws from its own stream: who failed in the second round changes nothing from the third on.
    changes = NO_CONTENTION | {
        "topology": {"name": "star", "devices": 6},
        "stop": {"rounds": 12},
        "protocols": [{"name": "fedavg", "clients": 2}],
    }
    faults = failing(away(17.0, 10.0), away(17.0, 10.0, "sensor-4"))
    ours, others = (asked(simulated(changes | more)) for more in ({}, faults))
    assert ours[1] != others[1] and not {0, 3} & set(others[1])
    assert ours[2:] == others[2:]


# -- nobody is left ----------------------------------------------------------------------------------------------------

EVERYBODY = [away(20.0, None), away(30.0, None, "sensor-2")]


CUT_OFF = "2 cut off by a failure on the way"


@pytest.mark.parametrize(
    ("faults", "fates"),
    [
        (EVERYBODY, "2 failed"),
        ([away(20.0, None, "station")], CUT_OFF),
        ([away(20.0, None, "cloud")], CUT_OFF),
        ([{"link": ["cloud", "station"], "at_s": 20.0}], CUT_OFF),
        (
            [away(20.0, None), away(20.0, 2.0, "station"), {"link": ["cloud", "station"], "at_s": 21.0}],
            "1 failed, 1 cut off by a failure on the way",
        ),
    ],
    ids=["devices", "station", "cloud", "wire", "all kinds"],
)
@pytest.mark.parametrize(
    "stop", [{"rounds": 9}, {"sim_time_s": 1e6}, {"transfer_bytes": 1e9}], ids=lambda stop: next(iter(stop))
)
def test_when_everything_has_failed_for_ever_the_run_ends_with_the_rounds_that_it_has(
    faults: list[dict[str, Any]], fates: str, stop: dict[str, Any]
) -> None:
    learner = PlainLearner()
    world = simulated(NO_CONTENTION | {"stop": stop} | failing(*faults), learner=lambda *_: learner)
    assert world.loop.cut_short == f"no device can ever be reached again ({fates})"
    assert rounds(world, *COUNTS)[0] == (17.0, 2, 2, 0, 0)
    assert len(world.loop.rounds_done) <= 3
    assert [number for number, _, _ in learner.evaluations] == [done.number for done in world.loop.rounds_done]
    assert not world.network.in_flight
    assert world.env.now < 60.0


def test_who_has_failed_is_told_from_who_is_out_of_coverage(tmp_path: Path) -> None:
    (tmp_path / "hall.csv").write_text(
        "time_s,device,uplink_bps,downlink_bps\n0,*,1000,2000\n0,sensor-2,1000,2000\n25,sensor-2,0,0\n",
        encoding="utf-8",
    )
    radio = {"network.cell.radio": {"name": "trace", "path": str(tmp_path / "hall.csv")}}
    for faults, fates in (
        ([away(20.0, None)], "1 failed, 1 out of coverage"),
        ([away(30.0, None, "station")], "1 out of coverage, 1 cut off by a failure on the way"),
    ):
        world = simulated(NO_CONTENTION | radio | {"stop": {"rounds": 9}} | failing(*faults))
        assert world.loop.cut_short == f"no device can ever be reached again ({fates})"


def test_a_run_that_ends_by_itself_is_not_cut_short() -> None:
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 1}} | failing(*EVERYBODY))
    assert world.loop.cut_short is None


def test_when_everything_has_failed_before_the_first_round_there_is_none() -> None:
    world = simulated(failing(away(0.0, None, "station")))
    assert (len(world.loop.rounds_done), world.env.now) == (0, 0.0)
    assert world.loop.cut_short


def test_nobody_is_given_up_who_may_come_back() -> None:
    # The way over one wire is gone for ever, the way over the other will be open again: at 60.
    faults = [{"link": ["cloud", "east"], "at_s": 20.0}, {"link": ["cloud", "west"], "at_s": 21.0, "for_s": 39.0}]
    for first, second in (faults, faults[::-1]):
        changes = {"topology": RING, "stop": {"rounds": 4}} | failing(first, second, routing="around_outages")
        world = simulated(NO_CONTENTION | changes)
        assert world.loop.cut_short is None
        assert rounds(world, "selected")[-1] == (4,)


# -- with deadlines, too many asked, and late transfers ----------------------------------------------------------------


@pytest.mark.parametrize(("late_transfers", "up_s"), [("finish", 17.0 + 4.0), ("cancel", None)])
def test_a_late_journey_waits_for_the_end_of_an_outage_or_is_given_up_with_its_round(
    late_transfers: str, up_s: float | None
) -> None:
    changes = {"network.late_transfers": late_transfers, "protocols": [FEDAVG | {"deadline_s": 20.0}]}
    world, protocol = prepared(NO_CONTENTION | ALONE | changes | failing(away(15.0, 4.0, "station")))
    world.env.run(until=world.env.process(protocol.run(world)))
    assert rounds(world, *COUNTS) == [(20.0, 1, 0, 0, 1)]
    world.env.run()
    last = hops(world)[-1]
    assert last == ((True, False, up_s, "arrived", 1_000.0) if up_s else (True, True, 20.0, "cancelled", 875.0))


@pytest.mark.parametrize(
    ("fault", "counts"),
    [
        (away(10.0, 7.0), (17.0, 2, 1, 1, 0)),  # lost at 10: nobody waits for it
        (away(17.0, 7.0), (17.0, 2, 2, 0, 0)),  # arrived in that instant
        (away(14.0, 7.0, "station"), (20.0, 2, 0, 0, 2)),  # waits until 21, and is late
        (away(14.0, 3.0, "station"), (20.0, 2, 2, 0, 0)),  # there exactly at the deadline
        (away(20.0, 7.0, "station"), (17.0, 2, 2, 0, 0)),
    ],
)
def test_a_deadline_meets_outages(fault: dict[str, Any], counts: tuple[Any, ...]) -> None:
    protocol = FEDAVG | {"deadline_s": 20.0}
    world = simulated(NO_CONTENTION | {"protocols": [protocol]} | failing(fault))
    assert rounds(world, *COUNTS) == [counts]


@pytest.mark.parametrize(
    ("messages", "counts", "outcome", "sent"),
    [
        ("lose", (12.0, 1, 0, 1, 0), "lost", [375.0, 0.0, 625.0]),  # what is destroyed then is lost, not late
        ("wait", (12.0, 1, 0, 0, 1), "cancelled", [375.0, 0.0, 625.0]),
        ("restart", (12.0, 1, 0, 0, 1), "cancelled", [375.0, 375.0, 1_000.0]),
    ],
)
def test_an_outage_in_the_instant_of_the_deadline_comes_before_it(
    messages: str, counts: tuple[Any, ...], outcome: str, sent: list[float]
) -> None:
    protocol = {"protocols": [FEDAVG | {"deadline_s": 12.0}], "network.late_transfers": "cancel"}
    world = simulated(NO_CONTENTION | ALONE | protocol | failing(away(12.0, 1.0, "station"), messages=messages))
    assert rounds(world, *COUNTS) == [counts]
    up = world.trace.hops.array()[-1]
    assert (up["end_s"], Outcome(up["outcome"]).name.lower()) == (12.0, outcome)
    assert [up[name] for name in ("bytes", "retransmitted_bytes", "withdrawn_bytes")] == sent


def test_those_who_were_asked_too_many_step_in_for_those_who_fail() -> None:
    changes = {
        "topology": {"name": "star", "devices": 4},
        "protocols": [{"name": "fedavg", "clients": 2, "over_selection": 2.0}],
    }
    world = simulated(NO_CONTENTION | changes | failing(away(3.0, 1.0), away(6.0, 1.0, "sensor-2")))
    assert rounds(world, *COUNTS) == [(17.0, 4, 2, 2, 0)]


@pytest.mark.parametrize("at_s", [18.0, 20.0, 21.0])
def test_a_device_that_is_asked_again_gives_up_a_message_that_waits_for_the_end_of_an_outage(at_s: float) -> None:
    # The deadline of round 1 comes at 20: the upload (9 - 17) has waited since 15. In the second case the outage ends
    # in that very instant, and in the first there is time to send 250 B more.
    fault = away(15.0, at_s - 15.0, "station")
    changes = {"protocols": [FEDAVG | {"deadline_s": 20.0, "busy": "abort"}], "stop": {"rounds": 2}}
    world = simulated(NO_CONTENTION | ALONE | changes | failing(fault))
    given_up = [hop for hop in hops(world) if hop[3] == "cancelled"]
    if at_s == 18.0:
        assert given_up == []  # it arrived at 20
        assert rounds(world, *COUNTS) == [(20.0, 1, 1, 0, 0), (37.0, 1, 1, 0, 0)]
    else:
        assert given_up == [(True, True, at_s, "cancelled", 750.0)]
        assert rounds(world, *COUNTS) == [(20.0, 1, 0, 0, 1), (at_s + 17.0, 1, 1, 0, 0)]


@pytest.mark.parametrize("memory", ["kept", "lost"])
@pytest.mark.parametrize("busy", ["skip", "abort"])
@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
@pytest.mark.parametrize("messages", ["wait", "restart", "lose"])
def test_a_device_works_for_one_journey_at_a_time_and_each_training_is_its_next_one(
    messages: str, late_transfers: str, busy: str, memory: str
) -> None:
    learner = PlainLearner()
    faults = {
        "random": [
            {"of": "sensors", "mean_up_s": 60.0, "mean_down_s": 10.0},
            {"of": "wires", "mean_up_s": 90.0, "mean_down_s": 5.0},
        ],
        "messages": messages,
        "device_memory": memory,
    }
    protocol = EVERYTHING_HAPPENS["protocols"][0] | {"busy": busy, "deadline_s": 30.0}
    changes = {
        "protocols": [protocol],
        "network.late_transfers": late_transfers,
        "stop": {"rounds": 20},
        "faults": faults,
    }
    world = simulated(EVERYTHING_HAPPENS | changes, learner=lambda *_: learner)
    rows = world.trace.work.array()
    for client in world.clients:
        own = rows[rows["client"] == client.index]
        assert (own["start_s"][1:] >= own["end_s"][:-1]).all()
        finished = int((own["outcome"] == Outcome.ARRIVED).sum())
        assert learner.uses(client.index) == list(range(finished))
        memories = [training.memory for training in learner.trainings if training.client == client.index]
        for use, remembered in enumerate(memories):
            assert remembered in ({None, f"{client.index} after training {use - 1}"} if use else {None})
            assert memory == "lost" or not use or remembered is not None
    assert Outcome.CANCELLED in rows["outcome"]
