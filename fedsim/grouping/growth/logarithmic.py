"""Groups that are added quickly at first: Eq. 2 of FedGSP (Zeng et al., DASFAA 2022), which found it best."""

from __future__ import annotations

import math
from typing import Literal

from fedsim.grouping.growth.settings import GrowthSettings
from fedsim.settings import Positive

__all__ = ["Logarithmic"]


class Logarithmic(GrowthSettings):
    """Groups in ever rarer steps: beta floor(alpha ln B + 1) in block B (FedGSP, HFedMS)."""

    name: Literal["logarithmic"] = "logarithmic"
    alpha: Positive = 2.0
    """Steps of ``beta`` groups each time that B has grown by a factor of e."""

    def times(self, block: int, most: int) -> int:
        """Rounding decides nothing: for a decimal alpha, alpha ln B is never whole after the first block.

        >>> [Logarithmic().times(block, 1000) for block in (1, 2, 4, 5)]
        [1, 2, 3, 4]
        """
        return math.floor(self.alpha * math.log(block) + 1)
