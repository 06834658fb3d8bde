"""The first convolution of a model: of few channels, and nobody asks for the gradient of its input."""

from __future__ import annotations

from typing import NamedTuple

import torch

from fedsim.learning.executors.batched.client_convolution import ClientConvolution
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock

__all__ = ["FEW_INPUTS", "PatchConvolution"]

FEW_INPUTS = 128
"""Weights of an output channel up to which patches are cheap to copy; a change may move the last bit, so it would be
another numeric family."""


class Views(NamedTuple):
    """What one client's mini-batch needs of a `PatchConvolution`: views of its memory and of its weights."""

    padded: torch.Tensor
    """(samples, inputs, height, width), zero at the edges."""
    inside: torch.Tensor
    """All of it but the edges."""
    windows: torch.Tensor
    """(samples, inputs, kernel, kernel, height, width) of it, overlapping."""
    patches: torch.Tensor
    """Memory for a copy of them."""
    columns: torch.Tensor
    """That memory as (samples, inputs x kernel x kernel, places)."""
    weight: torch.Tensor
    """(samples, inputs x kernel x kernel, outputs), the same for each sample."""
    bias: torch.Tensor | None
    z: torch.Tensor
    """(samples, outputs, height, width), channels last."""
    rows: torch.Tensor
    """The same as (samples, places, outputs)."""


class PatchConvolution(ClientConvolution):
    """The first one, of few channels: a product with all patches of the images."""

    def __init__(
        self, recipe: Recipe, block: ConvolutionBlock, weight: torch.Tensor, bias: torch.Tensor | None, clients: int
    ) -> None:
        super().__init__(recipe, block, weight, bias, clients)
        self._views: dict[tuple[int, int], Views] = {}

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.flatten(1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        """With inputs and kernel apart."""
        layer = self._layer
        return held.view(layer.out_channels, layer.in_channels, layer.kernel, layer.kernel)

    def forward(self, client: int, x: torch.Tensor) -> torch.Tensor:
        """Biases are added after pooling, where fewer numbers are left: a maximum moves with them."""
        views = self._views_of(client, len(x))
        views.inside.copy_(x)
        views.patches.copy_(views.windows)
        torch.bmm(views.columns.transpose(1, 2), views.weight, out=views.rows)
        y = self._pooled(client, views.z)
        if views.bias is not None:
            y += views.bias
        return y.relu_() if self.block.rectified else y

    def backward(self, client: int, x: torch.Tensor, y: torch.Tensor, d: torch.Tensor) -> None:
        """A product of gradients and patches; nobody asks for the gradient of the images."""
        views = self._views_of(client, len(x))
        dz = self._before_pooling(client, y, d).permute(0, 2, 3, 1).reshape(views.rows.shape)
        views.patches.copy_(views.windows)  # again: that is quicker than to fetch them from memory
        self._weights.take(client, torch.bmm(views.columns, dz).sum(dim=0).t())

    def _views_of(self, client: int, samples: int) -> Views:
        key = (client, samples)
        if key not in self._views:
            self._views[key] = self._new_views(client, samples)
        return self._views[key]

    def _new_views(self, client: int, samples: int) -> Views:
        layer, (channels, height, width) = self._layer, self.block.input_shape
        edge, kernel, stride = layer.padding, layer.kernel, layer.stride
        padded = self._base_weight.new_zeros(samples, channels, height + 2 * edge, width + 2 * edge)
        by_sample, by_channel, by_row, by_column = padded.stride()
        windows = padded.as_strided(
            (samples, channels, kernel, kernel, *self._places),
            (by_sample, by_channel, by_row, by_column, stride * by_row, stride * by_column),
        )
        patches = self._images("patches", samples * channels, (kernel * kernel, *self._places))
        patches = patches.as_strided(windows.shape, torch.empty(windows.shape, device="meta").stride())
        # What is not pooled is kept until the gradient is there, so that each client needs memory of its own.
        shared = "unpooled" if self.block.pool > 1 else f"unpooled {client}"
        z = self._images(shared, samples, (layer.out_channels, *self._places))
        return Views(
            padded=padded,
            inside=padded[:, :, edge : edge + height, edge : edge + width],
            windows=windows,
            patches=patches,
            columns=patches.flatten(1, 3).flatten(2),
            weight=self._weights.value[client].t().expand(samples, -1, -1),
            bias=None if self.bias is None else self.bias.value[client].view(1, -1, 1, 1),
            z=z,
            rows=z.permute(0, 2, 3, 1).view(samples, -1, layer.out_channels),
        )
