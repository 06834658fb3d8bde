"""The factors of a kernel's products: as they are, or rounded to bfloat16.

Kernels are written in units. A unit is one factor as it is, or a pair of rounded factors that lie side by side: an
instruction of AVX-512 (VDPBF16PS, Intel's Software Developer's Manual, volume 2) adds both products of a pair to a
number of float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import SHORTS, Value
from fedsim.learning.kernels.emitter import Array, Emitter
from fedsim.learning.kernels.shapes import LANES

__all__ = ["Factors", "RoundedFactors"]


class Factors:
    """Factors as they are; a unit is one of them."""

    rounds = False
    """Whether they are rounded."""
    numbers = 1
    """Of a unit."""

    def __init__(self, e: Emitter) -> None:
        self._e = e

    def array(self, name: str, strides: Sequence[int], *, of_units: bool = False) -> Array:
        """The numbers at a pointer, with *strides* in numbers; *of_units*: the units there, with *strides* in units."""
        return self._e.array(name, strides)

    def multiply_add(self, total: Value, left: Value, right: Value) -> Value:
        """``total + left right`` of two vectors of units."""
        return self._e.multiply_add(total, left, right)

    def made_of(self, vector: Value) -> Value:
        """The vector as it is stored."""
        return vector


class RoundedFactors(Factors):
    """Factors rounded to the nearest number of bfloat16, ties to even; a unit is two of them."""

    rounds = True
    numbers = 2

    def array(self, name: str, strides: Sequence[int], *, of_units: bool = False) -> Array:
        """The same; a number has 16 bits, a unit 32."""
        return (self._e.word_array if of_units else self._e.short_array)(name, strides)

    def multiply_add(self, total: Value, left: Value, right: Value) -> Value:
        """Both products of each unit are added. The instruction takes numbers below the smallest normal one as 0."""
        factors = (self._e.build.bitcast(side, _vector(2 * LANES)) for side in (left, right))
        return self._e.call("llvm.x86.avx512bf16.dpbf16ps.512", self._e.vector_type, total, *factors)

    def made_of(self, vector: Value) -> Value:
        """The vector rounded, 16 bits a number."""
        rounded = self._e.build.fptrunc(vector, _vector(LANES))
        return self._e.build.bitcast(rounded, SHORTS)


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
