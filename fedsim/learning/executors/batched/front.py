"""The convolutions of a group of clients, one client after the other: at batch sizes of a few samples, one client's
convolution keeps a core busy, and its activations stay in the cache. (Grouped convolutions over clients are slower.)

Images are held with channels last, where oneDNN and pooling are fast. The first convolution of a model looks at few
channels; it is a product with the image's patches, as nothing has to be known of its input's gradient.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch

from fedsim.learning.executors.batched.images import channels_last
from fedsim.learning.executors.batched.layer import GroupLayer
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.stack import Stack
from fedsim.learning.executors.batched.support import ConvolutionBlock

__all__ = ["Convolution", "Front", "convolution"]

FEW_INPUTS = 128  # weights per output channel up to which patches are cheap to copy

_aten = torch.ops.aten


class Front:
    """All convolutions of a group of clients."""

    def __init__(self, convolutions: Sequence[Convolution]) -> None:
        self.convolutions = convolutions
        self._kept: list[list[Any]] = []

    def forward(self, xs: Sequence[torch.Tensor], features: torch.Tensor) -> None:
        """Fill the first rows of each client's *features*, (clients, samples, features), from its images."""
        self._kept = []
        for client, x in enumerate(xs):
            kept = []
            for convolution in self.convolutions:
                x, needed = convolution.forward(client, x)
                kept.append(needed)
            features[client, : len(x)].view(x.shape).copy_(x)
            self._kept.append(kept)

    def backward(self, d: torch.Tensor, samples: Sequence[int]) -> None:
        """Step along the gradient, given that of the features; each client's first *samples* rows count."""
        shape = self.convolutions[-1].output_shape
        images = channels_last(d.view(-1, *shape))
        for client in reversed(range(len(self._kept))):  # what was made last is in the cache still
            kept, first = self._kept[client], client * d.shape[1]
            gradient: torch.Tensor | None = images[first : first + samples[client]]
            for convolution in reversed(self.convolutions):
                assert gradient is not None
                gradient = convolution.backward(client, gradient, kept.pop())


