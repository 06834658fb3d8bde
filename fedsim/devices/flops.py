"""Compute time from arithmetic: floating-point operations over the device's sustained operations per second."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from fedsim.devices.compute import ComputeSettings
from fedsim.kernel.streams import Stream
from fedsim.settings import PositiveOrInfinite

__all__ = ["Flops"]


class Flops(ComputeSettings):
    """Operations of the model over the device's operations per second."""

    name: Literal["flops"] = "flops"
    flops_per_s: PositiveOrInfinite
    """Sustained floating-point operations per second; ``.inf`` for no time at all."""

    @property
    def takes_time(self) -> bool:
        """Whether an operation takes any."""
        return math.isfinite(self.flops_per_s)

    def seconds(self, samples: float, flops_per_sample: Callable[[], float], device: Stream, training: Stream) -> float:
        """``samples * flops_per_sample() / flops_per_s``."""
        return samples * flops_per_sample() / self.flops_per_s
