"""Puts fused layers into a model's module. Its parts, their names and their tensors stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

import torch
from torch import nn

from fedsim.learning.executors.fused.dense import FusedDense, SmallDense
from fedsim.learning.executors.fused.images import ChannelsFirstConvolution, SmallConvolution, ThinnedShortcut
from fedsim.learning.executors.fused.normalised import FusedNormalisation
from fedsim.learning.executors.fused.recurrent import FusedRecurrent
from fedsim.learning.executors.fused.series import (
    ConvolutionOfSeries,
    ImageConvolutionOfSeries,
    LargestOfSeries,
    LayerOfSeries,
    PointwiseConvolutionOfSeries,
    PoolingOfSeries,
)
from fedsim.learning.kernels.processor import has_bfloat16
from fedsim.models.parted import PartedModule
from fedsim.models.torch_layers import LstmModule, ResidualModule
from fedsim.models.torch_module import LayerModule

__all__ = ["fused"]

_POOLING = (nn.MaxPool1d, nn.MaxPool2d)
_OUTPUT_IS_FREE = (
    *(nn.Conv2d, SmallConvolution, ChannelsFirstConvolution, nn.Linear, FusedDense, SmallDense),
    *(nn.BatchNorm2d, nn.GroupNorm, nn.MaxPool2d, ConvolutionOfSeries, ImageConvolutionOfSeries, PoolingOfSeries),
)
"""Layers whose backward pass does not look at what they have made: a rectifier may write over it.

