"""A feature skew changes what clients measure, each in its own way; who holds which samples stays as it is.

One class and one line per feature skew. Sensors may be noisier the higher their number (Li et al., NIID-Bench, ICDE
2022, section IV-C). Cameras may hang askew: images are turned by an angle of the factory, or of the client. Rotated
images are the standard test of clustered federated learning (Ghosh et al., *An Efficient Framework for Clustered
Federated Learning*, NeurIPS 2020, section 6: 0, 90, 180 and 270 degrees).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval, MaxLen, MinLen
from numpy.typing import NDArray

from fedsim.data.encoding import Affine
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.errors import Misfit
from fedsim.settings import Component, Positive, Several

__all__ = ["REGISTRY", "By", "FeatureSkewSettings", "Noise", "Rotation", "as_stored", "numbered", "portions", "rotated"]

REGISTRY = {
    "noise": "fedsim.data.feature_skew:Noise",
    "rotation": "fedsim.data.feature_skew:Rotation",
}

By = Literal["client", "factory"]

AT_ONCE = 10_000  # samples: results do not depend on it, memory does
LARGEST = float(np.finfo(np.float32).max)
FAR = 100  # deviations: no noise is that large
Angle = Annotated[float, Interval(ge=-360, le=360)]
Spread = Annotated[float, Interval(gt=0, le=180)]
EXACT_DIGITS = 12  # of sines and cosines: quarter turns move pixels, and machines agree on all others


class FeatureSkewSettings(Component):
    """Base of what is registered under "feature_skews"."""

    @abstractmethod
    def apply(
        self, raw: RawDataset, clients: Clients, held: Sequence[NDArray[np.int64]], rng: np.random.Generator
    ) -> NDArray[Any]:
        """New ``x``, stored as *raw* stores it, in which the samples that each of ``clients.total`` holds are skewed.

        Samples that nobody holds stay as they are. Raises `UserError` when such samples cannot be skewed so.
        """


def numbered(clients: Clients, by: By) -> tuple[NDArray[np.int64], int]:
    """(``clients.total``,) the number of each one's *client* or *factory*, from 0, and how many there are.

    Unseen clients measure as those who take part do: m of them count as clients evenly chosen from n, unseen client j
    as client floor((j + 1/2) n / m).

    >>> numbered(Clients(4, unseen=2), "client")
    (array([0, 1, 2, 3, 1, 3]), 4)
    >>> numbered(Clients(4, np.array([0, 0, 1, 1]), unseen=1), "factory")
    (array([0, 0, 1, 1, 0]), 2)
    """
    if by == "factory":
        return clients.all_factories, int(clients.factory.max()) + 1
    unseen = (2 * np.arange(clients.unseen) + 1) * clients.count // (2 * max(clients.unseen, 1))
    return np.concatenate([np.arange(clients.count), unseen]), clients.count


def portions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """*ids* in their order, so few at once that memory hardly grows."""
    for begin in range(0, len(ids), AT_ONCE):
        yield ids[begin : begin + AT_ONCE]


def as_stored(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """*values* as *dtype* holds them: whole numbers are the nearest ones, up to the smallest and the largest.

    >>> as_stored(np.array([-3.0, 1.6, 300.0]), np.dtype(np.uint8)).tolist()
    [0, 2, 255]
    """
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        values = np.clip(np.rint(values), limits.min, limits.max)
    return values.astype(dtype)


class Noise(FeatureSkewSettings):
    """Gaussian noise on every value, more for each next client or factory (NIID-Bench).

    Client i = 1, ..., n adds noise of mean 0 and variance ``variance`` * i / n to the samples it holds, its own tests
    included, drawn once: a sample is measured once. Values are those of decoded samples, an image from 0 to 1, say.
    What is stored as whole numbers is rounded and stays between its smallest and largest number, as a sensor's does.

    (NIID-Bench's paper calls the variance sigma; its code draws anew each time, from client 1 without noise to client n
    with *standard deviation* sigma.)
    """

    name: Literal["noise"] = "noise"
    variance: Positive = 0.1
    """Variance of the last one's noise, in squared units of a decoded sample. NIID-Bench uses 0.1."""
    by: By = "client"
    """Whose number counts: each client's, or that of the factory it is in."""

    def apply(
        self, raw: RawDataset, clients: Clients, held: Sequence[NDArray[np.int64]], rng: np.random.Generator
    ) -> NDArray[Any]:
        """Raises `UserError` when samples are characters, or other ids, or when noise is too large for float32."""
        if not isinstance(raw.encoding, Affine):
            raise Misfit(
                "noise needs samples that are measured, and those of this data set are ids (characters, words); leave "
                "feature_skew out",
                "feature_skew",
            )
        number, numbers = numbered(clients, self.by)
        scale = abs(raw.encoding.scale)
        x = np.array(raw.x)
        far = max(abs(float(x.min())), abs(float(x.max())))
        if FAR * self.variance**0.5 > (LARGEST - far) * scale:
            raise Misfit(
                f"variance={self.variance:g}: samples are kept as numbers of up to {LARGEST:.3g} (float32), which are "
                f"multiplied by {scale:g}, and such noise does not fit there; lower it",
                "feature_skew",
                "variance",
            )
        deviations = np.sqrt(self.variance * (number + 1) / numbers) / scale
        for ids, deviation in zip(held, deviations, strict=True):
            for some in portions(ids):
                noise = rng.standard_normal((len(some), *x.shape[1:]), dtype=np.float32)
                x[some] = as_stored(x[some] + np.float32(deviation) * noise, x.dtype)
        return x


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
