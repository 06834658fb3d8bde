"""The device that torch computes on: whether it is here, which can stop a run, and of which kind it is."""

from __future__ import annotations

import torch

__all__ = ["kind", "why_absent"]


def why_absent(torch_device: str) -> str | None:
    """Why torch cannot compute on *torch_device* here; None when it can."""
    if torch_device != "cuda" or torch.cuda.is_available():
        return None
    if torch.version.cuda is None:
        return f"this torch ({torch.__version__}) is built without CUDA"
    return f"torch {torch.__version__} finds no CUDA device here"


def kind(torch_device: str) -> str:
    """The word by which torch's kernels choose their arithmetic: ``cpu``, or a GPU's generation, as in ``cuda-sm90``.

    Of a GPU that is not here nothing is known but its name: ``cuda``.
    """
    if torch_device != "cuda" or not torch.cuda.is_available():
        return torch_device
    major, minor = torch.cuda.get_device_capability()
    return f"cuda-sm{major}{minor}"
