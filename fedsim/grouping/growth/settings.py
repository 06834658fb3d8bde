"""A growth says how many groups there are in block B = 1, 2, ... of a run.

FedGSP (Zeng et al., DASFAA 2022), Eqs. 1-3, where each round is a block, and HFedMS (Zeng et al., IEEE Transactions on
Cloud Computing, 2023), where T rounds are one: B = ceil(r / T). There are never more groups than clients.
"""

from __future__ import annotations

from abc import abstractmethod

from fedsim.settings import Component, Count

__all__ = ["GrowthSettings"]


class GrowthSettings(Component):
    """Base of what is registered under "growths"."""

    beta: Count = 10
    """What the papers' formulas begin with; there is always a multiple of so many groups, up to the clients' number."""

    def groups(self, block: int, clients: int) -> int:
        """How many groups *clients* form in a *block*, the first of which is 1. Raises `ValueError` for other blocks.

        >>> from fedsim.grouping.growth.logarithmic import Logarithmic
        >>> [Logarithmic().groups(block, 368) for block in (1, 2, 3, 100_000)], Logarithmic().groups(1, 4)
        ([10, 20, 30, 240], 4)
        """
        if block < 1 or clients < 1:
            raise ValueError(f"block {block} of {clients} clients: both numbers begin at 1")
        return min(clients, self.beta * self.times(block, clients))

    @abstractmethod
    def times(self, block: int, most: int) -> int:
        """How many times ``beta`` groups there are in a *block*, as if clients were many; *most* is enough."""
