"""Products of float32 matrices of any shape on tiles.

``made = left right``: in parts of some terms, all of the left side is laid in tiles once, and the right side a panel at
a time, which stays in the cache while the left one goes by. Either side may lie transposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import NamedTuple

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Array, Emitter
from fedsim.learning.kernels.shapes import LANES, Machine
from fedsim.learning.kernels.tiles import ROWS, STEP, SUMS, TILE, Tiles

__all__ = ["FEW_ROWS", "FEW_TERMS", "Cut", "emit_tiled_product", "tiled_product_room"]


class Cut(NamedTuple):
    """Into which parts a product is cut."""

    steps: int
    """Whose sums are made by themselves; a change moves the last bit."""
    panel: int
    """Tiles beside each other; a multiple of `SUMS`."""

    def strip(self, terms: int) -> int:
        """Bytes of a row of left tiles, or a column of right ones, in one part."""
        return self.steps * terms * TILE


FEW_ROWS, FEW_TERMS = Cut(16, 4), Cut(12, 24)
"""For a few samples with a large matrix, and for sums over them."""


def tiled_product_room(cut: Cut, rows: int, terms: int) -> int:
    """Bytes that a product with so many rows on the left needs."""
    return SUMS * TILE + (cut.panel + -(-rows // ROWS)) * cut.strip(terms)


class _Side(NamedTuple):
    """One side of a product, as it lies."""

    numbers: Array
    height: Value
    width: Value
    downward: bool
    """Whether the terms of a sum follow each other downward, or across."""
    flipped: bool
    """Whether it lies the other way in tiles."""


def emit_tiled_product(
    module: ir.Module,
    name: str,
    machine: Machine,
    cut: Cut,
    *,
    terms_of_each: int,
    left_lies_transposed: bool = False,
    right_lies_transposed: bool = False,
) -> None:
    """``name(rows, columns, terms, left, right, made, room)``."""
    e = Emitter(module, name, ("left", "right", "made", "room"), machine, ("rows", "columns", "terms"))
    rows, columns, terms = (e.count(count) for count in ("rows", "columns", "terms"))
    strides = cut.strip(terms_of_each), terms_of_each * TILE, TILE, TILE // ROWS
    sums = e.array("room", (ROWS * LANES, LANES))
    panel = e.byte_array("room", strides, SUMS * TILE)
    strips = e.byte_array("room", strides, SUMS * TILE + cut.panel * cut.strip(terms_of_each))
    left = _side(e, "left", rows, terms, downward=left_lies_transposed, flipped=left_lies_transposed)
    right = _side(e, "right", columns, terms, downward=not right_lies_transposed, flipped=right_lies_transposed)
    tiles, row_tiles = Tiles(e, terms_of_each), e.ceil_div(rows, ROWS)
    tiles.begin()
    with e.loop(e.ceil_div(terms, cut.steps * STEP)) as part:
        begin = e.index_sum((part, cut.steps * STEP))
        steps = e.smaller(e.index(cut.steps), e.ceil_div(e.build.sub(terms, begin), STEP))
        is_first = e.build.icmp_signed("==", part, e.index(0))
        with _as_it_lies(e, left, row_tiles, steps) as (tile, step):
            at = e.index_sum((tile, ROWS)), e.index_sum((begin, 1), (step, STEP))
            _lay(e, tiles, left, *at, strips.at(tile, step, strides=strides[2:]))
        with e.loop(e.ceil_div(columns, cut.panel * LANES)) as number:
            first = e.index_sum((number, cut.panel * LANES))
            fours = e.smaller(e.index(cut.panel // SUMS), e.ceil_div(e.build.sub(columns, first), SUMS * LANES))
            with _as_it_lies(e, right, e.index_sum((fours, SUMS)), steps) as (tile, step):
                at = e.index_sum((first, 1), (tile, LANES)), e.index_sum((begin, 1), (step, STEP))
                _lay(e, tiles, right, *at, panel.at(tile, step, strides=strides[2:]), ahead=cut.panel * LANES)
            made = _Made(e, rows, columns, sums, is_first)
            pairs = e.build.sdiv(row_tiles, e.index(2))
            for lefts, first_tile, times in (
                (2, e.index(0), pairs),
                (1, e.index_sum((pairs, 2)), e.build.sub(row_tiles, e.index_sum((pairs, 2)))),
            ):
                rights = SUMS // lefts
                with e.loop(times) as block, e.loop(e.index_sum((fours, lefts))) as beside:
                    row_tile, tile = e.index_sum((first_tile, 1), (block, lefts)), e.index_sum((beside, rights))
                    tiles.clear()
                    with e.loop(steps) as step:
                        tiles.multiply(
                            [partial(_at, strips, e.index_sum((row_tile, 1), (i, 1)), step) for i in range(lefts)],
                            [partial(_at, panel, e.index_sum((tile, 1), (j, 1)), step) for j in range(rights)],
                            e.index(TILE // ROWS),
                        )
                    tiles.store(sums)
                    made.add(e.index_sum((row_tile, ROWS)), e.index_sum((first, 1), (tile, LANES)), lefts, rights)
    tiles.end()
    e.finish()


def _side(e: Emitter, name: str, other: Value, terms: Value, *, downward: bool, flipped: bool) -> _Side:
    height, width = (terms, other) if downward else (other, terms)
    return _Side(e.array(name, (width, 1)), height, width, downward, flipped)


@contextmanager
def _as_it_lies(e: Emitter, side: _Side, tiles: Value, steps: Value) -> Iterator[tuple[Value, Value]]:
    """All tiles and steps, along rows."""
    if side.downward:
        with e.loop(steps) as step, e.loop(tiles) as tile:
            yield tile, step
    else:
        with e.loop(tiles) as tile, e.loop(steps) as step:
            yield tile, step


def _at(laid: Array, tile: Value, step: Value, term: int) -> Value:
    return laid.address((tile, step, term))


def _lay(e: Emitter, tiles: Tiles, side: _Side, other: Value, term: Value, tile: Array, ahead: int = 0) -> None:
    """Lay 16 rows or columns and `STEP` terms in a tile for each of a number's terms, with zeros beyond the edge.

    What lies so many rows or columns *ahead* is fetched.
    """
    halves = []
    for half in (0, LANES):
        first = e.index_sum((term, 1), (half, 1))
        row, column = (first, other) if side.downward else (other, first)
        inside, nothing = e.first_lanes(e.build.sub(side.width, column)), e.first_lanes(e.index(0))
        vectors = []
        for number in range(LANES):
            at = e.index_sum((row, 1), (number, 1))
            if ahead:
                beyond = (at, e.index_sum((column, 1), (ahead, 1)))
                side.numbers.prefetch(
                    *(beyond if side.downward else (e.index_sum((at, 1), (ahead, 1)), column)), level=2
                )
            some = e.build.select(e.build.icmp_signed("<", at, side.height), inside, nothing)
            vectors.append(side.numbers.load_lanes(some, at, column))
        halves.append(e.transposed(vectors) if side.flipped else vectors)
    for row, pair in enumerate(zip(*halves, strict=True)):
        for number, terms in enumerate(zip(*map(tiles.terms, pair), strict=True)):
            tile.store(tiles.pairs(*terms), number, row)


class _Made(NamedTuple):
    """What comes out; *sums* of the first part are all there is, others are added."""

    e: Emitter
    rows: Value
    columns: Value
    sums: Array
    is_first: Value

    def add(self, row: Value, column: Value, lefts: int, rights: int) -> None:
        """Take the sums over, tile by tile."""
        e, made = self.e, self.e.array("made", (self.columns, 1))
        for i, j in product(range(lefts), range(rights)):
            begin, across = e.index_sum((row, 1), (ROWS * i, 1)), e.index_sum((column, 1), (LANES * j, 1))
            lanes = e.build.sub(self.columns, across)
            some, before = e.first_lanes(lanes), e.first_lanes(e.build.select(self.is_first, e.index(0), lanes))
            place = made.at(begin, across, strides=(self.columns,))
            with e.loop(e.smaller(e.index(ROWS), e.build.sub(self.rows, begin))) as at:
                total = self.sums.load_vector(i * rights + j, at)
                place.store_lanes(some, e.build.fadd(place.load_lanes(before, at), total), at)
