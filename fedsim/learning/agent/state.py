"""A model as the agent sees it: two levels of graphs, with numbers on their nodes.

On the first level each convolution is a small graph of its own: a source, its input channels, what becomes of each of
them, and a sink, with edges in this direction. On the second one nodes are feature maps (`Skeleton.graph`). Graphs of
the first level are as large as what is kept. Nodes that are alike are there once, with how many they are.

The public code draws the numbers on the nodes from N(0, 1), anew in each state; then an agent cannot tell layers apart,
and sees nothing of what it has done. By default they are sizes here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from fedsim.models.convolutions import Skeleton

__all__ = ["FEATURES", "NodeFeatures", "State", "Viewer", "stacked"]

FEATURES = 20
"""Numbers on each node."""

NodeFeatures: TypeAlias = Literal["sizes", "random"]
SOURCE, CHANNEL, OUTPUT, SINK, MAP = range(5)
"""Kinds of nodes."""


class State(NamedTuple):
    """Some states of a model with N convolutions, each of whose small graphs has m different channels.

    With more than one state, all have one more axis in front.
    """

    sources: torch.Tensor
    """(N, FEATURES)"""
    channels: torch.Tensor
    """(N, m, FEATURES)"""
    outputs: torch.Tensor
    """(N, m, FEATURES)"""
    sinks: torch.Tensor
    """(N, FEATURES)"""
    alike: torch.Tensor
    """(N, m) how many channels each one stands for; 0: it is not there."""
    maps: torch.Tensor
    """(1 + N, FEATURES) the feature maps: the samples, and what each convolution makes."""


class Viewer:
    """Makes states of one trained model."""

    def __init__(
        self,
        skeleton: Skeleton,
        norms: Sequence[npt.NDArray[np.float64]],
        target: float,
        node_features: NodeFeatures,
        generator: np.random.Generator,
    ) -> None:
        """*norms* are of the filters of each convolution; *generator* draws random features."""
        self._convolutions = skeleton.convolutions
        self._random, self._generator = node_features == "random", generator
        largest = max(float(np.max(some, initial=0.0)) for some in norms) or 1.0
        self._fixed = np.array(
            [
                [
                    one.layer.kernel / 7,
                    one.layer.stride / 2,
                    math.log2(1 + one.cells) / 10,
                    math.log2(one.filters) / 10,
                    one.flops / skeleton.flops,
                    one.filters / skeleton.filters,
                    place / len(self._convolutions),
                    float(norm.mean()) / largest,
                    float(norm.std()) / largest,
                    float(norm.min()) / largest,
                    target,
                ]
                for place, (one, norm) in enumerate(zip(self._convolutions, norms, strict=True))
            ]
        )

    def state(self, kept: Sequence[int], flops_share: float) -> State:
        """The model with so many filters of each convolution *kept*."""
        own = np.array([number / one.filters for number, one in zip(kept, self._convolutions, strict=True)])
        taken = np.array([1.0 if one.source is None else own[one.source] for one in self._convolutions])
        channels = [one.layer.in_channels if one.source is None else kept[one.source] for one in self._convolutions]
        if self._random:
            return self._drawn(channels)
        numbers = np.column_stack([self._fixed, own, taken, np.log2(channels) / 10, np.full_like(own, flops_share)])
        of_kind = [torch.from_numpy(_with_kind(numbers, kind)) for kind in range(5)]
        samples = torch.zeros(1, FEATURES)
        samples[0, MAP] = 1.0
        return State(
            of_kind[SOURCE],
            of_kind[CHANNEL][:, None],
            of_kind[OUTPUT][:, None],
            of_kind[SINK],
            torch.tensor(channels, dtype=torch.float32)[:, None],
            torch.cat([samples, of_kind[MAP]]),
        )

    def _drawn(self, channels: Sequence[int]) -> State:
        number, most = len(channels), max(one.layer.in_channels for one in self._convolutions)
        there = torch.arange(most)[None] < torch.tensor(channels)[:, None]

        def noise(*shape: int) -> torch.Tensor:
            return torch.from_numpy(self._generator.standard_normal((*shape, FEATURES), np.float32))

        return State(
            noise(number), noise(number, most), noise(number, most), noise(number), there.float(), noise(1 + number)
        )


def _with_kind(numbers: npt.NDArray[np.float64], kind: int) -> npt.NDArray[np.float32]:
    """(N, FEATURES) which kind of node it is, and its numbers."""
    made = np.zeros((len(numbers), FEATURES), np.float32)
    made[:, kind] = 1.0
    made[:, 5 : 5 + numbers.shape[1]] = numbers
    return made


def stacked(states: Sequence[State]) -> State:
    """All of them."""
    return State(*(torch.stack(some) for some in zip(*states, strict=True)))
