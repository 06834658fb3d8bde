"""Products of float32 numbers on tiles: registers of rows of 64 bytes that hold factors of 16 bits (Intel's AMX).

A float32 number is the sum of three of bfloat16, exactly: its first eight binary digits, the next eight, and the last
eight. Of the nine products of two numbers' terms six are taken; the three others are below the last digit. So sums come
as near to the exact ones as float32's own, at two and a half times the speed: a tile does sixteen times the work of a
vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from llvmlite import ir

from fedsim.learning.executors.batched.compiled.emitter import Array, Emitter, Value
from fedsim.learning.executors.batched.compiled.geometry import LANES

__all__ = ["ROWS", "STEP", "TERMS", "TILE", "Tiles"]

ROWS = 16
"""Of a tile, at most."""
ROW = 64
"""Bytes of one."""
TILE = ROWS * ROW
"""Bytes of a tile."""
STEP = 32
"""Numbers of bfloat16 in a row: so many products are added up by one instruction."""
TERMS = 3
"""In which a number is split."""

_SUMS, _LEFT, _RIGHT = range(4), (4, 5), (6, 7)
"""The eight tiles."""
_PRODUCTS = ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0))
"""Which terms are multiplied: the small ones first; from one pair to the next a factor stays."""
Side = Callable[[int], Value]

_INT, _SHORT, _BYTE = ir.IntType(32), ir.IntType(16), ir.IntType(8)
_INTS, _SHORTS = ir.VectorType(_INT, LANES), ir.VectorType(_SHORT, LANES)


class Tiles:
    """What an `Emitter` can do with them: products of one or two left sides with one or two right sides."""

    def __init__(self, e: Emitter) -> None:
        self._e = e

    # -- numbers in terms ---------------------------------------------------------------------------------------------

    def terms(self, vector: Value) -> list[Value]:
        """The three terms of float32 numbers, largest first; each in the upper half of 32 bits."""
        build, found = self._e.build, []
        for _ in range(TERMS):
            term = build.and_(build.bitcast(vector, _INTS), ir.Constant(_INTS, [0xFFFF0000] * LANES))
            found.append(term)
            vector = build.fsub(vector, build.bitcast(term, self._e.vector_type))
        return found

    def halves(self, term: Value) -> Value:
        """A term, 16 bits a number."""
        return self._e.build.trunc(self._shifted(term), _SHORTS)

    def pairs(self, first: Value, second: Value) -> Value:
        """Two terms, lane by lane beside each other: as a product's right side is laid."""
        return self._e.build.or_(self._shifted(first), second)

    def _shifted(self, term: Value) -> Value:
        return self._e.build.lshr(term, ir.Constant(_INTS, [16] * LANES))

    # -- tiles --------------------------------------------------------------------------------------------------------

    def begin(self, rows: int) -> None:
        """From here on tiles are in use; those of the left side, and sums, have so many *rows*."""
        heights = [rows if tile in (*_SUMS, *_LEFT) else ROWS for tile in range(8)]
        setting = [1, *[0] * 15, *[ROW, 0] * 8, *[0] * 16, *heights, *[0] * 8]
        kind, name = ir.ArrayType(_BYTE, len(setting)), "setting"
        constant = ir.GlobalVariable(self._e.module, kind, self._e.module.get_unique_name(name))
        constant.global_constant, constant.initializer = True, ir.Constant(kind, setting)
        self._e.call("llvm.x86.ldtilecfg", ir.VoidType(), constant)

    def end(self) -> None:
        """They are not any more."""
        self._e.call("llvm.x86.tilerelease", ir.VoidType())

    def clear(self) -> None:
        """All sums are 0."""
        for tile in _SUMS:
            self._e.call("llvm.x86.tilezero", ir.VoidType(), _number(tile))

    def multiply(self, lefts: Sequence[Side], rights: Sequence[Side], row: Value) -> None:
        """Add up `STEP` products for each row of one or two left sides and column of one or two right sides.

        A side is told which term, and says where its tile begins. From row to row of a left side it is *row* bytes.
        """
        held: dict[tuple[int, ...], int] = {}
        for terms in _PRODUCTS:
            for tiles, sides, term, step in zip(
                (_LEFT, _RIGHT), (lefts, rights), terms, (row, self._e.index(ROW)), strict=True
            ):
                if held.get(tiles) != term:
                    held[tiles] = term
                    for tile, side in zip(tiles, sides, strict=False):
                        self._e.call("llvm.x86.tileloadd64", ir.VoidType(), _number(tile), side(term), step)
            for i, j in product(range(len(lefts)), range(len(rights))):
                factors = _number(_LEFT[i]), _number(_RIGHT[j])
                total = _sum(i, j, len(lefts), len(rights), later=terms[1] > 0)
                self._e.call("llvm.x86.tdpbf16ps", ir.VoidType(), _number(total), *factors)

    def store(self, room: Array) -> None:
        """Write the sums there: (4, rows, 16) numbers."""
        for tile in _SUMS:
            address = room.address((tile,))
            self._e.call("llvm.x86.tilestored64", ir.VoidType(), _number(tile), address, self._e.index(ROW))

    def stored(self, room: Array, row: Value, i: int, j: int, lefts: int, rights: int) -> Value:
        """A row of the sums of left side *i* and right side *j*, from there."""
        first, second = (room.load_vector(_sum(i, j, lefts, rights, later=later), row) for later in (False, True))
        return first if lefts * rights == len(_SUMS) else self._e.build.fadd(first, second)


def _sum(i: int, j: int, lefts: int, rights: int, *, later: bool) -> int:
    """In which tile it is added up: with fewer sums than tiles, in two in turn, so that none waits for itself."""
    return i * rights + j + (len(_SUMS) // 2 if later and lefts * rights < len(_SUMS) else 0)


def _number(value: int) -> Value:
    return ir.Constant(_BYTE, value)
