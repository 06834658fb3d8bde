"""Exponential functions of vectors of float32, with the coefficients of S. Moshier's Cephes library."""

from __future__ import annotations

from collections.abc import Sequence

from fedsim.learning.kernels.arithmetic import WORDS, Value
from fedsim.learning.kernels.emitter import Emitter

__all__ = ["exponential", "hyperbolic_tangent", "logistic"]

LEAST, LARGEST = -87.3, 88.3
"""Between them the exponential function and its inverse are normal numbers of float32."""
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
"""Their sum is the logarithm of 2; the first one has few digits, so whole multiples of it are exact."""
_FRACTION_BITS, _BIAS = 23, 127
ROUNDS = 1.5 * 2.0**_FRACTION_BITS + _BIAS
"""A number that is so large that adding it rounds a small one to a whole one, which is then in its last bits, with the
bias of exponents."""
EXPONENTIAL = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
SMALL = 0.625
TANGENT = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)

_SIGN, _OTHER_BITS = 1 << 31, (1 << 31) - 1


def exponential(e: Emitter, x: Value) -> Value:
    """``exp(x)``; of what is below -87.3 or above 88.3, that of these."""
    x = _within(e, x, LEAST, LARGEST)
    shifted = e.multiply_add(e.constant(ROUNDS), x, e.constant(1.4426950408889634))
    whole = e.build.fsub(shifted, e.constant(ROUNDS))
    rest = e.multiply_add(x, whole, e.constant(-LN2_HIGH))
    rest = e.multiply_add(rest, whole, e.constant(-LN2_LOW))
    near_one = e.multiply_add(rest, _polynomial(e, rest, EXPONENTIAL), e.build.fmul(rest, rest))
    near_one = e.build.fadd(near_one, e.constant(1.0))
    power = e.build.shl(e.build.bitcast(shifted, WORDS), e.same_words(_FRACTION_BITS))
    return e.build.fmul(near_one, e.build.bitcast(power, e.vector_type))  # which leaves what is no number as it is


def logistic(e: Emitter, x: Value) -> Value:
    """``1 / (1 + exp(-x))``."""
    behind = exponential(e, e.build.fsub(e.zeros, x))
    return e.build.fdiv(e.constant(1.0), e.build.fadd(e.constant(1.0), behind))


def hyperbolic_tangent(e: Emitter, x: Value) -> Value:
    """``tanh(x)``: a polynomial near 0, and otherwise ``1 - 2 / (exp(2 |x|) + 1)`` with the sign of x."""
    square = e.build.fmul(x, x)
    near = e.multiply_add(x, x, e.build.fmul(square, _polynomial(e, square, TANGENT)))
    bits = e.build.bitcast(x, WORDS)
    size = e.build.bitcast(e.build.and_(bits, e.same_words(_OTHER_BITS)), e.vector_type)
    grown = e.build.fadd(exponential(e, e.build.fadd(size, size)), e.constant(1.0))
    far = e.build.fsub(e.constant(1.0), e.build.fdiv(e.constant(2.0), grown))
    far = e.build.bitcast(
        e.build.or_(e.build.bitcast(far, WORDS), e.build.and_(bits, e.same_words(_SIGN))), e.vector_type
    )
    return e.build.select(e.build.fcmp_ordered("<", square, e.constant(SMALL**2)), near, far)


def _polynomial(e: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """The highest power's first."""
    total = e.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        total = e.multiply_add(e.constant(coefficient), total, x)
    return total


def _within(e: Emitter, x: Value, least: float, largest: float) -> Value:
    """What is no number stays none."""
    x = e.build.select(e.build.fcmp_ordered("<", x, e.constant(least)), e.constant(least), x)
    return e.build.select(e.build.fcmp_ordered(">", x, e.constant(largest)), e.constant(largest), x)
