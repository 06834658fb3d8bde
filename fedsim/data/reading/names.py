"""Names become numbers (of classes, writers, clients), and what other libraries say becomes short."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_short", "numbered"]

LONGEST = 100


def numbered(names: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(samples,) numbers from 0 for *names*, and the different names, as text, in their order.

    Numbers may be names too, and are in the order of numbers.

    >>> numbered(np.array(["b", "a", "b"]))
    (array([1, 0, 1]), ('a', 'b'))
    >>> numbered(np.array([10, 2, 10]))
    (array([1, 0, 1]), ('2', '10'))
    """
    different, number = np.unique(names, return_inverse=True)
    return number.astype(np.int64), tuple(map(str, different.tolist()))


def in_short(error: BaseException) -> str:
    """What *error* says, on one line that is not long.

    >>> in_short(ValueError("bad header\\n  at 3"))
    'bad header at 3'
    """
    return " ".join(str(error).split())[:LONGEST]
