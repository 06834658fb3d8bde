"""A convolution with pooling, bias and rectifier: nothing of what is pooled ever comes to memory."""

from __future__ import annotations

from itertools import pairwise, product

from llvmlite import ir

from fedsim.learning.executors.batched.compiled.emitter import Emitter, Target, Value
from fedsim.learning.executors.batched.compiled.geometry import LANES, Geometry

__all__ = ["emit_arrange", "emit_forward", "square"]


def emit_arrange(module: ir.Module, g: Geometry, target: Target) -> None:
    """``arrange(_, weights, arranged)``: from (outputs, ...) to (outputs / LANES, ..., LANES)."""
    e = Emitter(module, "arrange", ("weights", "arranged"), target)
    own = g.kernel * g.kernel * g.inputs
    weights, arranged = e.array("weights", (LANES * own, own, 1)), e.array("arranged", (LANES * own, LANES))
    with e.loop(g.outputs // LANES) as some, e.loop(own) as weight:
        arranged.put(e.together([weights.number(some, lane, weight) for lane in range(LANES)]), some, weight)
    e.finish()


def emit_forward(module: ir.Module, g: Geometry, target: Target) -> None:
    """``forward(samples, x, arranged, bias, y, where)``; *where* says which place of a square was the largest.

    The first of several largest ones is taken, and one that is not a number is the largest, as in PyTorch.
    """
    e = Emitter(module, "forward", ("x", "arranged", "bias", "y", "where"), target)
    line, own = g.kernel * g.inputs, g.kernel * g.kernel * g.inputs
    x = e.array("x", square(g))
    arranged = e.array("arranged", (LANES * own,))
    bias = e.array("bias", (LANES,))
    y = e.array("y", places(g), start_of(g))
    where = e.byte_array("where", (g.rows * g.columns * g.outputs, g.columns * g.outputs, g.outputs, LANES))
    _, row, column = _taken_strides(g)
    with e.loop(e.samples) as sample, e.loop(g.rows) as r, e.loop(g.outputs // LANES) as some:
        for first, number in _runs(g.columns, e.held // 4 or 1):
            sums = {place: e.variable(e.zeros) for place in product(range(2), range(2 * number))}
            with e.loop(g.kernel) as kernel_row, e.loop(line) as tap:  # a column's channels lie behind each other
                weight = arranged.at(some, strides=(LANES * line, LANES)).vector(kernel_row, tap)
                below = x.at(sample, r, first, 0, strides=(row, 1)).at(kernel_row, tap, strides=(row, column))
                for place, total in sums.items():
                    total.value = e.multiply_add(total.value, e.everywhere(below.number(*place)), weight)
            for c in range(number):
                best, which = _largest(e, [sums[i, 2 * c + j].value for i, j in product(range(2), repeat=2)])
                made = e.build.fadd(best, bias.vector(some))
                y.put(e.rectified(made, made) if g.rectified else made, sample, r, first + c, some)
                where.put(which, sample, r, first + c, some)
    e.finish()


def _largest(e: Emitter, values: list[Value]) -> tuple[Value, Value]:
    best, which = values[0], e.bytes(0)
    for number, value in enumerate(values[1:], start=1):
        larger = e.build.fcmp_ordered(">", value, best)
        wins = e.build.or_(larger, e.build.fcmp_unordered("uno", value, value))
        best = e.build.select(wins, value, best)
        which = e.build.select(wins, e.bytes(number), which)
    return best, which


def _runs(columns: int, most: int) -> list[tuple[int, int]]:
    """At most so many columns at a time, as evenly as may be: (first, number)."""
    runs = -(-columns // most)
    firsts = [columns * run // runs for run in range(runs + 1)]
    return [(first, following - first) for first, following in pairwise(firsts)]


def _taken_strides(g: Geometry) -> tuple[int, int, int]:
    height, width, channels = g.taken
    return height * width * channels, width * channels, channels


def square(g: Geometry) -> tuple[int, int, int, int]:
    """Strides of images that go in: (sample, square's row, square's column, channel)."""
    image, row, column = _taken_strides(g)
    return image, 2 * row, 2 * column, 1


def places(g: Geometry) -> tuple[int, int, int, int]:
    """Strides of images that come out: (sample, row, column, LANES channels)."""
    height, width, channels = g.made
    return height * width * channels, width * channels, channels, LANES


def start_of(g: Geometry) -> int:
    """Where the first image that comes out begins, behind its margin."""
    _, row, column, _ = places(g)
    return g.margin * (row + column)
