"""What lies behind a handle of a model's part, or of rows of semantics: tensors by name."""

from __future__ import annotations

import torch

__all__ = ["Part"]

Part = dict[str, torch.Tensor]
