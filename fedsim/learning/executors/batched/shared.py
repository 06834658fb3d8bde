"""A weight matrix that many rows are multiplied with: everybody's in a group, at every step."""

from __future__ import annotations

import torch

__all__ = ["Shared"]


class Shared:
    """Products with one matrix, (outputs, inputs), that does not change."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight

    def times_transposed(self, h: torch.Tensor) -> torch.Tensor:
        """``h W^T``: (clients, samples, inputs) to (clients, samples, outputs).

        Computed as ``(W h^T)^T``: for few samples that is half as long, as W is read in the order in which it lies.
        """
        columns = h.flatten(0, 1).t().contiguous()
        return (self.weight @ columns).t().contiguous().view(*h.shape[:2], -1)

    def times(self, d: torch.Tensor) -> torch.Tensor:
        """``d W``: (clients, samples, outputs) to (clients, samples, inputs)."""
        return (d.flatten(0, 1) @ self.weight).view(*d.shape[:2], -1)
