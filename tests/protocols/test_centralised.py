"""The yardstick: every raw sample goes up first, then the cloud trains."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from plain_learner import PlainLearner
from small_worlds import prepared, simulated

from fedsim.errors import UserError
from fedsim.kernel.trace import Outcome
from fedsim.learning.batches import POOL

CLOUD = {
    "devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}},
    "protocols": [{"name": "centralised"}],
    "stop.rounds": 3,
}


def test_raw_samples_go_up_once_and_then_the_cloud_trains() -> None:
    # 10 samples of 100 B: 8 s over the air each, one after the other, and 1 s over the wire: all there at 17 s.
    # Then 20 samples of 0.01 s in each round.
    learner = PlainLearner()
    world = simulated(CLOUD, learner=lambda *_: learner)
    hops = world.trace.hops.array()
    assert hops["uplink"].all()
    assert hops["bytes"].tolist() == [1_000.0] * 4
    rounds = world.trace.rounds.array()
    assert rounds["end_s"].tolist() == pytest.approx([17.2, 17.4, 17.6])
    assert rounds["start_s"].tolist() == [0.0, *rounds["end_s"][:-1]]
    assert rounds[["selected", "participants", "lost", "late"]].tolist() == [(2, 2, 0, 0)] * 3
    assert [(training.client, training.use, training.round_number) for training in learner.trainings] == [
        (POOL, 0, 1),
        (POOL, 1, 2),
        (POOL, 2, 3),
    ]
    assert learner.trainings[1].start == f"initial trained by {POOL}"
    assert learner.means == {}
    assert len(world.trace.work) == 0  # devices do not train


def test_passes_over_the_data_take_their_time() -> None:
    world = simulated(CLOUD | {"training.epochs": 5, "stop.rounds": 1})
    assert world.env.now == pytest.approx(18.0)


def test_a_lost_upload_is_tried_again_until_it_is_there_and_every_byte_counts() -> None:
    lossy = {"network.cell.loss": {"probability": 0.8, "attempts": 1}, "stop.rounds": 1, "topology.devices": 5}
    world = simulated(CLOUD | lossy)
    hops = world.trace.hops.array()
    air = hops[hops["access"]]
    assert (air["outcome"] == Outcome.LOST).sum() >= 5
    for client in range(5):
        *before, last = air["outcome"][air["client"] == client]
        assert set(before) <= {Outcome.LOST} and last == Outcome.ARRIVED
    assert sum(world.network.access_bytes.values()) == 1_000.0 * len(air)
    wire = hops[~hops["access"]]
    assert sorted(wire["client"]) == [0, 1, 2, 3, 4]
    assert world.env.now == pytest.approx(wire["end_s"].max() + 0.5)
    assert air["airtime_s"].sum() == 8.0 * len(air)  # nobody stops sending meanwhile


def test_the_clock_may_end_it_before_the_upload_has() -> None:
    world = simulated(CLOUD | {"stop": {"sim_time_s": 10.0}})
    assert (len(world.trace.rounds), world.env.now) == (0, 10.0)
    assert [transfer.bytes for transfer in world.network.in_flight] == [250.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"devices.cloud": None},
            "this protocol trains in the cloud: say how fast it computes in devices.cloud.compute",
        ),
        ({"data.sample_bytes": None}, "sends raw samples: say how large one is in data.sample_bytes"),
        (
            {"devices.cloud": {"compute": {"name": "flops", "flops_per_s": 1e12}}},
            "model 'declared' does not state them; set model.training_flops_per_sample",
        ),
    ],
)
def test_what_it_needs_is_asked_for_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        prepared(CLOUD | changes)


def test_bytes_alone_cannot_end_it_as_nothing_is_sent_after_the_upload() -> None:
    # 2000 B in all: a run that waits for more would go on for ever.
    with pytest.raises(UserError, match="sends its samples once.*transfer_bytes=2001.*stop: {rounds: 10}"):
        prepared(CLOUD | {"stop": {"transfer_bytes": 2_001.0}})
    either = {"stop": {"transfer_bytes": 2_000.0, "rounds": 9}}
    assert len(simulated(CLOUD | either).trace.rounds) == 1


# -- where things fail -------------------------------------------------------------------------------------------------

FAST_WIRE = CLOUD | {"network.link.rate_bps": math.inf, "stop.rounds": 1}


def away(at_s: float, for_s: float | None, node: str = "sensor-1") -> dict[str, Any]:
    return {"node": node, "at_s": at_s, "for_s": for_s}


@pytest.mark.parametrize(
    ("fault", "messages", "there_s"),
    [
        # One sensor sends from 0 to 8.
        (away(2.0, 3.0), "lose", 5.0 + 8.0),
        (away(2.0, 3.0), "wait", 5.0 + 8.0),
        (away(2.0, 3.0, "station"), "lose", 5.0 + 8.0),
        (away(2.0, 3.0, "station"), "wait", 3.0 + 8.0),
        (away(0.0, 3.0, "station"), "lose", 3.0 + 8.0),
        (away(7.0, 6.0, "cloud"), "lose", 13.0 + 8.0),  # lost at the wire at 8
        (away(7.0, 6.0, "cloud"), "wait", 13.0),
    ],
)
def test_what_an_outage_destroys_is_sent_again_as_soon_as_there_is_a_way(
    fault: dict[str, Any], messages: str, there_s: float
) -> None:
    world = simulated(FAST_WIRE | {"topology.devices": 1, "faults": {"scheduled": [fault], "messages": messages}})
    assert world.env.now == pytest.approx(there_s + 0.1, rel=1e-12)


@pytest.mark.parametrize("messages", ["wait", "restart", "lose"])
def test_without_everybodys_samples_it_cannot_begin(messages: str) -> None:
    world = simulated(FAST_WIRE | {"faults": {"scheduled": [away(3.0, None)], "messages": messages}})
    assert world.loop.cut_short == "'sensor-1' is needed, and can never be reached again (failed)"
    assert (len(world.loop.rounds_done), world.env.now) == (0, 3.0)


def test_who_waits_for_a_repair_gives_up_when_it_cannot_help_any_more() -> None:
    faults = [away(0.0, 100.0), away(5.0, None, "station")]
    world = simulated(FAST_WIRE | {"topology.devices": 1, "faults": {"scheduled": faults}})
    reason = "'sensor-1' is needed, and can never be reached again (cut off by a failure on the way)"
    assert (world.loop.cut_short, world.env.now) == (reason, 5.0)


def test_a_sensor_that_coverage_leaves_for_ever_is_told_from_one_that_fails(tmp_path: Path) -> None:
    (tmp_path / "hall.csv").write_text("time_s,uplink_bps,downlink_bps\n0,1000,2000\n3,0,2000\n", encoding="utf-8")
    radio = {"name": "trace", "path": str(tmp_path / "hall.csv")}
    world = simulated(FAST_WIRE | {"network.cell.radio": radio, "topology.devices": 1})
    assert world.loop.cut_short == "'sensor-1' is needed, and can never be reached again (out of coverage)"
    assert (len(world.loop.rounds_done), world.env.now) == (0, 3.0)


def test_samples_that_are_there_stay_there_whatever_fails_later() -> None:
    world = simulated(FAST_WIRE | {"stop.rounds": 3, "faults": {"scheduled": [away(16.1, None, "cloud")]}})
    assert (world.loop.cut_short, len(world.trace.rounds)) == (None, 3)


def test_a_sensor_out_of_coverage_is_one_too_few(tmp_path: Path) -> None:
    (tmp_path / "hall.csv").write_text(
        "time_s,device,uplink_bps,downlink_bps\n0,*,1000,2000\n0,sensor-2,0,2000\n", encoding="utf-8"
    )
    radio = {"name": "trace", "path": str(tmp_path / "hall.csv"), "out_of_coverage": "exclude"}
    with pytest.raises(
        UserError, match="trains on everybody's samples, and 'sensor-2' is out of coverage and can never"
    ):
        prepared(CLOUD | {"network.cell.radio": radio})


def test_windows_that_are_always_too_short_for_an_upload_are_no_endless_loop() -> None:
    fault = {"node": "sensor-1", "at_s": 0.0, "for_s": 20.0, "every_s": 25.0}  # 5 s at a time, and it needs 8
    world = simulated(FAST_WIRE | {"topology.devices": 1, "faults": {"scheduled": [fault]}})
    assert world.loop.cut_short == "the samples of 'sensor-1' were lost 1000 times: it is never reachable long enough"
    assert len(world.loop.rounds_done) == 0
