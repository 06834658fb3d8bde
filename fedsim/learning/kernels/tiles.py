"""Products of float32 numbers on tiles: registers of rows of 64 bytes that hold factors of 16 bits (Intel's AMX).

A float32 number is the sum of three of bfloat16, exactly: its first eight binary digits, the next eight, and the last
eight. Of the nine products of two numbers' terms six are taken; the three others are about as large as what is lost in
the last digit, and as often of either sign. So sums come as near to the exact ones as float32's own, at two and a half
times the speed: a tile does sixteen times the work of a vector. Where numbers may be rounded to bfloat16, they have one
term. Tiles take numbers below 2^-126 for 0, so terms of numbers below 2^-110 are lost; what is infinite or not a number
makes sums that are not numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import WORDS, Value
from fedsim.learning.kernels.emitter import Array, Emitter

__all__ = ["EXACT", "ROUNDED", "ROWS", "STEP", "SUMS", "TILE", "Tiles"]

ROWS = 16
"""Of a tile, at most."""
ROW = 64
"""Bytes of one."""
TILE = ROWS * ROW
"""Bytes of a tile."""
STEP = 32
"""Numbers of bfloat16 in a row: so many products are added up by one instruction."""
EXACT, ROUNDED = 3, 1
"""Terms of a number."""

SUMS = 4
"""Tiles with sums, of the eight there are."""
_FACTORS = range(SUMS, 8)
"""The others."""
_PRODUCTS = {EXACT: ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)), ROUNDED: ((0, 0),)}
"""Which terms are multiplied: the small ones first; from one pair to the next a factor stays."""
Side = Callable[[int], Value]

_BYTE = ir.IntType(8)


class Tiles:
    """What an `Emitter` can do with them: products of one or two left sides with one or two right sides."""

    def __init__(self, e: Emitter, terms: int) -> None:
        """*terms* of each number are multiplied: `EXACT` or `ROUNDED`."""
        self._e, self.terms_of_each = e, terms

    # -- numbers in terms ---------------------------------------------------------------------------------------------

    def terms(self, vector: Value) -> list[Value]:
        """The terms of float32 numbers, largest first; each in the upper half of 32 bits.

        The second of three is rounded, so that the third has either sign; the first is not, or it might be infinite.
        """
        build, found = self._e.build, []
        if self.terms_of_each == ROUNDED:
            return [self._upper(self._e.rounded_words(build.bitcast(vector, WORDS)))]
        for number in range(self.terms_of_each):
            bits = build.bitcast(vector, WORDS)
            term = self._upper(build.add(bits, self._e.same_words(0x8000)) if number == 1 else bits)
            found.append(term)
            vector = build.fsub(vector, build.bitcast(term, self._e.vector_type))
        return found

    def _upper(self, bits: Value) -> Value:
        return self._e.build.and_(bits, self._e.same_words(0xFFFF0000))

    def pairs(self, first: Value, second: Value) -> Value:
        """Two terms, lane by lane beside each other: as a product's right side is laid."""
        return self._e.build.or_(self._e.upper_halves(first), second)

    # -- tiles --------------------------------------------------------------------------------------------------------

    def begin(self, rows: int = ROWS) -> None:
        """From here on tiles are in use; fewer *rows* take less time, where there are always two left sides."""
        heights = [rows if tile in (*range(SUMS), *_FACTORS[:2]) else ROWS for tile in range(8)]
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
        for tile in range(SUMS):
            self._e.call("llvm.x86.tilezero", ir.VoidType(), _number(tile))

    def multiply(self, lefts: Sequence[Side], rights: Sequence[Side], row: Value) -> None:
        """Add up `STEP` products for each row of the left sides and column of the right ones: four sums at most.

        A side is told which term, and says where its tile begins. From row to row of a left side it is *row* bytes. A
        sum's products are added in one order, whatever else is added up.
        """
        sums = list(product(range(len(lefts)), range(len(rights))))
        split = len(lefts)
        left_tiles = _Held(self._e, _FACTORS[:split], lefts, row)
        right_tiles = _Held(self._e, _FACTORS[split:], rights, self._e.index(ROW))
        for turn, (left_term, right_term) in enumerate(_PRODUCTS[self.terms_of_each]):
            for i, j in reversed(sums) if turn % 2 else sums:
                factors = left_tiles.loaded(i, left_term), right_tiles.loaded(j, right_term)
                total = _number(i * len(rights) + j)
                self._e.call("llvm.x86.tdpbf16ps", ir.VoidType(), total, *factors)

    def store(self, room: Array) -> None:
        """Write the sums there: `SUMS` tiles of 16 x 16 numbers, left side by left side, as many rows as they have."""
        for tile in range(SUMS):
            address = room.address((tile,))
            self._e.call("llvm.x86.tilestored64", ir.VoidType(), _number(tile), address, self._e.index(ROW))


class _Held:
    """Some tiles, and what is in them: what was not used for longest makes room."""

    def __init__(self, e: Emitter, tiles: Sequence[int], sides: Sequence[Side], row: Value) -> None:
        self._e, self._free, self._sides, self._row = e, list(tiles), sides, row
        self._tiles: dict[tuple[int, int], int] = {}

    def loaded(self, side: int, term: int) -> Value:
        """The tile of that term of a side."""
        tile = self._tiles.pop((side, term), None)
        if tile is None:
            tile = self._free.pop() if self._free else self._tiles.pop(next(iter(self._tiles)))
            address = self._sides[side](term)
            self._e.call("llvm.x86.tileloadd64", ir.VoidType(), _number(tile), address, self._row)
        self._tiles[side, term] = tile
        return _number(tile)


def _number(value: int) -> Value:
    return ir.Constant(_BYTE, value)
