"""How stored samples become what a model takes: grey levels become numbers, characters ids, one-hot rows or n-grams.

Samples are kept as they are measured (one byte for a pixel or a character), so that a data set needs a quarter of the
memory or less; they are decoded when they are needed, a few at a time. Left out: augmentation, which belongs to the
stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["AS_IT_IS", "ENCODINGS", "Affine", "Encoding", "HashedNgrams", "Ids", "OneHot"]

Shape = tuple[int, ...]


class Encoding(ABC):
    """What to do with stored samples. Equal encodings have equal ``repr``, which is part of a data set's address."""

    @property
    def vocabulary(self) -> int | None:
        """Decoded samples are ids from 0 to ``vocabulary - 1``; None when they are numbers."""
        return None

    def sample_shape(self, stored: Shape) -> Shape:
        """The shape of one decoded sample: as stored, unless the encoding changes it."""
        return stored

    @abstractmethod
    def decode(self, stored: NDArray[Any]) -> NDArray[Any]:
        """(samples, *sample_shape) float32, or int64 ids; always new memory."""


@dataclass(frozen=True)
class Affine(Encoding):
    """``scale * stored + offset`` in float32, shape unchanged.

    >>> Affine(scale=1 / 256).decode(np.array([[0, 64, 255]], np.uint8)).tolist()
    [[0.0, 0.25, 0.99609375]]
    """

    scale: float = 1.0
    offset: float = 0.0

    def decode(self, stored: NDArray[Any]) -> NDArray[np.float32]:
        """float32; what is stored as float32 with scale 1 and offset 0 is only copied."""
        values = np.array(stored, np.float32)
        if self.scale != 1.0:
            values *= np.float32(self.scale)
        if self.offset != 0.0:
            values += np.float32(self.offset)
        return values


AS_IT_IS = Affine()
"""float32 that stays what it is."""


@dataclass(frozen=True)
class Ids(Encoding):
    """Whole numbers below *size*, such as characters by their place in an alphabet."""

    size: int

    @property
    def vocabulary(self) -> int:
        """*size*."""
        return self.size

    def decode(self, stored: NDArray[Any]) -> NDArray[np.int64]:
        """int64."""
        return np.array(stored, np.int64)


@dataclass(frozen=True)
class OneHot(Encoding):
    """(length,) ids from 0 to *size* as a (size, length) matrix of zeros and ones: id i sets row i - 1, id 0 none.

    The "quantisation" of Zhang, Zhao and LeCun (*Character-level Convolutional Networks*, NIPS 2015, section 2.2).

    >>> OneHot(3).decode(np.array([[2, 0]], np.uint8)).tolist()
    [[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]]
    """

    size: int

    def sample_shape(self, stored: Shape) -> Shape:
        """(size, length)."""
        (length,) = stored
        return (self.size, length)

    def decode(self, stored: NDArray[Any]) -> NDArray[np.float32]:
        """float32."""
        rows = np.arange(1, self.size + 1)[None, :, None]
        decoded: NDArray[np.float32] = (stored[:, None, :] == rows).astype(np.float32)
        return decoded


@dataclass(frozen=True)
class HashedNgrams(Encoding):
    """(length,) ids from 0 to *size* as (buckets,) zeros and ones: which runs of *n* ids a sample has, at any place.

    A run is a number to the base *size* + 1, first id first; the remainder by *buckets* is the place of its one. So
    different runs may have the same place. Runs of nothing but id 0 are left out. N-grams of characters
    tell what a text is about (W. Cavnar, J. Trenkle, *N-Gram-Based Text Categorization*, SDAIR 1994); the hashing trick
    keeps them in few places (K. Weinberger et al., *Feature Hashing for Large Scale Multitask Learning*, ICML 2009).
    Leaves out: how often a run occurs, and the trick's signs.

    >>> HashedNgrams(size=3, n=2, buckets=5).decode(np.array([[2, 1, 0, 0]], np.uint8)).tolist()  # 2x4+1, 1x4+0, no 0
    [[0.0, 0.0, 0.0, 0.0, 1.0]]
    """

    size: int
    n: int
    buckets: int

    def sample_shape(self, stored: Shape) -> Shape:
        """(buckets,). Raises `ValueError` for samples of less than *n* ids."""
        (length,) = stored
        if length < self.n:
            raise ValueError(f"{length} ids have no run of {self.n}")
        return (self.buckets,)

    def decode(self, stored: NDArray[Any]) -> NDArray[np.float32]:
        """float32."""
        runs = stored.shape[1] - self.n + 1
        place = np.zeros((len(stored), runs), np.int64)
        has_some = np.zeros((len(stored), runs), np.bool_)
        for first in range(self.n):
            ids = stored[:, first : first + runs]
            place = (place * (self.size + 1) + ids) % self.buckets  # of the sum so far: the remainder of the whole
            has_some |= ids > 0
        decoded = np.zeros((len(stored), self.buckets), np.float32)
        decoded[np.nonzero(has_some)[0], place[has_some]] = 1.0
        return decoded


ENCODINGS: tuple[type[Encoding], ...] = (Affine, Ids, OneHot, HashedNgrams)
"""All that there are: what else a class could do would not be in its ``repr``, and so not in a data set's address."""
