"""Groups that multiply: Eq. 3 of FedGSP (Zeng et al., DASFAA 2022)."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import model_validator

from fedsim.errors import Misfit
from fedsim.grouping.growth.settings import GrowthSettings
from fedsim.settings import Positive

__all__ = ["Exponential"]


class Exponential(GrowthSettings):
    """Groups that multiply from block to block: beta floor((1 + alpha)^(B - 1)) in block B (FedGSP, HFedMS)."""

    name: Literal["exponential"] = "exponential"
    alpha: Positive
    """Growth in each block, as a share of what there is; in the form of the code the factor of growth, at least 1."""
    form: Literal["paper", "code"] = "paper"
    """As in the papers, or beta floor(alpha^B) as in the authors' public code."""

    @model_validator(mode="after")
    def _does_not_shrink(self) -> Self:
        if self.form == "code" and self.alpha < 1:
            raise Misfit(f"alpha={self.alpha:g} must be at least 1 in form=code, where alpha^B is a number of groups")
        return self

    def times(self, block: int, most: int) -> int:
        """At most *most*, so that no power is too large for a number.

        >>> [Exponential(alpha=1.0).times(block, 1000) for block in (1, 2, 3, 10, 11, 10**9)]
        [1, 2, 4, 512, 1000, 1000]
        """
        factor, power = (1 + self.alpha, block - 1) if self.form == "paper" else (self.alpha, block)
        if power * math.log(factor) >= math.log(most) + 1:
            return most
        return min(math.floor(factor**power), most)
