"""What lies behind a handle of a model's part, or of rows of semantics: tensors by name."""

from __future__ import annotations

from collections.abc import Mapping

import torch

__all__ = ["TensorDict", "by_full_name"]

TensorDict = dict[str, torch.Tensor]


def by_full_name(model: Mapping[str, TensorDict]) -> TensorDict:
    """The tensors of all parts, each by ``part.name``."""
    return {f"{part}.{name}": tensor for part, tensors in model.items() for name, tensor in tensors.items()}
