"""Numbers and vectors of `LANES` numbers in a program that is made: constants, lanes, sums, multiply-add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from fedsim.learning.kernels.shapes import LANES, Machine

__all__ = ["OFFSET", "SHORTS", "WORDS", "Arithmetic", "Value"]

Value = Any
"""A value of the program that is made; llvmlite has no types of its own."""
OFFSET = ir.IntType(32)
"""What counts lanes, and places in a table of offsets."""
WORDS, SHORTS = ir.VectorType(OFFSET, LANES), ir.VectorType(ir.IntType(16), LANES)
"""The bits of vectors of float32, and of bfloat16."""


class Arithmetic:
    """What a program computes with: numbers and vectors of a machine's type."""

    def __init__(self, module: ir.Module, machine: Machine, build: ir.IRBuilder) -> None:
        self.module, self.machine, self.build = module, machine, build
        self.number_type = ir.FloatType() if machine.element == "float" else ir.DoubleType()
        self.vector_type = ir.VectorType(self.number_type, LANES)
        self.suffix = f"v{LANES}{'f32' if machine.element == 'float' else 'f64'}"
        """What LLVM calls a vector in the names of its functions."""

    @property
    def zero(self) -> Value:
        """The number 0."""
        return ir.Constant(self.number_type, 0.0)

    def constant(self, value: float) -> Value:
        """A vector of the number."""
        return ir.Constant(self.vector_type, [value] * LANES)

    @property
    def zeros(self) -> Value:
        """The vector 0."""
        return self.constant(0.0)

    def same_bytes(self, value: int) -> Value:
        """A vector of bytes, all alike."""
        return ir.Constant(ir.VectorType(ir.IntType(8), LANES), [value] * LANES)

    def same_words(self, value: int) -> Value:
        """A vector of 32 bits each, all alike."""
        return ir.Constant(WORDS, [value] * LANES)

    def upper_halves(self, words: Value) -> Value:
        """Of *words*, in the place of the lower ones."""
        return self.build.lshr(words, self.same_words(16))

    def halves(self, words: Value) -> Value:
        """The upper halves of *words*, 16 bits each."""
        return self.build.trunc(self.upper_halves(words), SHORTS)

    def rounded_words(self, words: Value) -> Value:
        """So that upper halves are the nearest numbers of bfloat16, of two such the even one."""
        odd = self.build.and_(self.upper_halves(words), self.same_words(1))
        return self.build.add(words, self.build.add(self.same_words(0x7FFF), odd))

    def broadcast(self, number: Value) -> Value:
        """A vector of *number*."""
        undefined = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
        one = self.build.insert_element(undefined, number, ir.Constant(OFFSET, 0))
        return self._shuffled(one, undefined, [0] * LANES)

    def vector_of(self, numbers: Sequence[Value]) -> Value:
        """A vector of `LANES` numbers."""
        vector = ir.Constant(self.vector_type, ir.Undefined)
        for lane, number in enumerate(numbers):
            vector = self.build.insert_element(vector, number, ir.Constant(OFFSET, lane))
        return vector

    def lanes(self, vector: Value) -> list[Value]:
        """Its numbers."""
        return [self.build.extract_element(vector, ir.Constant(OFFSET, lane)) for lane in range(LANES)]

    def transposed(self, vectors: Sequence[Value]) -> list[Value]:
        """`LANES` vectors of the first numbers of each, of the second ones, and so on."""
        rows, width = list(vectors), LANES
        while width > 1:
            width //= 2
            for first in (row for row in range(LANES) if not row & width):
                pair = rows[first], rows[first + width]
                for row, keeps in ((first, 0), (first + width, width)):
                    lanes = [lane + LANES - width if lane & width else lane for lane in range(LANES)]
                    rows[row] = self._shuffled(*pair, [lane + keeps for lane in lanes])
        return rows

    def _shuffled(self, one: Value, other: Value, lanes: Sequence[int]) -> Value:
        return self.build.shuffle_vector(one, other, ir.Constant(ir.VectorType(OFFSET, len(lanes)), list(lanes)))

    def swapped(self, vector: Value, step: int) -> Value:
        """Each lane has the number of the one *step*, a power of two, away: 0 and *step* change places."""
        return self._shuffled(vector, vector, [lane ^ step for lane in range(LANES)])

    def sums_of_lanes(self, vectors: Sequence[Value]) -> Value:
        """The sum of each one's numbers, as a vector of so many: 1, 2, 4, 8 or 16 of them.

        Each half is added onto the other, again and again, for all at once.
        """
        sums, parts, size = list(vectors), 1, LANES // 2
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=True)
            sums = [self._halves_added(one, other, parts, size) for one, other in pairs]
            parts, size = 2 * parts, size // 2
        (total,) = sums
        while size:
            total = self._halves_added(total, None, parts, size)
            size //= 2
        return total

    def _halves_added(self, one: Value, other: Value | None, parts: int, size: int) -> Value:
        """Of one or two vectors, each in so many *parts* of twice that *size*: the two halves of each part added."""
        both = parts if other is None else 2 * parts
        firsts = [2 * size * part + lane for part in range(both) for lane in range(size)]
        pair = one, one if other is None else other
        return self.build.fadd(*(self._shuffled(*pair, [begin + lane for lane in firsts]) for begin in (0, size)))

    def multiply_add(self, total: Value, x: Value, y: Value) -> Value:
        """``total + x y``, rounded once."""
        return self.call(f"llvm.fma.{self.suffix}", self.vector_type, x, y, total)

    def rectified(self, d: Value, y: Value) -> Value:
        """*d* where *y* is positive (or not a number), and 0 elsewhere."""
        zero = self.zero if y.type == self.number_type else self.zeros
        return self.build.select(self.build.fcmp_ordered("<=", y, zero), zero, d)

    def call(self, name: str, result: ir.Type, *arguments: Value) -> Value:
        """What LLVM's function *name* makes of *arguments*."""
        signature = ir.FunctionType(result, [argument.type for argument in arguments])
        known = self.module.globals.get(name) or ir.Function(self.module, signature, name)
        return self.build.call(known, arguments)
