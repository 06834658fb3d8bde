"""Products of a few rows with a large matrix that lies as it is: nothing is copied into another order first.

A library packs the matrix before it multiplies, which takes as long as the product with a few dozen rows itself.
"""

from __future__ import annotations

from itertools import product

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.loops import TERMS, in_tiles, width_of
from fedsim.learning.kernels.shapes import LANES, MOST_TOGETHER, Machine, MatrixShape

__all__ = ["emit_added_products", "emit_sum_of_products", "emit_times", "emit_times_transposed"]

BLOCKS = 2
"""Blocks of so many rows that a few rows on the left are multiplied with while they are at hand."""
INPUTS = 512
"""Inputs that are added up by themselves, lane by lane, so that a part of the rows stays in the cache. A change moves
the last bit."""


def emit_times_transposed(module: ir.Module, shape: MatrixShape, machine: Machine) -> None:
    """``times_transposed(samples, h, weights, y)``: ``y = h W^T``, part after part of the inputs, by lane within each.

    A tile of *h* meets two blocks of rows of the matrix while it is in the nearest cache, and the rows that come next
    are fetched meanwhile. Rows that fill no block are taken one by one.
    """
    e = Emitter(module, "times_transposed", ("h", "weights", "y"), machine)
    width = width_of(machine, MOST_TOGETHER)
    in_blocks = shape.outputs // width * width
    with e.loop(-(-shape.inputs // INPUTS)) as part:
        _emit_blocks(e, shape, part, slice(0, in_blocks), width)
        if in_blocks < shape.outputs:
            _emit_blocks(e, shape, part, slice(in_blocks, shape.outputs), 1)
    e.finish()


def _emit_blocks(e: Emitter, shape: MatrixShape, part: Value, outputs: slice, width: int) -> None:
    """Add a part of the inputs to some outputs, in blocks of so many."""
    inputs, blocks = shape.inputs, (outputs.stop - outputs.start) // width
    h, y = e.array("h", (inputs, INPUTS)), e.array("y", (shape.outputs, width), outputs.start)
    weights = e.array("weights", (width * inputs, INPUTS), outputs.start * inputs)
    is_first = e.build.icmp_signed("==", part, e.index(0))
    vectors = e.smaller(e.index(INPUTS // LANES), e.index_sum((inputs // LANES, 1), (part, -(INPUTS // LANES))))
    with e.loop(-(-blocks // BLOCKS)) as some_blocks:
        begin = e.index_sum((some_blocks, BLOCKS))
        number = e.smaller(e.index(BLOCKS), e.index_sum((blocks, 1), (begin, -1)))
        rows = weights.at(begin, part, strides=(width * inputs, inputs, LANES))
        next_rows = weights.at(e.index_sum((begin, 1), (BLOCKS, 1)), part, strides=(inputs, LANES))

        def tile(first: Value, size: int) -> None:
            left = h.at(first, part, strides=(inputs, LANES))
            with e.loop(number) as block:
                sums = e.sums(size, width)
                tiles_before = e.build.sdiv(first, e.index(size))
                turn = e.build.srem(e.index_sum((tiles_before, BLOCKS), (block, 1)), e.index(BLOCKS * width))
                with e.loop(vectors) as column:
                    right = [rows.load_vector(block, j, column) for j in range(width)]
                    next_rows.prefetch(turn, column, level=2)
                    e.add_products(sums, (left.load_vector(i, column) for i in range(size)), right)
                made = y.at(first, e.index_sum((begin, 1), (block, 1)), strides=(shape.outputs,))
                for i, of_row in enumerate(sums):
                    added = e.sums_of_lanes([total.value for total in of_row])
                    nothing = ir.Constant(added.type, [0.0] * width)
                    before = e.build.select(is_first, nothing, made.load_vector(i, lanes=width))
                    made.store(e.build.fadd(before, added), i)

        in_tiles(e, e.samples, width, tile)


def emit_times(module: ir.Module, shape: MatrixShape, machine: Machine) -> None:
    """``times(samples, d, weights, before)``: ``before = d W``, terms in the order of outputs."""
    e = Emitter(module, "times", ("d", "weights", "before"), machine)
    _product(e, shape, "d", (shape.outputs, 1), "weights", "before", rows=e.samples, terms=e.index(shape.outputs))
    e.finish()


def emit_sum_of_products(module: ir.Module, shape: MatrixShape, machine: Machine) -> None:
    """``sum_of_products(samples, d, h, total)``: ``total = d^T h`` of at least one sample, terms in their order."""
    e = Emitter(module, "sum_of_products", ("d", "h", "total"), machine)
    _product(e, shape, "d", (1, shape.outputs), "h", "total", rows=e.index(shape.outputs), terms=e.samples)
    e.finish()


def emit_added_products(module: ir.Module, shape: MatrixShape, machine: Machine) -> None:
    """``added_products(samples, d, h, total)``: ``total += d^T h``; the terms are added up first, in their order."""
    e = Emitter(module, "added_products", ("d", "h", "total"), machine)
    rows, left = e.index(shape.outputs), ("d", (1, shape.outputs))
    _product(e, shape, *left, "h", "total", rows=rows, terms=e.samples, adds=True)
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
    adds: bool = False,
) -> None:
    """``made = left right``, where *left* has *strides*, and *right* and *made* have rows of inputs.

    If it *adds*, ``made += left right``.
    """
    inputs, width = shape.inputs, width_of(e.machine, shape.inputs // LANES)
    factors, matrix, result = e.array(left, strides), e.array(right, (inputs, width * LANES)), e.array(made, (inputs,))
    parts = e.ceil_div(terms, TERMS)
    # As equal as can be; where there is nothing to add up, there is nothing to divide by either.
    together = e.build.sdiv(e.build.sub(e.build.add(terms, parts), e.index(1)), e.larger(parts, e.index(1)))
    with e.loop(parts) as part, e.loop(inputs // (width * LANES)) as block:
        begin = e.build.mul(part, together)
        number = e.smaller(together, e.build.sub(terms, begin))
        is_first = e.build.icmp_signed("==", part, e.index(0))
        panel = matrix.at(begin, block, strides=(inputs, LANES))

        def tile(first: Value, size: int) -> None:
            place = result.at(first, strides=(width * LANES,)).at(block, strides=(inputs, LANES))
            own = factors.at(first, begin, strides=strides)
            sums = e.sums(size, width)
            for i, j in product(range(size), range(width)):
                place.prefetch(i, j)
            with e.loop(number) as term:
                of_row = [panel.load_vector(term, j) for j in range(width)]
                for j in range(width):
                    panel.prefetch(term, j + width)  # what comes next of this row
                e.add_products(sums, (e.broadcast(own.load(i, term)) for i in range(size)), of_row)
            for i, j in product(range(size), range(width)):
                place.add(sums[i][j].value, i, j, anew=None if adds else is_first)

        in_tiles(e, rows, width, tile)
