"""A torch module as a user would write one, for the tests that every registered model has to pass."""

from __future__ import annotations

import torch
from torch import nn


class Net(nn.Module):
    """One hidden layer on images of 28 x 28 pixels, with a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(784, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.hidden(x.flatten(1)))))
