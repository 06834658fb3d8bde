"""A weight matrix that many rows are multiplied with: everybody's in a group, at every step."""

from __future__ import annotations

import torch

from fedsim.learning.executors.compiled.machine_code import (
    Kernel,
    ProductKernels,
    TiledProductKernels,
    product_kernels,
)
from fedsim.learning.executors.compiled.products import MatrixShape

__all__ = ["LARGE", "Shared", "kernels_for", "product"]

LARGE = 2**16
"""Weights from which on a matrix is shared: smaller ones stay in a processor's cache anyway. A change may move the last
bit, so it would be another numeric family."""


class Shared:
    """Products with one matrix, (outputs, inputs), that does not change.

    On a CPU they are in machine code of our own, where there is some for it.
    """

    def __init__(self, weight: torch.Tensor, products: torch.dtype | None) -> None:
        """*products* is the type in which factors are rounded; None: they are taken as they are."""
        self.weight = weight.contiguous()
        self._products = products
        ours = weight.device.type == "cpu"
        self._kernels = kernels_for((len(weight), weight.shape[1]), weight.dtype, products) if ours else None
        self._factor = self.weight if products is None or self._kernels else weight.to(products)

    def times_transposed(self, h: torch.Tensor) -> torch.Tensor:
        """``h W^T``: (..., inputs) to (..., outputs)."""
        rows = h.flatten(0, -2)
        if self._kernels is None:
            y = product(rows, self._factor.t(), self._products)
        else:
            self._check(rows, 1)
            y = rows.new_empty(len(rows), len(self.weight))
            _run(self._kernels.times_transposed, rows, self.weight, y)
        return y.view(*h.shape[:-1], -1)

    def times(self, d: torch.Tensor) -> torch.Tensor:
        """``d W``: (..., outputs) to (..., inputs)."""
        rows = d.flatten(0, -2)
        if self._kernels is None:
            before = product(rows, self._factor, self._products)
        else:
            self._check(rows, 0)
            before = rows.new_empty(len(rows), self.weight.shape[1])
            _run(self._kernels.times, rows, self.weight, before)
        return before.view(*d.shape[:-1], -1)

    def sum_of_products(self, d: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """``d^T h`` of rows *d*, (..., outputs), and *h*, (..., inputs): (outputs, inputs)."""
        d, h = d.flatten(0, -2), h.flatten(0, -2)
        if self._kernels is None or not len(d):
            return product(d.t(), h, self._products)
        self._check(d, 0)
        self._check(h, 1)
        total = d.new_empty(self.weight.shape)
        _run(self._kernels.sum_of_products, d, h, total)
        return total

    def _check(self, rows: torch.Tensor, axis: int) -> None:
        """A kernel would read whatever lies there: so raise `ValueError` where PyTorch's product would."""
        weight = self.weight
        if rows.dtype != weight.dtype or rows.shape[1] != weight.shape[axis]:
            raise ValueError(f"{rows.dtype} {tuple(rows.shape)} and a matrix of {weight.dtype} {tuple(weight.shape)}")


def _run(kernel: Kernel, rows: torch.Tensor, other: torch.Tensor, made: torch.Tensor) -> None:
    rows, other = rows.contiguous(), other.contiguous()  # which have to be there until the kernel has run
    kernel(len(rows), rows.data_ptr(), other.data_ptr(), made.data_ptr())


def kernels_for(
    size: tuple[int, int], dtype: torch.dtype, products: torch.dtype | None = None
) -> ProductKernels | TiledProductKernels | None:
    """The kernels for a matrix of that size on a CPU, if it is large and there are some."""
    outputs, inputs = size
    return product_kernels(MatrixShape(outputs, inputs), dtype, products) if outputs * inputs >= LARGE else None


def product(left: torch.Tensor, right: torch.Tensor, products: torch.dtype | None) -> torch.Tensor:
    """``left right`` in the type of *left*, from factors rounded to *products*, and so rounded; None: as they are."""
    if products is None:
        return left @ right
    return (left.to(products) @ right.to(products)).to(left.dtype)
