"""The convolutions of a group of clients, one client after the other: at batch sizes of a few samples, one client's
convolution keeps a core busy. (Grouped convolutions over clients are slower.)

Images are held with channels last, where oneDNN and pooling are fast. The first convolution of a model looks at few
channels; it is a product with the image's patches, as nothing has to be known of its input's gradient. Memory and views
of it are made once for each client: what was just used is still in the cache.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch

from fedsim.learning.executors.batched.images import channels_last
from fedsim.learning.executors.batched.layer import GroupLayer
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.stack import Stack
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.models.layers import Shape

__all__ = ["Convolution", "Front", "convolution"]

FEW_INPUTS = 128  # weights per output channel up to which patches are cheap to copy

_aten = torch.ops.aten


class Front:
    """All convolutions of a group of clients."""

    def __init__(self, convolutions: Sequence[Convolution]) -> None:
        self.convolutions = convolutions
        self._passed: list[list[torch.Tensor]] = []

    def forward(self, xs: Sequence[torch.Tensor], features: torch.Tensor) -> None:
        """Fill the first rows of each client's *features*, (clients, samples, features), from its images."""
        self._passed = []
        for client, x in enumerate(xs):
            passed = [x]
            for convolution in self.convolutions:
                passed.append(convolution.forward(client, passed[-1]))
            features[client, : len(x)].view(passed[-1].shape).copy_(passed[-1])
            self._passed.append(passed)

    def backward(self, d: torch.Tensor, samples: Sequence[int]) -> None:
        """Step along the gradient, given that of the features; each client's first *samples* rows count."""
        images = channels_last(d.view(-1, *self.convolutions[-1].output_shape))
        for client in reversed(range(len(samples))):  # what was made last is in the cache still
            passed, first = self._passed[client], client * d.shape[1]
            gradient: torch.Tensor | None = images[first : first + samples[client]]
            for convolution in reversed(self.convolutions):
                assert gradient is not None
                y = passed.pop()
                gradient = convolution.backward(client, passed[-1], y, gradient)


class Room(NamedTuple):
    """Memory for one client's mini-batch."""

    unpooled: torch.Tensor
    """The same for all clients."""
    pooled: torch.Tensor
    where: torch.Tensor
    """Which value of a square was the largest."""


