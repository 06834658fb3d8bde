"""The convolutions of a group of clients, all at once: for devices on which many small operations are slow.

All images of a step are one tensor, (clients, channels, samples, height, width), whose samples beyond those of a client
are zero. A convolution is a copy of all patches and one batched product with everybody's weights; pooling, rectifier
and gradients are one operation each. Nothing is added up in an order that may change: a pooling square hands its
gradient to one place, and what patches hand back to images is gathered by image (`torch.nn.functional.fold`).

Memory is that of one layer's patches at a time, which are copied again for the gradient. Leaves out convolutions of few
clients with many samples each, for which a library's own convolutions are better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from fedsim.learning.executors.batched.conv_stack import ConvStack
from fedsim.learning.executors.batched.convolution import Convolution
from fedsim.learning.executors.batched.samples import padded
from fedsim.learning.executors.matrix import product

__all__ = ["StackedConvStack", "StackedConvolution"]


class _Kept(NamedTuple):
    """What a convolution's gradient needs."""

    x: torch.Tensor
    """What went in."""
    where: torch.Tensor | None
    """Which place of a square was its maximum; None without pooling."""
    y: torch.Tensor
    """What came out."""


class StackedConvolution(Convolution):
    """A convolution of all clients, with pooling and rectifier."""

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.flatten(1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        """With inputs and kernel apart."""
        layer = self._layer
        return held.view(layer.out_channels, layer.in_channels, layer.kernel, layer.kernel)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, _Kept]:
        """(clients, channels, samples, height, width) of the first clients to the like, and what `backward` needs.

        Biases are added after pooling, where fewer numbers are left: a maximum moves with them.
        """
        clients, _, samples, _, _ = x.shape
        z = product(self._weights.value[:clients], self._patches(x), self._recipe.products)
        y, where = self._pooled(z.view(clients, -1, samples, *self._places))
        if self.bias is not None:
            y += self.bias.value[:clients, :, None, None, None]
        if self.block.rectified:
            y.relu_()
        return y, _Kept(x, where, y)

    def backward(self, d: torch.Tensor, kept: _Kept) -> torch.Tensor | None:
        """Step along the gradient, given that of what came out; returns that of what went in, where it is wanted."""
        active = slice(len(d))
        if self.block.rectified:
            d = torch.ops.aten.threshold_backward(d, kept.y, 0)
        if self.bias is not None:
            self.bias.take(active, d.sum(dim=(2, 3, 4)))
        dz = self._before_pooling(d, kept.where)
        before = None if self.block.first else self._before(dz, kept.x.shape)
        patches = self._patches(kept.x).transpose(1, 2)
        if self._recipe.plain and self._recipe.products is None:
            self._weights.value[active].baddbmm_(dz, patches, alpha=-self._recipe.learning_rate)
        else:
            self._weights.take(active, product(dz, patches, self._recipe.products))
        return before

    def _patches(self, x: torch.Tensor) -> torch.Tensor:
        """(clients, channels x kernel x kernel, samples x places), in new memory where a kernel has several places."""
        layer = self._layer
        if layer.padding:
            x = torch.nn.functional.pad(x, [layer.padding] * 4)
        windows = x.unfold(3, layer.kernel, layer.stride).unfold(4, layer.kernel, layer.stride)
        return windows.permute(0, 1, 5, 6, 2, 3, 4).flatten(4).flatten(1, 3)

    def _before(self, dz: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        """The gradient of what went in, (clients, channels, samples, height, width)."""
        clients, channels, samples, height, width = shape
        layer = self._layer
        by_patch = product(self._weights.value[:clients].transpose(1, 2), dz, self._recipe.products)
        by_sample = by_patch.view(*by_patch.shape[:2], samples, -1).transpose(1, 2).flatten(0, 1)
        images = torch.nn.functional.fold(
            by_sample, (height, width), layer.kernel, padding=layer.padding, stride=layer.stride
        )
        return images.view(clients, samples, channels, height, width).transpose(1, 2)

    def _pooled(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The maximum of each square, and its place in its image."""
        pool = self.block.pool
        if pool == 1:
            return z, None
        y, where = torch.nn.functional.max_pool2d(z.flatten(0, 2), pool, return_indices=True)
        return y.view(*z.shape[:3], *y.shape[1:]), where

    def _before_pooling(self, d: torch.Tensor, where: torch.Tensor | None) -> torch.Tensor:
        """(clients, channels, samples x places): squares do not overlap, so no place is written twice."""
        clients, channels, samples, _, _ = d.shape
        if where is None:
            return d.flatten(2)
        height, width = self._places
        spread = d.new_zeros(len(where), height * width)
        spread.scatter_(1, where.flatten(1), d.flatten(3).flatten(0, 2))
        return spread.view(clients, channels, samples * height * width)


class StackedConvStack(ConvStack[StackedConvolution]):
    """All convolutions of a group of clients, as one stack."""

    def __init__(self, convolutions: Sequence[StackedConvolution]) -> None:
        super().__init__(convolutions)
        self._kept: list[_Kept] = []

    def forward(self, xs: Sequence[torch.Tensor], features: torch.Tensor) -> None:
        """One operation for each layer."""
        x = padded(xs, features.shape[1]).transpose(1, 2)
        self._kept = []
        for convolution in self.convolutions:
            x, kept = convolution.forward(x)
            self._kept.append(kept)
        features.view(*features.shape[:2], *self.convolutions[-1].output_shape).copy_(x.transpose(1, 2))

    def backward(self, d: torch.Tensor, samples: Sequence[int]) -> None:
        """One operation for each layer."""
        shape = self.convolutions[-1].output_shape
        gradient: torch.Tensor | None = d.view(*d.shape[:2], *shape).transpose(1, 2)
        for convolution in reversed(self.convolutions):
            assert gradient is not None
            gradient = convolution.backward(gradient, self._kept.pop())
