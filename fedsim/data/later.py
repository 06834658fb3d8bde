"""Arrays that are made when somebody looks into them: what only counts samples need not wait until they are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Later", "Stored"]


@dataclass(frozen=True, eq=False)
class Later:
    """An array of which the shape and the type are known, and the numbers are not yet made.

    >>> x = Later((2, 3), np.dtype(np.uint8), lambda: np.ones((2, 3), np.uint8), lambda ids: np.ones((len(ids), 3)))
    >>> x.nbytes, np.asarray(x).tolist()
    (6, [[1, 1, 1], [1, 1, 1]])
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    make: Callable[[], NDArray[Any]]
    """Gives the whole array, the same numbers each time."""
    make_rows: Callable[[NDArray[np.int64]], NDArray[Any]]
    """Gives only the rows of such numbers."""

    @property
    def nbytes(self) -> int:
        """What the array takes, once it is made."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The array, made anew: see `numpy.asarray`. Raises `ValueError` unless it is as it was promised."""
        array = self.make()
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ValueError(f"{array.dtype} {array.shape} was made, not {self.dtype} {self.shape}")
        return array if dtype is None else array.astype(dtype, copy=False)


Stored: TypeAlias = NDArray[Any] | Later
