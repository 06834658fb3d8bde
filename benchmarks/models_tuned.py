"""A registered model as somebody writes it in PyTorch who wants a fast loop of plain SGD.

What it does beyond the usual module: channels last, also for series, which are images of one row then; pooling before
the rectifier (they commute); rectifiers and sums of residual blocks in place; large dense layers whose backward pass
updates the weights (no gradient of many megabytes is written and read again); all numbers in one flat buffer. Left out:
anything that trains clients together, and machine code of one's own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.functional import linear

from benchmarks.models_work import TensorDict
from fedsim.models.layers import (
    BatchNorm1d,
    Block,
    Conv1d,
    Conv2d,
    Embedding,
    KMaxPool,
    Layer,
    Linear,
    MaxPool1d,
    MaxPool2d,
    OneHot,
    ReLU,
    Residual,
)
from fedsim.models.table import LayerTable
from fedsim.models.torch_layers import sequence

Layout = Literal["channels_last", "channels_first"]
LARGE = 65_536
"""Weights of a dense layer that updates itself; with less, a function of one's own costs more than it saves."""


def layouts(table: LayerTable) -> tuple[Layout, ...]:
    """Those to choose from: one, where nothing is convolved."""
    leaves = (leaf for layers in table.layers.values() for layer in layers for _, leaf in layer.leaves())
    convolves = any(isinstance(leaf, Conv1d | Conv2d) for leaf in leaves)
    return ("channels_last", "channels_first") if convolves else ("channels_first",)


class Tuned:
    """A module whose parameters and running statistics are views of one flat buffer."""

    def __init__(self, table: LayerTable, start: dict[str, TensorDict], layout: Layout, rate: float) -> None:
        self._channels_last, self._rate = layout == "channels_last", rate
        self._first = next(layer for layers in table.layers.values() for layer in layers if layer.parameter_shapes)
        parts = {part: self._sequence(layers) for part, layers in table.layers.items()}
        self.module = nn.Sequential(OrderedDict(parts))
        self._start = start
        self.flat = torch.empty(sum(value.numel() for state in start.values() for value in state.values()))
        self._views: list[torch.Tensor] = []
        place = 0
        for part, state in start.items():
            for name, value in state.items():
                self._views.append(self._bind(parts[part], name, value, place))
                place += value.numel()
        self.stepped: list[torch.Tensor] = [
            parameter for parameter in self.module.parameters() if parameter.requires_grad
        ]
        """Parameters that the loop has to update."""

    def input(self, x: torch.Tensor) -> torch.Tensor:
        """Samples as the module takes them; ids of characters stay as they are."""
        if not self._channels_last or not x.is_floating_point():
            return x
        return (x.unsqueeze(2) if x.dim() == 3 else x).contiguous(memory_format=torch.channels_last)

    def state(self) -> dict[str, TensorDict]:
        """As *start* was given, in new memory."""
        views = iter(self._views)
        return {
            part: {name: next(views).detach().clone().reshape(value.shape) for name, value in state.items()}
            for part, state in self._start.items()
        }

    def _bind(self, part: nn.Module, name: str, value: torch.Tensor, place: int) -> torch.Tensor:
        """Let the module's own tensor be a piece of the flat buffer; returns the view."""
        path, _, kind = name.rpartition(".")
        owner = part.get_submodule(path)
        shape = getattr(owner, kind).shape
        view = self.flat[place : place + value.numel()].view(shape)
        if self._channels_last and len(shape) == 4:
            outputs, inputs, height, width = shape
            view = view.view(outputs, height, width, inputs).permute(0, 3, 1, 2)
        view.copy_(value.reshape(shape))
        if kind in owner._buffers:
            setattr(owner, kind, view)
        else:  # data: each counts its own changes, for autograd's checks
            setattr(owner, kind, nn.Parameter(view.data, requires_grad=not isinstance(owner, _UpdatingDense)))
        return view

    def _sequence(self, layers: tuple[Layer, ...]) -> nn.Sequential:
        modules: OrderedDict[str, nn.Module] = OrderedDict()
        for layer in _pooled_first(layers):
            modules[layer.name] = self._module(layer)
            if self._channels_last and isinstance(layer, Embedding | OneHot):
                modules[f"{layer.name}_row"] = _Row()
        return nn.Sequential(modules)

    def _module(self, layer: Layer) -> nn.Module:
        match layer:
            case Block():
                return self._sequence(layer.layers)
            case Residual():
                return _Sum(self._sequence(layer.body), self._sequence(layer.shortcut))
            case ReLU():
                return nn.ReLU(inplace=True)
            case Linear() if layer.inputs * layer.outputs >= LARGE and layer.bias and layer is not self._first:
                return _UpdatingDense(layer, self._rate)
            case KMaxPool():
                return _KMaxPool(layer.k)
            case Conv1d() | BatchNorm1d() | MaxPool1d() if self._channels_last:
                return _on_row(layer)
            case _:
                (module,) = sequence((layer,))
                return module


