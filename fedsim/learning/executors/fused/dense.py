"""Large dense layers: products in machine code, and steps in the backward pass.

PyTorch's library packs a matrix before it multiplies a few rows with it, which takes as long as the product itself.
A step of plain SGD is taken in the backward pass: in float32, no gradient of many megabytes is written and read again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.compiled.machine_code import ProductKernels, TiledProductKernels, product_kernels
from fedsim.learning.executors.compiled.products import MatrixShape
from fedsim.learning.executors.compiled.program import Kernel
from fedsim.models.parted import PartedModule

__all__ = ["LARGE", "FusedDense", "steps_in_passing"]

LARGE = 2**16
"""Weights from which on a matrix is worth it."""


class FusedDense(nn.Module):
    """Takes the place of a large `torch.nn.Linear` with a bias, with its parameters."""

    rate: float | None = None
    """The learning rate of steps that it takes by itself; then its parameters get no gradient. None: it takes none."""

    def __init__(self, layer: nn.Linear) -> None:
        """Make machine code where none is yet, if PyTorch's library is slower."""
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        shape = MatrixShape(layer.out_features, layer.in_features)
        compiled = product_kernels(shape, torch.float32) is not None
        self._products: _Products = _Compiled(shape) if compiled else _ByPyTorch()

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        if not isinstance(layer, nn.Linear) or layer.bias is None or layer.weight.numel() < LARGE:
            return None
        return cls(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(samples, outputs) of (samples, inputs)."""
        made: torch.Tensor = _Dense.apply(x, self.weight, self.bias, self.rate, self._products)  # type: ignore[no-untyped-call]
        return made


def steps_in_passing(module: PartedModule, parts: Iterable[str], rate: float | None) -> None:
    """Let such layers of these *parts* take plain steps of that *rate* by themselves; None: let them take none."""
    trained = {id(weight) for part in parts for weight in module.part_parameters(part).values()}
    for layer in module.modules():
        if isinstance(layer, FusedDense):
            layer.rate = rate if id(layer.weight) in trained else None


class _Products(ABC):
    """What a matrix W of (outputs, inputs) is multiplied with: samples h of inputs, and gradients d of outputs."""

    @abstractmethod
    def outputs(self, h: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """``h W^T`` and the bias."""

    @abstractmethod
    def before(self, d: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """``d W``."""

    @abstractmethod
    def gradient(self, d: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """``d^T h``."""

    @abstractmethod
    def step(self, weight: torch.Tensor, d: torch.Tensor, h: torch.Tensor, rate: float) -> None:
        """Take the *rate* times ``d^T h`` off the weights."""


class _ByPyTorch(_Products):
    """By PyTorch's library: in any type, and of any shape."""

    def outputs(self, h: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(h, weight, bias)

    def before(self, d: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return d @ weight

    def gradient(self, d: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return d.t() @ h

    def step(self, weight: torch.Tensor, d: torch.Tensor, h: torch.Tensor, rate: float) -> None:
        if h.dtype == weight.dtype:
            weight.addmm_(d.t(), h, alpha=-rate)
        else:
            weight.sub_(d.t() @ h, alpha=rate)


class _Compiled(_Products):
    """In machine code, for float32; nothing is packed."""

    def __init__(self, shape: MatrixShape) -> None:
        self._shape = shape

    @property
    def _kernels(self) -> ProductKernels | TiledProductKernels:
        """Not held: they cannot be copied, and a layer may be."""
        kernels = product_kernels(self._shape, torch.float32)
        assert kernels is not None
        return kernels

    def outputs(self, h: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        if h.dtype != weight.dtype or h.shape[1:] != (self._shape.inputs,):  # kernels would read whatever lies there
            raise ValueError(f"{h.dtype} {tuple(h.shape)} and a matrix of {weight.dtype} {tuple(weight.shape)}")
        return self._made(self._kernels.times_transposed, h, weight, self._shape.outputs).add_(bias)

    def before(self, d: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return self._made(self._kernels.times, d, weight, self._shape.inputs)

    def gradient(self, d: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        if not len(h):
            return h.new_zeros(self._shape.outputs, self._shape.inputs)
        made = h.new_empty(self._shape.outputs, self._shape.inputs)
        _run(self._kernels.sum_of_products, d, h, made)
        return made

    def step(self, weight: torch.Tensor, d: torch.Tensor, h: torch.Tensor, rate: float) -> None:
        kernels = self._kernels
        if isinstance(kernels, ProductKernels):
            _run(kernels.added_products, d * -rate, h, weight)
        else:
            weight.sub_(self.gradient(d, h), alpha=rate)

    def _made(self, kernel: Kernel, some: torch.Tensor, weight: torch.Tensor, numbers: int) -> torch.Tensor:
        made = some.new_empty(len(some), numbers)
        _run(kernel, some, weight, made)
        return made


def _run(kernel: Kernel, some: torch.Tensor, other: torch.Tensor, made: torch.Tensor) -> None:
    some, other = some.contiguous(), other.contiguous()
    kernel(len(some), some.data_ptr(), other.data_ptr(), made.data_ptr())


class _Dense(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, rate: float | None, products: _Products
    ) -> torch.Tensor:
        # Not by save_for_backward, which refuses a weight that has changed: it is the backward pass that changes it.
        ctx.trained, ctx.rate, factor = (weight, bias), rate, weight
        if torch.is_autocast_enabled("cpu"):
            reduced = torch.get_autocast_dtype("cpu")
            x, factor, bias, products = x.to(reduced), weight.to(reduced), bias.to(reduced), _ByPyTorch()
        ctx.factors, ctx.products = (x, factor), products
        return products.outputs(x, factor, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x, factor), (weight, bias), products = ctx.factors, ctx.trained, ctx.products
        d = gradients[0].contiguous()
        d_x = products.before(d, factor) if ctx.needs_input_grad[0] else None
        if ctx.rate is None:
            return d_x, products.gradient(d, x).to(weight.dtype), d.sum(dim=0).to(bias.dtype), None, None
        products.step(weight, d, x, ctx.rate)
        bias.sub_(d.sum(dim=0), alpha=ctx.rate)
        return d_x, None, None, None, None
