"""A feature skew changes what clients measure, each in its own way; who holds which samples stays as it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.pile import Clients, Pile
from fedsim.settings import Component

__all__ = ["FeatureSkewSettings"]


class FeatureSkewSettings(Component):
    """Base of what is registered under "feature_skews"."""

    @abstractmethod
    def apply(
        self, pile: Pile, clients: Clients, held: Sequence[NDArray[np.int64]], rng: np.random.Generator
    ) -> NDArray[Any]:
        """New ``x``, stored as *pile* stores it, in which the samples that each of ``clients.total`` holds are skewed.

        Samples that nobody holds stay as they are. Raises `UserError` when such samples cannot be skewed so.
        """