def _pooled_first(layers: tuple[Layer, ...]) -> Iterator[Layer]:
    """Rectifiers that a pooling follows change places with it."""
    waiting: Layer | None = None
    for layer in layers:
        if waiting is not None and isinstance(layer, MaxPool1d | MaxPool2d):
            yield layer
            continue
        if waiting is not None:
            yield waiting
        waiting = layer if isinstance(layer, ReLU) else None
        if waiting is None:
            yield layer
    if waiting is not None:
        yield waiting


def _on_row(layer: Conv1d | BatchNorm1d | MaxPool1d) -> nn.Module:
    """The layer of series, on images of one row."""
    match layer:
        case Conv1d():
            shape = (1, layer.kernel), (1, layer.stride), (0, layer.padding)
            return nn.Conv2d(layer.in_channels, layer.out_channels, *shape, bias=layer.bias, device="meta")
        case BatchNorm1d():
            module = nn.BatchNorm2d(layer.channels, device="meta")
            module.num_batches_tracked = None
            return module
        case MaxPool1d():
            return nn.MaxPool2d((1, layer.kernel), (1, layer.stride), (0, layer.padding))


class _Row(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(2)  # (batch, channels, 1, length)


class _KMaxPool(nn.Module):
    def __init__(self, k: int) -> None:
        super().__init__()
        self._k = k

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.gather(-1, x.detach().topk(self._k, dim=-1, sorted=False).indices.sort(dim=-1).values)


class _Sum(nn.Module):
    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.body(x)
        return made.add_(self.shortcut(x))


class _UpdatingDense(nn.Module):
    def __init__(self, layer: Linear, rate: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(layer.outputs, layer.inputs, device="meta"))
        self.bias = nn.Parameter(torch.empty(layer.outputs, device="meta"))
        self._rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        arguments = x, self.weight, self.bias, self._rate
        made: torch.Tensor = _UpdatingLinear.apply(*arguments)  # type: ignore[no-untyped-call]
        return made


class _UpdatingLinear(torch.autograd.Function):
    """A dense layer that takes its step of SGD while it hands the gradient back; under autocast in bfloat16."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, rate: float) -> torch.Tensor:
        context.trained, context.rate, factor = (weight, bias), rate, weight
        if torch.is_autocast_enabled("cpu"):
            x, factor, bias = x.bfloat16(), weight.bfloat16(), bias.bfloat16()
        context.factors = x, factor
        return linear(x, factor, bias)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        (x, factor), (weight, bias), (gradient,) = context.factors, context.trained, gradients
        handed_back = gradient @ factor
        if factor is weight:
            weight.addmm_(gradient.t(), x, alpha=-context.rate)
        else:
            weight.sub_(gradient.t() @ x, alpha=context.rate)
        bias.sub_(gradient.sum(0), alpha=context.rate)
        return handed_back, None, None, None
