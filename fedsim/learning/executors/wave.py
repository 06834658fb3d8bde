"""What is computed together: a few local trainings, and the weighted sum that takes their models.

A wave is what a trainer gets, in this process or in another: plain data, no node, no handle and no tensor. The tensors
that come from outside of the wave are listed beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedsim.kernel.streams import Stream
from fedsim.learning.graph import Node, Value

__all__ = ["Extraction", "Made", "Source", "Training", "Wave", "WeightedSum", "detached"]


@dataclass(frozen=True, slots=True)
class Made:
    """An output of an earlier training of the same wave."""

    training: int
    output: str


Source = int | Made
"""Where an input comes from: a position in the list of given values, or an earlier training."""


@dataclass(frozen=True, slots=True)
class Training:
    """One local training."""

    parameters: Mapping[str, Any]
    """Those of its node: client, training options, objective, capture."""
    stream: Stream
    inputs: Mapping[str, Source]
    """``model.PART``, ``state.NAME``, ``teacher.PART``, and ``rows.NUMBER`` where it trains on rows of semantics."""
    wanted: tuple[str, ...]
    """The outputs that somebody outside of the wave holds."""

    def sources(self, group: str) -> dict[str, Source]:
        """The inputs ``group.name``, by name."""
        prefix = f"{group}."
        return {name.removeprefix(prefix): source for name, source in self.inputs.items() if name.startswith(prefix)}

    @property
    def rows(self) -> list[Source]:
        """The rows of semantics that it trains on, in their order; none when it trains on samples."""
        return list(self.sources("rows").values())


@dataclass(frozen=True, slots=True)
class Extraction:
    """One client's samples on their way through a frozen extractor."""

    parameters: Mapping[str, Any]
    """Those of its node: client, capture, whether raw samples are kept."""
    stream: Stream
    remembered: Value | None
    """Rows whose raw samples they are; None: samples of the data set."""


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """``sum of weight_i (model_i - base)`` over some of the wave's trainings, in their order."""

    weights: tuple[float, ...]
    base: Mapping[str, int]
    """Part -> position in the list of given values."""
    trainings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wave:
    """Trainings in an order in which they can be computed, chain by chain, and the sum of the chains' last models."""

    trainings: tuple[Training, ...]
    sum: WeightedSum | None


def detached(nodes: Sequence[Node]) -> tuple[Wave, list[Value]]:
    """The wave of *nodes* (trainings, then at most one partial sum) and the values from outside.

    The nodes let go of each other's outputs. What is still held of a training then is held by somebody else: it is
    wanted. The nodes' other inputs have their values.
    """
    values: list[Value] = []
    positions: dict[int, int] = {}
    trainings = {node: number for number, node in enumerate(nodes) if node.operation.name == "train"}
    sources = [_take_inputs(node, trainings, values, positions) for node in nodes]
    made = tuple(
        Training(node.parameters, _stream(node), inputs, _held(node))
        for node, inputs in zip(trainings, sources[: len(trainings)], strict=True)
    )
    if len(made) == len(nodes):
        return Wave(made, None), values
    return Wave(made, _weighted_sum(nodes[-1], sources[-1])), values


def _take_inputs(
    node: Node, trainings: Mapping[Node, int], values: list[Value], positions: dict[int, int]
) -> dict[str, Source]:
    inputs: dict[str, Source] = {}
    for name, handle in list(node.inputs.items()):
        training = trainings.get(handle.node)
        if training is not None:
            inputs[name] = Made(training, handle.output)
            del node.inputs[name]
        else:
            value = handle.value
            inputs[name] = position = positions.setdefault(id(value), len(values))
            if position == len(values):
                values.append(value)
    return inputs


def _held(node: Node) -> tuple[str, ...]:
    return tuple(sorted(handle.output for handle in node.held_outputs()))


def _stream(node: Node) -> Stream:
    assert node.stream is not None
    return node.stream


def _weighted_sum(node: Node, inputs: Mapping[str, Source]) -> WeightedSum:
    base = {name.removeprefix("base."): source for name, source in inputs.items() if isinstance(source, int)}
    terms = {int(name.split(".")[0]): source.training for name, source in inputs.items() if isinstance(source, Made)}
    weights = tuple(node.parameters["weights"])
    return WeightedSum(weights, base, tuple(terms[number] for number in range(len(weights))))
