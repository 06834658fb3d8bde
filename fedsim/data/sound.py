"""What data sets of short sounds share: how clips become features. They are made once and kept in the cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.data.partition.natural import Natural
from fedsim.data.reading.sound import LogMel
from fedsim.data.sampled import PartitionField, SampledDataset
from fedsim.errors import Misfit
from fedsim.quick import check_bytes, check_work
from fedsim.settings import key_rule

__all__ = ["SoundDataset"]

SAMPLE_BYTES = 2
LABEL_BYTES = 1
MOST_BYTES_IN_SECONDS = 500_000_000
MOST_FRAMES = 1_200_000
"""That become features within seconds: 12,000 clips of a second."""
MOST_VALUES = 10**6  # of one sample's features


class SoundDataset(SampledDataset):
    """Base of data sets of short sounds: a subclass says where clips come from, and how fast they were sampled.

    Samples are (1, bands, frames) float32, see `fedsim.data.reading.sound`. On the wire a sample is the clip itself,
    cut or filled: two bytes for each sample of sound, and one for the label.
    """

    rate_hz: ClassVar[int]
    """Samples of sound per second; files with another rate are refused."""

    partition: PartitionField = Natural()
    """How the samples are spread over the clients; natural: every speaker is a client."""
    duration_s: Annotated[float, Interval(ge=0.1, le=60)] = 1.0
    """Every clip is cut at its end, or filled with silence, to this length."""
    window_s: Annotated[float, Interval(ge=0.005, le=0.2)] = 0.025
    """Length of the Hann window under which a short-time spectrum is taken."""
    hop_s: Annotated[float, Interval(ge=0.001, le=0.2)] = 0.010
    """From the beginning of one window to that of the next."""
    bands: Annotated[int, Interval(ge=4, le=128)] = 40
    """Bands of equal width on the mel scale: the height of a sample."""
    lowest_hz: Annotated[float, Interval(ge=0, le=20_000)] = 20.0
    """Where the lowest band begins."""
    highest_hz: Annotated[float, Interval(gt=0, le=100_000)] | None = None
    """Where the highest band ends; left out, half of the sampling rate, above which there is nothing."""

    @key_rule
    def _possible(self) -> None:
        limit_hz = self.rate_hz / 2
        highest_hz = self.log_mel.highest_hz
        if highest_hz > limit_hz:
            problem = f"highest_hz={highest_hz:g} must be at most {limit_hz:g}, half of the sampling rate"
            raise Misfit(problem, "highest_hz")
        if self.lowest_hz >= highest_hz:
            raise Misfit(f"lowest_hz={self.lowest_hz:g} must be below highest_hz={highest_hz:g}", "lowest_hz")
        if self.window_s > self.duration_s:
            raise Misfit(
                f"window_s={self.window_s:g} must not be longer than duration_s={self.duration_s:g}", "window_s"
            )
        if self.log_mel.frames * self.bands > MOST_VALUES:
            raise Misfit(
                f"hop_s={self.hop_s:g}: a sample would have {self.log_mel.frames * self.bands} values, and "
                f"{MOST_VALUES} is the most; use a larger hop",
                "hop_s",
            )
        _ = self.log_mel.weights  # raises where a band would hear nothing

    @property
    def log_mel(self) -> LogMel:
        """How clips become features."""
        return LogMel(
            rate_hz=self.rate_hz,
            duration_s=self.duration_s,
            window_s=self.window_s,
            hop_s=self.hop_s,
            bands=self.bands,
            lowest_hz=self.lowest_hz,
            highest_hz=self.rate_hz / 2 if self.highest_hz is None else self.highest_hz,
        )

    @property
    def feature_options(self) -> dict[str, float]:
        """What the features depend on, for the cache."""
        return dict(vars(self.log_mel))

    @property
    def clip_bytes(self) -> float:
        """Of one clip as it was sampled, and its label."""
        return float(self.log_mel.samples * SAMPLE_BYTES + LABEL_BYTES)

    def features(self, clips: Iterable[NDArray[np.int16]], number: int) -> tuple[NDArray[np.float32], tuple[str, ...]]:
        """((number, 1, bands, frames) features of the *clips*, remarks)."""
        log_mel = self.log_mel
        check_work(number * log_mel.frames, MOST_FRAMES, "frames of sound to look at for the first time", self.name)
        check_bytes(4 * number * self.bands * log_mel.frames, self.name)
        x = np.empty((number, 1, self.bands, log_mel.frames), np.float32)
        cut = filled = read = 0
        for place, clip in enumerate(clips):
            read += clip.nbytes
            check_work(read / 1e6, MOST_BYTES_IN_SECONDS / 1e6, "MB of sound to read for the first time", self.name)
            x[place] = log_mel.features(clip)
            cut += len(clip) > log_mel.samples
            filled += len(clip) < log_mel.samples
        said = f"of {number} clips, {cut} are longer than {self.duration_s:g} s and were cut, and {filled} are shorter"
        return x, (f"{said} and were filled with silence",)
