"""Whether factors of products are to be rounded just now, and by whom."""

from __future__ import annotations

import torch

from fedsim.learning.kernels.processor import has_bfloat16

__all__ = ["rounds_in_instructions"]


def rounds_in_instructions() -> bool:
    """Whether autocast asks for rounded factors, and there are fast instructions for them."""
    return torch.is_autocast_enabled("cpu") and has_bfloat16()
