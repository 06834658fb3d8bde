"""A growth says how many groups there are in block B = 1, 2, ... of a run. One class and one line per growth.

FedGSP (Zeng et al., DASFAA 2022), Eqs. 1-3, where each round is a block, and HFedMS (Zeng et al., IEEE Transactions on
Cloud Computing, 2023), where T rounds are one: B = ceil(r / T). There are never more groups than clients. FedGSP found
logarithmic growth (Eq. 2) best; its NaiveGSP has as many groups at the end as in the beginning.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Literal

from fedsim.errors import Misfit
from fedsim.settings import Component, Count, Positive, key_rule

__all__ = ["REGISTRY", "Constant", "Exponential", "GrowthSettings", "Linear", "Logarithmic"]

REGISTRY = {
    "constant": "fedsim.grouping.growth:Constant",
    "linear": "fedsim.grouping.growth:Linear",
    "logarithmic": "fedsim.grouping.growth:Logarithmic",
    "exponential": "fedsim.grouping.growth:Exponential",
}


class GrowthSettings(Component):
    """Base of what is registered under "growths"."""

    beta: Count = 10
    """What the papers' formulas begin with; there is always a multiple of so many groups, up to the clients' number."""

    def groups(self, block: int, clients: int) -> int:
        """How many groups *clients* form in a *block*, the first of which is 1.

        >>> [Logarithmic().groups(block, 368) for block in (1, 2, 3, 100_000)], Logarithmic().groups(1, 4)
        ([10, 20, 30, 240], 4)
        """
        return min(clients, self.beta * self.times(block, clients))

    @abstractmethod
    def times(self, block: int, most: int) -> int:
        """How many times ``beta`` groups there are in a *block*, as if clients were many; *most* is enough."""


class Constant(GrowthSettings):
    """The same number of groups all the time (NaiveGSP)."""

    name: Literal["constant"] = "constant"
    beta: Count = 10
    """Groups, unless there are fewer clients."""

    def times(self, block: int, most: int) -> int:
        """Once."""
        return 1


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


class Exponential(GrowthSettings):
    """Groups that multiply from block to block: beta floor((1 + alpha)^(B - 1)) in block B (FedGSP, HFedMS)."""

    name: Literal["exponential"] = "exponential"
    alpha: Positive
    """Growth in each block, as a share of what there is; in the form of the code the factor of growth, at least 1."""
    form: Literal["paper", "code"] = "paper"
    """As in the papers, or beta floor(alpha^B) as in the authors' public code."""

    @key_rule
    def _does_not_shrink(self) -> None:
        if self.form == "code" and self.alpha < 1:
            raise Misfit(f"alpha={self.alpha:g} must be at least 1 in form=code, where alpha^B is a number of groups")

    def times(self, block: int, most: int) -> int:
        """At most *most*, so that no power is too large for a number.

        >>> [Exponential(alpha=1.0).times(block, 1000) for block in (1, 2, 3, 10, 11, 10**9)]
        [1, 2, 4, 512, 1000, 1000]
        """
        factor, power = (1 + self.alpha, block - 1) if self.form == "paper" else (self.alpha, block)
        if power * math.log(factor) >= math.log(most) + 1:
            return most
        return min(math.floor(factor**power), most)
