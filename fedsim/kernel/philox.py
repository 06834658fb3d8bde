"""Random numbers of many at once, each a function of a key and its own counter: Philox4x64-10 on whole arrays.

    1 block = 4 words of 64 bits = philox(key of 2 words, counter of 4 words)

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3* (SC 2011). It
is the generator of `fedsim.kernel.streams`; numpy's own makes the numbers of one stream after the other, 10 us for the
first of each, and here those of 100,000 streams take 10 ms. A normal number is made of two uniform ones by G. E. P. Box
and M. E. Muller, *A note on the generation of random normal deviates* (Annals of Mathematical Statistics 29, 1958):

    sqrt(-2 ln u) cos(2 pi v),   0 < u <= 1,   0 <= v < 1

Logarithm and cosine are the C library's, number by number: numpy's own differ between processors with and without
vector instructions, and a seed must not. Leaves out the second number that u and v are good for, with the sine.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Words", "each", "normals", "philox"]

Words = NDArray[np.uint64]

MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
"""What is added to the words of the key after each round: the golden ratio, and the square root of 3 less 1."""
ROUNDS = 10
WORD = 2**64 - 1
HALF, LOW = np.uint64(32), np.uint64(2**32 - 1)


def philox(key: int, counter: tuple[Words, Words, Words, Words]) -> tuple[Words, Words, Words, Words]:
    """The block of each counter, its lowest word first, under a key of 128 bits.

    >>> zero = np.zeros(1, np.uint64)
    >>> [f"{int(word[0]):016x}" for word in philox(0, (zero, zero, zero, zero))]
    ['16554d9eca36314c', 'db20fe9d672d0fdc', 'd7e772cee186176b', '7e68b68aec7ba23b']
    """
    one, two, three, four = counter
    keys = [key & WORD, key >> 64]
    for _ in range(ROUNDS):
        (high_one, low_one), (high_three, low_three) = _product(one, MULTIPLIERS[0]), _product(three, MULTIPLIERS[1])
        one, two = high_three ^ two ^ np.uint64(keys[0]), low_three
        three, four = high_one ^ four ^ np.uint64(keys[1]), low_one
        keys = [(word + more) & WORD for word, more in zip(keys, WEYL, strict=True)]
    return one, two, three, four


def _product(words: Words, factor: int) -> tuple[Words, Words]:
    """The higher and the lower 64 bits of the 128 that a product has, by halves of words."""
    high, low = words >> HALF, words & LOW
    by_high, by_low = np.uint64(factor >> 32), np.uint64(factor & 0xFFFFFFFF)
    middle = high * by_low + (low * by_low >> HALF)
    other = low * by_high + (middle & LOW)
    return high * by_high + (middle >> HALF) + (other >> HALF), words * np.uint64(factor)


def each(function: Callable[[float], float], numbers: NDArray[np.floating]) -> NDArray[np.float64]:
    """*function*, one of the module `math`, of each number: its bits are those that it has for a single float.

    >>> each(math.log2, np.array([1.0, 8.0]))
    array([0., 3.])
    """
    found = np.fromiter(map(function, numbers.ravel().tolist()), np.float64, numbers.size)
    return found.reshape(numbers.shape)


def normals(key: int, counter: tuple[Words, Words, Words, Words]) -> NDArray[np.float64]:
    """A standard normal number for each counter, from the first two words of its block."""
    first, second, _, _ = philox(key, counter)
    above_zero = ((first >> np.uint64(11)) + np.uint64(1)) * 2.0**-53  # 53 bits, as many as a float has
    turns = (second >> np.uint64(11)) * 2.0**-53
    return np.sqrt(-2.0 * each(math.log, above_zero)) * each(math.cos, 2.0 * math.pi * turns)
