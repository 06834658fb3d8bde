"""Devices whose samples come and go: what a training sees, how long it waits, what is consumed and what is lost.

Where nobody waits for the network, a journey takes 4 s down, 0.5 s of work a sample, 8 s up.
"""

from __future__ import annotations

from typing import Any

import pytest
from plain_learner import PlainLearner
from small_worlds import NO_CONTENTION, prepared, simulated

from fedsim.errors import UserError
from fedsim.kernel.trace import Outcome
from fedsim.protocols.world import World


def streaming(**stream: Any) -> dict[str, Any]:
    """Two devices, three rounds, four samples a training."""
    return NO_CONTENTION | {"stop": {"rounds": 3}, "data.stream": {"samples": 4, **stream}}


def run(changes: dict[str, Any]) -> tuple[World, PlainLearner]:
    learner = PlainLearner()
    return simulated(changes, learner=lambda *_: learner), learner


def work(world: World) -> list[tuple[Any, ...]]:
    rows = world.trace.work.array()[["client", "start_s", "end_s", "samples", "outcome"]].tolist()
    return [(*row[:-1], Outcome(row[-1]).name.lower()) for row in rows]


def seen(learner: PlainLearner, client: int) -> list[int]:
    """The first position of each batch that a client was trained on."""
    return [capture.first for _, owner, capture in learner.captures if owner == client]


def test_a_training_takes_as_long_as_its_fresh_batch() -> None:
    """Four samples of half a second; ten are what the device holds."""
    world, _ = run(streaming())
    assert work(world)[0] == (0, 4.0, 6.0, 4, "arrived")
    assert world.trace.rounds.array()["end_s"].tolist() == [14.0, 28.0, 42.0]


def test_epochs_go_through_the_same_batch_again() -> None:
    world, learner = run(streaming() | {"training.epochs": 3})
    assert work(world)[0] == (0, 4.0, 10.0, 12, "arrived")
    assert seen(learner, 0) == [0, 4, 8]


def test_every_device_has_a_stream_of_its_own_and_fresh_samples_each_time() -> None:
    world, learner = run(streaming())
    assert seen(learner, 0) == seen(learner, 1) == [0, 4, 8]
    assert [client.stream.consumed for client in world.clients] == [12, 12]


def test_updates_weigh_as_many_samples_as_they_were_trained_on() -> None:
    _, learner = run(streaming())
    assert [one.share for one in learner.means[1]] == [4 / 8, 4 / 8]


def test_a_block_of_rounds_shares_a_batch() -> None:
    _, learner = run(streaming(refresh_rounds=2))
    assert seen(learner, 0) == [0, 0, 4]


def test_without_a_stream_nothing_is_captured() -> None:
    _, learner = run(NO_CONTENTION)
    assert learner.captures == []


def test_a_device_waits_until_its_samples_have_arrived_and_then_works() -> None:
    """Two samples a second: the model is there after 4 s, with 2 samples in the buffer of 5 that had 8 arrive."""
    arrival = {"samples_per_s": 0.25, "buffer_samples": 5}
    world, learner = run(streaming(arrival=arrival) | {"stop": {"rounds": 1}})
    # the fourth sample arrives at 16 s, the work takes until 18 s, the way up until 26 s
    assert work(world) == [(0, 16.0, 18.0, 4, "arrived"), (1, 16.0, 18.0, 4, "arrived")]
    assert world.env.now == 26.0
    assert seen(learner, 0) == [0]


def test_what_is_overwritten_is_missed() -> None:
    """One a second into a buffer of five: at 4 s four, at 18 s the last five of 18, at 32 s of 32."""
    world, learner = run(streaming(arrival={"samples_per_s": 1.0, "buffer_samples": 5}))
    assert seen(learner, 0) == [0, 13, 27]
    assert [client.stream.missed for client in world.clients] == [9 + 10, 9 + 10]


def test_a_device_that_fails_while_it_waits_or_works_has_consumed_nothing() -> None:
    """Down from 5 to 6 s, between the model's arrival and the end of its work."""
    fault = {"faults": {"scheduled": [{"node": "sensor-1", "at_s": 5.0, "for_s": 1.0}]}}
    for arrival in ({}, {"arrival": {"samples_per_s": 0.25, "buffer_samples": 50}}):
        world, learner = run(streaming(**arrival) | fault | {"stop": {"rounds": 2}})
        assert work(world)[0][-1] == "cancelled"
        assert [round_number for round_number, client, _ in learner.captures if client == 0] == [2]
        assert seen(learner, 0) == [0]
        assert world.clients[0].stream.consumed == 4


def test_work_that_is_given_up_while_it_waits_took_no_time() -> None:
    fault = {"faults": {"scheduled": [{"node": "sensor-1", "at_s": 5.0, "for_s": 1.0}]}}
    arrival = {"samples_per_s": 0.25, "buffer_samples": 5}
    world, _ = run(streaming(arrival=arrival) | fault | {"stop": {"rounds": 1}})
    assert work(world)[0] == (0, 5.0, 5.0, 4, "cancelled")


def test_drift_by_rounds_is_the_same_for_all_and_by_the_clock_is_the_devices_own_time() -> None:
    drift = {"name": "recurring", "phases": 2, "length": 1.0}
    _, learner = run(streaming(drift=drift))
    assert [(number, capture.mixture) for number, client, capture in learner.captures if client == 0] == [
        (1, (1.0, 0.0)),
        (2, (0.0, 1.0)),
        (3, (1.0, 0.0)),
    ]
    shifts = {"name": "shifts", "lengths_s": [10.0, 10.0]}
    _, learner = run(streaming(drift=shifts))  # trainings begin at 4, 18 and 32 s
    assert [capture.mixture for _, client, capture in learner.captures if client == 0] == [
        (1.0, 0.0),
        (0.0, 1.0),
        (0.0, 1.0),
    ]


def test_centralised_training_has_no_use_for_a_stream() -> None:
    changes = streaming() | {
        "protocols": [{"name": "centralised"}],
        "devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}},
    }
    with pytest.raises(UserError, match=r"used once and forgotten; leave one of them out"):
        prepared(changes)


@pytest.mark.parametrize(("memory", "first"), [("kept", 4), ("lost", 15)])
def test_a_device_that_loses_its_memory_loses_its_samples(memory: str, first: int) -> None:
    """Down from 15 to 16 s, between two rounds; one sample a second since the start, of which 0 to 3 were used."""
    fault = {"faults": {"scheduled": [{"node": "sensor-1", "at_s": 15.0, "for_s": 1.0}], "device_memory": memory}}
    arrival = {"samples_per_s": 1.0, "buffer_samples": 50}
    late = {"protocols": [{"name": "fedavg", "fraction": 1.0}], "devices.aggregation_s": 4.0, "stop": {"rounds": 2}}
    _, learner = run(streaming(arrival=arrival) | fault | late)
    assert seen(learner, 0) == [0, first]
    assert seen(learner, 1) == [0, 4]
