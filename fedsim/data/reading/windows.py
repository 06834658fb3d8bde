"""Windows that slide over a record, and how much memory they may take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import Misfit
from fedsim.quick import check_bytes

__all__ = ["MOST_BYTES", "require_memory", "windows"]

MOST_BYTES = 4 * 10**9
"""Of all samples of a data set, as float32."""


def windows(record: NDArray[np.float32], length: int, stride: int) -> NDArray[np.float32]:
    """(windows, ..., length) copies of what *length* values in a row of *record* (..., values) hold, *stride* apart.

    The first begins at the first value; what is left over at the end is in none.

    >>> windows(np.arange(6.0, dtype=np.float32), 3, 2).tolist()
    [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]]
    """
    if record.shape[-1] < length:
        return np.empty((0, *record.shape[:-1], length), np.float32)
    view = np.lib.stride_tricks.sliding_window_view(record, length, axis=-1)[..., ::stride, :]
    return np.ascontiguousarray(np.moveaxis(view, -2, 0))


def require_memory(lengths: Sequence[int], length: int, stride: int, channels: int = 1) -> None:
    """Raise `UserError` when the windows over records of such *lengths* would take more than `MOST_BYTES`."""
    samples = sum((values - length) // stride + 1 for values in lengths if values >= length)
    size = samples * length * channels * 4
    if size > MOST_BYTES:
        raise Misfit(
            f"stride={stride}: {samples} windows of {length} would take {size / 1e9:.3g} GB, and "
            f"{MOST_BYTES / 1e9:g} GB is the most; use a larger stride",
            "stride",
        )
    check_bytes(size, f"stride={stride}")
