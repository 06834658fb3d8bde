"""Programs of trainings and sums, played on a graph of whole numbers whose executor computes waves, and directly.

Models have two parts, ``v`` and ``w``; a training also yields what its client remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypothesis import strategies as st
from whole_numbers import ADD, INIT, Bench, folded, made, training, weights_of

from fedsim.kernel.streams import Stream
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


def contributions(bench: Bench, base: Handle, clients: Sequence[int], use: int = 0) -> list[Handle]:
    return [bench.train(base, client, use) for client in clients]
