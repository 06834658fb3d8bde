"""One model, many clients: how well it serves each of them, in five numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

__all__ = ["spread"]


def spread(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Accuracy and loss over all clients' samples, and how the clients' own accuracies are spread.

    ``accuracy`` and ``loss`` weigh each client by its test samples; ``accuracy_std`` (population), ``accuracy_min`` and
    ``accuracy_max`` count each client once.

    >>> spread([{"accuracy": 1.0, "loss": 0.0, "samples": 3}, {"accuracy": 0.0, "loss": 4.0, "samples": 1}])
    {'accuracy': 0.75, 'loss': 1.0, 'samples': 4, 'accuracy_std': 0.5, 'accuracy_min': 0.0, 'accuracy_max': 1.0}
    """
    samples = sum(score["samples"] for score in scores)
    accuracies = [score["accuracy"] for score in scores]
    middle = math.fsum(accuracies) / len(accuracies)
    return {
        "accuracy": math.fsum(score["accuracy"] * score["samples"] for score in scores) / samples,
        "loss": math.fsum(score["loss"] * score["samples"] for score in scores) / samples,
        "samples": samples,
        "accuracy_std": math.sqrt(math.fsum((accuracy - middle) ** 2 for accuracy in accuracies) / len(accuracies)),
        "accuracy_min": min(accuracies),
        "accuracy_max": max(accuracies),
    }
