"""Random waves of local trainings, and how far an executor's numbers are from those of a reference in float64.

A wave is drawn from a seed and described without an executor; each executor computes it from nodes of its own, so that
its plan and its way of detaching a wave are compared too. The reference is the plain loop on PyTorch's own modules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from nodes import slots, training_of
from pushed import way_so_far
from torch import nn

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.kernels.processor import has_bfloat16
from fedsim.learning.objectives.objective import Given, Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.partial_sum import PartialSum
from fedsim.models.parted import PartedModule
from fedsim.models.table import LayerTable
from fedsim.models.torch_layers import LstmModule
from fedsim.models.torch_module import build, initial_parameters

CLIENTS, MOST_SAMPLES, CLASSES = 12, 23, 10
KINK = 2.0**-21
"""How near a rectifier's input is to zero, relative to those beside it, if rounding in float32 may change its sign."""

Tensors = dict[str, torch.Tensor]


# -- objectives of these tests -------------------------------------------------------------------------------------


class Drifting(Objective):
    """A client is pushed on the way that it has gone so far, which it remembers."""

    name: Literal["drifting"] = "drifting"
    remembers: ClassVar[tuple[str, ...]] = ("way",)
    reads_start: ClassVar[bool] = True
    strength: float

    def add_gradient(self, gradients: Any, weights: Any, given: Given) -> None:
        for name, gradient in gradients.items() if given.state else ():
            gradient.sub_(self.strength * given.state["way"][name])

    def remember(self, weights: Any, given: Given) -> dict[str, Tensors]:
        return way_so_far(weights, given)


class Bounded(Objective):
    """Weights are drawn to zero by a force that no weight exceeds: ``pull tanh(w)``."""

    name: Literal["bounded"] = "bounded"
    strength: float

    def add_gradient(self, gradients: Any, weights: Any, given: Given) -> None:
        for name, gradient in gradients.items():
            gradient.add_(weights[name].tanh(), alpha=self.strength)


# -- the reference -------------------------------------------------------------------------------------------------


class OwnModules(PlainTrainer):
    """The plain loop on PyTorch's own modules in any precision; in float32 images have channels last, as is fastest."""

    def _built(self) -> PartedModule:
        module = build(self.table).to(self.torch_device, self.dtype)
        for layer in module.modules():
            if isinstance(layer, torch.nn.Conv2d) and self.dtype == torch.float32:
                layer.to(memory_format=torch.channels_last)
            elif isinstance(layer, LstmModule):
                layer.rounds = has_bfloat16()  # or oneDNN would refuse it
        return module


class Reference(Serial):
    """What executors are held against."""

    trainer = OwnModules


# -- drawing waves -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A model, and clients with a few random samples each."""

    table: LayerTable
    dataset: FederatedDataset
    bases: tuple[dict[str, Tensors], ...]
    """Two models to start from, in float32."""


def world(table: LayerTable, *, seed: int, samples: Sequence[int] | None = None, regression: bool = False) -> World:
    """Ragged clients, or clients with so many *samples* each."""
    rng = np.random.default_rng([seed, 1])
    sizes = rng.integers(1, MOST_SAMPLES + 1, size=CLIENTS) if samples is None else np.array(samples)
    ids = np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])
    total = int(sizes.sum()) + 1
    y = rng.standard_normal(total).astype(np.float32) if regression else rng.integers(CLASSES, size=total)
    dataset = FederatedDataset(
        name="random",
        classes=None if regression else CLASSES,
        sample_shape=table.input_shape,
        sample_bytes=1.0,
        client_samples=sizes.astype(np.int64),
        stored=rng.standard_normal((total, *table.input_shape)).astype(np.float32),
        y=y,
        train_ids=tuple(ids),
        test_ids=np.arange(total - 1, total),
        client_test_ids=tuple(one[:0] for one in ids),
    )
    return World(table, dataset, tuple(initial_parameters(table, np.random.default_rng([seed, n])) for n in (2, 3)))


@dataclass(frozen=True)
class Step:
    """One training of a chain."""

    client: int
    wanted: tuple[str, ...] = ()
    """Its outputs that somebody holds."""
    restarts: tuple[str, ...] = ()
    """Parts that were not handed on to it, nor to anyone before: it starts from those of the chain's own base."""
    remembers_before: bool = False
    """Whether it starts with what the training before it in the chain remembers."""
    memory: int | None = None
    """The seed of what it remembers from outside of the wave."""


@dataclass(frozen=True)
class Wave:
    """Chains of trainings, and a weighted sum of what their last ones make."""

    training: Mapping[str, Any]
    objective: Objective
    chains: tuple[tuple[Step, ...], ...]
    bases: tuple[int, ...]
    """Which model each chain starts from."""
    weights: tuple[float, ...]


