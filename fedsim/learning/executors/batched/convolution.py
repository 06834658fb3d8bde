"""What every convolution of a group of clients has, however it is computed: weights, biases, and a shape."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch

from fedsim.learning.executors.batched.client_tensors import ClientTensors
from fedsim.learning.executors.batched.layer import GroupLayer
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.models.layers import Shape

__all__ = ["Convolution"]


class Convolution(GroupLayer):
    """A convolution with pooling and rectifier, of each client of a group."""

    def __init__(
        self, recipe: Recipe, block: ConvolutionBlock, weight: torch.Tensor, bias: torch.Tensor | None, clients: int
    ) -> None:
        """*weight* is (outputs, inputs, kernel, kernel)."""
        super().__init__(recipe, weight, bias, clients)
        self.block, self._layer = block, block.layer
        self._weights = ClientTensors.copies(recipe, self._held(weight), clients)
        _, *self._places = block.layer.output_shape(block.input_shape)

    @property
    def output_shape(self) -> Shape:
        """(channels, height, width) of what comes out."""
        return self.block.output_shape

    @property
    def tensors(self) -> ClientTensors:
        """Each client's weights, as they are held."""
        return self._weights

    @abstractmethod
    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        """The weights as they are held: in another order."""

    def _weighted_weight_change(self, weights: Sequence[float]) -> torch.Tensor:
        return self.shown(self._weights.weighted_change(self._held(self._base_weight), weights)).contiguous()
