"""How stored samples become what a model takes: grey levels become numbers, characters become ids or one-hot rows.

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

__all__ = ["AS_IT_IS", "ENCODINGS", "Affine", "Encoding", "Ids", "OneHot"]

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


ENCODINGS: tuple[type[Encoding], ...] = (Affine, Ids, OneHot)
"""All that there are: what else a class could do would not be in its ``repr``, and so not in a data set's address."""
