"""The ``stream`` section of a data set: how samples come to a device, are used once, and are forgotten.

Without arrival a device measures as many samples as a local training needs, in the instant in which it begins. With it,
samples arrive by the simulated clock into a buffer, first in, first out, in which the oldest are overwritten.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Interval
from pydantic import Strict

from fedsim.data.stream.drift import DriftSettings
from fedsim.errors import Misfit
from fedsim.settings import Count, NonNegativeInt, OneOf, Positive, Probability, Settings, key_rule

__all__ = ["Arrival", "Augmentation", "StreamSettings"]

Share = Annotated[float, Interval(ge=0.01, le=1)]
Ratio = Annotated[float, Interval(ge=0.1, le=10)]


class Augmentation(Settings):
    """Images are changed a little each time they are seen, in brightness and by a crop (HFedMS's published code)."""

    brightness: Probability = 0.1
    """Every value of an image is multiplied by one factor, uniform in 1 - brightness to 1 + brightness, up to 1."""
    area: Annotated[tuple[Share, Share], Strict(False)] = (0.8, 1.0)
    """Share of the image's area that is cut out and enlarged to the whole, uniform between the two."""
    aspect: Annotated[tuple[Ratio, Ratio], Strict(False)] = (0.8, 1.2)
    """Width over height of what is cut out, log-uniform between the two; neither side exceeds the image's."""

    @key_rule
    def _in_order(self) -> None:
        for key, (low, high) in (("area", self.area), ("aspect", self.aspect)):
            if low > high:
                raise Misfit(f"from {low:g} to {high:g} is backwards; give the smaller one first", key)


class Arrival(Settings):
    """Samples arrive by the simulated clock, evenly in time, into a buffer of bounded memory."""

    samples_per_s: Positive
    """Samples that a device measures in a second."""
    buffer_samples: Count
    """Samples that a device can keep; when it is full, the oldest is overwritten. A training takes the oldest."""
    buffered_at_start: NonNegativeInt = 0
    """Samples that are in the buffer at time 0."""


class StreamSettings(Settings):
    """Each local training uses fresh samples, once; then they are forgotten (FedGS and HFedMS: streaming data).

    A device's samples are its finite local set, again and again: shuffled anew in each pass and augmented anew each
    time.
    """

    samples: Count
    """Fresh samples for a local training: the streaming batch, n in HFedMS, where it is 50."""
    refresh_rounds: Count = 1
    """Rounds for which a device keeps a capture: 1 is the papers', a fresh one for each training; with T a capture
    serves all its trainings in a block of T rounds, as HFedMS's published code does."""
    augmentation: Augmentation | None = None
    """How images are changed each time they are seen; left out, they are not."""
    arrival: Arrival | None = None
    """How samples arrive in time; left out, they are there as soon as a training asks for them."""
    drift: Annotated[DriftSettings, OneOf("drifts")] | None = None
    """How what a device sees changes in the course of time; left out, it sees its own samples evenly."""

    @key_rule
    def _fits_the_buffer(self) -> None:
        if self.arrival is not None:
            room = self.arrival.buffer_samples
            for key, number in (("samples", self.samples), ("buffered_at_start", self.arrival.buffered_at_start)):
                if number > room:
                    path = ("samples",) if key == "samples" else ("arrival", key)
                    raise Misfit(f"{key}={number} do not fit into buffer_samples={room}; enlarge the buffer", *path)
