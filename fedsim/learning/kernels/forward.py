"""A convolution with pooling, bias and rectifier: nothing of what is pooled ever comes to memory.

For a sample and an output channel, with ``t`` for a column of the kernel and an input channel together ::

    z[a, b] = sum over u, t of x[a + u, b inputs + t] w[u, t]
    y[r, c] = max(0, bias + max over i, j in {0, 1} of z[2r + i, 2c + j])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter, Index
from fedsim.learning.kernels.shapes import LANES, Geometry, Machine

__all__ = ["Pooling", "emit_arrange", "emit_forward", "runs"]


def emit_arrange(module: ir.Module, g: Geometry, machine: Machine) -> None:
    """``arrange(_, weights, arranged)``: from (outputs, ...) to (outputs / LANES, ..., LANES)."""
    e = Emitter(module, "arrange", ("weights", "arranged"), machine)
    own = g.weights_per_output
    weights, arranged = e.array("weights", (LANES * own, own, 1)), e.array("arranged", (LANES * own, LANES))
    many = own // LANES
    with e.loop(g.outputs // LANES) as out_block:
        with e.loop(many) as part:
            some = weights.at(out_block, 0, e.index_sum((part, LANES)), strides=(own,))
            at = arranged.at(out_block, e.index_sum((part, LANES)), strides=(LANES,))
            for weight, of_channels in enumerate(e.transposed([some.load_vector(lane) for lane in range(LANES)])):
                at.store(of_channels, weight)
        with e.loop(own - many * LANES) as left:
            weight = e.index_sum((left, 1), (many, LANES))
            of_channels = [weights.load(out_block, lane, weight) for lane in range(LANES)]
            arranged.store(e.vector_of(of_channels), out_block, weight)
    e.finish()


def emit_forward(module: ir.Module, g: Geometry, machine: Machine) -> None:
    """``forward(samples, x, arranged, bias, y, where, _)``; *where* says which place of a square was the largest.

    The first of several largest ones is taken, and one that is not a number is the largest, as in PyTorch.
    """
    e = Emitter(module, "forward", ("x", "arranged", "bias", "y", "where", "room"), machine)
    image, row, column = g.taken_strides
    kernel_line = g.kernel * g.inputs
    x = e.array("x", (image, 2 * row, 2 * column))
    arranged = e.array("arranged", (LANES * g.weights_per_output,))
    pooling = Pooling(e, g)
    with e.loop(e.samples) as sample, e.loop(g.rows) as r, e.loop(g.outputs // LANES) as out_block:
        weights = arranged.at(out_block, strides=(LANES * kernel_line, LANES))
        for first, squares in runs(g.columns, machine.vectors_held // 4 or 1):
            sums = {place: e.variable(e.zeros) for place in product(range(2), range(2 * squares))}
            patch = x.at(sample, r, first, strides=(row, 1))
            with e.loop(g.kernel) as kernel_row, e.loop(kernel_line) as t:
                weight = weights.load_vector(kernel_row, t)
                pixels = patch.at(kernel_row, t, strides=(row, column))
                for place, total in sums.items():
                    total.value = e.multiply_add(total.value, e.broadcast(pixels.load(*place)), weight)
            for c in range(squares):
                values = [sums[i, 2 * c + j].value for i, j in product(range(2), repeat=2)]
                pooling.make(values, sample, r, first + c, out_block)
    e.finish()


class Pooling:
    """What is done with the four sums of a square."""

    def __init__(self, e: Emitter, g: Geometry) -> None:
        """Of a kernel with pointers *bias*, *y* and *where*."""
        self._e, self._rectified = e, g.rectified
        self._bias = e.array("bias", (LANES,))
        self._y = e.array("y", (*g.made_strides, LANES), g.made_start)
        self._where = e.byte_array("where", (*g.where_strides, LANES))

    def make(self, values: Sequence[Value], sample: Value, r: Value, c: Index, out_block: Value) -> None:
        """The largest, a bias, a rectifier."""
        e, at = self._e, (sample, r, c, out_block)
        best, which = _largest(e, values)
        made = e.build.fadd(best, self._bias.load_vector(out_block))
        self._y.store(e.rectified(made, made) if self._rectified else made, *at)
        self._where.store(which, *at)


def _largest(e: Emitter, values: Sequence[Value]) -> tuple[Value, Value]:
    """The largest of some vectors, lane by lane, and which it is."""
    best, which = values[0], e.same_bytes(0)
    for number, value in enumerate(values[1:], start=1):
        larger = e.build.fcmp_ordered(">", value, best)
        wins = e.build.or_(larger, e.build.fcmp_unordered("uno", value, value))
        best = e.build.select(wins, value, best)
        which = e.build.select(wins, e.same_bytes(number), which)
    return best, which


def runs(columns: int, most: int) -> list[tuple[int, int]]:
    """At most so many columns at a time, as evenly as may be: (first, number)."""
    runs = -(-columns // most)
    firsts = [columns * run // runs for run in range(runs + 1)]
    return [(first, following - first) for first, following in pairwise(firsts)]
