"""Scores of one model: convolutions in chunks that stay in the cache, then one product for each layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.batched.images import channels_last, pooled
from fedsim.learning.executors.batched.support import Architecture, ConvolutionBlock
from fedsim.learning.executors.trainer import Part, Score

__all__ = ["scores_of"]

CHUNK = 50
"""Images that go through the convolutions together."""


def scores_of(
    architecture: Architecture, dataset: FederatedDataset, model: Mapping[str, Part], ids: npt.NDArray[np.int64]
) -> Score:
    """Loss, summed, and correct answers on the samples *ids*."""
    assert dataset.y is not None
    like = next(iter(model[architecture.back[0].part].values()))
    x = torch.from_numpy(dataset.samples(ids)).to(like)
    y = torch.from_numpy(dataset.y[ids]).to(like.device)
    h = _features(architecture, model, x)
    for block in architecture.back:
        tensors = model[block.part]
        h = torch.nn.functional.linear(
            h, tensors[f"{block.layer.name}.weight"], tensors.get(f"{block.layer.name}.bias")
        )
        if block.rectified:
            h.relu_()
    if dataset.regression:
        return Score(float(torch.nn.functional.mse_loss(h.squeeze(1), y.to(h.dtype), reduction="sum")), 0)
    loss = torch.nn.functional.cross_entropy(h, y, reduction="sum")
    return Score(float(loss), int((h.argmax(dim=1) == y).sum()))


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
