"""When a run ends: after so many rounds, so many bytes, at a time, or at a target that is confirmed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from plain_learner import PlainLearner
from pydantic import ValidationError
from small_worlds import NO_CONTENTION, NO_TIME, prepared, scenario, simulated

from fedsim.errors import UserError
from fedsim.experiment.simulate import simulate
from fedsim.network.hop import Direction
from fedsim.protocols import run_loop
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world, gather_materials


def done(world: World) -> int:
    assert len(world.loop.rounds_done) == len(world.trace.rounds)
    return len(world.loop.rounds_done)


def test_after_so_many_rounds() -> None:
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 3}})
    assert (done(world), world.env.now) == (3, 51.0)
    assert world.trace.rounds.array()["round"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("sim_time_s", "rounds"), [(16.0, 0), (17.0, 1), (33.5, 1), (34.0, 2), (51.0, 3)], ids=lambda value: str(value)
)
def test_at_a_time_exactly_which_still_counts(sim_time_s: float, rounds: int) -> None:
    world = simulated(NO_CONTENTION | {"stop": {"sim_time_s": sim_time_s}})
    assert (done(world), world.env.now) == (rounds, sim_time_s)


def test_a_round_that_its_deadline_ends_exactly_then_counts_too() -> None:
    changes = {"stop": {"sim_time_s": 30.0}, "network.late_transfers": "cancel"}
    world = simulated(
        NO_CONTENTION | changes | {"protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 10.0}]}
    )
    assert (done(world), world.env.now) == (3, 30.0)


def test_a_round_under_way_does_not_count_but_its_bytes_do() -> None:
    # At 30 s, the second round has gone down (17 - 21), and is on its way up (26 - 34), half-way.
    world = simulated(NO_CONTENTION | {"stop": {"sim_time_s": 30.0}})
    assert done(world) == 1
    assert world.network.access_bytes == {Direction.UPLINK: 2_000.0, Direction.DOWNLINK: 4_000.0}
    assert [transfer.bytes for transfer in world.network.in_flight] == [500.0, 500.0]


@pytest.mark.parametrize(("transfer_bytes", "rounds"), [(1.0, 1), (4_000.0, 1), (4_001.0, 2), (8_000.0, 2)])
def test_when_so_many_bytes_have_crossed_the_clients_own_hops_up_and_down(transfer_bytes: float, rounds: int) -> None:
    # Two clients with a model of 1000 B: 4000 B per round over the air; what crosses the wire does not count.
    assert done(simulated({"stop": {"transfer_bytes": transfer_bytes}})) == rounds


def test_bytes_that_are_never_sent_are_no_end() -> None:
    # The wire takes 1000 s, the deadline leaves 10: whatever is on its way is given up before it is on the air.
    changes = {"stop": {"transfer_bytes": 1.0}, "network.late_transfers": "cancel", "network.link.rate_bps": 8}
    protocol = {"name": "fedavg", "fraction": 1.0, "deadline_s": 10.0}
    with pytest.raises(UserError, match="nothing was sent over the air in 1,000 rounds, so transfer_bytes=1 is never"):
        simulated(changes | {"protocols": [protocol]})


@pytest.mark.parametrize(
    ("stop", "rounds"),
    [
        ({"rounds": 3, "sim_time_s": 40.0, "transfer_bytes": 1e9}, 2),
        ({"rounds": 3, "sim_time_s": 1e6, "transfer_bytes": 1e9}, 3),
        ({"rounds": 3, "sim_time_s": 1e6, "transfer_bytes": 4_000.0}, 1),
    ],
)
def test_whichever_comes_first(stop: dict[str, Any], rounds: int) -> None:
    assert done(simulated(NO_CONTENTION | {"stop": stop})) == rounds


def test_a_protocols_own_stop_replaces_the_scenarios() -> None:
    changes = {"stop": {"rounds": 9}, "protocols": [{"name": "fedavg", "fraction": 1.0, "stop": {"rounds": 2}}]}
    assert done(simulated(NO_CONTENTION | changes)) == 2


DIVERGED = "the model diverged: after round {} its scores are not finite; a smaller training.learning_rate may help"

SAW_TOOTH = [0.5, 0.8, 0.6, 0.6, 0.6, 0.81, 0.79, 0.80, 0.80, 0.9, 0.9, 0.9, 0.9]


@pytest.mark.parametrize(
    ("accuracies", "every", "ends_at", "reached_at"),
    [
        (SAW_TOOTH, 1, 9, 6),  # a single spike at round 2 does not count
        (SAW_TOOTH, 2, 18, 12),  # four evaluations, every second round
        ([0.8, 0.795, 0.795, 0.795], 1, 4, 1),  # half a point below is near enough
        ([0.8, 0.794, 0.795, 0.795] + [0.0] * 40, 1, 30, None),
        ([0.79] * 60, 1, 30, None),
    ],
)
def test_at_a_target_once_three_more_evaluations_confirm_it(
    accuracies: list[float], every: int, ends_at: int, reached_at: int | None
) -> None:
    changes = {"stop": {"rounds": 30, "target_accuracy": 0.8}, "evaluate": {"every": every}}
    world = simulated(NO_CONTENTION | changes, learner=lambda *_: PlainLearner(accuracies))
    assert done(world) == ends_at
    assert (world.loop.target_round and world.loop.target_round.number) == reached_at


def test_a_target_reads_the_first_test_set_only() -> None:
    high_on_the_second = [0.1, 0.9] * 30
    changes = {"stop": {"rounds": 6, "target_accuracy": 0.8}, "evaluate": {"on": ["global", "clients"]}}
    world = simulated(NO_CONTENTION | changes, learner=lambda *_: PlainLearner(high_on_the_second))
    assert (done(world), world.loop.target_round) == (6, None)
    turned = changes | {"evaluate": {"on": ["clients", "global"]}}
    world = simulated(NO_CONTENTION | turned, learner=lambda *_: PlainLearner([0.9, 0.1] * 30))
    assert done(world) == 4


def evaluated(changes: dict[str, Any]) -> list[tuple[int, str, str]]:
    learner = PlainLearner([0.5] * 99)
    simulated(NO_CONTENTION | changes, learner=lambda *_: learner)
    return learner.evaluations


def test_the_last_model_is_always_evaluated_and_none_twice() -> None:
    every = {"evaluate": {"every": 2}}
    assert [number for number, _, _ in evaluated(every | {"stop": {"rounds": 5}})] == [2, 4, 5]
    assert [number for number, _, _ in evaluated(every | {"stop": {"rounds": 4}})] == [2, 4]
    ended_by_the_clock = evaluated(every | {"stop": {"sim_time_s": 60.0}})
    assert [(number, model) for number, _, model in ended_by_the_clock] == [
        (2, "mean of round 2"),
        (3, "mean of round 3"),
    ]
    assert evaluated({"stop": {"sim_time_s": 1.0}}) == []


def test_who_watches_is_told_of_each_round_with_its_evaluation() -> None:
    told: list[tuple[int, bool]] = []
    settings = scenario(NO_CONTENTION | {"stop": {"rounds": 5}, "evaluate": {"every": 2}})
    (protocol,) = settings.protocols
    world = build_world(
        settings,
        protocol,
        gather_materials(settings, 1),
        lambda *_: PlainLearner(),
        on_round=lambda done: told.append((done.number, bool(done.metrics))),
    )
    simulate(world, protocol, settings.stop)
    assert told == [(1, False), (2, True), (3, False), (4, True), (5, True)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stop": {}}, "a run must end: give rounds, target_accuracy, sim_time_s or transfer_bytes"),
        ({"stop": {"rounds": 0}}, "greater than or equal to 1"),
        ({"stop": {"target_accuracy": 80.0}}, "less than or equal to 1"),
        ({"stop": {"sim_time_s": -1.0}}, "greater than 0"),
        ({"stop": {"sim_time_s": 1.1e12}}, "less than or equal to 1000000000000"),
        ({"stop": {"target_accuracy": 0.8}}, "with learn: false .* a run cannot end at a target_accuracy"),
        ({"evaluate": {"on": []}}, "must name at least one test set, and none twice"),
        ({"evaluate": {"on": ["global", "global"]}}, "must name at least one test set, and none twice"),
        ({"evaluate": {"every": 0}}, "greater than or equal to 1"),
    ],
)
def test_an_end_that_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        scenario(changes)


@pytest.mark.parametrize(
    ("changes", "stop", "rounds", "message"),
    [
        (
            NO_TIME,
            {"sim_time_s": 60.0},
            51,
            "50 rounds take no simulated time, so sim_time_s=60 is never reached; give",
        ),
        (
            NO_TIME,
            {"sim_time_s": 60.0, "target_accuracy": 0.9},
            91,
            "90 rounds take no simulated time, so sim_time_s=60 is never reached, nor was target_accuracy=0.9; give",
        ),
    ],
)
def test_rounds_that_bring_no_end_nearer_are_given_up(
    changes: dict[str, Any], stop: dict[str, float], rounds: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Or the run would go on for ever in its first instant.
    monkeypatch.setattr(run_loop, "MOST_ROUNDS_NO_NEARER", 50)
    monkeypatch.setattr(run_loop, "MOST_ROUNDS_TO_A_TARGET", 90)
    learner = PlainLearner([0.5] * 99)
    world, protocol = prepared(changes | {"stop": stop}, learner=lambda *_: learner)
    world.env.process(protocol.run(world))
    with pytest.raises(UserError, match=re.escape(message)):
        for _ in range(100_000):
            world.env.step()
    assert done(world) == rounds


@pytest.mark.parametrize(("transfer_bytes", "rounds"), [(5_000.0, 51), (1_000.0, 1)])
def test_the_one_end_that_comes_nearer_is_enough(
    transfer_bytes: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All raw samples are sent in the first round, and none after it; no round takes any time."""
    monkeypatch.setattr(run_loop, "MOST_ROUNDS_NO_NEARER", 50)
    stop = {"sim_time_s": 60.0, "transfer_bytes": transfer_bytes}
    cloud = {"devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.0}}}
    world, protocol = prepared(NO_TIME | cloud | {"stop": stop, "protocols": [{"name": "centralised"}]})
    world.env.process(protocol.run(world))
    if rounds == 1:
        world.env.run()
    else:
        message = "50 rounds take no simulated time, so sim_time_s=60 is never reached, and nothing was sent"
        with pytest.raises(UserError, match=message):
            for _ in range(100_000):
                world.env.step()
    assert done(world) == rounds


def test_a_target_may_be_met_in_rounds_that_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_loop, "MOST_ROUNDS_NO_NEARER", 5)
    learner = PlainLearner([0.5] * 20 + [0.9] * 9)
    stop = {"sim_time_s": 60.0, "target_accuracy": 0.9}
    world = simulated(NO_TIME | {"stop": stop}, learner=lambda *_: learner)
    assert world.loop.target_round is not None and world.loop.target_round.number == 21


