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

MULTIPLIERS = np.array([[0xD2E7470EE14C6C93], [0xCA5A826395121157]], np.uint64)
WEYL = np.array([[0x9E3779B97F4A7C15], [0xBB67AE8584CAA73B]], np.uint64)
"""What is added to the words of the key after each round: the golden ratio, and the square root of 3 less 1."""
ROUNDS = 10
HALF, LOW = np.uint64(32), np.uint64(2**32 - 1)


def philox(key: int, *counter: Words) -> Words:
    """The block of each counter under a key of 128 bits: (4, ...), the lowest word first.

    *counter* are four arrays, the lowest word first, that broadcast to one shape.

    >>> zero = np.zeros(2, np.uint64)
    >>> [f"{word:016x}" for word in philox(0, zero, zero, zero, zero)[:, 0].tolist()]
    ['16554d9eca36314c', 'db20fe9d672d0fdc', 'd7e772cee186176b', '7e68b68aec7ba23b']
    """
    words = np.broadcast_arrays(*counter)
    if words[0].size == 1:  # numpy's own takes a tenth of the time for one
        before = sum(int(word.item()) << 64 * place for place, word in enumerate(words)) - 1
        return np.random.Philox(key=key, counter=before % 2**256).random_raw(4).reshape(4, *words[0].shape)
    first, second, third, fourth = (word.ravel() for word in words)
    even, odd = np.stack([first, third]), np.stack([second, fourth])  # (2, counters)
    keys = np.array([[key & 2**64 - 1], [key >> 64]], np.uint64)
    for _ in range(ROUNDS):
        high, low = _product(even, MULTIPLIERS)
        even, odd = high[::-1] ^ odd ^ keys, low[::-1]
        keys = keys + WEYL
    return np.stack([even[0], odd[0], even[1], odd[1]]).reshape(4, *words[0].shape)


def _product(words: Words, factors: Words) -> tuple[Words, Words]:
    """The higher and the lower 64 bits of the 128 that products have, by halves of words."""
    word_high, word_low = words >> HALF, words & LOW
    high, low = factors >> HALF, factors & LOW
    middle = word_high * low + (word_low * low >> HALF)
    other = word_low * high + (middle & LOW)
    return word_high * high + (middle >> HALF) + (other >> HALF), words * factors


def each(function: Callable[[float], float], numbers: NDArray[np.floating]) -> NDArray[np.float64]:
    """*function*, one of the module `math`, of each number: its bits are those that it has for a single float.

    >>> each(math.log2, np.array([1.0, 8.0]))
    array([0., 3.])
    """
    found = np.fromiter(map(function, numbers.ravel().tolist()), np.float64, numbers.size)
    return found.reshape(numbers.shape)


def normals(key: int, *counter: Words) -> NDArray[np.float64]:
    """A standard normal number for each counter, from the first two words of its block."""
    first, second = philox(key, *counter)[:2] >> np.uint64(11)  # 53 bits, as many as a float has
    above_zero, turns = (first + np.uint64(1)) * 2.0**-53, second * 2.0**-53
    return np.sqrt(-2.0 * each(math.log, above_zero)) * each(math.cos, 2.0 * math.pi * turns)
