"""One model, many clients: how well it serves each of them, in a few numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fedsim.learning.divergence import diverged

__all__ = ["spread", "spread_of_own"]


def spread(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Score and loss over all clients' samples, and how the clients' own scores are spread.

    The score is the accuracy, or for regression the root of the mean squared error. The score and ``loss`` weigh each
    client by its test samples; the score's ``std`` (population), ``min`` and ``max`` count each client once. What is
    counted adds up (``confusion``, ``phm08``), and the error in the target's unit is that of all samples. The model is
    one: where it has diverged on the samples of any client, it has for all, and there is no spread (None).

    >>> spread([{"accuracy": 1.0, "loss": 0.0, "samples": 3}, {"accuracy": 0.0, "loss": 4.0, "samples": 1}])
    {'accuracy': 0.75, 'loss': 1.0, 'samples': 4, 'accuracy_std': 0.5, 'accuracy_min': 0.0, 'accuracy_max': 1.0}
    >>> spread([{"loss": 9.0, "rmse": 3.0, "samples": 1}, {"loss": 1.0, "rmse": 1.0, "samples": 1}])["rmse_std"]
    1.0
    """
    samples = sum(score["samples"] for score in scores)
    loss = math.fsum(score["loss"] * score["samples"] for score in scores) / samples
    name = "accuracy" if "accuracy" in scores[0] else "rmse"
    if any(map(diverged, scores)):
        lost = {metric: None if metric in ("accuracy", "confusion") else math.inf for metric in scores[0]}
        return lost | {"samples": samples} | {f"{name}_{how}": None for how in ("std", "min", "max")}
    own = [score[name] for score in scores]
    if name == "accuracy":
        whole = math.fsum(score[name] * score["samples"] for score in scores) / samples
    else:
        whole = math.sqrt(loss)
    middle = math.fsum(own) / len(own)
    return {
        name: whole,
        "loss": loss,
        "samples": samples,
        f"{name}_std": math.sqrt(math.fsum((score - middle) ** 2 for score in own) / len(own)),
        f"{name}_min": min(own),
        f"{name}_max": max(own),
        **_of_all_samples(scores, samples),
    }


def _of_all_samples(scores: Sequence[Mapping[str, Any]], samples: int) -> dict[str, Any]:
    """What can be counted, and the error in a unit, over all samples; as far as the *scores* have it."""
    found: dict[str, Any] = {}
    for metric in scores[0]:
        if metric == "confusion":
            found[metric] = _sum_of_counts([score[metric] for score in scores])
        elif metric == "phm08":
            found[metric] = _sum([score[metric] for score in scores])
        elif metric.startswith("rmse_"):
            found[metric] = math.sqrt(math.fsum(score["samples"] * score[metric] ** 2 for score in scores) / samples)
    return found


def _sum(values: Sequence[float]) -> float:
    """Infinite where it is too large for a number."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _sum_of_counts(of_each: Sequence[Sequence[int]]) -> list[int]:
    """Triples (true, predicted, samples), as of `fedsim.learning.executors.evaluated`, of all together.

    >>> _sum_of_counts([[0, 0, 2, 1, 0, 1], [0, 0, 1, 0, 1, 4]])
    [0, 0, 3, 0, 1, 4, 1, 0, 1]
    """
    total: dict[tuple[int, int], int] = {}
    for counts in of_each:
        for true, predicted, number in zip(counts[::3], counts[1::3], counts[2::3], strict=True):
            total[true, predicted] = total.get((true, predicted), 0) + number
    return [number for pair in sorted(total) for number in (*pair, total[pair])]


def spread_of_own(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """As `spread`, of models that are the clients' own; ``mean`` counts each client once, as papers on them do.

    >>> scores = [{"accuracy": 1.0, "loss": 0.0, "samples": 3}, {"accuracy": 0.0, "loss": 4.0, "samples": 1}]
    >>> spread_of_own(scores) == spread(scores) | {"accuracy_mean": 0.5}
    True
    """
    whole = spread(scores)
    name = "accuracy" if "accuracy" in scores[0] else "rmse"
    known = whole[f"{name}_std"] is not None
    return whole | {f"{name}_mean": math.fsum(score[name] for score in scores) / len(scores) if known else None}
