"""The convolution of `forward` on tiles: a row of 16 places, or fewer, times 16 output channels.

A line of an image is all that a place's products with a row of the kernel need, one behind the other: the next place's
line begins a pixel later. So the tiles of a left side are read right out of an image of terms, with no copy.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from llvmlite import ir

from fedsim.learning.executors.batched.compiled.emitter import Array, Emitter, Machine, Value
from fedsim.learning.executors.batched.compiled.forward import Pooling, runs
from fedsim.learning.executors.batched.compiled.geometry import LANES, Geometry
from fedsim.learning.executors.batched.compiled.tiles import ROWS, STEP, TERMS, TILE, Tiles

__all__ = ["emit_tiled_arrange", "emit_tiled_forward", "tiled_room", "tiled_weights"]


def _steps(g: Geometry) -> int:
    """In a row of the kernel."""
    return -(-g.kernel * g.inputs // STEP)


def tiled_weights(g: Geometry) -> int:
    """Bytes of all weights, arranged; the last step of a row of the kernel may be filled up with zeros."""
    return g.outputs // LANES * g.kernel * _steps(g) * TERMS * TILE


def _image_bytes(g: Geometry) -> int:
    """Of one term of an image."""
    height, width, channels = g.taken
    return 2 * height * width * channels


def tiled_room(g: Geometry) -> int:
    """Bytes for an image of terms, what may be read behind it, and sums. All of it has to be finite."""
    return _sums_begin(g) + 4 * TILE


def _sums_begin(g: Geometry) -> int:
    behind = 2 * (ROWS * g.inputs + STEP)
    return -(-(TERMS * _image_bytes(g) + behind) // TILE) * TILE


def emit_tiled_arrange(module: ir.Module, g: Geometry, machine: Machine) -> None:
    """``arrange(_, weights, arranged)``: right sides, (outputs / LANES, kernel, steps, terms, tile)."""
    e = Emitter(module, "arrange", ("weights", "arranged"), machine)
    tiles, line, steps = Tiles(e), g.kernel * g.inputs, _steps(g)
    own = g.weights_per_output
    weights = e.array("weights", (LANES * own, own, line))
    arranged = e.byte_array("arranged", _arranged_strides(g))
    with e.loop(g.outputs // LANES) as out_block, e.loop(g.kernel) as u:
        for t in range(steps):
            by_weight: list[Value] = []
            for first in (t * STEP, t * STEP + LANES):
                some = weights.at(out_block, 0, u, strides=(own, 1))
                rows = [some.load_vector(lane, first) if first < line else e.zeros for lane in range(LANES)]
                by_weight += e.transposed(rows)
            in_terms = [tiles.terms(vector) for vector in by_weight]
            for term, row in product(range(TERMS), range(ROWS)):
                pair = tiles.pairs(in_terms[2 * row][term], in_terms[2 * row + 1][term])
                arranged.store(pair, out_block, u, t, term, row)
    e.finish()


def emit_tiled_forward(module: ir.Module, g: Geometry, machine: Machine) -> None:
    """``forward(samples, x, arranged, bias, y, where, room)``, as that of `emit_forward`."""
    e = Emitter(module, "forward", ("x", "arranged", "bias", "y", "where", "room"), machine)
    tiles, pooling = Tiles(e), Pooling(e, g)
    image, row, column = g.taken_strides
    parts = runs(g.columns, ROWS // 2)
    x, in_terms = e.array("x", (image, LANES)), e.byte_array("room", (_image_bytes(g), 2 * row, 2 * column, 2))
    arranged, sums = e.byte_array("arranged", _arranged_strides(g)), e.array("room", (ROWS * LANES, LANES), _sums_begin(g) // 4)
    tiles.begin(2 * max(squares for _, squares in parts))

    def squares_of(sample: Value, r: Value, out_block: Value, together: int) -> None:
        for first, squares in parts:
            tiles.clear()
            with e.loop(g.kernel) as u, e.loop(_steps(g)) as t:
                lefts = [partial(_left, in_terms, e.index_sum((r, 2), (i, 1), (u, 1)), 2 * first, e.index_sum((t, STEP))) for i in range(2)]
                rights = [partial(_right, arranged, e.index_sum((out_block, 1), (j, 1)), u, t) for j in range(together)]
                tiles.multiply(lefts, rights, e.index(2 * column))
            tiles.store(sums)
            with e.loop(squares) as c:
                for j in range(together):
                    values = [
                        sums.load_vector(i * together + j, e.index_sum((c, 2), (right, 1)))
                        for i, right in product(range(2), repeat=2)
                    ]
                    pooling.make(values, sample, r, e.index_sum((first, 1), (c, 1)), e.index_sum((out_block, 1), (j, 1)))

    pairs, odd = divmod(g.outputs // LANES, 2)
    with e.loop(e.samples) as sample:
        with e.loop(image // LANES) as vector:
            for term, number in enumerate(tiles.terms(x.load_vector(sample, vector))):
                in_terms.at(term, strides=(2 * LANES,)).store(tiles.halves(number), vector)
        with e.loop(g.rows) as r:
            with e.loop(pairs) as pair:
                squares_of(sample, r, e.index_sum((pair, 2)), 2)
            with e.loop(odd):
                squares_of(sample, r, e.index(2 * pairs), 1)
    tiles.end()
    e.finish()


def _left(in_terms: Array, row: Value, column: int, first: Value, term: int) -> Value:
    return in_terms.address((term, row, column, first))


def _right(arranged: Array, out_block: Value, u: Value, t: Value, term: int) -> Value:
    return arranged.address((out_block, u, t, term))


def _arranged_strides(g: Geometry) -> tuple[int, ...]:
    steps = _steps(g)
    return g.kernel * steps * TERMS * TILE, steps * TERMS * TILE, TERMS * TILE, TILE, TILE // ROWS
