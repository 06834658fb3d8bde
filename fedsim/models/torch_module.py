"""From a layer table to PyTorch: the module, and the numbers that its parameters start from.

Two starts are known. ``xavier_uniform``: weights uniform in +-sqrt(6 / (fan_in + fan_out)), biases zero (Glorot and
Bengio, AISTATS 2010). ``torch_default``: weights and biases uniform in +-1 / sqrt(fan_in), which is what PyTorch's own
layers do (Kaiming uniform with a = sqrt(5); He et al., ICCV 2015). Numbers are drawn by numpy, in the order of the
table, so that they are the same on every platform and whatever torch's own generators do.
"""

from __future__ import annotations

from collections import OrderedDict
from math import prod, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedsim.errors import UserError
from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU, Shape
from fedsim.models.table import Initialisation, LayerTable, ModelTable

__all__ = ["LayerModule", "build", "initial_parameters"]


class LayerModule(nn.Module):
    """A model whose parts can be called alone: ``parts["classifier"](parts["extractor"](x))`` is ``forward(x)``."""

    parts: nn.ModuleDict

    def __init__(self, table: LayerTable) -> None:
        """Build every part of *table*, with all parameters zero."""
        super().__init__()
        self.parts = nn.ModuleDict({part: _sequence(layers) for part, layers in table.layers.items()})
        for layer in list(self.modules()):
            for name, parameter in list(layer.named_parameters(recurse=False)):
                setattr(layer, name, nn.Parameter(torch.zeros(parameter.shape)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores, (batch, outputs), of a batch of samples, (batch, then the table's input shape)."""
        for part in self.parts.values():
            x = part(x)
        return x


def build(table: ModelTable) -> LayerModule:
    """The module of *table*: float32, on the CPU, every parameter zero until `initial_parameters` are loaded.

    Names and shapes of ``module.parts[part]``'s parameters are those of ``table.parameter_shapes(part)``, in order. No
    random number is drawn. Raises `UserError` when the table declares sizes only.
    """
    table = _layer_table(table)
    module = LayerModule(table)
    for part in table.parts:
        built = {name: tuple(parameter.shape) for name, parameter in module.parts[part].named_parameters()}
        if list(built.items()) != list(table.parameter_shapes(part).items()):
            raise ValueError(f"part {part!r} was built with {built}, the table says {table.parameter_shapes(part)}")
    return module


def initial_parameters(table: ModelTable, rng: np.random.Generator) -> dict[str, dict[str, torch.Tensor]]:
    """Part -> name -> float32 tensor to start training from, by the table's ``initialisation``.

    Raises `UserError` when the table declares sizes only.
    """
    table = _layer_table(table)
    return {
        part: {
            f"{layer.name}.{kind}": torch.from_numpy(_start(table.initialisation, layer, kind, rng))
            for layer in layers
            for kind in layer.parameter_shapes
        }
        for part, layers in table.layers.items()
    }


def _layer_table(table: ModelTable) -> LayerTable:
    if not isinstance(table, LayerTable):
        raise UserError(
            "the model declares sizes only and cannot be trained; choose a model with layers, such as small_cnn, "
            "or run without training"
        )
    return table


def _start(initialisation: Initialisation, layer: Layer, kind: str, rng: np.random.Generator) -> NDArray[np.float32]:
    shape = layer.parameter_shapes[kind]
    weight_shape = layer.parameter_shapes["weight"]  # (out, in) or (out, in, kernel, kernel)
    fan_in = prod(weight_shape[1:])
    fan_out = weight_shape[0] * prod(weight_shape[2:])
    if initialisation == "torch_default":
        return _uniform(rng, shape, bound=1.0 / sqrt(fan_in))
    if kind == "bias":
        return np.zeros(shape, dtype=np.float32)
    return _uniform(rng, shape, bound=sqrt(6.0 / (fan_in + fan_out)))


def _uniform(rng: np.random.Generator, shape: Shape, *, bound: float) -> NDArray[np.float32]:
    # 2u - 1 is exact, so one product rounds once; Generator.uniform may fuse it with a sum, and does not everywhere
    draws = 2.0 * rng.random(shape) - 1.0
    return (bound * draws).astype(np.float32)


def _sequence(layers: tuple[Layer, ...]) -> nn.Sequential:
    return nn.Sequential(OrderedDict((layer.name, _module(layer)) for layer in layers))


def _module(layer: Layer) -> nn.Module:
    # on the meta device layers are neither stored nor drawn: torch's own start would be thrown away
    match layer:
        case Conv2d():
            return nn.Conv2d(
                layer.in_channels,
                layer.out_channels,
                layer.kernel,
                stride=layer.stride,
                padding=layer.padding,
                device="meta",
                dtype=torch.float32,
            )
        case Linear():
            return nn.Linear(layer.inputs, layer.outputs, device="meta", dtype=torch.float32)
        case ReLU():
            return nn.ReLU()
        case MaxPool2d():
            return nn.MaxPool2d(layer.kernel)
        case Flatten():
            return nn.Flatten()
        case _:
            raise TypeError(f"no torch module is known for {layer!r}")
