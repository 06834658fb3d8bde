"""How alike groups are: the objective of grouping, and class probability distances between groups.

HFedMS (Zeng et al., IEEE Transactions on Cloud Computing, 2023), Eq. 1: z is the sum of <V_a, V_b> over all pairs of
groups. The paper does not say which distance that is; here it is the squared Euclidean distance of the groups' class
mixtures, so that z = M sum |p_m - mean p|^2, and the mean CPD of a pair is (1 - 1/e) z / (M (M - 1) / 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.distances import CPD_SCALE, cpd, mixtures, pairwise
from fedsim.grouping.settings import Members

__all__ = ["Quality", "compared", "counts_of", "objective", "quality"]


@dataclass(frozen=True)
class Quality:
    """How alike some clients, or groups of clients, are; the smaller the numbers, the more."""

    parts: int
    """How many clients or groups."""
    z: float
    """Objective 1 of HFedMS."""
    mean_cpd: float
    """Mean class probability distance of a pair; not a number when there is no pair."""
    median_cpd: float
    """Median of the same."""


def counts_of(counts: NDArray[Any], groups: Sequence[Members]) -> NDArray[Any]:
    """(groups, classes) samples of each class in each of *groups*, from the *counts* of clients (Eq. 5).

    >>> counts_of(np.array([[3, 0], [0, 2], [1, 1]]), [np.array([0, 1]), np.array([2])]).tolist()
    [[3, 2], [1, 1]]
    """
    return np.stack([counts[group].sum(axis=0) for group in groups])


def objective(counts: NDArray[Any]) -> float:
    """The sum of |p - q|^2 over all pairs of mixtures of *counts*, (groups, classes).

    >>> objective(np.array([[1, 0], [0, 1], [2, 2]]))  # 2 + 1/2 + 1/2
    3.0
    """
    shares = mixtures(counts)
    return float(len(shares) * np.square(shares - shares.mean(axis=0)).sum())


def quality(counts: NDArray[Any]) -> Quality:
    """How alike the rows of *counts*, (groups, classes), are. The median takes memory for all pairs.

    Raises `ValueError` for a row without samples.
    """
    parts, z = len(counts), objective(counts)
    if parts == 1:
        return Quality(parts, z, math.nan, math.nan)
    pairs = pairwise(cpd, counts)[np.triu_indices(parts, 1)]
    return Quality(parts, z, CPD_SCALE * z / len(pairs), float(np.median(pairs)))


def compared(counts: NDArray[Any], groups: Sequence[Members], rng: np.random.Generator) -> dict[str, Quality]:
    """The *groups* of clients beside the clients themselves, and beside as many groups of their sizes at random."""
    ends = np.cumsum([len(group) for group in groups])
    at_random = np.split(rng.permutation(np.concatenate(groups)), ends[:-1])
    return {
        "clients": quality(counts),
        "random groups": quality(counts_of(counts, at_random)),
        "groups": quality(counts_of(counts, groups)),
    }
