"""Groups and parts of models in any world: no crash, nobody in two places at once, and everybody accounted for.

Worlds are drawn: networks with losses, parts that fail and come back, deadlines, late transfers, devices that forget.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meters import Books
from plain_learner import PlainLearner
from random_worlds import CROWDED_RING, faults, networks
from small_worlds import prepared
from tiers import FULL, drawn

from fedsim.protocols.exchanges.memory import Memory
from fedsim.protocols.run_loop import NobodyLeft
from fedsim.protocols.world import World

SAMPLES, CAPACITY = 4, 6

semantics = st.fixed_dictionaries(
    {
        "capacity": st.just(CAPACITY),
        "compensation": st.sampled_from(["per_class", "none"]),
        "keep": st.sampled_from(["semantics", "samples"]),
        "quota": st.sampled_from(["none", "per_class"]),
        "first_extractor": st.sampled_from(["scattered", "local"]),
        "without_history": st.sampled_from(["calibrate", "skip"]),
    }
)
lasp = st.builds(lambda scc: {"name": "lasp", "scc": scc}, semantics | semantics | st.none())
parts = lasp | lasp | st.just({"name": "whole"})
deadlines_s = st.sampled_from([60.0, None, 20.0, 3.0])
groupings = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["icg", "random"]),
        "once": st.booleans(),
        "leftover": st.sampled_from(["idle", "spread"]),
    }
)
in_groups = st.fixed_dictionaries(
    {
        "name": st.just("stp"),
        "grouping": groupings,
        "growth": st.builds(lambda beta: {"name": "linear", "beta": beta, "alpha": 0.5}, st.integers(1, 4)),
        "sampling_rate": st.sampled_from([0.5, 1.0]),
        "interval": st.sampled_from((3, 2, 1)),
        "shuffle": st.sampled_from(["regroup", "round"]),
        "on_loss": st.sampled_from(["skip", "abandon"]),
        "turn_s": st.sampled_from([None, 3.0, 12.0, 20.0]),
        "deadline_s": deadlines_s,
        "grouping_s": st.sampled_from([0.0, 0.5]),
        "exchange": parts,
    }
)
in_parallel = st.fixed_dictionaries(
    {
        "name": st.just("fedavg"),
        "clients": st.integers(1, 4),
        "over_selection": st.sampled_from([1.0, 2.0]),
        "busy": st.sampled_from(["skip", "abort"]),
        "deadline_s": deadlines_s,
        "interval": st.sampled_from((3, 2, 1)),
        "exchange": parts,
    }
)
protocols = in_groups | in_groups | in_parallel
mild_faults = st.builds(
    lambda mean_up_s, of, **rules: {"random": [{"of": of, "mean_up_s": mean_up_s, "mean_down_s": 2.0}], **rules},
    mean_up_s=st.sampled_from([30.0, 300.0]),
    of=st.sampled_from(["sensors", "base_stations", "wires"]),
    messages=st.sampled_from(["wait", "restart", "lose"]),
    device_memory=st.sampled_from(["kept", "lost"]),
)
worlds = st.fixed_dictionaries(
    networks
    | {
        "topology": st.just(CROWDED_RING),
        "faults": mild_faults | faults,
        "network.late_transfers": st.sampled_from(["finish", "cancel"]),
        "data": st.sampled_from([{"samples": SAMPLES}, {"samples": SAMPLES, "refresh_rounds": 3}]).map(
            lambda stream: {"name": "digits", "partition": {"name": "iid"}, "stream": stream}
        ),
        "model": st.just({"name": "mlp", "hidden": [1]}),
        "stop": st.just({"sim_time_s": 300.0, "rounds": 40}),
        "protocols": protocols.map(lambda protocol: [protocol]),
    }
)
everywhere = drawn(100)


def world_of(changes: dict[str, Any], seed: int, learner: PlainLearner | None = None) -> tuple[World, Any]:
    return prepared(changes, seed=seed, **({"learner": lambda *_: learner} if learner else {}))


def run(world: World, protocol: Any, books: Books | None = None) -> None:
    """Until 300 s or 40 rounds; it may be that nobody is left."""
    ended = world.env.process(protocol.run(world))
    ended.defused = True
    while ended.is_alive and world.env.peek() <= 300.0:
        if books is None:
            world.env.step()
        else:
            books.step()
            books.check()
    assert ended.is_alive or ended.ok or isinstance(ended.value, NobodyLeft), ended.value


def accounted_for(changes: dict[str, Any], seed: int) -> tuple[World, PlainLearner]:
    """What became of the world, where everybody who was selected has taken part, was lost, or came late."""
    learner = PlainLearner(parts=("extractor", "classifier"))
    world, protocol = world_of(changes, seed, learner)
    run(world, protocol)
    rounds = world.trace.rounds.array()
    assert (rounds["participants"] + rounds["lost"] + rounds["late"] == rounds["selected"]).all()
    assert all(rounds[name].min(initial=0) >= 0 for name in ("participants", "lost", "late"))
    for client in world.clients:
        assert learner.uses(client.index) == sorted(learner.uses(client.index))
    for name in ("round", "start_s", "end_s", "hops"):
        assert (np.diff(rounds[name]) >= 0).all()
    return world, learner


def happens_again(changes: dict[str, Any], seed: int) -> None:
    """Whether or not somebody learns."""
    digests = []
    for learner in (None, None, PlainLearner(parts=("extractor", "classifier"))):
        world, protocol = world_of(changes, seed, learner)
        run(world, protocol)
        digests.append(world.trace.digest())
    assert len(set(digests)) == 1


@everywhere
@given(changes=worlds, seed=st.integers(0, 3))
def test_everybody_is_accounted_for(changes: dict[str, Any], seed: int) -> None:
    _, learner = accounted_for(changes, seed)
    for contributions in learner.means.values():
        clients = [one.client for one in contributions if one.client is not None]  # a mean that comes back as it was
        assert len(set(clients)) == len(clients)


@everywhere
@given(changes=worlds, seed=st.integers(0, 3))
def test_nobody_is_in_two_places(changes: dict[str, Any], seed: int) -> None:
    """A client's messages and its work follow each other: it is on one journey at a time."""
    world, protocol = world_of(changes, seed)
    run(world, protocol)
    for client in world.clients:
        spans = [
            (row["start_s"], row["end_s"])
            for table in (world.trace.hops, world.trace.work)
            for row in table.array()
            if row["client"] == client.index and row["end_s"] > row["start_s"]
        ]
        for (_, before_s), (after_s, _) in pairwise(sorted(spans)):
            assert after_s >= before_s


