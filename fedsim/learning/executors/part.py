"""What lies behind a handle of a model's part, or of rows of semantics: tensors by name."""

from __future__ import annotations

from collections.abc import Mapping

import torch

__all__ = ["Part", "by_full_name"]

Part = dict[str, torch.Tensor]


def by_full_name(model: Mapping[str, Part]) -> Part:
    """The tensors of all parts, each by ``part.name``."""
    return {f"{part}.{name}": tensor for part, tensors in model.items() for name, tensor in tensors.items()}
