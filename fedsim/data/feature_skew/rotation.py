"""Cameras that hang askew: images turned by an angle of the factory, or of the client.

Rotated images are the standard test of clustered federated learning (Ghosh et al., *An Efficient Framework for
Clustered Federated Learning*, NeurIPS 2020, section 6: 0, 90, 180 and 270 degrees).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval, MaxLen, MinLen
from numpy.typing import NDArray

from fedsim.data.encoding import Affine
from fedsim.data.feature_skew.settings import By, FeatureSkewSettings, as_stored, numbered, portions
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.errors import Misfit
from fedsim.settings import Several

__all__ = ["Rotation", "rotated"]

Angle = Annotated[float, Interval(ge=-360, le=360)]
Spread = Annotated[float, Interval(gt=0, le=180)]

EXACT_DIGITS = 12  # of sines and cosines: quarter turns move pixels, and machines agree on all others


class Rotation(FeatureSkewSettings):
    """Images turned about their centre, by an angle of each factory or client."""

    name: Literal["rotation"] = "rotation"
    degrees: Spread | Annotated[Several[Angle], MinLen(1), MaxLen(1000)] = 30.0
    """Angles, counter-clockwise: a list that factories (or clients) take in turn, or one number, which spreads them
    evenly from minus that to plus that."""
    by: By = "factory"
    """Whose angle it is: that of the factory a client is in, or each client's own."""

    def apply(
        self, raw: RawDataset, clients: Clients, held: Sequence[NDArray[np.int64]], rng: np.random.Generator
    ) -> NDArray[Any]:
        """Nothing is drawn. Raises `UserError` for samples that are no images, and for a spread over a single one."""
        if not isinstance(raw.encoding, Affine) or len(raw.x.shape) != 4:
            shape = raw.encoding.sample_shape(raw.x.shape[1:])
            raise Misfit(
                f"rotation needs images (channels, rows, columns), and a sample of this data set is {shape}; leave "
                "feature_skew out",
                "feature_skew",
            )
        number, numbers = numbered(clients, self.by)
        angles = self._angles(numbers)
        x = np.array(raw.x)
        ends = np.cumsum(np.bincount(number, minlength=numbers))
        for each, members in enumerate(np.split(np.argsort(number, kind="stable"), ends[:-1])):
            for some in portions(np.concatenate([held[client] for client in members.tolist()])):
                x[some] = as_stored(rotated(x[some], angles[each]), x.dtype)
        return x

    def _angles(self, numbers: int) -> list[float]:
        """One for each factory or client."""
        if isinstance(self.degrees, tuple):
            return [self.degrees[number % len(self.degrees)] for number in range(numbers)]
        if numbers == 1:
            raise Misfit(
                f"degrees={self.degrees:g} is spread evenly over each {self.by}, and there is only one; give a list, "
                "as [15], or use more",
                "feature_skew",
                "degrees",
            )
        return [self.degrees * (2 * number / (numbers - 1) - 1) for number in range(numbers)]


def rotated(images: NDArray[Any], degrees: float) -> NDArray[np.float32]:
    """(samples, channels, rows, columns) *images* turned counter-clockwise about their centre, of the same shape.

    Bilinear between pixel centres. What comes from outside an image is the nearest pixel of its edge, so that a
    background stays what it is, be it dark or bright.

    >>> rotated(np.array([[[[1, 2], [3, 4]]]]), 90)[0, 0].tolist()
    [[2.0, 4.0], [1.0, 3.0]]
    """
    rows, columns = images.shape[2:]
    cosine, sine = (round(of(math.radians(degrees)), EXACT_DIGITS) for of in (math.cos, math.sin))
    down, right = np.arange(rows)[:, None] - (rows - 1) / 2, np.arange(columns) - (columns - 1) / 2
    top, row = _taps(cosine * down + sine * right + (rows - 1) / 2, rows)
    left, column = _taps(cosine * right - sine * down + (columns - 1) / 2, columns)
    bottom, beside = np.minimum(top + 1, rows - 1), np.minimum(left + 1, columns - 1)
    values = images.astype(np.float32, copy=False).reshape(*images.shape[:2], rows * columns)

    def between(line: NDArray[np.int64]) -> NDArray[np.float32]:
        """What lies on so many lines, between two columns."""
        before, after = (values.take(line * columns + at, axis=2) for at in (left, beside))
        weighed: NDArray[np.float32] = before + column * (after - before)
        return weighed

    above, below = between(top), between(bottom)
    turned: NDArray[np.float32] = above + row * (below - above)
    return turned


def _taps(at: NDArray[np.float64], length: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The pixel before each place, and how far it is from there to the next one, from 0 to 1."""
    inside = np.clip(at, 0, length - 1)
    low = np.floor(inside)
    return low.astype(np.int64), (inside - low).astype(np.float32)
