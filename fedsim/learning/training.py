"""The ``training`` section of a scenario: how a client trains on its own samples."""

from __future__ import annotations

from fedsim.settings import Count, NonNegative, Positive, Probability, Settings

__all__ = ["TrainingSettings"]


class TrainingSettings(Settings):
    """Stochastic gradient descent on the cross-entropy of a client's own samples, shuffled in each epoch."""

    learning_rate: Positive
    """Step size of SGD."""
    batch_size: Count
    """Samples in a mini-batch; an epoch's last one may be smaller."""
    epochs: Count = 1
    """Passes over the client's samples in one local training."""
    momentum: Probability = 0.0
    """Momentum of SGD; its buffer starts anew in each local training."""
    weight_decay: NonNegative = 0.0
    """L2 penalty of SGD."""
