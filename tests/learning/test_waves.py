"""Waves: who is computed together is a function of the graph, and changes no value, for nobody, whoever else holds it.

Programs are played twice: on a graph of whole numbers whose executor computes waves, and directly.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tiers import drawn
from wave_programs import (
    MODEL_V,
    PARTS,
    PROGRAM,
    Directly,
    Expressions,
    OpenBench,
    contributions,
    keys_of,
    nodes_of,
    placed,
    play,
)
from whole_numbers import Bench, Killed, Waving, client_of

from fedsim.learning.executors.wave import Made, detached
from fedsim.learning.executors.waves import waves
from fedsim.learning.graph import Handle, Node
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.partial_sum import TERM

# -- the plan ------------------------------------------------------------------------------------------------------


@drawn(200)
@given(program=PROGRAM)
def test_every_node_is_in_one_chunk_and_chunks_come_inputs_first(program: list[Any]) -> None:
    nodes = nodes_of(program)
    chunks = waves(nodes)
    event(f"largest wave: {max(map(len, chunks)) > 1 and max(map(len, chunks))}")
    assert Counter(node for chunk in chunks for node in chunk) == Counter(nodes)
    before: set[Node] = set()
    for chunk in chunks:
        for node in chunk:  # so no chunk needs a later one, nor, by way of one, itself
            assert {handle.node for handle in node.inputs.values()} <= before
            before.add(node)


@drawn(200)
@given(program=PROGRAM)
def test_a_wave_is_one_sum_and_the_chains_that_make_all_that_it_takes(program: list[Any]) -> None:
    for chunk in waves(nodes_of(program)):
        *trainings, total = chunk
        if trainings:
            assert total.operation.name == "partial_sum"
            assert {node.operation.name for node in trainings} == {"train"}
            taken = [handle for slot, handle in total.inputs.items() if slot.role == TERM]
            handed_on = [h for node in trainings for h in node.inputs.values() if h.node in trainings]
            assert all(handle.node in trainings for handle in taken)
            assert {handle.node for handle in (*taken, *handed_on)} == set(trainings)
            assert not any(handle.node in trainings for handle in total.sources.model("base").values())


@drawn(100)
@given(program=PROGRAM)
def test_the_plan_is_a_function_of_the_graph(program: list[Any]) -> None:
    """Who holds what, and where in memory it is, does not matter."""
    nodes = nodes_of(program)
    held = [node.output(part) for node in nodes for part in PARTS]
    again = nodes_of(program)
    assert keys_of(waves(nodes)) == keys_of(waves(again))
    assert len(held) == 2 * len(nodes)


def planned(*handles: Handle) -> list[list[str]]:
    """The chunks of all that *handles* need, by what they do and for whom."""
    ordered: dict[Node, None] = {}

    def visit(node: Node) -> None:
        for handle in node.inputs.values():
            visit(handle.node)
        ordered.setdefault(node)

    for handle in handles:
        visit(handle.node)
    names = {"partial_sum": "sum", "train": ""}
    return [
        [f"{names.get(node.operation.name, node.operation.name)}{client_of(node)}" for node in chunk]
        for chunk in waves(list(ordered))
    ]


@pytest.fixture
def bench(open_bench: OpenBench) -> Bench:
    return open_bench(kind=Waving)


def test_trainings_and_the_sum_that_takes_them_are_one_wave(bench: Bench) -> None:
    base = bench.init()
    total = bench.fold(base, contributions(bench, base, [3, 1, 2]))
    assert planned(bench.add(base, total)) == [["init"], ["3", "1", "2", "sum"], ["add"]]


def test_clients_that_hand_their_model_on_are_in_the_wave_of_the_last_one(bench: Bench) -> None:
    base = bench.init()
    chains = [bench.train(bench.train(base, 1), 2), bench.train(bench.train(bench.train(base, 3), 4), 5)]
    assert planned(bench.fold(base, chains)) == [["init"], ["1", "2", "3", "4", "5", "sum"]]


def test_base_models_may_differ_within_a_wave(bench: Bench) -> None:
    base, other = bench.init(0), bench.init(1)
    total = bench.fold(base, [bench.train(base, 1), bench.train(other, 2)])
    assert planned(total) == [["init"], ["init"], ["1", "2", "sum"]]


def test_who_takes_part_twice_is_trained_once_and_summed_up_alone(bench: Bench) -> None:
    base = bench.init()
    trained = bench.train(base, 1)
    assert planned(bench.fold(base, [trained, trained])) == [["init"], ["1"], ["sum"]]


def test_a_contribution_that_another_one_starts_from_is_in_no_wave(bench: Bench) -> None:
    base = bench.init()
    first = bench.train(base, 1)
    assert planned(bench.fold(base, [first, bench.train(first, 2)])) == [["init"], ["1"], ["2"], ["sum"]]


def test_a_sum_on_top_of_one_of_its_own_contributions_is_no_wave(bench: Bench) -> None:
    trained = bench.train(bench.init(), 1)
    assert planned(bench.fold(trained, [trained])) == [["init"], ["1"], ["sum"]]


def test_what_the_sum_needs_of_its_own_trainings_in_a_roundabout_way_is_not_in_its_wave(bench: Bench) -> None:
    base = bench.init()
    trained = bench.train(base, 1)
    total = bench.fold(bench.add(base, trained), [trained])
    assert planned(total) == [["init"], ["1"], ["add"], ["sum"]]


def test_a_later_taker_of_a_model_leaves_the_wave_as_it_is(bench: Bench) -> None:
    base = bench.init()
    trained = bench.train(base, 1)
    first = bench.fold(base, [trained, bench.train(base, 2)])
    second = bench.fold(base, [trained, bench.train(base, 3)])
    assert planned(first, second) == [["init"], ["1", "2", "sum"], ["3"], ["sum"]]


def test_a_start_that_is_put_together_from_several_models_is_handed_on_by_nobody(bench: Bench) -> None:
    learning = Expressions(bench.graph)
    base, other = learning.init(0), learning.init(1)
    first, second = (learning.train(client, 0, placed("model", base)) for client in (1, 2))
    for parts in ({"v": first["v"], "w": second["w"]}, {"v": first["v"], "w": other["w"]}):
        last = learning.train(3, 0, placed("model", parts))
        assert ["3", "sum"] in planned(learning.fold(base, [last])["v"])
    kept_part = learning.train(3, 0, placed("model", {"v": first["v"], "w": base["w"]}))
    assert ["1", "3", "sum"] in planned(learning.fold(base, [kept_part])["v"])


def test_a_contribution_whose_parts_have_changed_places_is_in_no_wave(bench: Bench) -> None:
    learning = Expressions(bench.graph)
    base = learning.init(0)
    trained = learning.train(1, 0, placed("model", base))
    turned = learning.fold(base, [{"v": trained["w"], "w": trained["v"]}])
    assert planned(turned["v"]) == [["init"], ["1"], ["sum"]]


def test_what_is_planned_already_is_in_no_other_wave(bench: Bench) -> None:
    base = bench.init()
    trained = contributions(bench, base, [1, 2])
    bench.value(trained[0])
    bench.value(bench.fold(base, trained))
    assert bench.computed == ["init", "train 1", "train 2", "partial_sum"]
    assert [len(node.chunk.nodes) for node in {handle.node for handle in trained} if node.chunk] == [0, 0]


def test_several_rounds_that_are_forced_at_once_are_a_wave_each(bench: Bench) -> None:
    model = bench.init()
    for use in range(3):
        model = bench.add(model, bench.fold(model, contributions(bench, model, [1, 2], use)))
    assert planned(model) == [["init"], *[["1", "2", "sum"], ["add"]] * 3]


# -- what is detached ----------------------------------------------------------------------------------------------


def test_a_wave_says_where_everything_comes_from_and_what_somebody_wants(bench: Bench) -> None:
    base, other = bench.init(0), bench.init(1)
    first = bench.train(base, 1)
    kept = bench.train(first, 2)
    total = bench.fold(base, [kept, bench.train(other, 3)])
    bench.value(base), bench.value(other)
    nodes = [first.node, kept.node, total.node.inputs[Slot(TERM, 1, "v")].node, total.node]
    del first
    wave, values = detached(nodes)
    assert [one.inputs for one in wave.trainings] == [{MODEL_V: 0}, {MODEL_V: Made(0, "v")}, {MODEL_V: 1}]
    assert [one.about.seen.client for one in wave.trainings] == [1, 2, 3]
    assert [one.wanted for one in wave.trainings] == [(), ("v",), ()]
    assert [values[0], values[1]] == [base.value, other.value]
    (total,) = wave.sums
    assert (total.trainings, total.weights, dict(total.base)) == ((1, 2), (1, 2), {"v": 0})


# -- values --------------------------------------------------------------------------------------------------------

KILLS = st.lists(st.integers(1, 12), max_size=4)


@drawn(150)
@given(program=PROGRAM, lookahead=st.sampled_from([0, 1, 4]))
def test_forced_values_equal_direct_evaluation(program: list[Any], lookahead: int) -> None:
    expected: list[int] = []
    play(Directly(), program, expected)
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), lookahead=lookahead) as bench:
        values: list[int] = []
        play(Expressions(bench.graph, bench), program, values)
    assert values == expected


@drawn(100)
@given(program=PROGRAM, kills=KILLS, every=st.sampled_from([1, 2, 5]), lookahead=st.sampled_from([0, 4]))
def test_a_run_that_is_killed_and_goes_on_has_the_same_values(
    program: list[Any], kills: list[int], every: int, lookahead: int
) -> None:
    expected: list[int] = []
    play(Directly(), program, expected)
    with tempfile.TemporaryDirectory() as folder:
        for kill_at in (*kills, float("inf")):
            values: list[int] = []
            options = {"checkpoint_every": every, "kill_at": kill_at, "lookahead": lookahead}
            with opened(Path(folder), **options) as bench, suppress(Killed):
                play(Expressions(bench.graph, bench), program, values)
            assert values == expected[: len(values)]
            event(f"something was loaded: {any(row['event'] == 'loaded' for row in bench.rows())}")
    assert values == expected


@contextmanager
def opened(folder: Path, **options: Any) -> Any:
    bench = Bench(folder, kind=Waving, **options)
    try:
        yield bench
    finally:
        bench.store.close()


@drawn(60)
@given(
    chains=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    keeps=st.sets(st.integers(0, 17)),
    early=st.booleans(),
)
def test_whoever_else_holds_a_trained_model_gets_its_own_value_and_the_sum_keeps_its_own(
    chains: list[int], keeps: set[int], early: bool
) -> None:
    direct, directly = Directly(), []
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as bench:
        lazy, lazily = Expressions(bench.graph, bench), []
        totals = []
        for learning, noted in ((direct, directly), (lazy, lazily)):
            base = learning.init(0)
            ends = []
            for client, length in enumerate(chains):
                trained = base
                for use in range(length):
                    trained = learning.train(client, use, placed("model", trained))
                    noted.append(trained)
                ends.append(trained)
            totals.append(learning.fold(base, ends))
            del ends, trained
        kept = {number: lazily[number] for number in keeps if number < len(lazily)}
        lazily.clear()
        lazy.nodes.clear()
        if not early:  # then the models are asked for once the sum is there
            assert lazy.force(totals[1]["v"]) == totals[0]["v"]
        for number, model in kept.items():
            assert {name: lazy.force(handle) for name, handle in model.items()} == directly[number]
        assert [lazy.force(totals[1][part]) for part in PARTS] == [totals[0][part] for part in PARTS]
        trainings = [name for name in bench.computed if name.startswith("train")]
    assert len(trainings) == sum(chains), "nothing is trained twice"
