"""Tallies of one model: convolutions in chunks that stay in the cache, then one product for each layer."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from fedsim.learning.executors.batched.images import channels_last, pooled
from fedsim.learning.executors.batched.support import Architecture, ConvolutionBlock
from fedsim.learning.executors.trainer import Part, Tally

__all__ = ["tally_of"]

CHUNK = 50
"""Images that go through the convolutions together."""


def tally_of(
    architecture: Architecture, model: Mapping[str, Part], x: torch.Tensor, y: torch.Tensor, *, regression: bool
) -> Tally:
    """Loss, summed, and correct answers on the samples *x*, whose labels or values are *y*."""
    h = _features(architecture, model, x)
    for block in architecture.back:
        tensors = model[block.part]
        h = torch.nn.functional.linear(
            h, tensors[f"{block.layer.name}.weight"], tensors.get(f"{block.layer.name}.bias")
        )
        if block.rectified:
            h.relu_()
    if regression:
        loss = torch.nn.functional.mse_loss(h.squeeze(1), y.to(h.dtype), reduction="sum")
        return loss, torch.zeros_like(loss)
    return torch.nn.functional.cross_entropy(h, y, reduction="sum"), (h.argmax(dim=1) == y).sum()


def _features(architecture: Architecture, model: Mapping[str, Part], x: torch.Tensor) -> torch.Tensor:
    if not architecture.front:
        return x.flatten(1)
    chunks = []
    for first in range(0, len(x), CHUNK):
        h = x[first : first + CHUNK]
        for block in architecture.front:
            h = _convolved(block, model[block.part], h)
        chunks.append(h.flatten(1))
    return torch.cat(chunks)


def _convolved(block: ConvolutionBlock, tensors: Part, x: torch.Tensor) -> torch.Tensor:
    layer = block.layer
    weight, bias = tensors[f"{layer.name}.weight"], tensors.get(f"{layer.name}.bias")
    y = torch.conv2d(channels_last(x), channels_last(weight), bias, stride=layer.stride, padding=layer.padding)
    if block.pool > 1:
        y = pooled(y, block.pool)
    return y.relu_() if block.rectified else y