class Convolution(GroupLayer):
    """A convolution of each client, with pooling and rectifier."""

    def __init__(
        self, recipe: Recipe, block: ConvolutionBlock, weight: torch.Tensor, bias: torch.Tensor | None, clients: int
    ) -> None:
        """*weight* is (outputs, inputs, kernel, kernel)."""
        super().__init__(recipe, weight, bias, clients)
        self._block, self._layer = block, block.layer
        self._weight = Stack.copies(recipe, self._held(weight), clients)
        _, *self._places = block.layer.output_shape(block.input_shape)
        self._memory: dict[str, torch.Tensor] = {}
        self._rooms: dict[tuple[int, int], Room] = {}

    @property
    def output_shape(self) -> Shape:
        """(channels, height, width) of what comes out."""
        return self._block.output_shape

    @property
    def stack(self) -> Stack:
        """Each client's weights, as they are held."""
        return self._weight

    @abstractmethod
    def forward(self, client: int, x: torch.Tensor) -> torch.Tensor:
        """What comes out for one client's samples."""

    @abstractmethod
    def backward(self, client: int, x: torch.Tensor, y: torch.Tensor, d: torch.Tensor) -> torch.Tensor | None:
        """Step along the gradient, given that of what came out, *y*; returns that of *x*, where it is wanted."""

    @abstractmethod
    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        """The weights as they are held: in another order."""

    def _weighted_weight_change(self, weights: Sequence[float]) -> torch.Tensor:
        change = self.shown(self._weight.weighted_change(self._held(self._base_weight), weights))
        return change.contiguous()

    def _pooled(self, client: int, z: torch.Tensor) -> torch.Tensor:
        if self._block.pool == 1:
            return z
        _, y, where = self._room(client, len(z))
        _aten.max_pool2d_with_indices.out(z, [self._block.pool] * 2, out=y, indices=where)
        return y

    def _before_pooling(self, client: int, y: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        """The gradient of what was pooled and rectified."""
        if self._block.rectified:
            d = _aten.threshold_backward(d, y, 0)
        if self.bias is not None:
            self.bias.take(client, d.sum(dim=(0, 2, 3)))  # each of these goes to one place: the sum is the same
        if self._block.pool == 1:
            return d
        z, _, where = self._room(client, len(d))
        square = [self._block.pool] * 2
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


class PatchConvolution(Convolution):
    """The first one, of few channels: a product with all patches of the images."""

    def __init__(
        self, recipe: Recipe, block: ConvolutionBlock, weight: torch.Tensor, bias: torch.Tensor | None, clients: int
    ) -> None:
        super().__init__(recipe, block, weight, bias, clients)
        self._views: dict[tuple[int, int], Views] = {}

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.flatten(1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
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
        return y.relu_() if self._block.rectified else y

    def backward(self, client: int, x: torch.Tensor, y: torch.Tensor, d: torch.Tensor) -> None:
        """A product of gradients and patches; nobody asks for the gradient of the images."""
        views = self._views_of(client, len(x))
        dz = self._before_pooling(client, y, d).permute(0, 2, 3, 1).reshape(views.rows.shape)
        views.patches.copy_(views.windows)  # again: that is quicker than to fetch them from memory
        self._weight.take(client, torch.bmm(views.columns, dz).sum(dim=0).t())

    def _views_of(self, client: int, samples: int) -> Views:
        key = (client, samples)
        if key not in self._views:
            self._views[key] = self._new_views(client, samples)
        return self._views[key]

    def _new_views(self, client: int, samples: int) -> Views:
        layer, (channels, height, width) = self._layer, self._block.input_shape
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
        shared = "unpooled" if self._block.pool > 1 else f"unpooled {client}"
        z = self._images(shared, samples, (layer.out_channels, *self._places))
        return Views(
            padded=padded,
            inside=padded[:, :, edge : edge + height, edge : edge + width],
            windows=windows,
            patches=patches,
            columns=patches.flatten(1, 3).flatten(2),
            weight=self._weight.value[client].t().expand(samples, -1, -1),
            bias=None if self.bias is None else self.bias.value[client].view(1, -1, 1, 1),
            z=z,
            rows=z.permute(0, 2, 3, 1).view(samples, -1, layer.out_channels),
        )


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
        self._products = recipe.products
        layer = block.layer
        self._geometry = [layer.stride] * 2, [layer.padding] * 2, [1, 1], False, [0, 0], 1

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.permute(0, 2, 3, 1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        return held.permute(0, 3, 1, 2)

    def forward(self, client: int, x: torch.Tensor) -> torch.Tensor:
        """Convolution, pooling, rectifier."""
        layer, products = self._layer, self._products
        weight, x = self.shown(self._weight.value[client]), channels_last(x)
        bias = None if self.bias is None else self.bias.value[client]
        if products is None:
            z = torch.conv2d(x, weight, bias, layer.stride, layer.padding)
        else:
            rounded = None if bias is None else bias.to(products)
            z = torch.conv2d(x.to(products), weight.to(products), rounded, layer.stride, layer.padding).to(x.dtype)
        y = self._pooled(client, z)
        return y.relu_() if self._block.rectified else y

    def backward(self, client: int, x: torch.Tensor, y: torch.Tensor, d: torch.Tensor) -> torch.Tensor | None:
        """Convolution's own gradients."""
        dz = self._before_pooling(client, y, d)
        weight = self.shown(self._weight.value[client])
        dtype = self._products or d.dtype
        before, by_weight, _ = _aten.convolution_backward(
            dz.to(dtype), channels_last(x).to(dtype), weight.to(dtype), None, *self._geometry, self._wanted
        )
        self._weight.take(client, by_weight.permute(0, 2, 3, 1).to(d.dtype))
        return None if before is None else before.to(d.dtype)


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
