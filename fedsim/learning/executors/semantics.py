"""Rows of semantics: features that an extractor made, the label of each, and the raw sample where it is kept.

The arithmetic of `compensate` and `keep` (SCC: Zeng et al., *HFedMS*, IEEE TCC 2023, Eqs. 12 to 18). It is small, so
that every executor does it here, in the process that asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fedsim.kernel.streams import Stream
from fedsim.learning.batches import batches
from fedsim.learning.executors.part import Part

__all__ = ["FEATURES", "LABELS", "SAMPLES", "compensated", "joined", "kept", "rows_of", "shuffled"]

FEATURES, LABELS, SAMPLES = "features", "labels", "samples"

DISTANCE_STEPS = 2**30
"""Distances are told apart in so many steps up to the largest: two rows of a class are equally far from their mean, and
only rounding would say which is nearer."""


def rows_of(features: torch.Tensor, labels: torch.Tensor, samples: torch.Tensor | None) -> Part:
    """Features, (rows, ...), with the label of each, and the raw samples if they are to be kept."""
    rows = {FEATURES: features.contiguous(), LABELS: labels}
    return rows if samples is None else rows | {SAMPLES: samples}


def shuffled(rows: Part, parameters: Mapping[str, Any], stream: Stream) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Mini-batches of a training on *rows*: features and labels, in the order that samples would have."""
    settings = parameters["training"]
    sizes = {"batch_size": settings["batch_size"], "epochs": settings["epochs"]}
    for ids in batches(np.arange(len(rows[LABELS])), **sizes, rng=stream.generator()):
        chosen = torch.from_numpy(ids).to(rows[LABELS].device)
        yield rows[FEATURES][chosen], rows[LABELS][chosen]


def joined(rows: Sequence[Part]) -> Part:
    """All rows, one after the other."""
    return {name: torch.cat([some[name] for some in rows]) for name in rows[0]}


def compensated(remembered: Part, now: Part, before: Part, parameters: Mapping[str, Any]) -> Part:
    """Eqs. 13 to 15: ``z + mean of now - mean of before``, over the samples of the row's class; Eq. 12: over all.

    A class without a sample stays as it is, or takes the drift of all samples.
    """
    drift = now[FEATURES] - before[FEATURES]  # of each sample; its mean is the difference of the means
    whole = drift.mean(dim=0)
    labels, features = remembered[LABELS], remembered[FEATURES].clone()
    if parameters["by"] == "mean":
        return {**_copied(remembered), FEATURES: features.add_(whole)}
    for label in torch.unique(labels).tolist():
        seen = drift[now[LABELS] == label]
        if len(seen):
            features[labels == label] += seen.mean(dim=0)
        elif parameters["absent"] == "mean":
            features[labels == label] += whole
    return {**_copied(remembered), FEATURES: features}


def kept(candidates: Part, parameters: Mapping[str, Any], stream: Stream | None) -> Part:
    """Eqs. 17 and 18: the rows with the smallest distance to the mean of their class; of equal ones, the first.

    With quotas, so many of each class; at random, any rows in place of the nearest.
    """
    labels = candidates[LABELS]
    if stream is not None:
        order = torch.from_numpy(stream.generator().permutation(len(labels))).to(labels.device)
    else:
        order = torch.argsort(_distances(candidates[FEATURES], labels), stable=True)
    quotas = parameters["quotas"]
    if quotas is not None:
        order = order[_within_quotas(labels[order].cpu().numpy(), quotas)]
    chosen = order[: parameters["rows"]]
    return {name: values[chosen] for name, values in candidates.items()}


def _distances(features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """(rows,) Euclidean distance of each row to the mean of its class, in steps of the largest one."""
    features = features.flatten(1).double()
    classes, place, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    means = features.new_zeros(len(classes), features.shape[1]).index_add_(0, place, features)
    means /= sizes.unsqueeze(1)
    distances = torch.linalg.vector_norm(features - means[place], dim=1)
    return torch.round(distances * (DISTANCE_STEPS / distances.max().clamp(min=torch.finfo(torch.float64).tiny)))


def _within_quotas(labels: np.ndarray, quotas: Sequence[int]) -> torch.Tensor:
    """(rows,) whether a row is among the first ones of its class, as many as the class may have."""
    rank = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        of_it = labels == label
        rank[of_it] = np.arange(of_it.sum())
    return torch.from_numpy(rank < np.asarray(quotas)[labels])


def _copied(rows: Part) -> Part:
    return {name: values.clone() for name, values in rows.items() if name != FEATURES}
