"""The best of all choices, by meeting in the middle: no choice is left out, and few are looked at one by one.

Cut the candidates into two halves. A choice takes j of the first half, with the sum a, and size - j of the second, with
the sum b, and

    |a + b - y|^2 = (|a|^2 - 2 y a) + (|b|^2 - 2 y b) + 2 a b + |y|^2.

So for each j one matrix product has the squared distances of all choices, less |y|^2. As a and b are themselves sums of
rows, 2 a b comes from the products of candidates, 2 A'A, and the inner dimension is that of half the candidates, not
the number of classes. The product is made in blocks that stay in the processor's cache, where their smallest number is
found.

It is proven, up to the rounding of 64 bits: products are of 32 bits, and a block is made again in 64 bits wherever its
smallest number may be better than the best so far, given how far 32 bits can be off (Higham, *Accuracy and Stability of
Numerical Algorithms*, 2002, section 3.1). It computes in one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from fedsim.errors import Misfit
from fedsim.grouping.subset.gbp_cs import gbp_cs
from fedsim.grouping.subset.pair_swap import descended
from fedsim.grouping.subset.selector import Matrix, Quadratic, SubsetSelector

__all__ = ["Exact", "Halves", "choices", "halves"]

MOST_PAIRS = 2 * 10**8
MOST_NUMBERS = 2**26
"""Zeros and ones of all choices of both halves, four bytes each."""
BLOCK = (512, 512)
"""Choices of the first half, and of the second: a megabyte."""
UNIT_ROUNDOFF = 2.0**-24
"""Of 32 bits."""
Narrow = NDArray[np.float32]


class Exact(SubsetSelector):
    """The best of all choices, proven; for up to 200 million of them."""

    name: Literal["exact"] = "exact"

    def check(self, candidates: int, size: int) -> None:
        """Raise `UserError` where there are too many choices."""
        pairs, half = math.comb(candidates, size), candidates - candidates // 2
        numbers = 2 * half * sum(math.comb(half, j) for j in range(min(half, size) + 1)) if pairs <= MOST_PAIRS else 0
        if pairs > MOST_PAIRS or numbers > MOST_NUMBERS:
            long = f" and {numbers:,} numbers for those of two halves" if numbers else ""
            raise Misfit(
                f"{size} of {candidates} candidates are {pairs:,} choices{long}; it takes {MOST_PAIRS:,} at "
                f"most, and {MOST_NUMBERS:,} numbers. Take cp_sat, which proves what it can in its time, or pair_swap"
            )

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """One of the best, always the same. Raises `UserError` where there are too many choices."""
        self.check(len(rows), size)
        problem = Quadratic.of(rows, target)
        best = _good(problem, rows, target, size)
        least = float(problem.values(best[None])[0])
        with _blas().limit(limits=1, user_api="blas"):  # to share such small products among threads takes longer
            for pair in halves(problem, size):
                for here, there, value in pair.better_than(least):
                    least, best = value, np.concatenate([pair.first[here, :-1], pair.second[there, :-1]])
        return np.flatnonzero(best)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _good(problem: Quadratic, rows: Matrix, target: Matrix, size: int) -> NDArray[np.bool_]:
    """A choice to begin with, so that few others are better."""
    masks = np.zeros((2, len(rows)), dtype=np.bool_)
    masks[0, gbp_cs(rows, target, size).chosen] = True
    masks[1, gbp_cs(rows, target, size, "zero").chosen] = True
    ends = descended(problem, masks)
    found: NDArray[np.bool_] = ends[problem.values(ends).argmin()]
    return found


class Halves(NamedTuple):
    """The choices of j candidates of the first half and of the others of the second: all pairs of them."""

    first: Narrow
    """X, (choices of the first half, candidates of the first half + 1): zeros and ones, and a column of ones."""
    second: Narrow
    """Z, the same of the second half."""
    of_first: Matrix
    """|a|^2 - 2 y a, (choices of the first half,)."""
    of_second: Matrix
    """|b|^2 - 2 y b, (choices of the second half,)."""
    crossing: Matrix
    """C, (candidates of the second half, candidates of the first): 2 A'A, so that 2 a b is X C' Z'."""

    def better_than(self, least: float) -> Iterator[tuple[int, int, float]]:
        """Rows of `first` and of `second` with values below *least*, and the values: each below the one before."""
        off, of_first = self.off(), self.of_first.astype(np.float32)
        out = np.empty(BLOCK[0] * BLOCK[1], dtype=np.float32)
        for k in range(0, len(self.second), BLOCK[1]):
            there = slice(k, k + BLOCK[1])
            right = self.right(there)
            for i in range(0, len(self.first), BLOCK[0]):
                here = slice(i, i + BLOCK[0])
                least_of_each = product(self.first[here], right, out).min(axis=1) + of_first[here]
                if least_of_each.min() < least + off:
                    values = self.values(here, there)
                    row, column = divmod(int(values.argmin()), values.shape[1])
                    if values[row, column] < least:
                        least = float(values[row, column])
                        yield i + row, k + column, least

    def right(self, there: slice) -> Narrow:
        """Z C and `of_second`, side by side: X times it has the values of pairs, less `of_first`, in 32 bits."""
        crossed = self.second[there, :-1] @ self.crossing.astype(np.float32)
        return np.column_stack([crossed, self.of_second[there].astype(np.float32)])

    def off(self) -> float:
        """How far off that can be: m u / (1 - m u) times the sum of the absolute values of all that is added up.

        m is the number of roundings on the way of a number: one for itself, one for each that it is multiplied with and
        each that it is added to.
        """
        rounding = (sum(self.crossing.shape) + 6) * UNIT_ROUNDOFF
        ones = np.count_nonzero(self.first[0, :-1]) * np.count_nonzero(self.second[0, :-1])
        most = ones * np.abs(self.crossing).max() + np.abs(self.of_first).max() + np.abs(self.of_second).max()
        return float(rounding / (1 - rounding) * most)

    def values(self, here: slice, there: slice) -> Matrix:
        """Those of some pairs, in 64 bits."""
        crossed = self.second[there, :-1].astype(np.float64) @ self.crossing
        found: Matrix = self.first[here, :-1].astype(np.float64) @ crossed.T
        found += self.of_first[here, None]
        found += self.of_second[there]
        return found


