"""Convolutions of images that are faster with channels first: those with many weights, whose images are small."""

from __future__ import annotations

from typing import Self

import torch
from torch import nn

__all__ = ["ChannelsFirstConvolution"]

MANY_WEIGHTS = 2**20


class ChannelsFirstConvolution(nn.Module):
    """Takes the place of a `torch.nn.Conv2d`, with its parameters."""

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
