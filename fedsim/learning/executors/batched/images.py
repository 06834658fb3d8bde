"""Images with channels last, the order in which oneDNN's convolutions and pooling are fast."""

from __future__ import annotations

import torch

__all__ = ["channels_last", "pooled"]


def channels_last(images: torch.Tensor) -> torch.Tensor:
    """The same images, (samples, channels, height, width), with channels last in memory.

    With one channel both orders are the same in memory; only the strides say which one is meant, and kernels look.
    """
    samples, channels, height, width = images.shape
    if channels == 1:
        return images.contiguous().view(samples, height, width, 1).permute(0, 3, 1, 2)
    return images.contiguous(memory_format=torch.channels_last)


def pooled(images: torch.Tensor, size: int) -> torch.Tensor:
    """The maximum over squares of *size*, without where it was; an incomplete row or column at the edge is dropped."""
    rows = images.permute(0, 2, 3, 1)
    for axis in (1, 2):
        whole = rows.shape[axis] // size * size
        parts = [rows[(slice(None),) * axis + (slice(first, whole, size),)] for first in range(size)]
        rows = parts[0]
        for part in parts[1:]:
            rows = torch.maximum(rows, part)
    return rows.permute(0, 3, 1, 2)
