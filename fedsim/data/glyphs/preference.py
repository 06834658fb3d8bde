"""Which characters a camera reads and how many: factories print different things, and so do their lines.

With classes c = 0..61 and base frequencies b_c = 1/62 (no character is commoner than another; FEMNIST's are mostly
digits, which is a custom of forms, not of labels on parts), all in all

    p_f ~ Dirichlet(62 a_factory b)      what factory f reads
    p_k ~ Dirichlet(62 a_camera p_f)     what camera k of factory f reads
    n_k = max(10, round(m exp(s z_k - s^2 / 2))), z_k ~ Normal(0, 1)
    y_ki ~ p_k, independent, i = 1..n_k

An infinite concentration a means that there is no such preference: p_f = b, p_k = p_f. Left out: words, serial
numbers, and all other order between a camera's characters.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedsim.data.glyphs.typefaces import CHARACTERS

__all__ = ["BASE", "MINIMUM_IMAGES", "image_labels", "images_of_device", "preference"]

BASE = np.full(len(CHARACTERS), 1 / len(CHARACTERS))
BASE.flags.writeable = False
MINIMUM_IMAGES = 10


def preference(expected: NDArray[np.float64], concentration: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """(classes,) frequencies ~ Dirichlet(classes * *concentration* * *expected*); *expected* when it is infinite.

    The mean is *expected* = q and the variance of class c is q_c (1 - q_c) / (classes concentration + 1). A class that
    is not expected at all stays away.

    >>> preference(np.array([0.5, 0.5, 0.0]), math.inf, np.random.default_rng(1)).tolist()
    [0.5, 0.5, 0.0]
    """
    if math.isinf(concentration):
        return expected
    some = expected > 0
    if some.all():
        return rng.dirichlet(len(expected) * concentration * expected)
    drawn = np.zeros_like(expected)
    drawn[some] = rng.dirichlet(len(expected) * concentration * expected[some])
    return drawn


def images_of_device(mean: float, spread: float, rng: np.random.Generator) -> int:
    """n_k: lognormal with *mean*, where *spread* is the standard deviation of its logarithm; at least 10.

    >>> images_of_device(165, 0.0, np.random.default_rng(1))
    165
    """
    return max(MINIMUM_IMAGES, round(mean * math.exp(spread * rng.standard_normal() - spread**2 / 2)))


def image_labels(frequencies: NDArray[np.float64], images: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(images,) labels, independent, by inversion of the cumulated *frequencies*.

    >>> image_labels(np.array([0.0, 1.0, 0.0]), 3, np.random.default_rng(1)).tolist()
    [1, 1, 1]
    """
    cumulated = frequencies.cumsum()
    drawn: NDArray[np.int64] = cumulated.searchsorted(cumulated[-1] * rng.random(images), side="right")
    return drawn
