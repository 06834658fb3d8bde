"""A weight matrix that many rows are multiplied with: everybody's in a group, at every step."""

from __future__ import annotations

import torch

__all__ = ["Shared", "product"]


class Shared:
    """Products with one matrix, (outputs, inputs), that does not change."""

    def __init__(self, weight: torch.Tensor, products: torch.dtype | None) -> None:
        """*products* is the type in which factors are rounded; None: they are taken as they are."""
        self.weight = weight
        self._rounded = None if products is None else weight.to(products)

    def times_transposed(self, h: torch.Tensor) -> torch.Tensor:
        """``h W^T``: (clients, samples, inputs) to (clients, samples, outputs).

        Computed as ``(W h^T)^T``: for few samples that is half as long, as W is read in the order in which it lies.
        """
        if self._rounded is not None:
            return product(h.flatten(0, 1), self._rounded.t(), self._rounded.dtype).view(*h.shape[:2], -1)
        columns = h.flatten(0, 1).t().contiguous()
        return (self.weight @ columns).t().contiguous().view(*h.shape[:2], -1)

    def times(self, d: torch.Tensor) -> torch.Tensor:
        """``d W``: (clients, samples, outputs) to (clients, samples, inputs)."""
        factor = self.weight if self._rounded is None else self._rounded
        return product(d.flatten(0, 1), factor, factor.dtype).view(*d.shape[:2], -1)


def product(left: torch.Tensor, right: torch.Tensor, products: torch.dtype | None) -> torch.Tensor:
    """``left right`` in the type of *left*, from factors rounded to *products*, and so rounded; None: as they are."""
    if products is None:
        return left @ right
    return (left.to(products) @ right.to(products)).to(left.dtype)
