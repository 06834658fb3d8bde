"""Local SGD (McMahan et al., AISTATS 2017)."""

from __future__ import annotations

from typing import Literal

from fedsim.learning.objectives.objective import Objective

__all__ = ["Plain"]


class Plain(Objective):
    """Nothing but the loss on the samples: local SGD."""

    name: Literal["plain"] = "plain"

    @property
    def pull(self) -> float:
        """None at all."""
        return 0.0
