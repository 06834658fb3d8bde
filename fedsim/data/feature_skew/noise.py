"""Sensors that are noisier the higher their number (Li et al., NIID-Bench, ICDE 2022, section IV-C)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.encoding import Affine
from fedsim.data.feature_skew.settings import By, FeatureSkewSettings, as_stored, numbered, portions
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.errors import Misfit
from fedsim.settings import Positive

__all__ = ["Noise"]

LARGEST = float(np.finfo(np.float32).max)
FAR = 100  # deviations: no noise is that large


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
