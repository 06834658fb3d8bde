"""The convolution of `forward` on tiles: a row of 16 places, or fewer, times 16 output channels.

A line of an image is all that a place's products with a row of the kernel need, one behind the other: the next place's
line begins a pixel later. So the tiles of a left side are read right out of an image of terms, with no copy.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Array, Emitter, Index
from fedsim.learning.kernels.forward import Pooling, runs
from fedsim.learning.kernels.shapes import LANES, Geometry, Machine
from fedsim.learning.kernels.tiles import ROWS, STEP, SUMS, TILE, Tiles

__all__ = ["emit_tiled_arrange", "emit_tiled_forward", "tiled_room", "tiled_weights"]


def tiled_weights(g: Geometry, terms: int) -> int:
    """Bytes of all weights, arranged."""
    per_block, *_ = _arranged_strides(g, terms)
    return g.outputs // LANES * per_block


def tiled_room(g: Geometry, terms: int) -> int:
    """Bytes for an image of terms, what is read behind it, and sums."""
    return _sums_begin(g, terms) + SUMS * TILE


def emit_tiled_arrange(module: ir.Module, g: Geometry, machine: Machine, terms: int) -> None:
    """``arrange(_, weights, arranged)``: right sides, (outputs / LANES, kernel, steps, terms, rows)."""
    e = Emitter(module, "arrange", ("weights", "arranged"), machine)
    tiles, line, own = Tiles(e, terms), g.kernel * g.inputs, g.weights_per_output
    weights = e.array("weights", (LANES * own, own, line))
    arranged = e.byte_array("arranged", _arranged_strides(g, terms))
    with e.loop(g.outputs // LANES) as out_block, e.loop(g.kernel) as u:
        for t in range(_steps(g)):
            some = weights.at(out_block, 0, u, strides=(own, 1))
            by_weight = []
            for first in (t * STEP, t * STEP + LANES):
                rows = [some.load_vector(lane, first) if first < line else e.zeros for lane in range(LANES)]
                by_weight += [tiles.terms(vector) for vector in e.transposed(rows)]
            for row, term in product(range(ROWS), range(terms)):
                pair = tiles.pairs(by_weight[2 * row][term], by_weight[2 * row + 1][term])
                arranged.store(pair, out_block, u, t, term, row)
    e.finish()


def emit_tiled_forward(module: ir.Module, g: Geometry, machine: Machine, terms: int) -> None:
    """``forward(samples, x, arranged, bias, y, where, room)``, as that of `emit_forward`."""
    e = Emitter(module, "forward", ("x", "arranged", "bias", "y", "where", "room"), machine)
    tiles, pooling, squares = Tiles(e, terms), Pooling(e, g), runs(g.columns, ROWS // 2)
    image, _, _ = g.taken_strides
    x, image_of_terms = e.array("x", (image, LANES)), e.byte_array("room", (2 * image, 2 * LANES))
    blocks = g.outputs // LANES
    # What fills up the last step of a line is multiplied with 0, and so has to be finite.
    behind = e.byte_array("room", (LANES,), 2 * terms * image)
    for half in range(2):
        behind.store(e.same_bytes(0), half)
    tiles.begin(2 * max(number for _, number in squares))
    with e.loop(e.samples) as sample:
        with e.loop(image // LANES) as vector:
            for number, term in enumerate(tiles.terms(x.load_vector(sample, vector))):
                image_of_terms.store(e.halves(term), number, vector)
        with e.loop(g.rows) as r:
            for first, number in squares:
                for first_block, together, times in ((0, 2, blocks // 2), (blocks - 1, 1, blocks % 2)):
                    with e.loop(times) as some:
                        out_block = e.index_sum((first_block, 1), (some, together))
                        sums = _sums(e, g, tiles, (r, first, out_block), together)
                        with e.loop(number) as c:
                            for j in range(together):
                                values = [
                                    sums.load_vector(down * together + j, e.index_sum((c, 2), (right, 1)))
                                    for down, right in product(range(2), repeat=2)
                                ]
                                at = e.index_sum((first, 1), (c, 1)), e.index_sum((out_block, 1), (j, 1))
                                pooling.make(values, sample, r, *at)
    tiles.end()
    e.finish()


def _sums(e: Emitter, g: Geometry, tiles: Tiles, at: tuple[Value, int, Value], together: int) -> Array:
    """Two rows of places before pooling, as seen by some blocks of output channels, block by block in each row."""
    r, first, out_block = at
    image, row, column = g.taken_strides
    terms = tiles.terms_of_each
    lines = e.byte_array("room", (2 * image, 2 * row, 2 * column, 2 * STEP))
    arranged = e.byte_array("arranged", _arranged_strides(g, terms))
    sums = e.array("room", (ROWS * LANES, LANES), _sums_begin(g, terms) // 4)
    tiles.clear()
    with e.loop(g.kernel) as u, e.loop(_steps(g)) as t:
        lefts = [partial(_at, lines, (e.index_sum((r, 2), (down, 1), (u, 1)), 2 * first, t)) for down in range(2)]
        rights = [partial(_block_at, arranged, (e.index_sum((out_block, 1), (j, 1)), u, t)) for j in range(together)]
        tiles.multiply(lefts, rights, e.index(2 * column))
    tiles.store(sums)
    return sums


def _at(lines: Array, at: tuple[Index, ...], term: int) -> Value:
    return lines.address((term, *at))


def _block_at(arranged: Array, at: tuple[Index, ...], term: int) -> Value:
    return arranged.address((*at, term))


def _steps(g: Geometry) -> int:
    """In a row of the kernel; the last one may be filled up with weights that are 0."""
    return -(-g.kernel * g.inputs // STEP)


def _arranged_strides(g: Geometry, terms: int) -> tuple[int, ...]:
    steps = _steps(g)
    return g.kernel * steps * terms * TILE, steps * terms * TILE, terms * TILE, TILE, TILE // ROWS


def _sums_begin(g: Geometry, terms: int) -> int:
    image, _, _ = g.taken_strides
    return -(-2 * (terms * image + LANES) // TILE) * TILE
