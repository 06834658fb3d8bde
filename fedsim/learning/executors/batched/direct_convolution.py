"""A convolution by oneDNN, with channels last."""

from __future__ import annotations

import torch

from fedsim.learning.executors.batched.client_convolution import ClientConvolution
from fedsim.learning.executors.batched.images import channels_last
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock

__all__ = ["DirectConvolution"]

_aten = torch.ops.aten


class DirectConvolution(ClientConvolution):
    """oneDNN's convolution, with channels last."""

    def __init__(
        self, recipe: Recipe, block: ConvolutionBlock, weight: torch.Tensor, bias: torch.Tensor | None, clients: int
    ) -> None:
        super().__init__(recipe, block, weight, bias, clients)
        self._wanted = [not block.first, True, False]  # gradients: of the input, the weight; the bias's is simpler here
        layer = block.layer
        self._geometry = [layer.stride] * 2, [layer.padding] * 2, [1, 1], False, [0, 0], 1

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.permute(0, 2, 3, 1)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        """With channels where they are sent."""
        return held.permute(0, 3, 1, 2)

    def forward(self, client: int, x: torch.Tensor) -> torch.Tensor:
        """Convolution, pooling, rectifier."""
        layer, products = self._layer, self._recipe.products
        weight, x = self.shown(self._weights.value[client]), channels_last(x)
        bias = None if self.bias is None else self.bias.value[client]
        if products is None:
            z = torch.conv2d(x, weight, bias, layer.stride, layer.padding)
        else:
            rounded = None if bias is None else bias.to(products)
            z = torch.conv2d(x.to(products), weight.to(products), rounded, layer.stride, layer.padding).to(x.dtype)
        y = self._pooled(client, z)
        return y.relu_() if self.block.rectified else y

    def backward(self, client: int, x: torch.Tensor, y: torch.Tensor, d: torch.Tensor) -> torch.Tensor | None:
        """Convolution's own gradients."""
        dz = self._before_pooling(client, y, d)
        weight = self.shown(self._weights.value[client])
        dtype = self._recipe.products or d.dtype
        before, by_weight, _ = _aten.convolution_backward(
            dz.to(dtype), channels_last(x).to(dtype), weight.to(dtype), None, *self._geometry, self._wanted
        )
        self._weights.take(client, by_weight.permute(0, 2, 3, 1).to(d.dtype))
        return None if before is None else before.to(d.dtype)
