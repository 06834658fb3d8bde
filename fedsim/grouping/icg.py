"""Inter-Cluster Grouping: alike clients are spread over the groups, so that the groups are alike.

Algorithm 3 and Eqs. 7-10 of HFedMS (Zeng et al., IEEE Transactions on Cloud Computing, 2023), and the same in FedGSP
(Zeng et al., DASFAA 2022). With K clients and M groups:

1. Sample L S clients, with L = floor(K / M) and S = floor(K / L).
2. Cluster them by their class counts into L clusters of S members each.
3. Group m, m = 1..M, takes the m-th member of each cluster in random order, and shuffles its members.

S - M members of each cluster are left over, and K - L S clients that were not sampled. The authors' public code
(k_means_constrained) takes the plain distance times 1000 as cost where the paper has half its square: ``cost: l2``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping import equal_clusters
from fedsim.grouping.equal_clusters import Matrix
from fedsim.grouping.settings import GroupingSettings, Members
from fedsim.settings import Count, NonNegative

__all__ = ["ICG"]

SHARE_STEPS = 2**18


class ICG(GroupingSettings):
    """Groups whose class counts are alike: one client from each cluster of alike clients (HFedMS, FedGSP)."""

    needs_counts: ClassVar[bool] = True

    name: Literal["icg"] = "icg"
    once: bool = False
    """Whether groups are formed only once, at the start of a run: the papers' ablation NaiveGSP+ICG."""
    cost: Literal["squared", "l2"] = "squared"
    """What a client costs in a cluster: half the squared distance from its centre as in the papers, or the distance
    times 1000, rounded, as in the authors' code."""
    normalise: bool = False
    """Whether a client's counts are divided by their sum first: for clients with batches of different sizes."""
    tolerance: NonNegative = 1e-4
    """Clusters are final once the squared moves of their centres add up to this many times the mean variance of a
    class's counts."""
    iterations: Count = 300
    """Clusters are final after so many alternations in any case."""

    def equal_groups(self, counts: NDArray[Any], number: int, rng: np.random.Generator) -> Members:
        """Steps 1 to 3."""
        length = len(counts) // number
        size = len(counts) // length
        sampled = rng.permutation(len(counts))[: length * size]
        clusters = sampled[self._clusters(self._points(counts[sampled]), length, rng)]
        return rng.permuted(clusters, axis=1)[:, :number].T

    def _points(self, counts: NDArray[Any]) -> Matrix:
        """(clients, classes) whole numbers to be clustered; a client without samples has a share of 0 in each class.

        Shares are rounded to multiples of 2^-18. Sums of whole numbers are exact, in whatever order they are added, so
        that groups do not depend on the number of threads; costs of shares are, in clusters of up to 2^16 members.
        """
        if not self.normalise:
            return counts.astype(np.float64)
        shares: Matrix = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return np.rint(shares * SHARE_STEPS)

    def _clusters(self, points: Matrix, clusters: int, rng: np.random.Generator) -> Members:
        """(clusters, size) positions; there is nothing to choose with one cluster, or one member in each."""
        if clusters in (1, len(points)):
            return np.arange(len(points)).reshape(clusters, -1)
        costs = {"squared": equal_clusters.squared, "l2": equal_clusters.l2}[self.cost]
        return equal_clusters.clusters(points, clusters, rng, costs, self.tolerance, self.iterations)
