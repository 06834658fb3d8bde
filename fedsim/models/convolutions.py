"""A model's convolutions as what can be pruned: their filters, what takes whose feature maps, and their work.

Left out: fully connected and recurrent layers of an extractor, which are not pruned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TypeAlias

import networkx as nx
import numpy as np
import numpy.typing as npt

from fedsim.models.layers import Block, ChannelNorm, Conv1d, Conv2d, Layer, Residual, Shape
from fedsim.models.table import EXTRACTOR, LayerTable, ModelTable

__all__ = ["SAMPLES", "Convolution", "Masks", "Skeleton", "left_of", "skeleton_of", "strongest"]

Masks: TypeAlias = Sequence[npt.NDArray[np.bool_]]
"""For each convolution, (filters,): which of its filters are kept."""


@dataclass(frozen=True)
class Convolution:
    """One convolution of an extractor."""

    name: str
    """Dotted, in its part: ``"block1.body.conv1"``."""
    layer: Conv1d | Conv2d
    states: tuple[tuple[str, int], ...]
    """Tensors of its part that have a row for each filter, with the numbers in a row: its own, and those of the
    normalisation right behind it."""
    cells: int
    """Numbers that a filter makes of one sample."""
    source: int | None
    """The convolution whose feature maps are its channels; None: the samples' channels."""

    @property
    def filters(self) -> int:
        """Output channels."""
        return self.layer.out_channels

    @property
    def filter_numbers(self) -> int:
        """Numbers that go along with one filter."""
        return sum(numbers for _, numbers in self.states)

    @property
    def weights(self) -> int:
        """Of a filter, for each of its channels: k^2, or k in a series."""
        return int(self.layer.kernel ** (1 if isinstance(self.layer, Conv1d) else 2))

    @property
    def flops(self) -> int:
        """Of one sample: ``cells C_out (C_in (2 k^2 - 1) + 1)``, as SPATL's authors count."""
        return self.cells * self.filters * (self.layer.in_channels * (2 * self.weights - 1) + 1)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one sample, as the model's table counts them."""
        return self.cells * self.filters * self.layer.in_channels * self.weights


@dataclass(frozen=True)
class Skeleton:
    """The convolutions of an extractor, in the order in which a sample passes them."""

    convolutions: tuple[Convolution, ...]
    shortcuts: tuple[tuple[int | None, int], ...]
    """Whose feature maps are added to those of which convolution; None: the samples."""

    @property
    def filters(self) -> int:
        """Of all of them."""
        return sum(one.filters for one in self.convolutions)

    @property
    def flops(self) -> int:
        """Of one sample, in all convolutions."""
        return sum(one.flops for one in self.convolutions)

    def graph(self) -> nx.DiGraph[str]:
        """The model as SPATL's agent sees it: nodes are feature maps, edges are what makes one of another.

        Node ``samples``, and a node for each convolution by its name, with ``filters`` and ``cells``. An edge is of a
        ``kind``: "convolution", or "shortcut", whose feature maps are added.

        >>> from fedsim.models.resnet import ResNet
        >>> graph = skeleton_of(ResNet(depth=20).table((3, 32, 32), 10)).graph()
        >>> len(graph), graph.number_of_edges()  # 19 convolutions, and the shortcuts of 9 blocks
        (20, 28)
        """
        names: list[str] = [one.name for one in self.convolutions]

        def node(place: int | None) -> str:
            return SAMPLES if place is None else names[place]

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_node(SAMPLES)
        for one in self.convolutions:
            graph.add_node(one.name, filters=one.filters, cells=one.cells)
        for one in self.convolutions:
            graph.add_edge(node(one.source), one.name, kind="convolution")
        for begin, end in self.shortcuts:
            graph.add_edge(node(begin), names[end], kind="shortcut")
        return graph

    def flops_share(self, kept: Sequence[int]) -> float:
        """The share of its FLOPs that is left when so many filters of each convolution are *kept*.

        A convolution's work is scaled by the share of its own filters and by that of its source (algorithm 8.5 of the
        authors' code). A shortcut may bring channels back that its source has lost: `present_share` knows that.
        """
        shares = [number / one.filters for number, one in zip(kept, self.convolutions, strict=True)]
        left = sum(
            one.flops * share * (1.0 if one.source is None else shares[one.source])
            for one, share in zip(self.convolutions, shares, strict=True)
        )
        return left / self.flops

    def present_share(self, masks: Masks) -> float:
        """The same by the channels that are there: a convolution has to look at what a shortcut brings, too."""
        there: dict[int, npt.NDArray[np.bool_]] = {}

        def present(place: int) -> npt.NDArray[np.bool_]:
            if place not in there:
                found = masks[place].copy()
                for begin in (begin for begin, end in self.shortcuts if end == place):
                    brought = np.ones(len(found), np.bool_) if begin is None else present(begin)
                    found[: len(brought)] |= brought  # what a shortcut pads are zeros, behind its own channels
                there[place] = found
            return there[place]

        left = sum(
            one.flops * float(mask.mean()) * (1.0 if one.source is None else float(present(one.source).mean()))
            for one, mask in zip(self.convolutions, masks, strict=True)
        )
        return left / self.flops


