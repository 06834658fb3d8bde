"""Factors of a kernel's products: as they are, or rounded to bfloat16, two of which in a row are one unit of a vector.

The rounded ones are added up by an instruction of AVX-512 that takes two products at a time into each number of
float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from fedsim.learning.executors.compiled.arithmetic import Value
from fedsim.learning.executors.compiled.emitter import Array, Emitter
from fedsim.learning.executors.compiled.geometry import LANES

__all__ = ["Factors", "RoundedFactors"]


class Factors:
    """Numbers as they are: a unit is one of them."""

    rounds = False
    numbers = 1
    """Of a unit."""

    def __init__(self, e: Emitter) -> None:
        self._e = e

    def array(self, name: str, strides: Sequence[int], *, of_units: bool = False) -> Array:
        """The numbers at a pointer; *of_units*: its units, in *strides* of so many."""
        return self._e.array(name, strides)

    def multiply_add(self, total: Value, left: Value, right: Value) -> Value:
        """``total + left right`` of two vectors of units."""
        return self._e.multiply_add(total, left, right)

    def made_of(self, vector: Value) -> Value:
        """The vector as it is stored."""
        return vector


class RoundedFactors(Factors):
    """Numbers of bfloat16, the nearest ones, of two such the even one: a unit is two of them."""

    rounds = True
    numbers = 2

    def array(self, name: str, strides: Sequence[int], *, of_units: bool = False) -> Array:
        """The numbers at a pointer, of 16 bits; *of_units*: its units, of 32."""
        return (self._e.word_array if of_units else self._e.short_array)(name, strides)

    def multiply_add(self, total: Value, left: Value, right: Value) -> Value:
        """Both products of each unit; numbers too small to be normal are 0."""
        factors = (self._e.build.bitcast(side, _vector(2 * LANES)) for side in (left, right))
        return self._e.call("llvm.x86.avx512bf16.dpbf16ps.512", self._e.vector_type, total, *factors)

    def made_of(self, vector: Value) -> Value:
        """Rounded."""
        rounded = self._e.build.fptrunc(vector, _vector(LANES))
        return self._e.build.bitcast(rounded, ir.VectorType(ir.IntType(16), LANES))


class _BFloat(ir.Type):  # type: ignore[misc]
    """LLVM's type of that name, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


def _vector(lanes: int) -> ir.Type:
    return ir.VectorType(_BFloat(), lanes)
