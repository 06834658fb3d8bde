"""The convolutions of a group of clients, before the fully connected layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch

from fedsim.learning.executors.batched.convolution import Convolution

__all__ = ["Front"]


class Front(ABC):
    """All convolutions of a group of clients, however they are computed."""

    def __init__(self, convolutions: Sequence[Convolution]) -> None:
        self.convolutions = convolutions

    @abstractmethod
    def forward(self, xs: Sequence[torch.Tensor], features: torch.Tensor) -> None:
        """Fill *features*, (clients, samples, features), from each client's images.

        A client's rows beyond its images count for nothing; they are zero, or what convolutions make of zeros.
        """

    @abstractmethod
    def backward(self, d: torch.Tensor, samples: Sequence[int]) -> None:
        """Step along the gradient, given that of the features, which is zero beyond each client's first *samples*."""