def test_the_clock_goes_as_far_as_it_tells_transfers_apart() -> None:
    # At 1e17 s, a journey of 19 s would end in the instant in which it begins.
    far = simulated(NO_CONTENTION | {"devices.aggregation_s": 1e12 - 17.0})
    assert (done(far), far.env.now) == (1, 1e12)
    message = (
        r"round 1 ends at 1e\+17 s of simulated time, and the clock resolves .* up to 1e\+12 s .*; give higher rates"
    )
    with pytest.raises(UserError, match=message):
        simulated({"stop": {"rounds": 2}, "devices.aggregation_s": 1e17})


def test_rounds_say_what_was_known_when_they_ended() -> None:
    world = simulated(NO_CONTENTION | {"stop": {"rounds": 2}}, learner=lambda *_: PlainLearner([0.25, 0.5]))
    first, second = world.loop.rounds_done
    assert (first.number, first.sim_time_s, first.uplink_bytes, first.downlink_bytes) == (1, 17.0, 2_000.0, 2_000.0)
    assert (second.number, second.sim_time_s, second.uplink_bytes, second.participants) == (2, 34.0, 4_000.0, 2)
    assert second.metrics == {"global": {"accuracy": 0.5, "loss": 0.5}}


@pytest.mark.parametrize(
    ("stop", "accuracies", "ends_at", "why"),
    [
        ({"rounds": 30, "target_accuracy": 0.8}, [0.5, 0.9, None], 3, DIVERGED),
        ({"rounds": 30, "target_accuracy": 0.09}, [None] * 30, 1, DIVERGED),  # it has no accuracy at all
        ({"rounds": 30, "target_accuracy": 0.8}, [0.9, 0.9, 0.9, None], 4, DIVERGED),  # nothing confirms a target
        ({"rounds": 2}, [0.5, None], 2, None),  # it ended by itself
    ],
)
def test_at_the_evaluation_that_finds_a_diverged_model_and_no_target_is_reached(
    stop: dict[str, Any], accuracies: list[float | None], ends_at: int, why: str | None
) -> None:
    world = simulated(NO_CONTENTION | {"stop": stop}, learner=lambda *_: PlainLearner(accuracies))
    assert (done(world), world.loop.target_round) == (ends_at, None)
    assert world.loop.cut_short == (why and why.format(ends_at))


def test_at_a_model_that_diverged_on_any_of_its_test_sets() -> None:
    changes = {"stop": {"rounds": 6}, "evaluate": {"on": ["global", "clients"]}}
    world = simulated(NO_CONTENTION | changes, learner=lambda *_: PlainLearner([0.5, 0.5, 0.5, None]))
    assert (done(world), world.loop.cut_short) == (2, DIVERGED.format(2))


def test_where_the_server_has_a_learning_rate_that_one_is_named_first() -> None:
    changes = NO_CONTENTION | {"protocols": [{"name": "fedadam", "fraction": 1.0}], "stop": {"rounds": 6}}
    world = simulated(changes, learner=lambda *_: PlainLearner([None]))
    both = "a smaller server.learning_rate or training.learning_rate may help"
    assert world.loop.cut_short == f"the model diverged: after round 1 its scores are not finite; {both}"
