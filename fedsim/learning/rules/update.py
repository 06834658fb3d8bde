"""What came home, and what it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fedsim.learning.learner import Model

__all__ = ["Update"]


class Update(NamedTuple):
    """What one client, or the last one of a group that trains in sequence, has sent."""

    sender: int
    """The client's index."""
    models: Mapping[str, Model]
    """By name: "model", or what of it was trained, and whatever else came with it."""
    base: Model
    """What the model was made from, as the sender received it."""
    samples: int
    """That it was trained on, each counted once."""
    steps: int
    """Of SGD that it took."""
    version: int
    """Which of the server's models the *base* was: how many there had been before it."""
    bytes: float
    """Of the message, as it was put on the wire."""
    weight: float
    """What it counts in a mean, beside the others' weights."""
    clients: int = 1
    """How many have trained it."""
    gradient_weight: float = 0.0
    """How far a gradient of 1 in all of its steps would have taken it, in learning rates: without momentum, its steps.

    FedNova's ``||a_i||_1`` (`fedsim.learning.training.TrainingSettings.gradient_weight`)."""
    table: str = ""
    """The digest of its model's table."""

    @property
    def model(self) -> Model:
        """What was trained of the model."""
        return self.models["model"]
