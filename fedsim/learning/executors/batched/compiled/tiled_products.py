"""Products of float32 matrices of any shape on tiles.

``made = left right``, where *left* has the fewer rows, samples as a rule, and *right* is a matrix of weights. Either may
lie transposed. In parts of `PART` terms, the left side is laid in tiles once, and the right side a panel at a time, which
stays in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from llvmlite import ir

from fedsim.learning.executors.batched.compiled.emitter import Array, Emitter, Machine, Value
from fedsim.learning.executors.batched.compiled.geometry import LANES
from fedsim.learning.executors.batched.compiled.tiles import ROWS, STEP, TERMS, TILE, Tiles

__all__ = ["emit_tiled_product", "tiled_product_room"]

PART = 4
"""Steps whose sums are made by themselves: a change moves the last bit."""
PANEL = 16
"""Tiles beside each other in a panel."""
_SUMS = 4 * TILE
_STRIP = PART * TERMS * TILE
"""Bytes of a row of left tiles, or a column of right ones, in one part."""


def tiled_product_room(rows: int) -> int:
    """Bytes that a product with so many rows on the left needs."""
    return _SUMS + (PANEL + -(-rows // ROWS)) * _STRIP


class _Matrix(NamedTuple):
    """One side of a product, with terms (the *k* of a sum) going down or across where it lies."""

    numbers: Array
    height: Value
    width: Value
    down: bool
    flipped: bool
    """Whether tiles have the other of the two as their rows."""


def emit_tiled_product(
    module: ir.Module, name: str, machine: Machine, *, left_lies_transposed: bool, right_lies_transposed: bool
) -> None:
    """``name(rows, columns, terms, left, right, made, room)``."""
    e = Emitter(module, name, ("left", "right", "made", "room"), machine, ("rows", "columns", "terms"))
    rows, columns, terms = (e.count(count) for count in ("rows", "columns", "terms"))
    tiles = Tiles(e)
    left, right = (
        _Matrix(e.array(side, (across, 1)), terms if down else other, across, down, down == (side == "left"))
        for side, other, across, down in (
            ("left", rows, rows if left_lies_transposed else terms, left_lies_transposed),
            ("right", columns, terms if right_lies_transposed else columns, not right_lies_transposed),
        )
    )
    made = e.array("made", (columns, 1))
    strips = (_STRIP, TERMS * TILE, TILE, TILE // ROWS)
    sums = e.array("room", (ROWS * LANES, LANES))
    panel, laid = e.byte_array("room", strips, _SUMS), e.byte_array("room", strips, _SUMS + PANEL * _STRIP)
    row_tiles, column_tiles = e.ceil_div(rows, ROWS), e.ceil_div(columns, LANES)
    tiles.begin()
    with e.loop(e.ceil_div(terms, PART * STEP)) as part:
        begin = e.index_sum((part, PART * STEP))
        steps = e.smaller(e.index(PART), e.ceil_div(e.build.sub(terms, begin), STEP))
        is_first = e.build.icmp_signed("==", part, e.index(0))
        with e.loop(row_tiles) as tile, e.loop(steps) as step:
            _lay(e, tiles, left, e.index_sum((tile, ROWS)), e.index_sum((begin, 1), (step, STEP)), laid.at(tile, step, strides=strips[2:]))
        with e.loop(e.ceil_div(column_tiles, PANEL)) as group:
            first = e.index_sum((group, PANEL))
            together = e.smaller(e.index(PANEL), e.build.sub(column_tiles, first))
            with e.loop(steps) as step, e.loop(together) as tile:
                column = e.index_sum((first, LANES), (tile, LANES))
                _lay(e, tiles, right, column, e.index_sum((begin, 1), (step, STEP)), panel.at(tile, step, strides=strips[2:]), PANEL * LANES)

            def block(row_tile: Value, lefts: int, tile: Value, rights: int) -> None:
                tiles.clear()
                with e.loop(steps) as step:
                    tiles.multiply(
                        [partial(_at, laid, e.index_sum((row_tile, 1), (i, 1)), step) for i in range(lefts)],
                        [partial(_at, panel, e.index_sum((tile, 1), (j, 1)), step) for j in range(rights)],
                        e.index(TILE // ROWS),
                    )
                tiles.store(sums)
                _add(e, tiles, sums, made, rows, columns, is_first, e.index_sum((row_tile, ROWS)), e.index_sum((first, LANES), (tile, LANES)), lefts, rights)

            def beside(row_tile: Value, lefts: int) -> None:
                _together(e, together, (2, 1) if lefts == 2 else (4, 2, 1), lambda tile, rights: block(row_tile, lefts, tile, rights))

            _together(e, row_tiles, (2, 1), beside)
    tiles.end()
    e.finish()


def _together(e: Emitter, number: Value, sizes: Sequence[int], body: Callable[[Value, int], None]) -> None:
    """Some at a time, the largest of *sizes* first; *body* is told the first one, and how many."""
    first = e.index(0)
    for size in sizes:
        times = e.build.sdiv(e.build.sub(number, first), e.index(size))
        with e.loop(times) as at:
            body(e.index_sum((first, 1), (at, size)), size)
        first = e.index_sum((first, 1), (times, size))


def _at(laid: Array, tile: Value, step: Value, term: int) -> Value:
    return laid.address((tile, step, term))


def _lay(e: Emitter, tiles: Tiles, side: _Matrix, other: Value, term: Value, tile: Array, ahead: int = 0) -> None:
    """Lay 16 rows or columns and `STEP` terms in a tile for each of a number's terms, with zeros beyond the edge."""
    halves = []
    for half in (0, LANES):
        first = e.index_sum((term, 1), (half, 1))
        row, column = (first, other) if side.down else (other, first)
        lanes = e.build.sub(side.width, column)
        vectors = []
        for number in range(LANES):
            at = e.index_sum((row, 1), (number, 1))
            inside = e.build.icmp_signed("<", at, side.height)
            some = e.first_lanes(e.build.select(inside, lanes, e.index(0)))
            if ahead and not side.down:
                side.numbers.prefetch(e.index_sum((at, 1), (ahead, 1)), column, level=2)
            vectors.append(side.numbers.load_lanes(some, e.build.select(inside, at, e.index(0)), column))
        halves.append(e.transposed(vectors) if side.flipped else vectors)
    for row, (one, other_half) in enumerate(zip(*halves, strict=True)):
        for number, pair in enumerate(zip(tiles.terms(one), tiles.terms(other_half), strict=True)):
            tile.store(tiles.pairs(*pair), number, row)


def _add(e: Emitter, tiles: Tiles, sums: Array, made: Array, rows: Value, columns: Value, is_first: Value, row: Value, column: Value, lefts: int, rights: int) -> None:
    """Add sums to what is *made* already; those of the first part are all there is."""
    for i, j in product(range(lefts), range(rights)):
        begin, across = e.index_sum((row, 1), (ROWS * i, 1)), e.index_sum((column, 1), (LANES * j, 1))
        lanes = e.build.sub(columns, across)
        some, before = e.first_lanes(lanes), e.first_lanes(e.build.select(is_first, e.index(0), lanes))
        place = made.at(begin, across, strides=(columns,))
        with e.loop(e.smaller(e.index(ROWS), e.build.sub(rows, begin))) as at:
            total = sums.load_vector(i * rights + j, at)
            place.store_lanes(some, e.build.fadd(place.load_lanes(before, at), total), at)