def random_wave(
    world: World,
    *,
    seed: int,
    most_clients: int = 8,
    most_epochs: int = 3,
    chained: bool = True,
    objective: Objective | None = None,
) -> Wave:
    """A wave of 1 to *most_clients* chains of 1 to 3 trainings, by one recipe; the objective too is drawn, or given.

    Step sizes are for a loss that falls: with steps that throw weights about, rounding errors grow without bound, in
    every executor.
    """
    rng = np.random.default_rng([seed, 4])
    momentum = float(rng.choice([0.0, 0.0, 0.5, 0.9]))
    steepness = 10 if world.dataset.regression else 1  # squared errors are steeper than cross-entropy
    training = {
        "learning_rate": float(10 ** rng.uniform(-2, -1)) * (1 - momentum) / steepness,
        "batch_size": int(rng.integers(1, 11)),
        "epochs": int(rng.integers(1, most_epochs + 1)),
        "momentum": momentum,
        "weight_decay": float(rng.choice([0.0, 0.0, 0.01, 0.1])),
    }
    proximal = Proximal(mu=float(rng.uniform(0.1, 1)))
    drawn = [Plain(), Plain(), proximal, Drifting(strength=0.5), Bounded(strength=0.1)][rng.integers(5)]
    objective = drawn if objective is None else objective
    number = int(rng.integers(1, most_clients + 1))
    lengths = _lengths(rng, number) if chained else [1] * number
    mixed = rng.random() < 0.3
    chains = tuple(_chain(rng, world, objective, length) for length in lengths)
    bases = tuple(int(mixed and rng.random() < 0.5) for _ in chains)
    shares = rng.uniform(0.5, 2, size=number)
    return Wave(training, objective, chains, bases, tuple((shares / shares.sum()).tolist()))


def _lengths(rng: np.random.Generator, chains: int) -> list[int]:
    kind = rng.random()
    if kind < 0.6:
        return [1] * chains
    return [int(rng.integers(2, 4))] * chains if kind < 0.75 else rng.integers(1, 4, size=chains).tolist()


def _chain(rng: np.random.Generator, world: World, objective: Objective, length: int) -> tuple[Step, ...]:
    chain: list[Step] = []
    for _ in range(length):
        again = bool(chain) and rng.random() < 0.3
        client = chain[-1].client if again else int(rng.integers(world.dataset.clients))
        remembers = bool(objective.remembers)
        memory = int(rng.integers(2**31)) if remembers and not again and rng.random() < 0.5 else None
        outputs = (*world.table.parts, *(f"state.{name}" for name in objective.remembers))
        wanted = outputs if rng.random() < 0.7 else tuple(name for name in outputs if rng.random() < 0.5)
        never_handed_on = () if not chain else world.table.parts if len(chain) == 1 else chain[-1].restarts
        restarts = tuple(name for name in never_handed_on if rng.random() < 0.2)
        restarts = restarts if len(restarts) < len(world.table.parts) else ()
        chain.append(Step(client, wanted, restarts, remembers and again, memory))
    return tuple(chain)


# -- computing them ------------------------------------------------------------------------------------------------


def outcome(executor: TorchExecutor, world: World, wave: Wave) -> dict[str, Tensors]:
    """What *executor* makes of *wave*, in float64: changes from where chains start, what is remembered, and the sum."""
    dtype = torch.float64 if "float64" in executor.family else torch.float32
    graph = Graph(executor.family)
    starts = [_given(graph, number, base, dtype) for number, base in enumerate(world.bases)]
    kept: dict[str, Handle] = {}
    ends, nodes = [], []
    for place, (chain, base) in enumerate(zip(wave.chains, wave.bases, strict=True)):
        inputs = slots(model=starts[base])
        for link, step in enumerate(chain):
            if step.memory is not None:
                inputs |= slots(state=_given(graph, step.memory, {"way": _way(world, step.memory)}, dtype))
            node = _train(graph, world, wave, step, inputs, use=10 * place + link)
            nodes.append(node)
            kept |= {f"{place}.{link}.{name}": node.output(name) for name in step.wanted}
            after = chain[link + 1] if link + 1 < len(chain) else None
            inputs = slots(model={part: node.output(part) for part in world.table.parts})
            if after is not None:
                inputs |= slots(model={part: starts[base][part] for part in after.restarts})
                inputs |= slots(state={"way": node.output("state.way")}) if after.remembers_before else {}
        ends.append({part: node.output(part) for part in world.table.parts})
    total = _sum(graph, starts[0], ends, wave.weights)
    sums = {part: total.output(part) for part in world.table.parts}
    del ends, inputs, node  # now only the wave itself holds what nobody wants
    (chunk,) = executor.chunks([*nodes, total])
    for made, outputs in zip(chunk, executor.compute(chunk), strict=True):
        made.finish(outputs)
    changes = {
        name: _change(handle.value, world.bases[wave.bases[int(name.split(".")[0])]].get(handle.output))
        for name, handle in kept.items()
    }
    return changes | {f"sum.{part}": _change(handle.value, None) for part, handle in sums.items()}