class Convolution(GroupLayer):
    """A convolution of each client, with pooling and rectifier."""

    def __init__(
        self, recipe: Recipe, block: ConvolutionBlock, weight: torch.Tensor, bias: torch.Tensor | None, clients: int
    ) -> None:
        """*weight* is (outputs, inputs, kernel, kernel)."""
        super().__init__(recipe, weight, bias, clients)
        self._block = block
        self._layer = block.layer
        self.weight = Stack.copies(recipe, self._held(weight), clients)
        _, height, width = block.layer.output_shape(block.input_shape)
        self._unpooled = height, width
        self._rooms: dict[str, torch.Tensor] = {}

    @property
    def output_shape(self) -> tuple[int, ...]:
        """(channels, height, width) of what comes out."""
        return self._block.output_shape

    @property
    def stack(self) -> Stack:
        """Each client's weights, as they are held."""
        return self.weight

    @abstractmethod
    def forward(self, client: int, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """What comes out for one client's samples, and what `backward` needs."""

    @abstractmethod
    def backward(self, client: int, d: torch.Tensor, kept: Any) -> torch.Tensor | None:
        """Step along the gradient, given that of what came out; returns that of what went in, where it is wanted."""

    @abstractmethod
    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        """The weights as they are held: in another order."""

    def _weighted_weight_change(self, weights: Sequence[float]) -> torch.Tensor:
        return self.shown(self.weight.weighted_change(self._held(self._base_weight), weights)).contiguous()

    def _pooled(self, client: int, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        pool = self._block.pool
        if pool == 1:
            return z, None
        shape = (len(z), *self._block.output_shape)
        y = self._room(f"pooled {client}", shape, z.dtype)
        where = self._room(f"where {client}", shape, torch.int64)
        _aten.max_pool2d_with_indices.out(z, [pool, pool], out=y, indices=where)
        return y, where

    def _before_pooling(self, d: torch.Tensor, where: torch.Tensor | None) -> torch.Tensor:
        if where is None:
            return d
        square, (height, width) = [self._block.pool] * 2, self._unpooled
        # Of what was pooled only the shape and the order of the axes are read.
        shaped_like_it = self._room("unpooled", (len(d), d.shape[1], height, width), d.dtype)
        spread: torch.Tensor = _aten.max_pool2d_with_indices_backward(
            d, shaped_like_it, square, square, [0, 0], [1, 1], False, where
        )
        return spread

    def _room(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Memory for images, channels last: the same at every step, as memory that was just used is still in the cache."""
        room = self._rooms.get(name)
        if room is None or len(room) < shape[0]:
            room = torch.empty(
                shape, dtype=dtype, device=self._base_weight.device, memory_format=torch.channels_last
            )
            self._rooms[name] = room
        return room[: shape[0]]

    def _before_rectifier(self, d: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rectified: torch.Tensor = _aten.threshold_backward(d, y, 0) if self._block.rectified else d
        return rectified


class PatchConvolution(Convolution):
    """The first one, of few channels: a product with all patches of the images."""

    _patch_room = torch.empty(0)

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.flatten(1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        layer = self._layer
        return held.view(layer.out_channels, layer.in_channels, layer.kernel, layer.kernel)

    def forward(self, client: int, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Biases are added after pooling, where fewer numbers are left: a maximum moves with them."""
        if self._layer.padding:
            x = torch.nn.functional.pad(x, [self._layer.padding] * 4)
        patches = self._patches(x)
        weight = self.weight.value[client]
        z = self._room("unpooled", (len(x), len(weight), *self._unpooled), x.dtype)
        rows = z.permute(0, 2, 3, 1).view(len(x), -1, len(weight))
        torch.bmm(patches.transpose(1, 2), weight.t().expand(len(x), -1, -1), out=rows)
        y, where = self._pooled(client, z)
        if self.bias is not None:
            y += self.bias.value[client].view(1, -1, 1, 1)
        if self._block.rectified:
            y.relu_()
        return y, (x, where, y)

    def backward(self, client: int, d: torch.Tensor, kept: Any) -> None:
        """A product of gradients and patches; nobody asks for the gradient of the images."""
        x, where, y = kept
        d = self._before_rectifier(d, y)
        if self.bias is not None:
            self.bias.take(client, d.sum(dim=(0, 2, 3)))
        dz = self._before_pooling(d, where).permute(0, 2, 3, 1).reshape(len(d), -1, d.shape[1])
        patches = self._patches(x)  # again: to copy them is quicker than to fetch them from memory
        self.weight.take(client, torch.bmm(patches, dz).sum(dim=0).t())

    def _patches(self, x: torch.Tensor) -> torch.Tensor:
        """(samples, inputs x kernel x kernel, places) of padded images."""
        kernel, stride = self._layer.kernel, self._layer.stride
        by_sample, by_channel, by_row, by_column = x.stride()
        windows = x.as_strided(
            (*x.shape[:2], kernel, kernel, *self._unpooled),
            (by_sample, by_channel, by_row, by_column, stride * by_row, stride * by_column),
        )
        if len(x) > len(self._patch_room):
            self._patch_room = torch.empty_like(windows, memory_format=torch.contiguous_format)
        return self._patch_room[: len(x)].copy_(windows).flatten(1, 3).flatten(2)


class DirectConvolution(Convolution):
    """oneDNN's convolution, with channels last."""

    def __init__(
        self,
        recipe: Recipe,
        block: ConvolutionBlock,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        clients: int,
        *,
        first: bool,
    ) -> None:
        super().__init__(recipe, block, weight, bias, clients)
        self._wanted = [not first, True, False]  # gradients: of the input and the weight; the bias's is simpler here

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.permute(0, 2, 3, 1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        return held.permute(0, 3, 1, 2)

    def forward(self, client: int, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Convolution, pooling, rectifier."""
        layer = self._layer
        x = channels_last(x)
        weight = self.weight.value[client].permute(0, 3, 1, 2)
        bias = None if self.bias is None else self.bias.value[client]
        z = torch.conv2d(x, weight, bias, stride=layer.stride, padding=layer.padding)
        y, where = self._pooled(client, z)
        if self._block.rectified:
            y.relu_()
        return y, (x, weight, where, y)

    def backward(self, client: int, d: torch.Tensor, kept: Any) -> torch.Tensor | None:
        """Convolution's own gradients."""
        x, weight, where, y = kept
        layer = self._layer
        d = self._before_rectifier(d, y)
        if self.bias is not None:
            self.bias.take(client, d.sum(dim=(0, 2, 3)))
        dz = self._before_pooling(d, where)
        before: torch.Tensor | None
        before, by_weight, _ = _aten.convolution_backward(
            dz,
            x,
            weight,
            [layer.out_channels],
            [layer.stride] * 2,
            [layer.padding] * 2,
            [1, 1],
            False,
            [0, 0],
            1,
            self._wanted,
        )
        self.weight.take(client, by_weight.permute(0, 2, 3, 1))
        return before


def convolution(
    recipe: Recipe,
    block: ConvolutionBlock,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    clients: int,
    *,
    first: bool,
) -> Convolution:
    """The faster kind for a block."""
    if first and weight[0].numel() <= FEW_INPUTS:
        return PatchConvolution(recipe, block, weight, bias, clients)
    return DirectConvolution(recipe, block, weight, bias, clients, first=first)
