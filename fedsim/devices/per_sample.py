"""Compute time as measured once on the real device: seconds for each training sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from fedsim.devices.compute import ComputeSettings
from fedsim.kernel.streams import Stream
from fedsim.settings import NonNegative

__all__ = ["PerSample"]


class PerSample(ComputeSettings):
    """Seconds for each training sample, whatever the model."""

    name: Literal["per_sample"] = "per_sample"
    seconds_per_sample: NonNegative
    """Seconds to train on one sample once (forward, backward and update)."""

    @property
    def takes_time(self) -> bool:
        """Whether a sample takes any."""
        return self.seconds_per_sample > 0

    def seconds(self, samples: float, flops_per_sample: Callable[[], float], device: Stream, training: Stream) -> float:
        """``samples * seconds_per_sample``."""
        return samples * self.seconds_per_sample
