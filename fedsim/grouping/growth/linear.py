"""Groups that are added at a steady pace: Eq. 1 of FedGSP (Zeng et al., DASFAA 2022)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from fedsim.grouping.growth.settings import GrowthSettings
from fedsim.settings import Positive

__all__ = ["Linear"]


class Linear(GrowthSettings):
    """Groups in equal steps: beta floor(alpha (B - 1) + 1) in block B (FedGSP, HFedMS)."""

    name: Literal["linear"] = "linear"
    alpha: Positive
    """Steps of ``beta`` groups in each block."""
    form: Literal["paper", "code"] = "paper"
    """As in the papers, or beta floor(alpha B + 1) as in the authors' public code."""

    def times(self, block: int, most: int) -> int:
        """As exact as alpha is written: 0.29 is 29 hundredths.

        >>> Linear(alpha=0.29).times(101, 1000), math.floor(0.29 * 100 + 1)
        (30, 29)
        """
        steps = block - 1 if self.form == "paper" else block
        return math.floor(Fraction(repr(self.alpha)) * steps + 1)
