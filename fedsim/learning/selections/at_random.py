"""Filters at random: what a selection by anything better has to beat."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval

from fedsim.learning.selections.selection import Asked, Chosen, Selection
from fedsim.models.convolutions import left_of

__all__ = ["Random"]


class Random(Selection):
    """The same share of each convolution's filters, drawn anew in each update."""

    name: Literal["random"] = "random"
    keep: Annotated[float, Interval(gt=0, le=1)]
    """Share of each convolution's filters that is sent."""

    def keeps(self, filters: int) -> int:
        """The share, rounded."""
        return left_of(filters, self.keep)

    def choose(self, asked: Asked) -> Chosen:
        """Any of each."""
        masks = []
        for one in asked.skeleton.convolutions:
            mask = np.zeros(one.filters, np.bool_)
            mask[asked.generator.permutation(one.filters)[: self.keeps(one.filters)]] = True
            masks.append(mask)
        return Chosen(masks)
