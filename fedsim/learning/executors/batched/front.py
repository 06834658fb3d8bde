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

from fedsim.learning.executors.batched.layer import GroupLayer
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.stack import Stack
from fedsim.learning.executors.batched.support import ConvolutionBlock

__all__ = ["Convolution", "Front", "convolution"]

FEW_INPUTS = 128  # weights per output channel up to which patches are cheap to copy

_aten = torch.ops.aten


class Front:
    """All convolutions of a group; `forward` and `backward` are one client's."""

    def __init__(self, convolutions: Sequence[Convolution]) -> None:
        self.convolutions = convolutions
        self._saved: dict[int, list[Any]] = {}

    def forward(self, client: int, x: torch.Tensor) -> torch.Tensor:
        """(samples, channels, height, width) to what the last convolution yields, pooled and rectified."""
        saved = self._saved[client] = []
        for convolution in self.convolutions:
            x, kept = convolution.forward(client, x)
            saved.append(kept)
        return x

    def backward(self, client: int, d: torch.Tensor) -> None:
        """Step along the gradient, given that of what the last convolution yielded."""
        saved = self._saved.pop(client)
        gradient: torch.Tensor | None = d
        for convolution in reversed(self.convolutions):
            assert gradient is not None
            gradient = convolution.backward(client, gradient, saved.pop())


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
        # Only its shape and the order of its axes are read: to keep what was pooled would cost the cache dearly.
        self._unpooled = weight.new_empty(0)

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

    def _pooled(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        pool = self._block.pool
        if pool == 1:
            return z, None
        if len(z) > len(self._unpooled):
            self._unpooled = torch.empty_like(z)
        y, where = _aten.max_pool2d_with_indices(z, [pool, pool])
        return y, where

    def _before_pooling(self, d: torch.Tensor, where: torch.Tensor | None) -> torch.Tensor:
        if where is None:
            return d
        square = [self._block.pool] * 2
        spread: torch.Tensor = _aten.max_pool2d_with_indices_backward(
            d, self._unpooled[: len(d)], square, square, [0, 0], [1, 1], False, where
        )
        return spread

    def _before_rectifier(self, d: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rectified: torch.Tensor = _aten.threshold_backward(d, y, 0) if self._block.rectified else d
        return rectified


class PatchConvolution(Convolution):
    """The first one, of few channels: a product with all patches of the images."""

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.flatten(1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        layer = self._layer
        return held.view(layer.out_channels, layer.in_channels, layer.kernel, layer.kernel)

    def forward(self, client: int, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Biases are added after pooling, where fewer numbers are left: a maximum moves with them."""
        if self._layer.padding:
            x = torch.nn.functional.pad(x, [self._layer.padding] * 4)
        patches, (height, width) = self._patches(x)
        weight = self.weight.value[client]
        z = torch.bmm(patches.transpose(1, 2), weight.t().expand(len(x), -1, -1))
        z = z.view(len(x), height, width, -1).permute(0, 3, 1, 2)
        y, where = self._pooled(z)
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
        patches, _ = self._patches(x)  # again: to copy them is quicker than to fetch them from memory
        self.weight.take(client, torch.bmm(patches, dz).sum(dim=0).t())

    def _patches(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
        """Of padded images: (samples, inputs x kernel x kernel, places), and the places' (height, width)."""
        kernel, stride = self._layer.kernel, self._layer.stride
        samples, channels, rows, columns = x.shape
        height, width = (rows - kernel) // stride + 1, (columns - kernel) // stride + 1
        by_sample, by_channel, by_row, by_column = x.stride()
        windows = x.as_strided(
            (samples, channels, kernel, kernel, height, width),
            (by_sample, by_channel, by_row, by_column, stride * by_row, stride * by_column),
        )
        return windows.reshape(samples, channels * kernel * kernel, height * width), (height, width)


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
        x = x.contiguous(memory_format=torch.channels_last)
        weight = self.weight.value[client].permute(0, 3, 1, 2)
        bias = None if self.bias is None else self.bias.value[client]
        z = torch.conv2d(x, weight, bias, stride=layer.stride, padding=layer.padding)
        y, where = self._pooled(z)
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
