"""A drift bit by bit: one product fades out while another one comes in, or a lens gets dirty."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from fedsim.data.stream.drift.settings import DriftSettings
from fedsim.errors import Misfit
from fedsim.settings import NonNegative, Positive

__all__ = ["Gradual"]


class Gradual(DriftSettings):
    """From one group of classes to another in a straight line between two moments."""

    name: Literal["gradual"] = "gradual"
    begin: NonNegative
    """Until then only the first phase is there: rounds finished, or simulated seconds."""
    end: Positive
    """From then on only the second one is."""

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.end <= self.begin:
            raise Misfit(f"end={self.end:g} must be later than begin={self.begin:g}", "end")
        return self

    @property
    def all_phases(self) -> int:
        """Two."""
        return 2

    def mixture(self, at: float) -> tuple[float, ...]:
        """The second phase's share grows linearly.

        >>> drift = Gradual(begin=10, end=20)
        >>> drift.mixture(10), drift.mixture(12.5), drift.mixture(25)
        ((1.0, 0.0), (0.75, 0.25), (0.0, 1.0))
        """
        done = min(max((at - self.begin) / (self.end - self.begin), 0.0), 1.0)
        return (1.0 - done, done)
