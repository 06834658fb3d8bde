"""The torch module of each layer; what torch has no module for is written here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import nn

from fedsim.models.layers import (
    BatchNorm1d,
    BatchNorm2d,
    Block,
    Conv1d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    Fusion,
    Gated,
    GlobalAveragePool,
    GroupNorm1d,
    GroupNorm2d,
    Gru,
    KMaxPool,
    LastStep,
    Layer,
    Linear,
    Lstm,
    MaxPool1d,
    MaxPool2d,
    OneHot,
    PadShortcut,
    ReLU,
    Residual,
)

__all__ = [
    "FusionModule",
    "GatedUnits",
    "KMaxPoolModule",
    "LastStepModule",
    "LstmModule",
    "PadShortcutModule",
    "ResidualModule",
    "sequence",
]


def sequence(layers: tuple[Layer, ...]) -> nn.Sequential:
    """The modules of *layers*, one after the other, by their names; parameters and buffers are on the meta device.

    There they are neither stored nor drawn: torch's own start would be thrown away.
    """
    return nn.Sequential(OrderedDict((layer.name, _module(layer)) for layer in layers))


def _module(layer: Layer) -> nn.Module:
    match layer:
        case Conv1d() | Conv2d():
            convolution = nn.Conv1d if isinstance(layer, Conv1d) else nn.Conv2d
            return convolution(
                layer.in_channels,
                layer.out_channels,
                layer.kernel,
                stride=layer.stride,
                padding=layer.padding,
                bias=layer.bias,
                device="meta",
                dtype=torch.float32,
            )
        case Linear():
            return nn.Linear(layer.inputs, layer.outputs, bias=layer.bias, device="meta", dtype=torch.float32)
        case BatchNorm1d() | BatchNorm2d():
            return _batch_norm(layer)
        case GroupNorm1d() | GroupNorm2d():
            return nn.GroupNorm(layer.groups, layer.channels, device="meta", dtype=torch.float32)
        case Embedding():
            rows, columns = layer.parameter_shapes["weight"]
            return _Embedding(rows, columns, padding_idx=0, device="meta", dtype=torch.float32)
        case OneHot():
            return _OneHot(layer.tokens)
        case Gru():
            return _Gru(layer.inputs, layer.hidden, batch_first=True, device="meta", dtype=torch.float32)
        case Lstm():
            return LstmModule(layer.inputs, layer.hidden, batch_first=True, device="meta", dtype=torch.float32)
        case Gated():
            return GatedUnits(layer)
        case LastStep():
            return LastStepModule()
        case ReLU():
            return nn.ReLU()
        case Dropout():
            return nn.Dropout(layer.rate)
        case MaxPool1d():
            return nn.MaxPool1d(layer.kernel, stride=layer.stride, padding=layer.padding)
        case MaxPool2d():
            return nn.MaxPool2d(layer.kernel)
        case KMaxPool():
            return KMaxPoolModule(layer.k)
        case GlobalAveragePool():
            return _GlobalAveragePool()
        case Flatten():
            return nn.Flatten()
        case Fusion():
            return FusionModule(layer)
        case PadShortcut():
            return PadShortcutModule(layer)
        case Residual():
            return ResidualModule(layer)
        case Block():
            return sequence(layer.layers)
        case _:
            raise TypeError(f"no torch module is known for {layer!r}")


def _batch_norm(layer: BatchNorm1d | BatchNorm2d) -> nn.Module:
    normalisation = nn.BatchNorm1d if isinstance(layer, BatchNorm1d) else nn.BatchNorm2d
    module = normalisation(layer.channels, device="meta", dtype=torch.float32)
    module.num_batches_tracked = None  # a whole number, which no mean could average; only momentum=None reads it
    return module


class _Embedding(nn.Embedding):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.long()).transpose(1, 2)  # (batch, dimension, length)


class _OneHot(nn.Module):
    rows: torch.Tensor

    def __init__(self, tokens: int) -> None:
        super().__init__()
        rows = torch.eye(tokens, dtype=torch.float32)
        self.register_buffer("rows", torch.cat([torch.zeros(1, tokens), rows]), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(ids.long(), self.rows).transpose(1, 2)  # (batch, tokens, length)


# Recurrent layers are PyTorch's own classes, and do not hold one: so their weights have PyTorch's names, which stand in
# stored models. `forward` takes and gives one tensor, as all layers of a sequence do; hence its other signature.


class _Gru(nn.GRU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return _all_states(super().forward, input)


class LstmModule(nn.LSTM):
    """The states of an LSTM after each step."""

    rounds = True
    """Whether autocast may round its factors to bfloat16. On a CPU without instructions for bfloat16 it must not:
    oneDNN refuses such an LSTM, so it computes in float32 there."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """(batch, features, time) to (batch, hidden, time)."""
        if self.rounds:
            return _all_states(super().forward, input)
        with torch.autocast("cpu", enabled=False):
            return _all_states(super().forward, input.to(next(self.parameters()).dtype))


def _all_states(unit: Callable[[torch.Tensor], tuple[torch.Tensor, object]], series: torch.Tensor) -> torch.Tensor:
    states, _ = unit(series.transpose(1, 2))  # (batch, time, hidden)
    return states.transpose(1, 2)


class GatedUnits(nn.Module):
    """Knows whose samples it is given, when somebody says so."""

    client: int | None = None
    """The client's index; None: nobody known."""

    def __init__(self, layer: Gated) -> None:
        """Its parameters are on the meta device."""
        super().__init__()
        for name, shape in layer.parameter_shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape, device="meta", dtype=torch.float32)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The units of (batch, inputs)."""
        filter_, gate = (
            nn.functional.linear(x, self.get_parameter(f"weight_{which}"), self._added(which)) for which in "fg"
        )
        return filter_.tanh() * gate.sigmoid()

    def _added(self, which: str) -> torch.Tensor:
        """V h."""
        columns = self.get_parameter(f"client_{which}")
        return columns.mean(dim=1) if self.client is None else columns[:, self.client]


class LastStepModule(nn.Module):
    """What series end with."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(samples, channels) of (samples, channels, time)."""
        return x[:, :, -1]


