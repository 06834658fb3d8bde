"""Base stations between the cloud and its clients, in any world: everybody and every byte is accounted for.

Worlds are drawn: networks with losses, parts that fail and come back, deadlines, late transfers, devices that forget.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meters import Books
from plain_learner import PlainLearner
from test_groups_under_stress import accounted_for, happens_again, run, world_of, worlds
from tiers import FULL, drawn

STREAM = {"samples": 4}
DIGITS = {"data": {"name": "digits", "partition": {"name": "iid"}, "stream": STREAM}, "training.batch_size": 4}
TIMES: dict[str, Any] = {
    "deadline_s": st.sampled_from([150.0, None, 60.0, 20.0]),
    "iteration_deadline_s": st.sampled_from([60.0, None, 20.0, 3.0]),
    "move_share": st.sampled_from([0.0, 0.3]),
    "weighting": st.sampled_from(["samples", "uniform"]),
}
STEPS: dict[str, Any] = TIMES | {
    "iterations": st.integers(1, 4),
    "devices": st.integers(1, 3),
    "presampled": st.integers(0, 1),
    "label_reports": st.sampled_from(["together", "singly"]),
    "selection_s": st.sampled_from([0.0, 0.5]),
}
in_steps = st.fixed_dictionaries(STEPS | {"name": st.sampled_from(["fedgs", "fedgs_random"])})
device_by_device = st.fixed_dictionaries(
    STEPS
    | {
        "name": st.just("fedgs"),
        "fused": st.just(False),
        "exchange": st.sampled_from([{"name": "whole"}, {"name": "lasp"}, {"name": "lasp", "scc": None}]),
    }
)
in_edge_rounds = st.fixed_dictionaries(
    TIMES
    | {
        "name": st.just("hierarchical"),
        "clients": st.integers(1, 4),
        "edge_rounds": st.integers(1, 3),
        "busy": st.sampled_from(["skip", "abort"]),
        "exchange": st.sampled_from([{"name": "whole"}, {"name": "lasp"}]),
    }
)
with_stations = st.builds(
    lambda world, protocol: world | DIGITS | {"protocols": [protocol]},
    worlds,
    in_steps | in_steps | device_by_device | in_edge_rounds,
)
in_single_steps = st.builds(
    lambda world, protocol: world | DIGITS | {"protocols": [protocol | {"fused": False}]}, worlds, in_steps
)
everywhere = drawn(60)


@everywhere
@given(changes=with_stations, seed=st.integers(0, 3))
def test_everybody_is_accounted_for(changes: dict[str, Any], seed: int) -> None:
    world, _ = accounted_for(changes, seed)
    assert world.trace.rounds.array()["selected"].max(initial=0) <= len(world.clients)


@pytest.mark.drawn
@settings(max_examples=100 if FULL else 8, deadline=None)
@given(changes=with_stations, seed=st.integers(0, 3))
def test_every_byte_is_accounted_for_at_every_event(changes: dict[str, Any], seed: int) -> None:
    world, protocol = world_of(changes, seed)
    run(world, protocol, Books.on(world))


@everywhere
@given(changes=with_stations, seed=st.integers(0, 3))
def test_the_same_happens_again_and_whether_or_not_somebody_learns(changes: dict[str, Any], seed: int) -> None:
    happens_again(changes, seed)


@everywhere
@given(changes=in_single_steps, seed=st.integers(0, 3))
def test_a_mini_batch_is_trained_on_once(changes: dict[str, Any], seed: int) -> None:
    """Where no device forgets: by each client in the order of its own samples, none of them left out."""
    learner = PlainLearner(parts=("extractor", "classifier"))
    world, protocol = world_of(changes | {"faults.device_memory": "kept"}, seed, learner)
    run(world, protocol)
    for client in world.clients:
        firsts = [capture.first for _, index, capture in learner.captures if index == client.index]
        assert firsts == [4 * number for number in range(len(firsts))]
        assert client.stream is not None and client.stream.consumed == 4 * len(firsts)
