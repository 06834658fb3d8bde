"""Groups drawn at random: what ICG is compared with, NaiveGSP in FedGSP (Zeng et al., DASFAA 2022)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.settings import GroupingSettings, Members

__all__ = ["RandomGroups"]


class RandomGroups(GroupingSettings):
    """Random groups of equal size, whatever the clients hold."""

    needs_counts: ClassVar[bool] = False

    name: Literal["random"] = "random"
    once: bool = True
    """Whether groups are formed only once, at the start of a run, as in NaiveGSP."""

    def equal_groups(self, counts: NDArray[Any], number: int, rng: np.random.Generator) -> Members:
        """A random order of all clients, cut into pieces."""
        clients = len(counts)
        length = clients // number
        return rng.permutation(clients)[: length * number].reshape(number, length)
