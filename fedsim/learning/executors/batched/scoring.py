"""Tallies of one model: convolutions in chunks that stay in the cache, then one product for each layer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch

from fedsim.learning.executors.batched.compiled_scoring import compiled_features
from fedsim.learning.executors.batched.images import channels_last, pooled
from fedsim.learning.executors.batched.layer import layer_tensors
from fedsim.learning.executors.batched.support import Architecture, ConvolutionBlock
from fedsim.learning.executors.matrix import Matrix
from fedsim.learning.executors.trainer import Tally, TensorDict, infinite_unless_finite

__all__ = ["forward", "tally_of"]

CHUNK = 50
"""Images that go through the convolutions together; a change may move the last bit, as of `EVALUATION_BATCH`."""


def forward(
    architecture: Architecture,
    model: Mapping[str, TensorDict],
    x: torch.Tensor,
    *,
    compiled: bool = False,
    products: torch.dtype | None = None,
) -> torch.Tensor:
    """(samples, outputs) of the last layer for the samples *x*.

    *compiled* says whether convolutions are in machine code of our own. *products* is the type to which the factors of
    products are rounded; None: they are taken as they are.
    """
    features = partial(compiled_features, architecture.conv_stack) if compiled else partial(_features, architecture)
    h = features(model, x, products)
    for block in architecture.dense_stack:
        weight, bias = layer_tensors(model, block)
        h = _with(Matrix(weight, products).times_transposed(h), bias)
        if block.rectified:
            h.relu_()
    return h


def tally_of(scores: torch.Tensor, y: torch.Tensor, *, regression: bool) -> Tally:
    """Loss, summed, and predictions of *scores* for samples whose labels or values are *y*."""
    if regression:
        values = scores.squeeze(1)
        loss = torch.nn.functional.mse_loss(values, y.to(scores.dtype), reduction="sum")
        return infinite_unless_finite(loss, scores), values
    loss = torch.nn.functional.cross_entropy(scores, y, reduction="sum")
    return infinite_unless_finite(loss, scores), scores.argmax(dim=1)


def _with(y: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return y if bias is None else y.add_(bias)


def _features(
    architecture: Architecture, model: Mapping[str, TensorDict], x: torch.Tensor, products: torch.dtype | None
) -> torch.Tensor:
    if not architecture.conv_stack:
        return x.flatten(1)
    chunks = []
    for first in range(0, len(x), CHUNK):
        h = x[first : first + CHUNK]
        for block in architecture.conv_stack:
            h = _convolved(block, *layer_tensors(model, block), h, products)
        chunks.append(h.flatten(1))
    return torch.cat(chunks)


def _convolved(
    block: ConvolutionBlock,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    x: torch.Tensor,
    products: torch.dtype | None,
) -> torch.Tensor:
    layer, dtype = block.layer, products or x.dtype
    bias = None if bias is None else bias.to(dtype)
    y = torch.conv2d(channels_last(x).to(dtype), channels_last(weight).to(dtype), bias, layer.stride, layer.padding)
    y = y.to(x.dtype)
    if block.pool > 1:
        y = pooled(y, block.pool)
    return y.relu_() if block.rectified else y
