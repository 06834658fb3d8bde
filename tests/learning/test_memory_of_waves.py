"""What a wave keeps alive, computed or read from the store: nothing that nobody holds."""

from __future__ import annotations

import gc
import weakref
from contextlib import contextmanager
from typing import Any

import pytest
from wave_programs import MEMORY, REMEMBERED, Expressions, OpenBench, contributions, placed
from whole_numbers import Bench, Waving

from fedsim.learning.graph import Handle, Node
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.partial_sum import TERM


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