def product(left: Narrow, right: Narrow, out: Narrow) -> Narrow:
    """*left* times *right*', in the first numbers of *out*."""
    return np.matmul(left, right.T, out=out[: len(left) * len(right)].reshape(len(left), len(right)))


def halves(problem: Quadratic, size: int) -> Iterator[Halves]:
    """All choices of *size*, by the number of candidates in the first half."""
    (gram, pull), cut = problem, len(problem.pull) // 2
    in_first, in_second = Quadratic(gram[:cut, :cut], pull[:cut]), Quadratic(gram[cut:, cut:], pull[cut:])
    firsts, seconds = choices(cut, size), choices(len(pull) - cut, size)
    for j in range(max(0, size + 1 - len(seconds)), len(firsts)):
        first, second = firsts[j], seconds[size - j]
        alone = in_first.values(first[:, :-1]), in_second.values(second[:, :-1])
        yield Halves(first, second, *alone, 2 * gram[cut:, :cut])


@lru_cache(maxsize=2)
def choices(candidates: int, most: int) -> list[Narrow]:
    """All choices of 0, 1, ... of so many *candidates*, up to *most*: (choices, candidates + 1) each, the last of ones.

    >>> [masks.astype(int).tolist() for masks in choices(2, 9)]
    [[[0, 0, 1]], [[1, 0, 1], [0, 1, 1]], [[1, 1, 1]]]
    """
    found = []
    for size in range(min(candidates, most) + 1):
        masks = np.zeros((math.comb(candidates, size), candidates + 1), dtype=np.float32)
        masks[:, -1] = 1
        places = list(combinations(range(candidates), size))
        np.put_along_axis(masks, np.array(places, dtype=np.intp).reshape(len(masks), size), np.float32(1), axis=1)
        masks.flags.writeable = False
        found.append(masks)
    return found
