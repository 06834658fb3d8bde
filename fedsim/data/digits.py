"""Handwritten digits of 8 x 8 pixels (E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998).

scikit-learn carries the 1,797 of UCI's test part, by 13 people: nothing has to be downloaded. Left out: who wrote
which digit; the source does not say.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.reading.archive import read_blob
from fedsim.data.reading.packaged import packaged_file
from fedsim.data.sampled import SampledDataset
from fedsim.errors import UserError

__all__ = ["Digits", "bilinear"]

CLASSES = 10
WHITE = 16.0  # pixel values run from 0 to 16
LABEL_BYTES = 1
BLOCK = 16
FILE = "datasets/data/digits.csv.gz"
"""In scikit-learn's folder: a row for each image, 64 pixels and the label."""
SHA256 = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
"""Of that file, unpacked."""
MOST_BYTES = 1_000_000


class Digits(SampledDataset):
    """1,797 real handwritten digits of 8 x 8 pixels in 10 classes, from scikit-learn; nothing is downloaded."""

    name: Literal["digits"] = "digits"
    pixels: Annotated[int, Interval(ge=8, le=192)] = 8
    """Pixels per side. 8 is as they are; a larger size is bilinear interpolation."""

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (1, pixels, pixels) in [0, 1]; on the wire one byte for each pixel and one for the label."""
        images, y = _handwritten()
        x = np.empty((len(images), 1, self.pixels, self.pixels), np.float32)
        for begin in range(0, len(images), BLOCK):  # all at once would take gigabytes
            some = slice(begin, begin + BLOCK)
            x[some, 0] = bilinear(images[some], self.pixels)
        return RawDataset(
            x=x,
            y=y,
            classes=CLASSES,
            class_names=tuple("0123456789"),
            sample_bytes=float(self.pixels**2 + LABEL_BYTES),
        )


def bilinear(images: NDArray[np.float64], pixels: int) -> NDArray[np.float64]:
    """(samples, side, side) *images* at (samples, pixels, pixels), by bilinear interpolation between pixel centres.

    Pixel i of the result lies at s = (i + 1/2) side / pixels - 1/2 of the source, moved to the nearest edge centre
    when outside [0, side - 1]; its value is v[k] + (s - k) (v[k + 1] - v[k]) with k = floor(s), along columns first
    and then along rows. (The convention of OpenCV's ``INTER_LINEAR`` and of torch's ``align_corners=False``.) No sum
    is left to a linear-algebra library, so the result does not depend on the machine.

    >>> bilinear(np.array([[[0.0, 1.0], [0.0, 1.0]]]), 4)[0, 0].tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    side = images.shape[-1]
    at = np.clip((np.arange(pixels) + 0.5) * side / pixels - 0.5, 0, side - 1)
    low = np.minimum(at.astype(np.int64), side - 2)
    weight = at - low
    columns = images[:, :, low] + weight * (images[:, :, low + 1] - images[:, :, low])
    larger: NDArray[np.float64] = columns[:, low] + weight[:, None] * (columns[:, low + 1] - columns[:, low])
    return larger


@cache
def _handwritten() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(1797, 8, 8) images in [0, 1] and (1797,) labels, as they come.

    Of scikit-learn only this file is needed, and to import it takes a second. Raises `UserError` where the file is
    missing or holds other numbers.
    """
    file = packaged_file("sklearn", FILE)
    if file is None:
        raise UserError("data set 'digits' comes with scikit-learn; install scikit-learn")
    content = read_blob(file, what="scikit-learn's file of digits", most_bytes=MOST_BYTES)
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise UserError(f"scikit-learn's {file} holds other numbers than those of UCI; install scikit-learn anew")
    rows = np.loadtxt(content.decode().splitlines(), np.uint8, delimiter=",")
    images: NDArray[np.float64] = rows[:, :-1].reshape(-1, 8, 8) / WHITE
    y: NDArray[np.int64] = rows[:, -1].astype(np.int64)
    images.flags.writeable = y.flags.writeable = False
    return images, y
