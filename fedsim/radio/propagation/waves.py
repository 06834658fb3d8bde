"""Normal numbers that neighbours share: random fields over the plane, as sums of plane waves.

    F(p) = sqrt(2 / K) sum over K waves of a_k cos(2 pi (k . p + phase))

With wave vectors from the spectral density of exp(-r / d), uniform angles and uniform phases, F has the variance 1 and
the correlation exp(-r / d) at a distance r; by the central limit theorem it is close to normal. In two dimensions the
density is d^2 / (2 pi (1 + k^2 d^2)^(3/2)), so 1 - 1 / sqrt(1 + k^2 d^2) of all waves are longer than k: that is turned
round to draw them. One wave is drawn from each K-th part of them, and each angle is a golden section of a turn from the
one before, which brings the correlation within one field to 0.02 of the law (one standard deviation, K = 128), where
waves that are drawn independently come to 0.06. Source: M. Shinozuka, *Simulation of multivariate and multidimensional
random processes* (Journal of the Acoustical Society of America 49, 1971).

A field is a function of its key and its counter alone. Sines are polynomials, in multiplications and additions whose
bits no processor rounds otherwise. Leaves out the third dimension: devices above each other share their shadows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedsim.kernel.philox import each, philox

__all__ = ["WAVES", "Waves", "cosine_of_turns"]

WAVES = 128
"""In a field, a power of 2."""
CHUNK = 512
"""Devices whose waves are worked out at once: what the second cache of a processor holds."""
GOLDEN = (math.sqrt(5) - 1) / 2
"""Of a turn between one wave's direction and the next one's."""
SINE = tuple((-1) ** half * (2 * math.pi) ** (2 * half + 1) / math.factorial(2 * half + 1) for half in range(7))
"""Taylor's coefficients of sin(2 pi x); within a quarter turn they leave an error of 7e-10."""
Numbers = NDArray[np.float64]


def cosine_of_turns(turns: Numbers) -> Numbers:
    """cos(2 pi x), with the same bits on every processor.

    >>> cosine_of_turns(np.array([0.0, 0.125, 0.5, -7.0])).round(6)
    array([ 1.      ,  0.707107, -1.      ,  1.      ])
    """
    quarter = 0.25 - np.abs(turns - np.rint(turns))  # the cosine is the sine of a quarter turn less
    square = quarter * quarter
    found = np.full_like(quarter, SINE[-1])
    for coefficient in SINE[-2::-1]:
        found *= square
        found += coefficient
    found *= quarter
    return found


class Waves:
    """One random field over the plane, whose correlation falls to 1/e over *reference_m*."""

    def __init__(self, key: int, counter: tuple[int, int, int], reference_m: float) -> None:
        number, place, kind = (np.full(1, part, np.uint64) for part in counter)
        words = philox(key, np.arange(WAVES, dtype=np.uint64), number, place, kind)[:3]
        lengths, angles, self._phases = (words >> np.uint64(11)) * 2.0**-53
        order = np.arange(WAVES)
        longer = 1.0 - (order + lengths) / WAVES  # above 0
        self._square = 1.0 / (longer * longer) - 1.0  # (k d)^2
        size = np.sqrt(self._square) / (2 * math.pi * reference_m)  # waves per metre
        turns = 2 * math.pi * (angles[0] + GOLDEN * order)
        self._across, self._up = size * each(math.cos, turns), size * each(math.sin, turns)
        self._reference_m = reference_m

    def at(self, position_m: Numbers, correlation_m: float) -> Numbers:
        """The field at (devices, 2) positions, weighted so that its correlation falls to 1/e over *correlation_m*.

        The same field at two such distances is nearly the same, where these are not far from the reference: between 37
        m and 50 m the correlation is 0.99.
        """
        weight = math.sqrt(2 / WAVES) * self._amplitudes(correlation_m)
        found = np.empty(len(position_m))
        for first in range(0, len(position_m), CHUNK):
            x, y = position_m[first : first + CHUNK].T
            turns = np.multiply.outer(self._across, x)
            turns += np.multiply.outer(self._up, y)
            turns += self._phases[:, None]
            part = cosine_of_turns(turns)
            part *= weight[:, None]
            while len(part) > 1:  # halves, row by row: the order of the sum depends on nothing
                part = part[: len(part) // 2] + part[len(part) // 2 :]
            found[first : first + CHUNK] = part[0]
        return found

    def _amplitudes(self, correlation_m: float) -> Numbers:
        """The square root of how much denser the waves lie at *correlation_m* than at the reference."""
        ratio = correlation_m / self._reference_m
        bend = (1.0 + self._square) / (1.0 + ratio * ratio * self._square)
        density = bend * np.sqrt(bend)
        amplitudes: Numbers = np.sqrt(density * (WAVES / math.fsum(density.tolist())))  # a variance of 1
        return amplitudes
