"""Layers of images, channels last or not, in fewer passes over memory than PyTorch's."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.fused.placed import convolved, lying_by_place
from fedsim.learning.kernels.machine_code import has_kernels
from fedsim.learning.kernels.shapes import LANES
from fedsim.models.torch_layers import PadShortcutModule

__all__ = ["ChannelsFirstConvolution", "SmallConvolution", "ThinnedShortcut"]

FEW_WEIGHTS = 2**16
"""Up to which they stay in the nearer caches."""
MANY_WEIGHTS = 2**20
"""From which on PyTorch is faster with channels first, for the small images that such a convolution gets."""


class SmallConvolution(nn.Module):
    """Takes the place of a small `torch.nn.Conv2d`, with its parameters; a weight lies as (3, 3, inputs, outputs)."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__()
        self.weight = nn.Parameter(lying_by_place(layer.weight.detach()))
        self.bias = layer.bias

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if there is machine code for it: images keep their size."""
        if not (has_kernels() and isinstance(layer, nn.Conv2d) and layer.weight.numel() <= FEW_WEIGHTS):
            return None
        sizes = layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.groups
        fits = layer.in_channels % LANES == 0 and layer.out_channels % LANES == 0
        return cls(layer) if fits and sizes == ((3, 3), (1, 1), (1, 1), (1, 1), 1) else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, height, width)."""
        return convolved(x.float(), self.weight, self.bias, padding=1)


class ChannelsFirstConvolution(nn.Module):
    """Takes the place of a `torch.nn.Conv2d`, with its parameters, where there are many weights and small images."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self._stride, self._padding = layer.stride, layer.padding

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it has so many weights that PyTorch is slower with channels last."""
        return cls(layer) if isinstance(layer, nn.Conv2d) and layer.weight.numel() >= MANY_WEIGHTS else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, height, width)."""
        return nn.functional.conv2d(x.contiguous(), self.weight, self.bias, self._stride, self._padding)


class ThinnedShortcut(nn.Module):
    """Takes the place of a shortcut that leaves pixels out and has zeros for new channels."""

    def __init__(self, layer: PadShortcutModule) -> None:
        super().__init__()
        self._stride, self._zeros = layer.stride, layer.zeros

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        return cls(layer) if isinstance(layer, PadShortcutModule) else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, height, width)."""
        made: torch.Tensor = _Thinned.apply(x, self._stride, self._zeros)  # type: ignore[no-untyped-call]
        return made


class _Thinned(torch.autograd.Function):
    """Its gradient is written once, where PyTorch makes one for each step of the slice."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, stride: int, zeros: int) -> torch.Tensor:
        ctx.stride, ctx.input_shape = stride, x.shape
        left = x[:, :, ::stride, ::stride]
        samples, channels, height, width = left.shape
        y = x.new_zeros(samples, height, width, channels + zeros).permute(0, 3, 1, 2)
        y[:, :channels] = left
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (dy,), (samples, channels, height, width) = gradients, ctx.input_shape
        dx = dy.new_zeros(samples, height, width, channels).permute(0, 3, 1, 2)
        dx[:, :, :: ctx.stride, :: ctx.stride] = dy[:, :channels]
        return dx, None, None
