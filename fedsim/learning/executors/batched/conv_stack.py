"""The convolutions of a group of clients, before the fully connected layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import torch

from fedsim.learning.executors.batched.convolution import Convolution

__all__ = ["ConvStack"]

C_co = TypeVar("C_co", bound=Convolution, covariant=True)


class ConvStack(ABC, Generic[C_co]):
    """All convolutions of a group of clients, however they are computed."""

    def __init__(self, convolutions: Sequence[C_co]) -> None:
        self.convolutions = convolutions

    @abstractmethod
    def forward(self, xs: Sequence[torch.Tensor], features: torch.Tensor) -> None:
        """Fill *features*, (clients, samples, features), from each client's images.

        Rows beyond a client's images are left as they are, or become what convolutions make of zeros.
        """

    @abstractmethod
    def backward(self, d: torch.Tensor, samples: Sequence[int]) -> None:
        """Step along the gradient, given that of the features, which is zero beyond each client's first *samples*."""
