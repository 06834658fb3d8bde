"""Expressions: what their keys are made of, who shares them, and how long they live."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from tiers import mostly_long
from whole_numbers import EVALUATE, INIT, Bench, training

from fedsim.kernel.streams import Stream
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.operation import Operation, Slot

OpenBench = Callable[..., Bench]


MODEL, STATE = Slot("model", part="v"), Slot("state", part="v")


@dataclass(frozen=True)
class Scaling(Operation):
    """An operation of somebody's own."""

    name: ClassVar[str] = "scaling"
    rate: float
    client: int = 3


@dataclass(frozen=True)
class NewScaling(Scaling):
    """With other numbers."""

    version: ClassVar[int] = Scaling.version + 1


@dataclass(frozen=True)
class OtherScaling(Scaling):
    """By another name."""

    name: ClassVar[str] = "other"


@dataclass(frozen=True)
class Rate(Operation):
    """With a field less."""

    name: ClassVar[str] = "scaling"
    rate: float


def make(graph: Graph | None = None, **changes: Any) -> Node:
    """A node; *changes* replace its ingredients."""
    graph = graph or Graph("family")
    source = graph.node(INIT, {}, stream=Stream(1, "init")).output("v")
    ingredients: dict[str, Any] = {
        "operation": Scaling(0.1),
        "inputs": {MODEL: source, STATE: source},
        "stream": Stream(1, "batches", 3, 2),
        "family": graph.family,
        "tags": {"round": 1},
    }
    return Node(**ingredients | changes)


def other(**changes: Any) -> Handle:
    """An output of another initialisation."""
    ingredients: dict[str, Any] = {"seed": 2, "output": "v"} | changes
    stream = Stream(ingredients["seed"], "init")
    return Graph("family").node(INIT, {}, stream=stream).output(ingredients["output"])


def test_equal_expressions_have_equal_keys() -> None:
    source = other(seed=1)
    turned = make(inputs={STATE: source, MODEL: source})
    assert make().key == make().key == turned.key


def test_what_only_the_ledger_needs_is_not_in_the_key() -> None:
    assert make(tags={"round": 7, "client": 3, "protocol": "fedprox"}).key == make().key


@pytest.mark.parametrize(
    "change",
    [
        {"operation": OtherScaling(0.1)},
        {"operation": NewScaling(0.1)},
        {"operation": Scaling(0.1, client=4)},
        {"operation": Scaling(math.nextafter(0.1, 1))},
        {"operation": Rate(0.1)},
        {"inputs": {MODEL: other(), STATE: other(seed=1)}},
        {"inputs": {MODEL: other(seed=1), STATE: other(seed=1, output="w")}},
        {"inputs": {Slot("model", part="w"): other(seed=1), STATE: other(seed=1)}},
        {"inputs": {Slot("model", 1, "v"): other(seed=1), STATE: other(seed=1)}},
        {"inputs": {Slot("base", part="v"): other(seed=1), STATE: other(seed=1)}},
        {"inputs": {MODEL: other(seed=1)}},
        {"stream": Stream(2, "batches", 3, 2)},
        {"stream": Stream(1, "others", 3, 2)},
        {"stream": Stream(1, "batches", 4, 2)},
        {"stream": Stream(1, "batches", 3, 3)},
        {"stream": None},
        {"family": "another family"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_ingredient_changes_the_key(change: dict[str, Any]) -> None:
    assert make(**change).key != make().key


@pytest.mark.parametrize(
    "change",
    [
        {"model": "another"},
        {"objective": Proximal(mu=0.0)},
        {"seen": replace(training(3).seen, data="other")},
        {"seen": replace(training(3).seen, samples=2)},
        {"training": training(3).training.model_copy(update={"epochs": 2})},
        {"rows": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_field_of_a_training_changes_the_key(change: dict[str, Any]) -> None:
    changed = replace(training(3), **change)
    assert len({make(operation=operation).key for operation in (training(3), training(4), changed)}) == 3
    assert make(operation=replace(training(3), objective=Plain())).key == make(operation=training(3)).key
    assert make(operation=replace(EVALUATE, on="clients")).key != make(operation=EVALUATE).key


def test_an_equal_expression_under_another_family_is_another_node_with_other_descendants() -> None:
    keys = []
    for family in ("one", "another"):
        graph = Graph(family)
        first = graph.node(INIT, {}, stream=Stream(1, "init"))
        keys.append((first.key, graph.node(training(1), {MODEL: first.output("v")}).key))
    assert not set(keys[0]) & set(keys[1])


def test_equal_expressions_are_one_node(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    first, second = bench.train(model, 1), bench.train(bench.init(), 1)
    assert first is second
    bench.value(first)
    assert bench.computed == ["init", "train 1"]


def test_an_output_is_one_handle_for_everybody_who_holds_it(open_bench: OpenBench) -> None:
    node = open_bench().init().node
    held = node.output("v")
    assert node.output("v") is held
    assert node.output("w") is not held


def test_a_pending_handle_holds_all_that_it_was_made_from_and_a_computed_one_forgets(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    contributions = [bench.train(model, client) for client in range(3)]
    behind = [weakref.ref(handle.node) for handle in (model, *contributions)]
    total = bench.fold(model, contributions)
    del model, contributions
    assert all(reference() is not None for reference in behind)

    bench.value(total)
    bench.executor.computed.clear()
    assert [reference() for reference in behind] == [None] * 4
    assert total.node.inputs == {}


def test_a_value_dies_with_its_last_handle(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    bench.value(model)
    value = weakref.ref(model.value)
    consumer = bench.train(model, 1)
    gc.disable()  # counting references must be enough
    try:
        del model
        assert value() is not None, "a pending consumer will ask for it"
        bench.value(consumer)
        bench.executor.computed.clear()
        assert value() is None
    finally:
        gc.enable()


def test_a_value_that_was_found_on_disk_forgets_what_it_was_made_from(open_bench: OpenBench) -> None:
    open_bench().rounds(1, 3)
    bench = open_bench()
    model = bench.init()
    total = bench.fold(model, [bench.train(model, client) for client in range(3)])
    final = bench.add(model, total)
    evaluated = bench.evaluate(final)
    behind = [weakref.ref(handle.node) for handle in (model, total)]
    del model, total
    for handle in (evaluated, final):
        bench.value(handle)
    gc.collect()  # what was planned and never computed is a cycle
    assert bench.computed == []
    assert [reference() for reference in behind] == [None, None]


def test_only_what_somebody_holds_is_live(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    trained = bench.train(model, 1)
    bench.train(model, 2)
    assert set(bench.graph.live()) == {model, trained}
    del trained
    assert set(bench.graph.live()) == {model}


@pytest.mark.parametrize("depth", mostly_long([10_000, 100_000], now=[10_000]))
@pytest.mark.parametrize("forced", [True, False])
def test_a_graph_may_be_any_depth(open_bench: OpenBench, forced: bool, depth: int) -> None:
    """Ten times what Python's recursion reaches, and a hundred times."""
    bench = open_bench(checkpoint_every=2 * depth // 5)
    model = bench.init()
    for use in range(depth):
        model = bench.train(model, 0, use)
    if forced:
        bench.value(model)
        assert len(bench.executor.computed) == depth + 1
        assert sum(row["event"] == "checkpoint" for row in bench.rows()) == 2
    last = weakref.ref(model.node)
    bench.executor.computed.clear()
    del model
    gc.collect()
    assert last() is None
    assert list(bench.graph.live()) == []