Not `PointwiseConvolutionOfSeries`: what it makes is a view of something else, and PyTorch's gradient of a change of a
view copies all of it several times.
"""


class _Kind(Protocol):
    def of(self, layer: nn.Module) -> nn.Module | None: ...


_KINDS: tuple[_Kind, ...] = (
    FusedDense,
    *(SmallConvolution, ChannelsFirstConvolution),
    ThinnedShortcut,
    *(ConvolutionOfSeries, PointwiseConvolutionOfSeries, ImageConvolutionOfSeries),
    *(PoolingOfSeries, LargestOfSeries),
)
"""The first one that there is for a layer takes its place."""
_ROUNDED_KINDS: tuple[_Kind, ...] = (*(kind for kind in _KINDS if kind is not SmallConvolution), SmallDense)
"""The same where factors are rounded."""


def fused(module: PartedModule, *, rounded: bool = False) -> PartedModule:
    """*module* with its images and series channels last, and with fused layers: for float32 on a CPU.

    Series are rows from one layer to the next, where all of some layers can take them. If factors are *rounded* to
    bfloat16, convolutions of images stay PyTorch's, which are faster then. A module of the user's own stays as it is:
    it may count on how its tensors lie in memory.
    """
    kinds = _ROUNDED_KINDS if rounded else _KINDS
    if isinstance(module, LayerModule):
        for part in module.parts.values():
            assert isinstance(part, nn.Sequential)
            _fuse(part, kinds)
            _pass_rows_on(part)
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d):
                layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            elif isinstance(layer, LstmModule):
                layer.rounds = has_bfloat16()
        module.layers_have_changed()
    return module


def _fuse(sequence: nn.Sequential, kinds: Sequence[_Kind]) -> None:
    """Layer by layer. What a layer does now for those behind it, they do no more."""
    names, layers = list(sequence._modules), list(sequence)
    at = 0
    while at < len(layers):
        made, done = _fused_layer(layers[at], layers[at + 1 : at + 3], kinds)
        sequence._modules[names[at]] = made
        for name in names[at + 1 : at + 1 + done]:
            sequence._modules[name] = nn.Identity()
        if not done:
            done = _rectify(sequence, made, names[at + 1 :], layers[at + 1 :], kinds)
        at += 1 + done


def _fused_layer(layer: nn.Module, behind: Sequence[nn.Module], kinds: Sequence[_Kind]) -> tuple[nn.Module, int]:
    """What takes the place of *layer*, and how many layers behind are done by it."""
    if isinstance(layer, nn.Sequential):
        _fuse(layer, kinds)
    elif isinstance(layer, ResidualModule):
        return _fused_residual(layer, behind, kinds)
    elif normalisation := FusedNormalisation.of(layer, behind):
        return normalisation, normalisation.about.rectified + normalisation.about.pooled
    elif recurrent := FusedRecurrent.of(layer, behind):
        return recurrent, int(recurrent.last)
    return next((made for kind in kinds if (made := kind.of(layer))), layer), 0


def _rectify(
    sequence: nn.Sequential, made: nn.Module, names: Sequence[str], layers: Sequence[nn.Module], kinds: Sequence[_Kind]
) -> int:
    """Let a rectifier right behind *made* come after the pooling behind it, and write over what it gets, if it may.

    Returns how many layers have been seen. The largest of some numbers, rectified, is the largest of these rectified
    numbers.
    """
    if not layers or not isinstance(layers[0], nn.ReLU):
        return 0
    places = list(names[:1])
    if len(layers) > 1 and isinstance(layers[1], _POOLING):
        made, _ = _fused_layer(layers[1], (), kinds)
        sequence._modules[names[0]] = made
        places = list(names[:2])
    free = (*_OUTPUT_IS_FREE, ResidualModule, _SummedInPlace)
    sequence._modules[places[-1]] = nn.ReLU(inplace=isinstance(made, free))
    return len(places)


def _fused_residual(
    block: ResidualModule, behind: Sequence[nn.Module], kinds: Sequence[_Kind]
) -> tuple[nn.Module, int]:
    """A block whose last normalisation does the sum and the rectifier behind it, or else one that sums in place."""
    if not len(block.body):
        return block, 0
    last_name, last = list(block.body.named_children())[-1]
    normalisation = FusedNormalisation.of(last, behind[:1], added=True)
    if normalisation is None or not normalisation.about.rectified:
        _fuse(block.body, kinds)
        _fuse(block.shortcut, kinds)
        in_place = isinstance(block.body[-1], _OUTPUT_IS_FREE)
        return (_SummedInPlace(block) if in_place else block), 0
    del block.body._modules[last_name]
    _fuse(block.body, kinds)
    _fuse(block.shortcut, kinds)
    block.body._modules[last_name] = normalisation
    return _SummedByNormalisation(block), 1


class _SummedByNormalisation(nn.Module):
    """A residual block."""

    def __init__(self, block: ResidualModule) -> None:
        super().__init__()
        self.body, self.shortcut = block.body, block.shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *layers, last = self.body
        made = x
        for layer in layers:
            made = layer(made)
        result: torch.Tensor = last(made, self.shortcut(x))
        return result


class _SummedInPlace(nn.Module):
    """A residual block."""

    def __init__(self, block: ResidualModule) -> None:
        super().__init__()
        self.body, self.shortcut = block.body, block.shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.body(x)
        return made.add_(self.shortcut(x))


class _AsRow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(2)


class _AsSeries(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.squeeze(2)


def _pass_rows_on(part: nn.Sequential) -> None:
    """Let neighbours that take rows, of which some are layers of series, have rows between them, and not views."""
    layers: dict[str, nn.Module] = {}
    for takes_rows, some in groupby(part._modules.items(), lambda item: _takes_rows(item[1])):
        together = dict(some)
        if not takes_rows or not any(
            isinstance(one, LayerOfSeries) for it in together.values() for one in it.modules()
        ):
            layers |= together
            continue
        first, last = next(iter(together)), next(reversed(together))
        layers |= {f"before {first}": _AsRow(), **together, f"behind {last}": _AsSeries()}
    part._modules.clear()
    for name, layer in layers.items():
        part._modules[name] = layer


def _takes_rows(layer: nn.Module) -> bool:
    """Whether the layer makes a row of a row."""
    if isinstance(layer, nn.Sequential | ResidualModule | _SummedByNormalisation | _SummedInPlace):
        return all(map(_takes_rows, layer.children()))
    return isinstance(layer, LayerOfSeries | FusedNormalisation | nn.ReLU | nn.Dropout | nn.Identity)
