"""Compute time that differs between devices, or from one training to the next: drawn seconds per sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Self

from pydantic import model_validator

from fedsim.devices.compute import ComputeSettings
from fedsim.kernel.streams import Stream
from fedsim.settings import NonNegative, Positive

__all__ = ["Distribution"]


class Distribution(ComputeSettings):
    """Seconds for each training sample, drawn from a distribution for each device or each training."""

    name: Literal["distribution"] = "distribution"
    law: Literal["lognormal", "uniform", "exponential"]
    """The distribution's family."""
    mean_seconds_per_sample: Positive
    """Its mean."""
    variation: NonNegative | None = None
    """Its standard deviation over its mean. Uniform: at most 1/sqrt(3). Exponential: left out, it is always 1."""
    per: Literal["device", "training"] = "device"
    """Drawn once for each device, or anew for each local training."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.law == "exponential":
            if self.variation is not None:
                raise ValueError(f"variation={self.variation} must be left out: an exponential law's is always 1")
        elif self.variation is None:
            raise ValueError(f"a {self.law} law needs variation, its standard deviation over its mean")
        elif self.law == "uniform" and self.variation > 1 / math.sqrt(3):
            raise ValueError(f"variation={self.variation} of a uniform law must be at most 1/sqrt(3) = 0.577")
        return self

    @property
    def varies(self) -> bool:
        """Whether each training draws anew."""
        return self.per == "training"

    def seconds(self, samples: float, flops_per_sample: Callable[[], float], device: Stream, training: Stream) -> float:
        """``samples`` times one draw."""
        rng = (device if self.per == "device" else training).generator()
        return samples * self.mean_seconds_per_sample * self._relative(rng.uniform, rng.standard_normal)

    def _relative(self, uniform: Callable[[], float], normal: Callable[[], float]) -> float:
        """A draw from the law scaled to mean 1."""
        if self.law == "exponential":
            return -math.log1p(-uniform())
        assert self.variation is not None
        if self.law == "uniform":
            return 1.0 + math.sqrt(3.0) * self.variation * (2.0 * uniform() - 1.0)
        sigma_squared = math.log1p(self.variation**2)  # of the underlying normal law
        return math.exp(math.sqrt(sigma_squared) * normal() - sigma_squared / 2.0)
