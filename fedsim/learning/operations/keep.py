"""Which rows of semantics a client remembers (SCC: Zeng et al., *HFedMS*, IEEE TCC 2023, section III-D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedsim.learning.operations.extract import FEATURES, LABELS, SEMANTICS
from fedsim.learning.operations.operation import Inputs, Operation, Value

__all__ = ["Keep"]

DISTANCE_STEPS = 2**30
"""Distances are told apart in so many steps up to the largest: two rows of a class are equally far from their mean, and
only rounding would say which is nearer."""


@dataclass(frozen=True)
class Keep(Operation):
    """Eqs. 17 and 18: the rows with the smallest distance to the mean of their class; of equal ones, the first.

    The inputs "rows" are taken one after the other. With a random stream, any rows in place of the nearest.
    """

    name: ClassVar[str] = "keep"
    rows: int
    quotas: tuple[int, ...] | None = None
    """So many of each class; None: of any."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The rows that are kept, nearest first."""
        import torch

        given = inputs.each("rows")
        candidates = {name: torch.cat([some[name] for some in given]) for name in given[0]}
        labels = candidates[LABELS]
        if generator is not None:
            order = torch.from_numpy(generator.permutation(len(labels))).to(labels.device)
        else:
            order = torch.argsort(_distances(candidates[FEATURES], labels), stable=True)
        if self.quotas is not None:
            within = _within_quotas(labels[order].cpu().numpy(), np.asarray(self.quotas))
            order = order[torch.from_numpy(within)]
        chosen = order[: self.rows]
        return {SEMANTICS: {name: values[chosen] for name, values in candidates.items()}}


def _distances(features: Value, labels: Value) -> Value:
    """(rows,) Euclidean distance of each row to the mean of its class, in steps of the largest one."""
    import torch

    features = features.flatten(1).double()
    classes, place, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    means = features.new_zeros(len(classes), features.shape[1]).index_add_(0, place, features)
    means /= sizes.unsqueeze(1)
    distances = torch.linalg.vector_norm(features - means[place], dim=1)
    return torch.round(distances * (DISTANCE_STEPS / distances.max().clamp(min=torch.finfo(torch.float64).tiny)))


def _within_quotas(labels: npt.NDArray[np.int64], quotas: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(rows,) whether a row is among the first ones of its class, as many as the class may have."""
    rank = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        of_it = labels == label
        rank[of_it] = np.arange(of_it.sum())
    within: npt.NDArray[np.bool_] = rank < quotas[labels]
    return within
