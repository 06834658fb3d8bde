"""Waves: who is computed together is a function of the graph, and changes no value, for nobody, whoever else holds it.

Programs are played twice: on a graph of whole numbers whose executor computes waves, and directly. Models have two
parts, ``v`` and ``w``; a training also yields what its client remembers.
"""

from __future__ import annotations

import gc
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tiers import drawn
from whole_numbers import ADD, INIT, Bench, Killed, Waving, client_of, folded, made, training, weights_of

from fedsim.kernel.streams import Stream
from fedsim.learning.executors.wave import Made, detached
from fedsim.learning.executors.waves import waves
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.partial_sum import TERM, PartialSum

OpenBench = Callable[..., Bench]
PARTS, MEMORY = ("v", "w"), "state.s"
MODEL_V, MODEL_W, REMEMBERED = Slot("model", part="v"), Slot("model", part="w"), Slot("state", part="s")


class Learning(Protocol):
    """What a program needs; a model's parts, and what a client remembers, are handles or numbers."""

    def init(self, use: int) -> Mapping[str, Any]: ...

    def train(self, client: int, use: int, inputs: Mapping[Slot, Any]) -> Mapping[str, Any]: ...

    def fold(self, base: Mapping[str, Any], contributions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]: ...

    def add(self, base: Mapping[str, Any], change: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def force(self, some: Any) -> int: ...


def placed(role: str, parts: Mapping[str, Any], number: int = 0) -> dict[Slot, Any]:
    """The inputs in a role: parts of a model only."""
    return {Slot(role, number, part): value for part, value in parts.items() if part in PARTS}


class Directly:
    """Whole numbers as they come."""

    def init(self, use: int) -> dict[str, int]:
        return {part: made(INIT, Stream(1, "init", 0, use).text, {}, part) for part in PARTS}

    def train(self, client: int, use: int, inputs: Mapping[Slot, int]) -> dict[str, int]:
        stream = Stream(1, "batches", client, use).text
        return {output: made(training(client), stream, inputs, output) for output in (*PARTS, MEMORY)}

    def fold(self, base: Mapping[str, int], contributions: Sequence[Mapping[str, int]]) -> dict[str, int]:
        weights = weights_of(len(contributions))
        return {
            part: folded(base[part], [one[part] for one in contributions], weights) for part in base if part in PARTS
        }

    def add(self, base: Mapping[str, int], change: Mapping[str, int]) -> dict[str, int]:
        inputs = placed("base", base) | placed("change", change)
        return {part: made(ADD, None, inputs, part) for part in PARTS}

    def force(self, some: int) -> int:
        return some


@dataclass
class Expressions:
    """Handles in a graph, all nodes of which are noted, inputs first."""

    graph: Graph
    bench: Bench | None = None
    nodes: list[Node] = field(default_factory=list)

    def _outputs(self, node: Node, outputs: Sequence[str]) -> dict[str, Handle]:
        if node not in self.nodes:
            self.nodes.append(node)
        return {output: node.output(output) for output in outputs}

    def init(self, use: int) -> dict[str, Handle]:
        return self._outputs(self.graph.node(INIT, {}, stream=Stream(1, "init", 0, use)), PARTS)

    def train(self, client: int, use: int, inputs: Mapping[Slot, Handle]) -> dict[str, Handle]:
        stream = Stream(1, "batches", client, use)
        return self._outputs(self.graph.node(training(client), dict(inputs), stream=stream), (*PARTS, MEMORY))

    def fold(self, base: Mapping[str, Handle], contributions: Sequence[Mapping[str, Handle]]) -> dict[str, Handle]:
        inputs = placed("base", base)
        for number, contribution in enumerate(contributions):
            inputs |= placed(TERM, contribution, number)
        return self._outputs(self.graph.node(PartialSum(weights_of(len(contributions))), inputs), PARTS)

    def add(self, base: Mapping[str, Handle], change: Mapping[str, Handle]) -> dict[str, Handle]:
        return self._outputs(self.graph.node(ADD, placed("base", base) | placed("change", change)), PARTS)

    def force(self, some: Handle) -> int:
        assert self.bench is not None
        return self.bench.value(some)


# -- random programs -----------------------------------------------------------------------------------------------

ANY = st.integers(0, 10**6)  # which of what is held, counted round and round
CLIENTS = st.integers(0, 3)
STEP = st.one_of(
    st.tuples(st.just("init"), st.integers(0, 1)),
    st.tuples(st.just("train"), CLIENTS, st.integers(0, 1), ANY, st.one_of(st.none(), ANY), st.one_of(st.none(), ANY)),
    st.tuples(st.just("fold"), ANY, st.lists(ANY, min_size=1, max_size=4)),
    st.tuples(st.just("put together"), ANY, ANY, st.booleans()),
    # a round: chains of clients, whose first ones start from one model or from another; what somebody keeps of it
    st.tuples(
        st.just("round"),
        ANY,
        st.lists(st.tuples(ANY, st.booleans(), st.lists(CLIENTS, min_size=1, max_size=3)), min_size=1, max_size=4),
        st.lists(ANY, max_size=2),
    ),
    st.tuples(st.just("force"), ANY, st.sampled_from(PARTS)),
    st.tuples(st.just("drop"), ANY),
)
END = [("force", number, part) for number in range(3) for part in PARTS]
PROGRAM = st.lists(STEP, min_size=2, max_size=25).map(lambda steps: [("init", 0), *steps, *END])


def play(learning: Learning, program: Sequence[Any], values: list[int]) -> None:
    """Run *program*; *values* grows with all that it forces. Each round's use is its own, other uses come again."""
    held: list[Mapping[str, Any]] = []
    for position, (kind, *choice) in enumerate(program):
        if kind == "init":
            held.append(learning.init(choice[0]))
        elif kind == "train":
            client, use, model, other, memory = choice
            held.append(learning.train(client, use, start(held, model, other, memory)))
        elif kind == "fold":
            base, contributions = choice
            held.append(learning.fold(pick(held, base), [pick(held, one) for one in contributions]))
        elif kind == "put together":
            one, other, crosswise = choice
            first, second = pick(held, one), pick(held, other)
            held.append({"v": second["w"], "w": first["v"]} if crosswise else {"v": first["v"], "w": second["w"]})
        elif kind == "round":
            base, chains, kept = choice
            made_here, contributions = [], []
            for another, own_start, clients in chains:
                trained: Mapping[str, Any] = pick(held, another if own_start else base)
                for client in clients:
                    use = 1000 * (position + 1) + len(made_here)
                    trained = learning.train(client, use, placed("model", trained))
                    made_here.append(trained)
                contributions.append(trained)
            held.append(learning.add(pick(held, base), learning.fold(pick(held, base), contributions)))
            held += [pick(made_here, one) for one in kept]
            del made_here, contributions, trained
        elif kind == "force":
            which, part = choice
            values.append(learning.force(pick(held, which)[part]))
        elif len(held) > 1:
            del held[choice[0] % len(held)]


def pick(held: Sequence[Mapping[str, Any]], which: int) -> Mapping[str, Any]:
    return held[which % len(held)]


def start(held: Sequence[Mapping[str, Any]], model: int, other: int | None, memory: int | None) -> dict[Slot, Any]:
    """A training's inputs: a model, or one part of it and one of another; perhaps what some training remembers."""
    inputs = placed("model", pick(held, model))
    if other is not None:
        inputs[MODEL_W] = pick(held, other)["w"]
    remembering = [one for one in held if MEMORY in one]
    if memory is not None and remembering:
        inputs[REMEMBERED] = pick(remembering, memory)[MEMORY]
    return inputs


def nodes_of(program: Sequence[Any]) -> list[Node]:
    """The nodes of a program in which nothing is forced, inputs first."""
    expressions = Expressions(Graph("plan"))
    play(expressions, [step for step in program if step[0] not in ("force", "drop")], [])
    return expressions.nodes


def keys_of(chunks: Sequence[Sequence[Node]]) -> list[list[str]]:
    return [[node.key for node in chunk] for chunk in chunks]


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


def contributions(bench: Bench, base: Handle, clients: Sequence[int], use: int = 0) -> list[Handle]:
    return [bench.train(base, client, use) for client in clients]


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


# -- memory --------------------------------------------------------------------------------------------------------


@contextmanager
def without_collection() -> Any:
    """Only what nobody refers to dies in here."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("lookahead", [0, 4])
def test_no_model_of_a_wave_is_ever_made_unless_somebody_holds_it(open_bench: OpenBench, lookahead: int) -> None:
    bench = open_bench(kind=Waving, lookahead=lookahead)
    bench.rounds(2, clients=50)
    assert max(bench.executor.alive) == 0
    model = bench.init(7)
    chain = [bench.train(model, 0)]
    chain.append(bench.train(chain[0], 1))
    total = bench.fold(model, [chain[1], bench.train(model, 2)])
    bench.value(total)
    assert bench.executor.steps and sum(value() is not None for value in bench.executor._trained) == 2
    chain.clear()
    assert sum(value() is not None for value in bench.executor._trained) == 0


def test_a_wave_that_was_computed_keeps_none_of_its_trainings_alive(open_bench: OpenBench) -> None:
    bench = open_bench(kind=Waving)
    base = bench.init()
    total = bench.fold(base, contributions(bench, base, [1, 2, 3]))
    trainings = [weakref.ref(handle.node) for slot, handle in total.node.inputs.items() if slot.role == TERM]
    kept = total.node.inputs[Slot(TERM, 1, "v")]
    with without_collection():
        bench.value(total)
        bench.executor.computed.clear()
        assert [node() for node in trainings] == [None, kept.node, None]
        assert (kept.node.inputs, total.node.inputs) == ({}, {})


def round_with_memories(bench: Bench) -> tuple[dict[str, Handle], Handle]:
    """A client's training after another one of the same client, its memory kept, and the mean of two."""
    learning = Expressions(bench.graph)
    base = learning.init(0)
    before = learning.train(1, 0, placed("model", base))
    start = learning.add(base, learning.fold(base, [before, learning.train(2, 0, placed("model", base))]))
    after = learning.train(1, 1, placed("model", start) | {REMEMBERED: before[MEMORY]})
    total = learning.fold(start, [after, learning.train(2, 1, placed("model", start))])
    return {MEMORY: after[MEMORY]}, learning.add(start, total)["v"]


def test_a_wave_that_was_read_from_the_store_lets_go_of_everything_behind_it(open_bench: OpenBench) -> None:
    first = open_bench(kind=Waving)
    memory, model = round_with_memories(first)
    expected = first.value(first.evaluate(model)), first.value(memory[MEMORY]), first.value(model)
    first.store.checkpoint(first.graph.live())
    bench = open_bench(kind=Waving)
    memory, model = round_with_memories(bench)
    behind = weakref.ref(memory[MEMORY].node.inputs[REMEMBERED].node)
    assert (bench.value(bench.evaluate(model)), bench.value(memory[MEMORY]), bench.value(model)) == expected
    assert bench.computed == []
    gc.collect()
    assert behind() is None


def test_a_model_that_was_read_is_kept_when_the_rest_of_its_wave_has_to_be_computed_again(
    open_bench: OpenBench,
) -> None:
    first = open_bench(kind=Waving)
    memory, model = round_with_memories(first)
    expected = first.value(first.evaluate(model)), first.value(memory[MEMORY]), first.value(model)
    del model
    first.store.checkpoint(first.graph.live())
    bench = open_bench(kind=Waving)
    memory, model = round_with_memories(bench)
    assert bench.value(bench.evaluate(model)) == expected[0]
    read = memory[MEMORY]
    assert bench.value(read) == expected[1]
    assert bench.computed == []
    assert bench.value(model) == expected[2]
    assert memory[MEMORY].value is read.value
    assert bench.computed.count("train 1") == 2


def test_what_nobody_asks_for_any_more_dies_with_what_was_read(open_bench: OpenBench) -> None:
    def rounds(bench: Bench) -> tuple[list[weakref.ref[Node]], Handle]:
        model, nodes = bench.init(), []
        for use in range(3):
            total = bench.fold(model, contributions(bench, model, [1, 2], use))
            nodes += [weakref.ref(handle.node) for handle in [model, *total.node.inputs.values()]]
            model = bench.add(model, total)
        return nodes, model

    first = open_bench(kind=Waving)
    _, model = rounds(first)
    expected = first.value(model)
    first.store.checkpoint(first.graph.live())
    bench = open_bench(kind=Waving)
    with without_collection():
        nodes, model = rounds(bench)
        assert bench.value(model) == expected
        assert bench.computed == []
        assert [node() for node in nodes if node() is not None] == []
