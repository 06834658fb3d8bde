"""Parallel rounds: deadlines, too many asked, devices that are still busy, losses, and what goes into the mean.

A fast device's journey takes 17 s (4 down, 5 of work, 8 up), a slow one's 62 s (50 of work).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from plain_learner import PlainLearner
from small_worlds import EVERYTHING_HAPPENS, NO_CONTENTION, prepared, simulated

from fedsim.kernel.trace import Outcome
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.protocols.task import Task
from fedsim.protocols.world import World

CLASSES = {
    "fast": {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}},
    "slow": {"compute": {"name": "per_sample", "seconds_per_sample": 5.0}},
}


def fleet(*classes: str, **protocol: Any) -> dict[str, Any]:
    """A scenario in which nobody waits for anybody, with a device of each class named."""
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}, "bs": {"kind": "base_station"}}
    for number, device in enumerate(classes):
        nodes[f"{device}-{number}"] = {"kind": "sensor", "attach": "bs", "device": device}
    return NO_CONTENTION | {
        "topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "bs"]}]},
        "devices": {"classes": CLASSES, "default": "fast"},
        "protocols": [{"name": "fedavg", "fraction": 1.0} | protocol],
    }


def rounds(world: World, *columns: str) -> list[Any]:
    rows = world.trace.rounds.array()[list(columns)].tolist()
    return [row[0] for row in rows] if len(columns) == 1 else rows


COUNTS = ("end_s", "selected", "participants", "lost", "late")


# -- the deadline ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deadline_s", "counts"),
    [
        (None, (62.0, 2, 2, 0, 0)),
        (62.0, (62.0, 2, 2, 0, 0)),  # exactly then still counts
        (math.nextafter(62.0, 0.0), (math.nextafter(62.0, 0.0), 2, 1, 0, 1)),
        (17.0, (17.0, 2, 1, 0, 1)),
        (16.0, (16.0, 2, 0, 0, 2)),
    ],
)
def test_a_round_ends_when_all_have_arrived_or_at_its_deadline(
    deadline_s: float | None, counts: tuple[Any, ...]
) -> None:
    assert rounds(simulated(fleet("fast", "slow", deadline_s=deadline_s)), *COUNTS) == [counts]


def test_each_round_has_its_own_deadline() -> None:
    world = simulated(fleet("fast", "slow", deadline_s=20.0, busy="abort") | {"stop.rounds": 3})
    assert rounds(world, "start_s", "end_s", "participants") == [(0.0, 20.0, 1), (20.0, 40.0, 1), (40.0, 60.0, 1)]


def test_only_what_arrived_in_time_is_averaged() -> None:
    learner = PlainLearner()
    simulated(fleet("fast", "slow", "fast", deadline_s=20.0), learner=lambda *_: learner)
    assert learner.averaged(1) == [0, 2]


def test_an_update_that_comes_after_its_round_is_never_used() -> None:
    learner = PlainLearner()
    changes = fleet("fast", "slow", deadline_s=20.0) | {"stop.rounds": 5}
    world = simulated(changes, learner=lambda *_: learner)
    work = world.trace.work.array()
    assert Outcome.ARRIVED in work["outcome"][work["client"] == 1]  # the slow one did finish, at 54 s
    assert [learner.averaged(number) for number in range(1, 6)] == [[0]] * 5


# -- too many asked ----------------------------------------------------------------------------------------------------


def test_the_round_ends_when_as_many_have_arrived_as_were_wanted() -> None:
    learner = PlainLearner()
    changes = fleet("slow", "fast", "slow", "fast", fraction=None, clients=2, over_selection=2.0)
    world = simulated(changes, learner=lambda *_: learner)
    assert rounds(world, *COUNTS) == [(17.0, 4, 2, 0, 2)]
    assert learner.averaged(1) == [1, 3]


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_those_who_arrive_with_the_last_one_wanted_are_late(late_transfers: str) -> None:
    changes = fleet(*["fast"] * 4, fraction=None, clients=2, over_selection=2.0)
    world = simulated(changes | {"network.late_transfers": late_transfers, "stop.rounds": 2})
    assert rounds(world, *COUNTS) == [(17.0, 4, 2, 0, 2), (34.0, 4, 2, 0, 2)]


def test_without_over_selection_nobody_is_superfluous() -> None:
    world = simulated(fleet(*["fast"] * 4, fraction=0.5))
    assert rounds(world, *COUNTS) == [(17.0, 2, 2, 0, 0)]


# -- devices that are busy ---------------------------------------------------------------------------------------------


def test_skip_passes_over_a_device_until_its_late_update_is_there() -> None:
    # The slow one is busy until 62: rounds 2 to 4 begin before that.
    world = simulated(fleet("fast", "slow", deadline_s=20.0) | {"stop.rounds": 5})
    assert rounds(world, "end_s", "selected") == [(20.0, 2), (37.0, 1), (54.0, 1), (71.0, 1), (91.0, 2)]


def test_abort_makes_a_device_give_up_what_it_does() -> None:
    world = simulated(fleet("fast", "slow", deadline_s=20.0, busy="abort") | {"stop.rounds": 3})
    work = world.trace.work.array()
    slow = work[work["client"] == 1]
    assert slow[["start_s", "end_s"]].tolist() == [(4.0, 20.0), (24.0, 40.0)]  # and a third under way
    assert slow["outcome"].tolist() == [Outcome.CANCELLED] * 2


def test_a_device_works_for_one_journey_at_a_time() -> None:
    for busy in ("skip", "abort"):
        for late_transfers in ("finish", "cancel"):
            protocol = EVERYTHING_HAPPENS["protocols"][0] | {"busy": busy, "deadline_s": 30.0}
            changes = EVERYTHING_HAPPENS | {"protocols": [protocol], "network.late_transfers": late_transfers}
            work = simulated(changes | {"stop.rounds": 20}).trace.work.array()
            for client in range(8):
                own = work[work["client"] == client]
                assert (own["start_s"][1:] >= own["end_s"][:-1]).all()


def test_cancel_stops_late_work_at_the_end_of_its_round() -> None:
    changes = fleet("fast", "slow", deadline_s=20.0) | {"network.late_transfers": "cancel", "stop.rounds": 2}
    world = simulated(changes)
    assert rounds(world, "end_s", "selected") == [(20.0, 2), (40.0, 2)]
    work = world.trace.work.array()
    assert work[work["client"] == 1][["start_s", "end_s"]].tolist() == [(4.0, 20.0), (24.0, 40.0)]


@pytest.mark.parametrize(("deadline_s", "bytes_by_then"), [(3.0, 750.0), (12.0, 1_000.0 + 375.0), (17.0, 2_000.0)])
def test_what_is_stopped_at_the_end_of_a_round_counts_in_it(deadline_s: float, bytes_by_then: float) -> None:
    # Down from 0 to 4, up from 9 to 17, 1000 B each.
    changes = fleet("fast", deadline_s=deadline_s) | {"network.late_transfers": "cancel", "stop.rounds": 2}
    world = simulated(changes)
    hops, ends = world.trace.hops.array(), world.trace.rounds.array()["hops"]
    assert hops["bytes"][: ends[0]][hops["access"][: ends[0]]].sum() == bytes_by_then
    assert ends[1] == 2 * ends[0] == len(hops)


# -- what a training consumes ------------------------------------------------------------------------------------------


def test_work_that_is_given_up_consumes_nothing() -> None:
    for changes in (
        fleet("slow", deadline_s=20.0, busy="abort"),
        fleet("slow", deadline_s=20.0) | {"network.late_transfers": "cancel"},
    ):
        learner = PlainLearner()
        world = simulated(changes | {"stop.rounds": 3}, learner=lambda *_, learner=learner: learner)
        assert len(world.trace.work) >= 2
        assert learner.trainings == []
        assert world.clients[0].trainings == 0
        assert world.clients[0].kept == {}


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_a_late_upload_consumes_its_batches_and_the_device_remembers(late_transfers: str) -> None:
    # Work ends at 9, the deadline comes at 12, the upload would end at 17.
    learner = PlainLearner()
    changes = fleet("fast", deadline_s=12.0) | {"network.late_transfers": late_transfers, "stop.rounds": 3}
    simulated(changes, learner=lambda *_: learner)
    assert learner.means == {}
    assert learner.uses(0) == [0, 1, 2]
    assert [training.memory for training in learner.trainings] == [None, "0 after training 0", "0 after training 1"]


def test_a_lost_upload_consumes_and_a_lost_download_does_not() -> None:
    learner = PlainLearner()
    lossy = {"network.cell.loss": {"probability": 0.5, "attempts": 1}, "stop.rounds": 40}
    world = simulated(fleet("fast") | lossy, learner=lambda *_: learner)
    hops = world.trace.hops.array()
    lost = hops[hops["outcome"] == Outcome.LOST]
    downloads, uploads = (~lost["uplink"]).sum(), lost["uplink"].sum()
    assert downloads >= 5 and uploads >= 5
    assert learner.uses(0) == list(range(40 - downloads))
    assert len(learner.means) == 40 - downloads - uploads


@pytest.mark.parametrize("busy", ["skip", "abort"])
@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_uses_count_the_trainings_that_were_finished(busy: str, late_transfers: str) -> None:
    learner = PlainLearner()
    protocol = EVERYTHING_HAPPENS["protocols"][0] | {"busy": busy, "deadline_s": 30.0}
    changes = EVERYTHING_HAPPENS | {"protocols": [protocol], "network.late_transfers": late_transfers}
    world = simulated(changes | {"stop.rounds": 30}, learner=lambda *_: learner)
    work = world.trace.work.array()
    assert {Outcome.ARRIVED, Outcome.CANCELLED} >= set(work["outcome"]) >= {Outcome.ARRIVED}
    for client in world.clients:
        finished = ((work["client"] == client.index) & (work["outcome"] == Outcome.ARRIVED)).sum()
        assert learner.uses(client.index) == list(range(finished))
        assert client.trainings == finished


# -- the mean ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("weighting", "weights"), [("samples", [10, 40, 20]), ("uniform", [1, 1, 1])])
def test_updates_are_weighed_by_samples_or_all_alike(weighting: str, weights: list[float]) -> None:
    learner = PlainLearner()
    world, protocol = prepared(fleet("fast", "fast", "fast", weighting=weighting), learner=lambda *_: learner)
    for client, samples in zip(world.clients, (10, 40, 20), strict=True):
        client.samples = samples
    world.env.run(until=world.env.process(protocol.run(world)))
    shares = {one.client: one.share for one in learner.means[1]}
    assert shares == {client: weight / sum(weights) for client, weight in enumerate(weights)}
    assert list(shares) == [1, 2, 0], "who has most samples comes first, whoever was asked or arrived first"


def test_everybody_starts_from_the_rounds_model() -> None:
    learner = PlainLearner()
    simulated(fleet("fast", "slow") | {"stop.rounds": 2}, learner=lambda *_: learner)
    assert [(training.round_number, training.start) for training in learner.trainings] == [
        (1, "initial"),
        (1, "initial"),
        (2, "mean of round 1"),
        (2, "mean of round 1"),
    ]


def test_lost_updates_are_not_averaged_and_nobody_waits_for_them() -> None:
    learner = PlainLearner()
    lossy = {"network.cell.loss": {"probability": 0.3, "attempts": 1}, "stop.rounds": 30}
    world = simulated(fleet(*["fast"] * 4) | lossy, learner=lambda *_: learner)
    hops = world.trace.hops.array()
    for number, selected, participants, lost, late in rounds(
        world, "round", "selected", "participants", "lost", "late"
    ):
        assert (selected, late) == (4, 0)
        assert participants + lost == 4
        assert len(learner.averaged(number) or []) == participants
    assert (hops["outcome"] == Outcome.LOST).sum() == sum(rounds(world, "lost"))
    assert set(rounds(world, "participants")) >= {0, 1, 2, 3}


def test_a_round_in_which_nothing_arrived_leaves_the_model_as_it_was_and_aggregates_nothing() -> None:
    learner = PlainLearner()
    changes = fleet("slow", "slow", deadline_s=10.0, busy="abort") | {"devices.aggregation_s": 3.0, "stop.rounds": 3}
    world = simulated(changes, learner=lambda *_: learner)
    assert rounds(world, *COUNTS) == [(10.0, 2, 0, 0, 2), (20.0, 2, 0, 0, 2), (30.0, 2, 0, 0, 2)]
    assert learner.means == {}
    assert [model for _, _, model in learner.evaluations] == ["initial"] * 3


def test_aggregation_takes_its_time_before_the_round_ends() -> None:
    changes = fleet("fast", "fast") | {"devices.aggregation_s": 3.0, "stop.rounds": 2}
    assert rounds(simulated(changes), "start_s", "end_s") == [(0.0, 20.0), (20.0, 40.0)]


def test_the_objective_is_the_protocols() -> None:
    for protocol, objective in (({"name": "fedavg"}, Plain()), ({"name": "fedprox", "mu": 0.25}, Proximal(mu=0.25))):
        learner = PlainLearner()
        simulated(fleet("fast", **protocol), learner=lambda *_, learner=learner: learner)
        assert [training.objective for training in learner.trainings] == [objective]


def test_a_mistake_in_a_journey_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    world, protocol = prepared(fleet("fast"))
    monkeypatch.setattr(Task, "learn", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        world.env.run(until=world.env.process(protocol.run(world)))


# -- memory ------------------------------------------------------------------------------------------------------------


def test_when_a_model_is_evaluated_no_update_of_its_round_is_held_any_more() -> None:
    held: list[int] = []
    learner = PlainLearner(when_evaluating=lambda learner: held.append(len(learner.updates)))
    simulated(fleet(*["fast"] * 5) | {"stop.rounds": 4}, learner=lambda *_: learner)
    assert held == [0] * 4


def test_only_devices_that_are_still_sending_hold_their_updates() -> None:
    # The deadline comes 12 s after a round's journeys began: the work has ended (9), the upload has not (17).
    held: list[int] = []
    learner = PlainLearner(when_evaluating=lambda learner: held.append(len(learner.updates)))
    simulated(fleet(*["fast"] * 5, deadline_s=12.0) | {"stop.rounds": 6}, learner=lambda *_: learner)
    assert held == [5] * 6


def test_nobody_is_left_out_of_over_selected_rounds_for_his_place_in_the_list() -> None:
    # Equal devices, 4 of 10 asked and 3 waited for: each takes part in 3/10 of the rounds. Asked in the
    # order of their indices, the last ones would always come too late.
    rounds = 400
    changes = fleet(*["fast"] * 10, fraction=None, clients=3, over_selection=1.3) | {
        "stop.rounds": rounds,
        "network.late_transfers": "cancel",
    }
    used = np.zeros(10)
    learner = PlainLearner()
    simulated(changes, learner=lambda *_: learner)
    for means in learner.means.values():
        used[[one.client for one in means]] += 1
    assert np.abs(used - 0.3 * rounds).max() < 4.5 * math.sqrt(rounds * 0.3 * 0.7)


def test_a_slow_draw_does_not_repeat_itself_after_it_was_given_up() -> None:
    # Exponential work of mean 10 s, and 18 s left for it before the deadline: given up with probability exp(-1.8), so
    # 16.7 of 20 come in time. Drawn anew each time, that stays so; a draw that is repeated is late for ever, and after
    # 40 rounds nobody would come. (Standard error of a mean of 20 rounds: 0.4.)
    changes = fleet(*["fast"] * 20, deadline_s=30.0) | {"network.late_transfers": "cancel"}
    law = {"name": "distribution", "law": "exponential", "mean_seconds_per_sample": 1.0, "per": "training"}
    changes |= {"devices.classes.fast.compute": law, "stop.rounds": 60}
    participants = simulated(changes).trace.rounds.array()["participants"]
    expected = 20 * (1 - math.exp(-1.8))
    assert abs(participants[:20].mean() - expected) < 4 * 0.4
    assert abs(participants[-20:].mean() - expected) < 4 * 0.4


def test_what_is_lost_does_not_depend_on_how_fast_others_are() -> None:
    changes = fleet(*["fast"] * 6) | {"network.cell.loss": {"probability": 0.4, "attempts": 1}, "stop.rounds": 10}
    slower = {"devices.classes.fast.compute.seconds_per_sample": 7.0}
    lost = [
        {(hop["client"], hop["uplink"], nth): hop["outcome"] for nth, hop in _numbered(simulated(changes | more))}
        for more in ({}, {"network.cell.discipline": {"name": "serial"}}, slower)
    ]
    assert lost[0] == lost[1] == lost[2]
    assert len(set(lost[0].values())) == 2


def _numbered(world: World) -> Iterator[tuple[int, Any]]:
    """Each crossing of the air, numbered for each client and direction."""
    count = Counter[tuple[int, bool]]()
    for hop in world.trace.hops.array():
        if hop["access"]:
            count[hop["client"], hop["uplink"]] += 1
            yield count[hop["client"], hop["uplink"]], hop
