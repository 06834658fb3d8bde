"""Images changed a little each time they are seen: another brightness, another crop.

All arithmetic is element by element, in float32, so that it does not depend on the machine. Left out: flips and
rotations, which change what a character is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsim.data.stream.settings import Augmentation

__all__ = ["augmented", "resized_crops"]


def augmented(images: NDArray[np.float32], augmentation: Augmentation, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n, channels, height, width) *images* in [0, 1], each cropped, enlarged to its old size, and brightened.

    Every image has its own draws, always as many, in the order: area, aspect, left, top, brightness. What leaves
    [0, 1] is saturated, as in a camera.
    """
    draws = rng.random((5, len(images)))
    low, high = augmentation.area
    area = low + (high - low) * draws[0]
    low, high = np.log(augmentation.aspect[0]), np.log(augmentation.aspect[1])
    aspect = np.exp(low + (high - low) * draws[1])
    width, height = np.minimum(np.sqrt(area * aspect), 1.0), np.minimum(np.sqrt(area / aspect), 1.0)
    left, top = draws[2] * (1.0 - width), draws[3] * (1.0 - height)
    cropped = resized_crops(images, left, top, width, height)
    factor = (1.0 + augmentation.brightness * (2.0 * draws[4] - 1.0)).astype(np.float32)
    cropped *= factor[:, None, None, None]
    bright: NDArray[np.float32] = np.clip(cropped, 0.0, 1.0, out=cropped)
    return bright


def resized_crops(
    images: NDArray[np.float32],
    left: NDArray[np.float64],
    top: NDArray[np.float64],
    width: NDArray[np.float64],
    height: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Each image's rectangle (shares of the image's sides), enlarged to the whole by bilinear interpolation.

    Pixel i of P in a row lies at s = P (left + width (i + 1/2) / P) - 1/2 of the source, moved to the nearest edge
    centre when outside; rows likewise.

    >>> ramp = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4).repeat(4, axis=2)
    >>> half, whole = np.array([0.5]), np.array([1.0])
    >>> resized_crops(ramp, 0 * half, 0 * half, half, whole)[0, 0, 0].tolist()
    [0.0, 0.25, 0.75, 1.25]
    """
    number, channels, rows, columns = images.shape
    y0, y1, y_share = _places(top, height, rows)
    x0, x1, x_share = _places(left, width, columns)
    pixels = images.transpose(0, 2, 3, 1).reshape(-1, channels)  # channels last, so that one index finds all of them
    lines = np.arange(number * rows).reshape(number, rows)
    one, other = (pixels.take(columns * lines[:, :, None] + x[:, None], axis=0) for x in (x0, x1))
    wide = _between(one, other, x_share[:, None, :, None]).reshape(number * rows, columns * channels)
    upper, lower = (wide.take(lines[:, :1] + y, axis=0) for y in (y0, y1))
    whole = _between(upper, lower, y_share[:, :, None]).reshape(number, rows, columns, channels)
    return np.ascontiguousarray(whole.transpose(0, 3, 1, 2))


def _places(
    start: NDArray[np.float64], extent: NDArray[np.float64], pixels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """(n, pixels) the source pixels on both sides of each new one, and the share of the second."""
    centres = (np.arange(pixels) + 0.5) / pixels
    at = np.clip(pixels * (start[:, None] + extent[:, None] * centres) - 0.5, 0, pixels - 1)
    low = np.minimum(at.astype(np.int64), max(pixels - 2, 0))
    return low, np.minimum(low + 1, pixels - 1), (at - low).astype(np.float32)


def _between(one: NDArray[np.float32], other: NDArray[np.float32], share: NDArray[np.float32]) -> NDArray[np.float32]:
    """``one + share (other - one)``, in the memory of *other*."""
    other -= one
    other *= share
    other += one
    return other