class KMaxPoolModule(nn.Module):
    """Keeps the *k* largest values of each channel in their order; of equal ones the first."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(samples, channels, k) of (samples, channels, length)."""
        largest = x.detach().sort(dim=2, descending=True, stable=True).indices[:, :, : self.k]
        return x.gather(2, largest.sort(dim=2).values)


class _GlobalAveragePool(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(2).mean(dim=2)


class FusionModule(nn.Module):
    """Fuses the features that it takes with those of another model."""

    weight: torch.Tensor
    gate: torch.Tensor

    def __init__(self, layer: Fusion) -> None:
        super().__init__()
        for kind, shape in layer.parameter_shapes.items():
            self.register_parameter(kind, nn.Parameter(torch.empty(shape, device="meta", dtype=torch.float32)))
        self.other: torch.Tensor | None = None
        """The other model's features of the next batch, which are used once; None: both models are this one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The fused features, of the shape of *x*: (batch, channels, ...)."""
        other, self.other = self.other, None
        if "weight" in self._parameters:
            both = torch.cat([x if other is None else other, x], dim=1)
            return torch.einsum("oc,nc...->no...", self.weight, both)
        if other is None:
            return x
        gate = self.gate.reshape(-1, *(1 for _ in x.shape[2:]))  # one for each channel, or one for all
        return gate * other + (1 - gate) * x


class PadShortcutModule(nn.Module):
    """Leaves pixels out, and has zeros for new channels."""

    def __init__(self, layer: PadShortcut) -> None:
        super().__init__()
        self.stride = layer.stride
        self.zeros = layer.out_channels - layer.in_channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, height, width)."""
        return nn.functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.zeros))


class ResidualModule(nn.Module):
    """A body, and the shortcut that is added to what it makes."""

    def __init__(self, layer: Residual) -> None:
        super().__init__()
        self.body = sequence(layer.body)
        self.shortcut = sequence(layer.shortcut)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Their sum."""
        result: torch.Tensor = self.body(x) + self.shortcut(x)
        return result
