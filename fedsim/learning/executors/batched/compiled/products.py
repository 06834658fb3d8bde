"""Products of a few rows with a large matrix that lies as it is: nothing is copied into another order first.

A library packs the matrix before it multiplies, which takes as long as the product with a few dozen rows itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from fedsim.learning.executors.batched.compiled.emitter import Emitter, Target, Value
from fedsim.learning.executors.batched.compiled.geometry import LANES

__all__ = ["MatrixShape", "emit_sum_of_products", "emit_times", "emit_times_transposed"]

MOST = 4
"""Rows of the matrix, or vectors of a row, that are multiplied with together, at most."""
TERMS = 128
"""Terms that are added up by themselves, so that the matrix's rows stay in the cache and rounding errors stay small. A
change moves the last bit."""


@dataclass(frozen=True)
class MatrixShape:
    """A matrix of weights, row by row."""

    outputs: int
    inputs: int

    @property
    def fits(self) -> bool:
        """Whether there are kernels for it."""
        return self.outputs % MOST == 0 and self.inputs % LANES == 0


def emit_times_transposed(module: ir.Module, shape: MatrixShape, target: Target) -> None:
    """``times_transposed(samples, h, weights, y)``: ``y = h W^T``, sums by lane and then over lanes."""
    e = Emitter(module, "times_transposed", ("h", "weights", "y"), target)
    width = _width(e, shape.outputs)
    h, y = e.array("h", (shape.inputs,)), e.array("y", (shape.outputs, width))
    weights = e.array("weights", (width * shape.inputs,))
    with e.loop(shape.outputs // width) as some:
        rows = weights.at(some, strides=(shape.inputs, LANES))

        def tile(first: Value, size: int) -> None:
            left = h.at(first, strides=(shape.inputs, LANES))
            sums = {(i, j): e.variable(e.zeros) for i in range(size) for j in range(width)}
            with e.loop(shape.inputs // LANES) as column:
                right = [rows.vector(j, column) for j in range(width)]
                for i in range(size):
                    some_of_row = left.vector(i, column)
                    for j in range(width):
                        sums[i, j].value = e.multiply_add(sums[i, j].value, some_of_row, right[j])
            made = y.at(first, some, strides=(shape.outputs, 1))
            for (i, j), total in sums.items():
                made.put(e.over_lanes(total.value), i, j)

        _tiles(e, e.samples, width, tile)
    e.finish()


def emit_times(module: ir.Module, shape: MatrixShape, target: Target) -> None:
    """``times(samples, d, weights, before)``: ``before = d W``, terms in the order of outputs."""
    e = Emitter(module, "times", ("d", "weights", "before"), target)
    _product(e, shape, "d", (shape.outputs, 1), "weights", "before", rows=e.samples, terms=e.index(shape.outputs))
    e.finish()


def emit_sum_of_products(module: ir.Module, shape: MatrixShape, target: Target) -> None:
    """``sum_of_products(samples, d, h, total)``: ``total = d^T h``, terms in the order of samples."""
    e = Emitter(module, "sum_of_products", ("d", "h", "total"), target)
    _product(e, shape, "d", (1, shape.outputs), "h", "total", rows=e.index(shape.outputs), terms=e.samples)
    e.finish()


def _product(
    e: Emitter,
    shape: MatrixShape,
    left: str,
    strides: tuple[int, int],
    right: str,
    made: str,
    *,
    rows: Value,
    terms: Value,
) -> None:
    """``made = left right``, where *left* has *strides*, and *right* and *made* have rows of inputs."""
    width, vectors = shape.inputs, _width(e, shape.inputs // LANES)
    factors, matrix, result = e.array(left, strides), e.array(right, (width, vectors * LANES)), e.array(made, (width,))
    with e.loop(e.parts(terms, TERMS)) as part, e.loop(width // (vectors * LANES)) as column:
        begin = e.sum((part, TERMS))
        number = e.smaller(e.index(TERMS), e.build.sub(terms, begin))
        is_first = e.build.icmp_signed("==", part, e.index(0))
        panel = matrix.at(begin, column, strides=(width, LANES))

        def tile(first: Value, size: int) -> None:
            place = result.at(first, strides=(vectors * LANES,)).at(column, strides=(width, LANES))
            own = factors.at(first, begin, strides=strides)
            sums = {(i, j): e.variable(e.zeros) for i in range(size) for j in range(vectors)}
            for i, j in sums:
                place.prefetch(i, j)
            with e.loop(number) as term:
                right_row = [panel.vector(term, j) for j in range(vectors)]
                for j in range(vectors):
                    panel.prefetch(term, j + vectors)  # what comes next of this row
                for i in range(size):
                    factor = e.everywhere(own.number(i, term))
                    for j in range(vectors):
                        sums[i, j].value = e.multiply_add(sums[i, j].value, factor, right_row[j])
            for (i, j), total in sums.items():
                before = e.build.select(is_first, e.zeros, place.vector(i, j))
                place.put(e.build.fadd(before, total.value), i, j)

        _tiles(e, rows, vectors, tile)


def _width(e: Emitter, whole: int) -> int:
    """How many of the *whole* go together: a square of sums has to be held."""
    return next(number for number in (MOST, 2, 1) if whole % number == 0 and (number**2 <= e.held or number == 1))


def _tiles(e: Emitter, rows: Value, width: int, tile: Callable[[Value, int], None]) -> None:
    """Go through *rows*, first as many at a time as have their sums in registers, each *width* of them, then fewer.

    *tile* is told where a tile begins, and its size.
    """
    most = max(1, e.held // width - 1)
    first = e.index(0)
    for size in [most, *(fewer for fewer in (16, 8, 4, 2, 1) if fewer < most)]:
        number = e.build.sdiv(e.build.sub(rows, first), e.index(size))
        with e.loop(number) as at:
            tile(e.sum((first, 1), (at, size)), size)
        first = e.sum((first, 1), (number, size))
