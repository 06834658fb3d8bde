"""What is computed together: a few local trainings, and the weighted sums that take their models.

A wave is what a trainer gets, in this process or in another: plain data, no node, no handle and no tensor. The tensors
that come from outside of the wave are listed beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from fedsim.kernel.streams import Stream
from fedsim.learning.graph import Node
from fedsim.learning.operations.extract import Extract
from fedsim.learning.operations.operation import Inputs, Slot, Value
from fedsim.learning.operations.partial_sum import PartialSum
from fedsim.learning.operations.train import Train

__all__ = ["Change", "Extraction", "Made", "Source", "Training", "Wave", "WeightedSum", "detached"]


@dataclass(frozen=True, slots=True)
class Made:
    """An output of an earlier training of the same wave."""

    training: int
    output: str


Source = int | Made
"""Where an input comes from: a position in the list of given values, or an earlier training."""


class Change(NamedTuple):
    """That a part of a model is handed over as ``weight (part - base)``, which is all that a sum needs of it."""

    weight: float
    base: int | None
    """Position in the list of given values; None: zero."""


@dataclass(frozen=True, slots=True)
class Training:
    """One local training."""

    about: Train
    stream: Stream
    inputs: Mapping[Slot, Source]
    wanted: tuple[str, ...]
    """The outputs that somebody outside of the wave holds."""

    @property
    def sources(self) -> Inputs[Source]:
        """Its inputs by role."""
        return Inputs(self.inputs)

    @property
    def rows(self) -> list[Source]:
        """The rows of semantics that it trains on, in their order; none when it trains on samples."""
        return self.sources.each("rows")

    @property
    def goes_on(self) -> bool:
        """Whether it is in the chain of the training before it."""
        return any(isinstance(source, Made) for source in self.inputs.values())


@dataclass(frozen=True, slots=True)
class Extraction:
    """One client's samples on their way through a frozen extractor."""

    about: Extract
    stream: Stream
    remembered: Value | None
    """Rows whose raw samples they are; None: samples of the data set."""


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """``sum of weight_i (model_i - base)`` over some of the wave's trainings, in their order."""

    weights: tuple[float, ...]
    parts: tuple[str, ...]
    base: Mapping[str, int]
    """Part -> position in the list of given values; empty: zero."""
    trainings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wave:
    """A `Chunk` of the graph that trains, as a trainer gets it: without nodes and handles.

    Trainings are in an order in which they can be computed, chain by chain; each sum is of the chains' last models. All
    models are of one table.
    """

    trainings: tuple[Training, ...]
    sums: tuple[WeightedSum, ...] = ()
    """As a rule, one: others are of other parts of the models, or have other weights."""

    @property
    def chains(self) -> list[range]:
        """The numbers of the trainings of each chain."""
        starts = [number for number, training in enumerate(self.trainings) if not training.goes_on]
        return [range(first, end) for first, end in pairwise([*starts, len(self.trainings)])]


def detached(nodes: Sequence[Node]) -> tuple[Wave, list[Value]]:
    """The wave of *nodes* (trainings, then partial sums) and the values from outside.

    The nodes let go of each other's outputs. What is still held of a training then is held by somebody else: it is
    wanted. The nodes' other inputs have their values.
    """
    values: list[Value] = []
    positions: dict[int, int] = {}
    trainings = {node: number for number, node in enumerate(nodes) if isinstance(node.operation, Train)}
    sources = [_take_inputs(node, trainings, values, positions) for node in nodes]
    made: list[Training] = []
    sums: list[WeightedSum] = []
    for node, inputs in zip(nodes, sources, strict=True):  # only now is held what somebody else wants
        if isinstance(node.operation, Train):
            assert node.stream is not None
            made.append(Training(node.operation, node.stream, inputs, _held(node)))
        else:
            assert isinstance(node.operation, PartialSum)
            sums.append(_weighted_sum(node.operation.weights, inputs))
    return Wave(tuple(made), tuple(sums)), values


def _take_inputs(
    node: Node, trainings: Mapping[Node, int], values: list[Value], positions: dict[int, int]
) -> dict[Slot, Source]:
    inputs: dict[Slot, Source] = {}
    for slot, handle in list(node.inputs.items()):
        training = trainings.get(handle.node)
        if training is not None:
            inputs[slot] = Made(training, handle.output)
            del node.inputs[slot]
        else:
            value = handle.value
            inputs[slot] = position = positions.setdefault(id(value), len(values))
            if position == len(values):
                values.append(value)
    return inputs


def _held(node: Node) -> tuple[str, ...]:
    return tuple(sorted(handle.output for handle in node.held_outputs()))


def _weighted_sum(weights: tuple[float, ...], inputs: Mapping[Slot, Source]) -> WeightedSum:
    base = {slot.part: source for slot, source in inputs.items() if slot.role == "base" and isinstance(source, int)}
    terms = {slot.number: source.training for slot, source in inputs.items() if isinstance(source, Made)}
    parts = tuple(dict.fromkeys(slot.part for slot, source in inputs.items() if isinstance(source, Made)))
    return WeightedSum(weights, parts, base, tuple(terms[number] for number in range(len(weights))))