SAMPLES = "samples"
"""The node from which a model's graph begins."""


def left_of(filters: int, share: float) -> int:
    """How many of *filters* are left when a *share* is kept: ``C - round((1 - share) C)``, one at least.

    >>> [left_of(16, share) for share in (1.0, 0.7, 0.5, 0.01)]  # 16 less 0, 5, 8 and 16, of which one stays
    [16, 11, 8, 1]
    """
    return max(filters - round((1 - share) * filters), 1)


def strongest(norms: npt.NDArray[np.float64], number: int) -> npt.NDArray[np.bool_]:
    """(filters,) the *number* filters of the largest norms; of equal ones, the first.

    >>> strongest(np.array([2.0, 3.0, 2.0, 1.0]), 2).tolist()
    [True, True, False, False]
    """
    mask = np.zeros(len(norms), np.bool_)
    mask[np.argsort(-norms, kind="stable")[:number]] = True
    return mask


def skeleton_of(table: ModelTable) -> Skeleton:
    """The convolutions of *table*'s extractor; none of a model that is not made of layers, or has no extractor."""
    return _skeleton(table) if isinstance(table, LayerTable) and EXTRACTOR in table.parts else Skeleton((), ())


@lru_cache(maxsize=64)
def _skeleton(table: LayerTable) -> Skeleton:
    reader = _Reader()
    reader.read(table.extractor, "", table.input_shape, None)
    return Skeleton(tuple(reader.convolutions), tuple(reader.shortcuts))


class _Reader:
    """Goes through layers as a sample does, and remembers which convolution made what it has in hand."""

    def __init__(self) -> None:
        self.convolutions: list[Convolution] = []
        self.shortcuts: list[tuple[int | None, int]] = []

    def read(self, layers: Sequence[Layer], stem: str, shape: Shape, source: int | None) -> int | None:
        """The last convolution behind *layers*, which take feature maps of *shape* that *source* has made."""
        before: Layer | None = None
        for layer in layers:
            match layer:
                case Conv1d() | Conv2d():
                    source = self._note(layer, stem, shape, source)
                case ChannelNorm() if isinstance(before, Conv1d | Conv2d):
                    self._join(layer, stem)
                case Residual():
                    source = self._residual(layer, f"{stem}{layer.name}.", shape, source)
                case Block():
                    source = self.read(layer.layers, f"{stem}{layer.name}.", shape, source)
            shape, before = layer.output_shape(shape), layer
        return source

    def _note(self, layer: Conv1d | Conv2d, stem: str, shape: Shape, source: int | None) -> int:
        name = f"{stem}{layer.name}"
        cells = prod(layer.output_shape(shape)[1:])
        self.convolutions.append(Convolution(name, layer, _rows(name, layer), cells, source))
        return len(self.convolutions) - 1

    def _join(self, layer: Layer, stem: str) -> None:
        one = self.convolutions.pop()
        self.convolutions.append(replace(one, states=one.states + _rows(f"{stem}{layer.name}", layer)))

    def _residual(self, layer: Residual, stem: str, shape: Shape, source: int | None) -> int | None:
        body = self.read(layer.body, f"{stem}body.", shape, source)
        shortcut = self.read(layer.shortcut, f"{stem}shortcut.", shape, source)
        if body == source or body is None:
            return shortcut
        self.shortcuts.append((shortcut, body))
        return body


def _rows(name: str, layer: Layer) -> tuple[tuple[str, int], ...]:
    return tuple((f"{name}.{kind}", prod(shape[1:])) for kind, shape in layer.state_shapes.items())
