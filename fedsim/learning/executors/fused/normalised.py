"""Normalisation with what comes right behind it, as one operation of PyTorch's automatic gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.fused.placed import channels_last
from fedsim.learning.kernels.machine_code import has_kernels, layer_kernel
from fedsim.learning.kernels.shapes import EPSILON, LANES, Normalisation

__all__ = ["FusedNormalisation"]

Normalising = nn.BatchNorm1d | nn.BatchNorm2d | nn.GroupNorm


def _normalisation_of(layer: Normalising, behind: Sequence[nn.Module], *, added: bool) -> Normalisation | None:
    groups = layer.num_groups if isinstance(layer, nn.GroupNorm) else None
    channels = layer.num_channels if isinstance(layer, nn.GroupNorm) else layer.num_features
    if not has_kernels() or channels % LANES or (groups is not None and not _groups_fit(channels, groups)):
        return None
    rectified = len(behind) > 0 and isinstance(behind[0], nn.ReLU)
    pooled = rectified and not added and len(behind) > 1 and _halves(behind[1])
    return Normalisation(channels, groups, added, rectified, pooled)


def _groups_fit(channels: int, groups: int) -> bool:
    size = channels // groups
    return size % LANES == 0 or (size < LANES and size & (size - 1) == 0)


def _halves(layer: nn.Module) -> bool:
    return isinstance(layer, nn.MaxPool1d) and (layer.kernel_size, layer.stride, layer.padding) == (2, 2, 0)


class FusedNormalisation(nn.Module):
    """Takes the place of a normalisation, with its parameters and statistics, and of what comes right behind it."""

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, layer: Normalising, about: Normalisation) -> None:
        """Make machine code where none is yet."""
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        if about.groups is None:
            for name in ("running_mean", "running_var"):
                self.register_buffer(name, getattr(layer, name))
        self.about = about
        for name in ("normalised", "normalised_backward"):
            layer_kernel(name, about)

    @classmethod
    def of(cls, layer: nn.Module, behind: Sequence[nn.Module] = (), *, added: bool = False) -> Self | None:
        """What takes the place of *layer*, if there is a kernel for it.

        Of the layers right *behind* it does a rectifier, and pooling of series by two after that: its ``about`` tells.
        """
        if not isinstance(layer, Normalising):
            return None
        about = _normalisation_of(layer, behind, added=added)
        return None if about is None else cls(layer, about)

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        """Of (samples, channels, length) or (samples, channels, height, width); *other* is added."""
        if x.dim() == 3:
            return self.forward(x.unsqueeze(2), None if other is None else other.unsqueeze(2)).squeeze(2)
        about = replace(self.about, reduced=True) if x.dtype == torch.bfloat16 else self.about
        other = None if other is None else other.to(x.dtype)
        if about.groups is not None or self.training:
            running = () if about.groups is not None else (self.running_mean, self.running_var)
            arguments = x, other, self.weight, self.bias, running, about
            made: torch.Tensor = _Normalised.apply(*arguments)  # type: ignore[no-untyped-call]
            return made
        if torch.is_grad_enabled():
            return self._by_running_statistics(x, other)
        inverses = (self.running_var + EPSILON).rsqrt()
        return _applied(x, other, (self.weight, self.bias), (self.running_mean, inverses), about)

    def _by_running_statistics(self, x: torch.Tensor, other: torch.Tensor | None) -> torch.Tensor:
        functional = nn.functional
        y = functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias)
        if other is not None:
            y = y + other
        if self.about.rectified:
            y = functional.relu(y)
        return functional.max_pool2d(y, (1, 2)) if self.about.pooled else y


def _applied(
    x: torch.Tensor,
    other: torch.Tensor | None,
    weights: tuple[torch.Tensor, torch.Tensor],
    statistics: tuple[torch.Tensor, torch.Tensor],
    about: Normalisation,
) -> torch.Tensor:
    """The normalisation by means and inverse deviations that are given."""
    x, other = channels_last(x), None if other is None else channels_last(other)
    y = _made_like(x, about)
    layer_kernel("normalised_by", about)(*_sizes(x, about), *map(_address, (x, other, *weights, y, *statistics)))
    return y


class _Normalised(torch.autograd.Function):
    """Of (samples, channels, height, width), channels last: the emitters of its kernels say what is done."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        other: torch.Tensor | None,
        weight: torch.Tensor,
        bias: torch.Tensor,
        running: tuple[torch.Tensor, ...],
        about: Normalisation,
    ) -> torch.Tensor:
        x = channels_last(x)
        other = None if other is None else channels_last(other)
        samples, channels, height, width = x.shape
        if about.groups is None and samples * height * width == 1:
            raise ValueError("batch normalisation of one value for each channel: there is nothing to normalise by")
        y = _made_like(x, about)
        units = 1 if about.groups is None else samples
        means, inverses = weight.new_empty(units, channels), weight.new_empty(units, channels)
        tensors = (x, other, weight, bias, y, means, inverses, *(running or (None, None)))
        layer_kernel("normalised", about)(*_sizes(x, about), *map(_address, tensors))
        ctx.about = about
        ctx.save_for_backward(x, y if about.added else None, weight, bias, means, inverses)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, y, weight, bias, means, inverses = ctx.saved_tensors
        about, dy = ctx.about, channels_last(gradients[0])
        dx, d_other = torch.empty_like(x), torch.empty_like(x) if about.added else None
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        room = weight.new_empty(2, about.channels)
        tensors = (dy, x, y, weight, bias, means, inverses, dx, d_other, d_weight, d_bias, room)
        layer_kernel("normalised_backward", about)(*_sizes(x, about), *map(_address, tensors))
        return dx, d_other, d_weight, d_bias, None, None


def _made_like(x: torch.Tensor, about: Normalisation) -> torch.Tensor:
    """Memory for what is made of *x*, channels last."""
    samples, channels, height, width = x.shape
    shape = samples, channels, height, width // 2 if about.pooled else width
    return torch.empty(shape, dtype=x.dtype, memory_format=torch.channels_last)


def _address(tensor: torch.Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _sizes(x: torch.Tensor, about: Normalisation) -> tuple[int, int]:
    """Samples, and rows of each; a batch is one sample where nothing depends on where one begins."""
    samples, _, height, width = x.shape
    if about.groups is None and not about.pooled:
        return 1, samples * height * width
    return samples, height * width
