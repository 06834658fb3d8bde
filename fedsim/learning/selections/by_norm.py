"""Filters of the largest L2 norm (Li et al., *Pruning filters for efficient ConvNets*, ICLR 2017, by the L1 norm)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval

from fedsim.learning.selections.selection import Asked, Chosen, MeasuredSelection, Selection
from fedsim.models.convolutions import left_of, strongest

__all__ = ["L2Global", "Uniform"]


class Uniform(Selection):
    """The same share of each convolution's filters, those of the largest L2 norm."""

    name: Literal["uniform"] = "uniform"
    keep: Annotated[float, Interval(gt=0, le=1)]
    """Share of each convolution's filters that is sent."""

    def keeps(self, filters: int) -> int:
        """The share, rounded."""
        return left_of(filters, self.keep)

    def choose(self, asked: Asked) -> Chosen:
        """The strongest of each."""
        return Chosen([strongest(norms, self.keeps(len(norms))) for norms in asked.norms()])


class L2Global(MeasuredSelection):
    """A share of all filters, those of the largest L2 norm in the whole extractor."""

    name: Literal["l2_global"] = "l2_global"
    keep: Annotated[float, Interval(gt=0, le=1)]
    """Share of all filters that is sent; each convolution sends one at least."""

    def choose(self, asked: Asked) -> Chosen:
        """The strongest of all, and the strongest of each convolution."""
        norms = asked.norms()
        of_all = strongest(np.concatenate(norms), left_of(asked.skeleton.filters, self.keep))
        masks = np.split(of_all, np.cumsum([len(some) for some in norms])[:-1])
        return Chosen([mask | strongest(some, 1) for mask, some in zip(masks, norms, strict=True)])
