"""Clients whose sensors are noisier the higher their number (Li et al., NIID-Bench, ICDE 2022, section IV-C)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.feature_skew.settings import FeatureSkewSettings
from fedsim.data.pile import Clients, Pile
from fedsim.settings import Positive

__all__ = ["Noise"]


class Noise(FeatureSkewSettings):
    """Gaussian noise on every value, more for each next client."""

    name: Literal["noise"] = "noise"
    sigma: Positive = 0.1
    """Standard deviation of the last client's noise."""

    def apply(
        self, pile: Pile, clients: Clients, held: Sequence[NDArray[np.int64]], rng: np.random.Generator
    ) -> NDArray[Any]:
        """In work."""
        raise NotImplementedError
