"""A convolution of one client at a time: at batch sizes of a few samples, that keeps a core busy.

Memory and views of it are made once for each client: what was just used is still in the cache.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import torch

from fedsim.learning.executors.batched.convolution import Convolution
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.models.layers import Shape

__all__ = ["ClientConvolution"]

_aten = torch.ops.aten


class Room(NamedTuple):
    """Memory for one client's mini-batch."""

    unpooled: torch.Tensor
    """The same for all clients."""
    pooled: torch.Tensor
    where: torch.Tensor
    """Which value of a square was the largest."""


class ClientConvolution(Convolution):
    """A convolution that is computed for one client after the other."""

    def __init__(
        self, recipe: Recipe, block: ConvolutionBlock, weight: torch.Tensor, bias: torch.Tensor | None, clients: int
    ) -> None:
        """*weight* is (outputs, inputs, kernel, kernel)."""
        super().__init__(recipe, block, weight, bias, clients)
        self._memory: dict[str, torch.Tensor] = {}
        self._rooms: dict[tuple[int, int], Room] = {}

    @abstractmethod
    def forward(self, client: int, x: torch.Tensor) -> torch.Tensor:
        """What comes out for one client's samples."""

    @abstractmethod
    def backward(self, client: int, x: torch.Tensor, y: torch.Tensor, d: torch.Tensor) -> torch.Tensor | None:
        """Step along the gradient, given that of what came out, *y*; returns that of *x*, where it is wanted."""

    def _pooled(self, client: int, z: torch.Tensor) -> torch.Tensor:
        if self.block.pool == 1:
            return z
        _, y, where = self._room(client, len(z))
        _aten.max_pool2d_with_indices.out(z, [self.block.pool] * 2, out=y, indices=where)
        return y

    def _before_pooling(self, client: int, y: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        """The gradient of what was pooled and rectified."""
        if self.block.rectified:
            d = _aten.threshold_backward(d, y, 0)
        if self.bias is not None:
            self.bias.take(client, d.sum(dim=(0, 2, 3)))  # each of these goes to one place: the sum is the same
        if self.block.pool == 1:
            return d
        z, _, where = self._room(client, len(d))
        square = [self.block.pool] * 2
        # Of what was pooled only the shape and the order of the axes are read.
        spread: torch.Tensor = _aten.max_pool2d_with_indices_backward(
            d, z, square, square, [0, 0], [1, 1], False, where
        )
        return spread

    def _room(self, client: int, samples: int) -> Room:
        key = (client, samples)
        if key not in self._rooms:
            unpooled = self._images("unpooled", samples, (self._layer.out_channels, *self._places))
            pooled = self._images(f"pooled {client}", samples, self.output_shape)
            where = self._images(f"where {client}", samples, self.output_shape, torch.int64)
            self._rooms[key] = Room(unpooled, pooled, where)
        return self._rooms[key]

    def _images(self, name: str, samples: int, shape: Shape, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Uninitialised images with channels last; those of one name share their memory."""
        images = self._memory.get(name)
        if images is None or len(images) < samples:
            like = self._base_weight
            images = torch.empty(
                (samples, *shape), dtype=dtype or like.dtype, device=like.device, memory_format=torch.channels_last
            )
            self._memory[name] = images
        return images[:samples]