@pytest.mark.drawn
@settings(max_examples=100 if FULL else 8, deadline=None)
@given(changes=worlds, seed=st.integers(0, 3))
def test_every_byte_is_accounted_for_at_every_event(changes: dict[str, Any], seed: int) -> None:
    world, protocol = world_of(changes, seed)
    run(world, protocol, Books.on(world))


@everywhere
@given(changes=worlds, seed=st.integers(0, 3))
def test_the_same_happens_again_and_whether_or_not_somebody_learns(changes: dict[str, Any], seed: int) -> None:
    happens_again(changes, seed)


@everywhere
@given(changes=worlds, seed=st.integers(0, 3))
def test_only_who_has_a_blocks_extractor_calibrates_and_nobody_holds_too_much(
    changes: dict[str, Any], seed: int
) -> None:
    learner = PlainLearner(parts=("extractor", "classifier"))
    world, protocol = world_of(changes, seed, learner)
    run(world, protocol)
    for client in world.clients:
        memory = Memory.held_by(client)
        if memory is not None:
            assert memory.most_rows <= CAPACITY + protocol.interval * SAMPLES
            scc = getattr(protocol.exchange, "scc", None)
            assert memory.most_extractors <= (3 if scc is not None and scc.first_extractor == "local" else 2)
            assert memory.database is None or memory.database.rows <= CAPACITY
    for training in learner.trainings:
        full = (training.round_number - 1) % protocol.interval == 0
        assert (training.rows is None) == (full or protocol.exchange.name == "whole")


@everywhere
@given(changes=worlds, seed=st.integers(0, 3))
def test_groups_are_written_down_as_they_took_part(changes: dict[str, Any], seed: int) -> None:
    world, protocol = world_of(changes, seed)
    run(world, protocol)
    groups, rounds = world.trace.groups.array(), world.trace.rounds.array()
    assert protocol.name == "stp" or len(groups) == 0
    for number in rounds["round"] if protocol.name == "stp" else ():
        begun = groups[groups["round"] == number - (number - 1) % protocol.interval]
        assert begun["selected"].sum() == rounds["selected"][rounds["round"] == number]
        assert len(set(begun["client"])) == len(begun)
        for group in set(begun["group"]):
            members = begun[begun["group"] == group]
            assert members["position"].tolist() == list(range(len(members)))
            assert len(set(members["selected"])) == 1
