"""A weight matrix that many rows are multiplied with: in machine code of our own, where there is some for it."""

from __future__ import annotations

import torch
from torch.nn.functional import linear

from fedsim.learning.kernels.machine_code import ProductKernels, TiledProductKernels, product_kernels
from fedsim.learning.kernels.shapes import Kernel, MatrixShape

__all__ = ["LARGE", "Matrix", "kernels_for", "product"]

LARGE = 2**16
"""Weights from which on machine code pays for a few rows, and `batched` keeps a matrix that clients share: smaller ones
stay in a processor's cache anyway. A change may move the last bit, so it would be another numeric family."""


class Matrix:
    """Products with one matrix, (outputs, inputs)."""

    def __init__(self, weight: torch.Tensor, products: torch.dtype | None = None, *, many_rows: bool = False) -> None:
        """*products* is the type in which factors are rounded; None: they are taken as they are.

        With *many_rows* at a time machine code pays for small matrices too.
        """
        self.weight = weight.contiguous()
        size, ours = (len(weight), weight.shape[1]), weight.device.type == "cpu"
        self._products = products
        self._kernels = kernels_for(size, weight.dtype, products, many_rows=many_rows) if ours else None
        self._factor = self.weight if products is None or self._kernels else weight.to(products)

    @property
    def has_vector_kernels(self) -> bool:
        """Whether its products are in machine code of our own, and not on tiles."""
        return isinstance(self._kernels, ProductKernels)

    def times_transposed(self, h: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """``h W^T``, and the *bias*: (..., inputs) to (..., outputs)."""
        rows = h.flatten(0, -2)
        if self._kernels is None and self._products is None:
            y = linear(rows, self._factor, bias)
        else:
            y = self._times_transposed(rows)
            y = y if bias is None else y.add_(bias)
        return y if h is rows else y.view(*h.shape[:-1], y.shape[1])

    def _times_transposed(self, rows: torch.Tensor) -> torch.Tensor:
        if self._kernels is None:
            return product(rows, self._factor.t(), self._products)
        self._check(rows, 1)
        y = rows.new_empty(len(rows), len(self.weight))
        _run(self._kernels.times_transposed, rows, self.weight, y)
        return y

    def times(self, d: torch.Tensor) -> torch.Tensor:
        """``d W``: (..., outputs) to (..., inputs)."""
        rows = d.flatten(0, -2)
        if self._kernels is None:
            before = product(rows, self._factor, self._products)
        else:
            self._check(rows, 0)
            before = rows.new_empty(len(rows), self.weight.shape[1])
            _run(self._kernels.times, rows, self.weight, before)
        return before if d is rows else before.view(*d.shape[:-1], before.shape[1])

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

    def step(self, d: torch.Tensor, h: torch.Tensor, rate: float) -> None:
        """Take *rate* times ``d^T h`` off the matrix, from factors as they are: (rows, outputs) and (rows, inputs).

        In place, so the matrix has to lie row by row.
        """
        assert self._products is None
        if isinstance(self._kernels, ProductKernels):  # no gradient of many megabytes is written and read again
            self._check(d, 0)
            self._check(h, 1)
            _run(self._kernels.added_products, d * -rate, h, self.weight)
        elif self._kernels is None:
            self.weight.addmm_(d.t(), h, alpha=-rate)
        else:
            self.weight.sub_(self.sum_of_products(d, h), alpha=rate)

    def _check(self, rows: torch.Tensor, axis: int) -> None:
        """A kernel would read whatever lies there: so raise `ValueError` where PyTorch's product would."""
        weight = self.weight
        if rows.dtype != weight.dtype or rows.shape[1:] != (weight.shape[axis],):
            raise ValueError(f"{rows.dtype} {tuple(rows.shape)} and a matrix of {weight.dtype} {tuple(weight.shape)}")


def _run(kernel: Kernel, rows: torch.Tensor, other: torch.Tensor, made: torch.Tensor) -> None:
    rows, other = rows.contiguous(), other.contiguous()  # which have to be there until the kernel has run
    kernel(len(rows), rows.data_ptr(), other.data_ptr(), made.data_ptr())


def kernels_for(
    size: tuple[int, int], dtype: torch.dtype, products: torch.dtype | None = None, *, many_rows: bool = False
) -> ProductKernels | TiledProductKernels | None:
    """The kernels for a matrix of that size on a CPU, if there are some, and it is large or meets *many_rows*."""
    outputs, inputs = size
    pays = dtype in (torch.float32, torch.float64) and (many_rows or outputs * inputs >= LARGE)
    return product_kernels(MatrixShape(outputs, inputs), dtype, products) if pays else None


def product(left: torch.Tensor, right: torch.Tensor, products: torch.dtype | None) -> torch.Tensor:
    """``left right`` in the type of *left*, from factors rounded to *products*, and so rounded; None: as they are."""
    if products is None:
        return left @ right
    return (left.to(products) @ right.to(products)).to(left.dtype)
