"""As many groups at the end as in the beginning: NaiveGSP in FedGSP (Zeng et al., DASFAA 2022)."""

from __future__ import annotations

from typing import Literal

from fedsim.grouping.growth.settings import GrowthSettings
from fedsim.settings import Count

__all__ = ["Constant"]


class Constant(GrowthSettings):
    """The same number of groups all the time (NaiveGSP)."""

    name: Literal["constant"] = "constant"
    beta: Count = 10
    """Groups, unless there are fewer clients."""

    def times(self, block: int, most: int) -> int:
        """Once."""
        return 1
