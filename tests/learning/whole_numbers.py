"""An executor on whole numbers, to test the graph with: exact, quick, and sensitive to the order of everything.

A bench is a graph, a forcer and a store that belong together, and short ways to write expressions. Benches on one
folder are a run and those that go on with it.
"""

from __future__ import annotations

import hashlib
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
from fedsim.learning.batches import Seen
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.executors.executor import Executor, Fold
from fedsim.learning.executors.wave import Made, Wave, detached
from fedsim.learning.executors.waves import waves
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.keyed import described
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.evaluate import METRICS, Evaluate
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Operation, Slot
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.operations.train import Train
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings

INIT, ADD, EVALUATE = Init("model"), Add(), Evaluate("model", "data", "global")
TRAINING = TrainingSettings(learning_rate=0.1, batch_size=1)


class Killed(Exception):
    """The process would have died here."""


class Part(dict[str, int]):
    """A value; unlike a plain dict it can be referred to weakly, so a test sees when it dies."""


def mixed(*content: Any) -> int:
    """A whole number that depends on everything in *content*, and on its order."""
    return int(hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12], 16)


def training(client: int) -> Train:
    """A training of the client's."""
    return Train("model", TRAINING, Plain(), Float32(), Seen("data", client, 1))


def made(
    operation: Operation, use: str | None, inputs: Mapping[Slot, int], output: str, chunk: Sequence[str] = ()
) -> int:
    """The arithmetic of every operation but folds, written once for the executor and for direct evaluation."""
    given = sorted((slot.text, number) for slot, number in inputs.items())
    return mixed(described(operation), list(chunk), use, given, output)


def folded(base: int, contributions: Sequence[int], weights: Sequence[float]) -> int:
    """The arithmetic of a fold: a weighted sum in which the order counts."""
    total = base
    for contribution, weight in zip(contributions, weights, strict=True):
        total = (31 * total + int(weight) * contribution) % (2**48)
    return total


def weights_of(contributions: int) -> tuple[int, ...]:
    """A weight of its own for each contribution of a fold."""
    return tuple(range(1, contributions + 1))


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
            mates = [chunk for chunk in row if isinstance(chunk[0].operation, Train) and len(chunk) < self.group]
            if isinstance(node.operation, Train) and mates:
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

    def _outputs(self, node: Node, chunk: Sequence[str]) -> dict[str, Part]:
        self.step()
        self.computed.append(node)
        inputs = {slot: handle.value["v"] for slot, handle in node.inputs.items()}
        use = node.stream.text if node.stream else None
        held = [handle.output for handle in node.held_outputs()]
        mates = chunk if self.composition else ()
        outputs = {output: Part(v=made(node.operation, use, inputs, output, mates)) for output in held}
        if isinstance(node.operation, Train):
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
        self._base = {part: handle.value["v"] for part, handle in node.sources.model("base").items()}
        self._taken: list[dict[str, int]] = []

    def add(self, value: Mapping[str, Part]) -> None:
        self._executor.step()
        self._taken.append({part: value[part]["v"] for part in self._base})

    def result(self) -> dict[str, Part]:
        self._executor.step()
        self._executor.open_folds -= 1
        self._executor.computed.append(self._node)
        assert isinstance(self._node.operation, PartialSum)
        weights = self._node.operation.weights
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
        if isinstance(chunk[0].operation, Train) and chunk[0] not in self._begun:
            self._begun[chunk[0]] = detached(chunk)

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Part]]:
        if not isinstance(chunk[0].operation, Train):
            return super().compute(chunk)
        self.begin(chunk)
        outputs = self._trained_together(*self._begun.pop(chunk[0]))
        self.computed += chunk
        return outputs

    def _trained_together(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        trained: list[Callable[[str], int]] = []  # each says what it made under a name
        outputs: list[dict[str, Part]] = []
        for one in wave.trainings:
            self.step()
            inputs = {
                slot: trained[source.training](source.output) if isinstance(source, Made) else values[source]["v"]
                for slot, source in one.inputs.items()
            }
            trained.append(partial(made, one.about, one.stream.text, inputs))
            outputs.append({name: Part(v=trained[-1](name)) for name in one.wanted})
            self._trained += [weakref.ref(value) for value in outputs[-1].values()]
        if not wave.sums:
            return outputs
        (total,) = wave.sums
        weights, base, last = total.weights, total.base, total.trainings
        total = {
            part: Part(v=folded(values[at]["v"], [trained[number](part) for number in last], weights))
            for part, at in base.items()
        }
        return [*outputs, total]

    def forget(self) -> None:
        self._begun.clear()


class Bench:
    """A graph, a forcer and a store that belong together. Whoever has claimed what it computes lets go of it."""

    _all: ClassVar[weakref.WeakSet[Bench]] = weakref.WeakSet()

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
        self.store = Store(folder, run, self.executor, label=label, tell=tell, wait=self._others_let_go)
        self._all.add(self)
        self.waited_s = 0.0
        self.forcer = Forcer(
            self.graph,
            self.executor,
            self.store,
            checkpoint_interval_s=checkpoint_every,
            monotonic=lambda: self.waited_s + self.executor.steps,  # a second for each step
        )

    def _others_let_go(self, holder: str) -> None:
        for other in self._all:
            if other is not self:
                other.store._claim.release()

    @property
    def computed(self) -> list[str]:
        """What was computed, in order: the operation, and the client if there is one."""
        return [f"{node.operation.name} {client_of(node)}".strip() for node in self.executor.computed]

    def init(self, use: int = 0) -> Handle:
        return self.graph.node(INIT, {}, stream=Stream(1, "init", 0, use)).output("v")

    def train(self, model: Handle, client: int, use: int = 0) -> Handle:
        stream = Stream(1, "batches", client, use)
        return self.graph.node(training(client), {Slot("model", part="v"): model}, stream=stream).output("v")

    def fold(self, base: Handle, contributions: Sequence[Handle]) -> Handle:
        inputs = {Slot(TERM, number, "v"): handle for number, handle in enumerate(contributions)}
        total = PartialSum(weights_of(len(contributions)))
        return self.graph.node(total, {Slot("base", part="v"): base, **inputs}).output("v")

    def add(self, base: Handle, change: Handle) -> Handle:
        inputs = {Slot("base", part="v"): base, Slot("change", part="v"): change}
        return self.graph.node(ADD, inputs).output("v")

    def evaluate(self, model: Handle) -> Handle:
        return self.graph.node(EVALUATE, {Slot("model", part="v"): model}).output(METRICS)

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
            model = self.add(model, total)
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


def client_of(node: Node) -> int | str:
    """Whose training it is; nothing for what is none."""
    return node.operation.seen.client if isinstance(node.operation, Train) else ""


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
