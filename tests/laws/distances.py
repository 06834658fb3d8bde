"""How far apart two models are."""

from __future__ import annotations

from collections.abc import Mapping

import torch


def distance(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> float:
    """The norm of the difference of all tensors, in float64."""
    assert one.keys() == other.keys()
    return sum(float((one[name].double() - other[name].double()).square().sum()) for name in one) ** 0.5
