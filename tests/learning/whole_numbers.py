"""An executor on whole numbers, to test the graph with: exact, quick, and sensitive to the order of everything.

A bench is a graph, a forcer and a store that belong together, and short ways to write expressions. Benches on one
folder are a run and those that go on with it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from safetensors.numpy import load, save

from fedsim.kernel.streams import Stream
from fedsim.learning.executors.executor import Executor, Fold
from fedsim.learning.executors.wave import Made, Wave, detached
from fedsim.learning.executors.waves import waves
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.store import Store


class Killed(Exception):
    """The process would have died here."""


class Part(dict[str, int]):
    """A value; unlike a plain dict it can be referred to weakly, so a test sees when it dies."""


def mixed(*content: Any) -> int:
    """A whole number that depends on everything in *content*, and on its order."""
    return int(hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12], 16)


def made(operation: str, parameters: Mapping[str, Any], use: str | None, inputs: Mapping[str, int], output: str) -> int:
    """The arithmetic of every operation but folds, written once for the executor and for direct evaluation."""
    return mixed(operation, sorted(parameters.items()), use, sorted(inputs.items()), output)


def folded(base: int, contributions: Sequence[int], weights: Sequence[int]) -> int:
    """The arithmetic of a fold: a weighted sum in which the order counts."""
    total = base
    for contribution, weight in zip(contributions, weights, strict=True):
        total = (31 * total + weight * contribution) % (2**48)
    return total


def weights_of(contributions: int) -> list[int]:
    """A weight of its own for each contribution of a fold."""
    return list(range(1, contributions + 1))


class WholeNumbers(Executor):
    """Computes in chunks of *group* trainings of one generation; the *composition* of a chunk may enter its numbers."""

    torch_devices: ClassVar[tuple[str, ...]] = ("cpu",)
    family = "whole numbers"

    def __init__(self, *, group: int = 1, composition: bool = False, kill_at: float = math.inf) -> None:
        self.group = group
        self.composition = composition
        self.kill_at = kill_at
        """Die at so many steps: a node of a chunk is one, a contribution to a fold, and the end of a fold."""
        self.steps = 0
        self.computed: list[Node] = []
        self.open_folds = 0
        self.alive: list[int] = []
        """At each step, how many values of trainings were alive."""
        self._trained: list[weakref.ref[Part]] = []

    @classmethod
    def numeric_family(cls, torch_device: str) -> str:
        return cls.family

    def chunks(self, nodes: Sequence[Node]) -> list[list[Node]]:
        generation: dict[Node, int] = {}
        for node in nodes:
            earlier = [generation[handle.node] for handle in node.inputs.values() if handle.node in generation]
            generation[node] = max(earlier, default=-1) + 1
        waiting: dict[int, list[list[Node]]] = {}
        for node in nodes:
            row = waiting.setdefault(generation[node], [])
            mates = [chunk for chunk in row if chunk[0].operation == node.operation and len(chunk) < self.group]
            if node.operation.name == "train" and mates:
                mates[-1].append(node)
            else:
                row.append([node])
        if self.group == 1:
            return [[node] for node in nodes]
        return [chunk for number in sorted(waiting) for chunk in waiting[number]]

    def step(self) -> None:
        self._trained = [value for value in self._trained if value() is not None]
        self.alive.append(len(self._trained))
        self.steps += 1
        if self.steps >= self.kill_at:
            raise Killed

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Part]]:
        return [self._outputs(node, [mate.key for mate in chunk]) for node in chunk]

    def _outputs(self, node: Node, chunk: list[str]) -> dict[str, Part]:
        self.step()
        self.computed.append(node)
        inputs = {name: handle.value["v"] for name, handle in node.inputs.items()}
        use = node.stream.text if node.stream else None
        parameters = dict(node.parameters) | ({"chunk": chunk} if self.composition else {})
        name = node.operation.name
        held = [handle.output for handle in node.held_outputs()]
        outputs = {output: Part(v=made(name, parameters, use, inputs, output)) for output in held}
        if name == "train":
            self._trained += [weakref.ref(value) for value in outputs.values()]
        return outputs

    def fold(self, node: Node) -> Fold:
        self.open_folds += 1
        return _Folding(self, node)

    def dump(self, value: Part) -> bytes:
        content: bytes = save({name: np.array([number], np.int64) for name, number in value.items()})
        return content

    def load(self, content: bytes, handle: Handle) -> Part:
        return Part({name: int(tensor[0]) for name, tensor in load(content).items()})


class _Folding(Fold):
    def __init__(self, executor: WholeNumbers, node: Node) -> None:
        self._executor = executor
        self._node = node
        bases = {name.removeprefix("base."): handle for name, handle in node.inputs.items() if name.startswith("base.")}
        self._base = {part: handle.value["v"] for part, handle in bases.items()}
        self._taken: list[dict[str, int]] = []

    def add(self, value: Mapping[str, Part]) -> None:
        self._executor.step()
        self._taken.append({part: value[part]["v"] for part in self._base})

    def result(self) -> dict[str, Part]:
        self._executor.step()
        self._executor.open_folds -= 1
        self._executor.computed.append(self._node)
        weights = self._node.parameters["weights"]
        return {
            part: Part(v=folded(base, [taken[part] for taken in self._taken], weights))
            for part, base in self._base.items()
        }


class Waving(WholeNumbers):
    """Computes waves as trainers do: from plain data, what is wanted and no more. Begins some chunks ahead."""

    def __init__(self, *, lookahead: int = 0, kill_at: float = math.inf) -> None:
        super().__init__(kill_at=kill_at)
        self.lookahead = lookahead
        self._begun: dict[Node, tuple[Wave, list[Part]]] = {}

    def chunks(self, nodes: Sequence[Node]) -> list[Sequence[Node]]:
        return waves(nodes)

    def begin(self, chunk: Sequence[Node]) -> None:
        if chunk[0].operation.name == "train" and chunk[0] not in self._begun:
            self._begun[chunk[0]] = detached(chunk)

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Part]]:
        if chunk[0].operation.name != "train":
            return super().compute(chunk)
        self.begin(chunk)
        outputs = self._trained_together(*self._begun.pop(chunk[0]))
        self.computed += chunk
        return outputs

    def _trained_together(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        trained: list[Callable[[str], int]] = []  # each says what it made under a name
        outputs: list[dict[str, Part]] = []
        for training in wave.trainings:
            self.step()
            inputs = {
                name: trained[source.training](source.output) if isinstance(source, Made) else values[source]["v"]
                for name, source in training.inputs.items()
            }
            trained.append(partial(made, "train", training.parameters, training.stream.text, inputs))
            outputs.append({name: Part(v=trained[-1](name)) for name in training.wanted})
            self._trained += [weakref.ref(value) for value in outputs[-1].values()]
        if wave.sum is None:
            return outputs
        weights, base, last = wave.sum.weights, wave.sum.base, wave.sum.trainings
        total = {
            part: Part(v=folded(values[at]["v"], [trained[number](part) for number in last], weights))
            for part, at in base.items()
        }
        return [*outputs, total]

    def forget(self) -> None:
        self._begun.clear()


class Bench:
    """A graph, a forcer and a store that belong together."""

    def __init__(
        self,
        folder: Path,
        *,
        run: str = "run",
        label: str = "protocol/1",
        checkpoint_every: float = math.inf,
        kind: type[WholeNumbers] = WholeNumbers,
        tell: Callable[[str], None] = print,
        **executor: Any,
    ) -> None:
        self.executor = kind(**executor)
        self.graph = Graph(self.executor.family)
        self.store = Store(folder, run, self.executor, label=label, tell=tell)
        ticks = itertools.count()
        self.forcer = Forcer(
            self.graph,
            self.executor,
            self.store,
            checkpoint_interval_s=checkpoint_every,
            monotonic=lambda: float(next(ticks)),  # a "second" for each look at the clock: one a chunk
        )

    @property
    def computed(self) -> list[str]:
        """What was computed, in order: the operation, and the client if there is one."""
        return [f"{node.operation.name} {node.parameters.get('client', '')}".strip() for node in self.executor.computed]

    def init(self, use: int = 0) -> Handle:
        return self.graph.node("init", {}, {}, stream=Stream(1, "init", 0, use)).output("v")

    def train(self, model: Handle, client: int, use: int = 0) -> Handle:
        stream = Stream(1, "batches", client, use)
        return self.graph.node("train", {"client": client}, {"model.v": model}, stream=stream).output("v")

    def fold(self, base: Handle, contributions: Sequence[Handle]) -> Handle:
        inputs = {f"{number}.v": handle for number, handle in enumerate(contributions)}
        weights = weights_of(len(contributions))
        return self.graph.node("partial_sum", {"weights": weights}, {"base.v": base, **inputs}).output("v")

    def mean(self, base: Handle, total: Handle) -> Handle:
        return self.graph.node("mean", {}, {"base.v": base, "total.v": total}).output("v")

    def evaluate(self, model: Handle) -> Handle:
        return self.graph.node("evaluate", {}, {"model.v": model}).output("metrics")

    def value(self, handle: Handle) -> int:
        """Force it."""
        self.forcer.force(handle)
        number: int = handle.value["v"]
        return number

    def rounds(self, number: int, clients: int, *, start: int = 0) -> list[int]:
        """A small protocol: each round trains some clients, folds them and evaluates; returns the metrics."""
        model, metrics = self.init(start), []
        for use in range(number):
            total = self.fold(model, [self.train(model, client, use) for client in range(clients)])
            model = self.mean(model, total)
            del total
            metrics.append(self.value(self.evaluate(model)))
        self.forcer.force(model)
        self.store.keep_final({"v": model})
        return [*metrics, model.value["v"]]

    def rows(self) -> list[dict[str, Any]]:
        """The ledger so far."""
        return [
            json.loads(line)
            for path in sorted((self.store.folder / "ledger").glob("*.jsonl"))
            for line in path.read_text("utf-8").splitlines()
        ]


def tensors(folder: Path) -> set[str]:
    """The names of all tensors on disk."""
    return {path.stem for path in (folder / "tensors").iterdir()}


def computed(bench: Bench, uses: int) -> Handle:
    """A model trained so many times in a row."""
    model = bench.init()
    for use in range(uses):
        model = bench.train(model, 0, use)
    bench.value(model)
    return model
