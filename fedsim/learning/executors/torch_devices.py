"""Whether torch finds a device here: the only question about this machine whose answer can stop a run."""

from __future__ import annotations

import torch

__all__ = ["why_absent"]


def why_absent(torch_device: str) -> str | None:
    """Why torch cannot compute on *torch_device* here; None when it can."""
    if torch_device != "cuda" or torch.cuda.is_available():
        return None
    if torch.version.cuda is None:
        return f"this torch ({torch.__version__}) is built without CUDA"
    return f"torch {torch.__version__} finds no CUDA device here"
