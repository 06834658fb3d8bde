"""The ``training`` section of a scenario: how a client trains on its own samples."""

from __future__ import annotations

from functools import lru_cache

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

    def gradient_weight(self, steps: int, pull: float = 0.0) -> float:
        """How far *steps* gradients of 1 take a weight, in learning rates: without momentum and *pull*, *steps*.

        That is the sum of the weights that gradients have in the update (FedNova: Wang et al., NeurIPS 2020, section 4,
        ``||a_i||_1``), with momentum ``rho``: ``(steps - rho (1 - rho^steps) / (1 - rho)) / (1 - rho)``. *pull* is the
        ``mu`` of a proximal term. Weight decay is no part of it, as in the paper.

        >>> settings = TrainingSettings(learning_rate=0.1, batch_size=5, momentum=0.9)
        >>> round(settings.gradient_weight(4), 12), round(settings.gradient_weight(2), 12)
        (9.049, 2.9)
        """
        return _gradient_weight(steps, self.momentum, self.learning_rate * pull)


@lru_cache(maxsize=4096)
def _gradient_weight(steps: int, momentum: float, pull: float) -> float:
    if not pull:
        return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
    way = velocity = 0.0
    for _ in range(steps):
        velocity = momentum * velocity + 1 - pull * way
        way += velocity
    return way