def _given(graph: Graph, number: int, parts: Mapping[str, Tensors], dtype: torch.dtype) -> dict[str, Handle]:
    """Outputs of a node that was computed: the same numbers in any precision."""
    node = graph.node(Init("model"), {}, stream=Stream(1, "given", 0, number))
    handles = {part: node.output(part) for part in parts}
    for part, handle in handles.items():
        handle.value = {name: tensor.to(dtype) for name, tensor in parts[part].items()}
    return handles


def _way(world: World, seed: int) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    return {
        f"{part}.{name}": 0.01 * torch.randn(shape, generator=generator)
        for part in world.table.parts
        for name, shape in world.table.parameter_shapes(part).items()
    }


def _train(graph: Graph, world: World, wave: Wave, step: Step, inputs: Mapping[Slot, Handle], *, use: int) -> Node:
    operation = training_of(world.dataset, step.client, wave.training, wave.objective, model=world.table.digest)
    return graph.node(operation, dict(inputs), stream=Stream(1, "batches", step.client, use))


def _sum(
    graph: Graph, base: Mapping[str, Handle], ends: Sequence[Mapping[str, Handle]], weights: Sequence[float]
) -> Node:
    return graph.node(PartialSum(tuple(weights)), slots(base=base, term=list(ends)))


def _change(value: Tensors, base: Tensors | None) -> Tensors:
    return {name: tensor.double() - (0 if base is None else base[name].double()) for name, tensor in value.items()}


# -- comparing them ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Against the reference in float64, relative to the norm of what should have come out."""

    clients: float | None
    """Of all wanted outputs of the wave's trainings together; None when nothing was wanted."""
    total: float
    """Of the sum."""
    at_kink: bool = False
    """Whether rounding alone may turn a rectifier on or off, so that one such error says nothing about an executor."""


def errors(found: Mapping[str, Tensors], true: Mapping[str, Tensors]) -> Errors:
    """Of *found*, when it should be *true*."""
    assert found.keys() == true.keys()
    totals = [name for name in true if name.startswith("sum.")]
    others = [name for name in true if name not in totals]
    return Errors(_error(found, true, others) if others else None, _error(found, true, totals))


def _error(found: Mapping[str, Tensors], true: Mapping[str, Tensors], names: Sequence[str]) -> float:
    """The root of the mean of the squares of all outputs' relative errors."""
    squares = [_norm(_minus(found[name], true[name])) ** 2 / _norm(true[name]) ** 2 for name in names]
    return math.sqrt(sum(squares) / len(squares))


def _minus(left: Tensors, right: Tensors) -> Tensors:
    assert left.keys() == right.keys()
    return {name: left[name] - right[name] for name in left}


def _norm(tensors: Tensors) -> float:
    norm = math.sqrt(sum(float(tensor.square().sum()) for tensor in tensors.values()))
    assert math.isfinite(norm), "training diverged, and says nothing about rounding"
    return norm


def worst_tensor(found: Mapping[str, Tensors], true: Mapping[str, Tensors]) -> float:
    """The largest relative error of a single tensor."""
    assert found.keys() == true.keys()
    return max(
        _norm({name: found[output][name] - tensor}) / max(_norm({name: tensor}), 1e-12)
        for output, tensors in true.items()
        for name, tensor in tensors.items()
    )


class Comparison:
    """An executor against the reference in float32, and both against it in float64."""

    def __init__(self, executor: type[TorchExecutor], world: World) -> None:
        self._world = world
        self._executor = executor(world.table, world.dataset)
        self._plain = Reference(world.table, world.dataset)
        self._true = Reference(world.table, world.dataset, precision="float64")

    def ratios(self, wave: Wave) -> Errors:
        """The executor's errors over those of the reference in float32."""
        with kinks_seen() as distances:
            true = outcome(self._true, self._world, wave)
        ours, plains = (
            errors(outcome(executor, self._world, wave), true) for executor in (self._executor, self._plain)
        )
        clients = None if ours.clients is None or plains.clients is None else _ratio(ours.clients, plains.clients)
        return Errors(clients, _ratio(ours.total, plains.total), min(distances, default=math.inf) < KINK)


@contextmanager
def kinks_seen() -> Iterator[list[float]]:
    """How near each rectifier meanwhile comes to the kink of its function, relative to the root mean square it takes.

    There its gradient jumps, and with it the update of a client.
    """
    distances: list[float] = []

    def see(module: nn.Module, given: tuple[torch.Tensor, ...], made: object) -> None:
        if isinstance(module, nn.ReLU):
            x = given[0].detach()
            distances.append(float(x.abs().min() / x.square().mean().sqrt()))

    hook = nn.modules.module.register_module_forward_hook(see)
    try:
        yield distances
    finally:
        hook.remove()


def _ratio(ours: float, plains: float) -> float:
    """1 where both are right to the last bit."""
    return 1.0 if ours == plains else ours / plains if plains else math.inf


def disagreement(executor: type[TorchExecutor], world: World, wave: Wave) -> float:
    """Between *executor* and the reference, both in float64: the largest of any tensor, relative to its change."""
    found, true = (
        outcome(kind(world.table, world.dataset, precision="float64"), world, wave) for kind in (executor, Reference)
    )
    return worst_tensor(found, true)
