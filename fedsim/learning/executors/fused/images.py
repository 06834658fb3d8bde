"""Layers of images, channels last or not, in fewer passes over memory than PyTorch's."""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.compiled.geometry import LANES
from fedsim.learning.executors.compiled.machine_code import host_machine
from fedsim.learning.executors.compiled.program import Kernel, Part, Program
from fedsim.learning.executors.fused.image_kernels import KERNEL, Places, emit_convolution, emit_weight_gradient
from fedsim.models.torch_layers import PadShortcutModule

__all__ = ["ChannelsFirstConvolution", "SmallConvolution", "ThinnedShortcut"]

FEW_WEIGHTS = 2**16
"""Up to which they stay in the nearer caches."""
MANY_WEIGHTS = 2**20


class SmallConvolution(nn.Module):
    """Takes the place of a small `torch.nn.Conv2d`, with its parameters; a weight lies as (3, 3, inputs, outputs)."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__()
        self.weight = nn.Parameter(_by_place(layer.weight.detach()).contiguous().permute(3, 2, 0, 1))
        self.bias = layer.bias

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if there is machine code for it: images keep their size."""
        if not isinstance(layer, nn.Conv2d) or layer.weight.numel() > FEW_WEIGHTS:
            return None
        sizes = layer.kernel_size, layer.stride, layer.padding
        fits = layer.in_channels % LANES == 0 and layer.out_channels % LANES == 0
        return cls(layer) if fits and sizes == ((KERNEL, KERNEL), (1, 1), (1, 1)) else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, height, width)."""
        if torch.is_autocast_enabled("cpu"):
            return nn.functional.conv2d(x, self.weight, self.bias, padding=1)
        made: torch.Tensor = _Convolution.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return made


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        x = _channels_last(x)
        about = Places(x.shape[3], weight.shape[1], weight.shape[0], biased=bias is not None)
        ctx.about = about
        ctx.save_for_backward(x, weight)
        return _convolved(x, _by_place(weight).contiguous(), bias, about)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x, weight), about, dy = ctx.saved_tensors, ctx.about, _channels_last(gradients[0])
        dx = None
        if ctx.needs_input_grad[0]:
            mirrored = _by_place(weight).flip(0, 1).transpose(2, 3).contiguous()
            dx = _convolved(
                dy, mirrored, None, replace(about, inputs=about.outputs, outputs=about.inputs, biased=False)
            )
        d_weight = x.new_empty(KERNEL, KERNEL, about.inputs, about.outputs)
        tensors = x, dy, d_weight
        _kernels(about)[1](len(x), x.shape[2], *(tensor.data_ptr() for tensor in tensors))
        return dx, d_weight.permute(3, 2, 0, 1), dy.sum(dim=(0, 2, 3)) if about.biased else None


def _convolved(x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None, about: Places) -> torch.Tensor:
    """*x*, channels last, by weights of (3, 3, inputs, outputs)."""
    samples, _, height, width = x.shape
    y = torch.empty((samples, about.outputs, height, width), memory_format=torch.channels_last)
    addresses = x.data_ptr(), weights.data_ptr(), 0 if bias is None else bias.data_ptr(), y.data_ptr()
    _kernels(about)[0](samples, height, *addresses)
    return y


@cache
def _kernels(about: Places) -> tuple[Kernel, Kernel]:
    """The convolution and the gradient of its weights, for float32."""
    machine = host_machine(torch.float32)
    program = Program(Part(emit_convolution, about, machine), Part(emit_weight_gradient, about, machine))
    return program.kernel("convolution"), program.kernel("weight_gradient")


def _by_place(weight: torch.Tensor) -> torch.Tensor:
    """(height, width, inputs, outputs) of weights."""
    return weight.permute(2, 3, 1, 0)


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


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
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (dy,), (samples, channels, height, width) = gradients, ctx.input_shape
        dx = dy.new_zeros(samples, height, width, channels).permute(0, 3, 1, 2)
        dx[:, :, :: ctx.stride, :: ctx.stride] = dy[:, :channels]
        return dx, None, None
