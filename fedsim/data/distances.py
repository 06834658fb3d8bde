"""How far apart the class mixtures of clients are, by the three measures that the literature uses.

All take counts or weights, (clients, classes), and divide each row by its sum. Classes have no order: class 3 is as far
from 4 as from 9. Left out: distances between samples themselves.

With p and q two mixtures:

* `earth_movers`: the earth mover's distance when any two different classes are 1 apart, 1/2 sum |p - q|, from 0 to 1:
  the share of samples that would have to change their class. It is the total variation. Zhao et al., *Federated
  Learning with Non-IID Data*, 2018, report twice that, sum |p - q|, as EMD.
* `kl`: the divergence of Kullback and Leibler, sum p ln(p / q), in nats; infinite where p has a class that q has not.
* `cpd`: class probability distance of FedGSP and HFedMS (Zeng et al.), the squared maximum mean discrepancy with a
  Gaussian kernel. They do not state the sample space; here it is the labels, as one-hot vectors e, and the kernel's
  width is 1: K(e_i, e_j) = exp(-|e_i - e_j|^2 / 2), which is 1 for i = j and 1/e otherwise. As p - q adds up to 0,
  (p - q)' K (p - q) = (1 - 1/e) |p - q|^2, from 0 to 2 (1 - 1/e) = 1.26.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cpd", "earth_movers", "kl", "mixtures", "pairwise", "to_global"]

Matrix = NDArray[np.float64]
Distance = Callable[[Matrix, Matrix], Matrix]

CPD_SCALE = 1 - math.exp(-1)
AT_ONCE = 2**22  # numbers in the largest intermediate table of `to_global` and `pairwise`: 32 MiB


def mixtures(counts: NDArray[Any]) -> Matrix:
    """(clients, classes) each row of *counts* divided by its sum. Raises `ValueError` for a row without samples.

    >>> mixtures(np.array([[1, 3], [2, 0]])).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    sums = counts.sum(axis=-1, keepdims=True, dtype=np.float64)
    if counts.size == 0 or counts.min() < 0 or not (np.isfinite(sums) & (sums > 0)).all():
        raise ValueError("each row of counts must be finite, not negative, and have something in it")
    shares: Matrix = counts / sums
    return shares


def earth_movers(p: Matrix, q: Matrix) -> Matrix:
    """(...) distances between mixtures (..., classes): 1/2 sum |p - q|.

    >>> float(earth_movers(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])))
    0.5
    """
    distances: Matrix = np.abs(p - q).sum(axis=-1) / 2
    return distances


def kl(p: Matrix, q: Matrix) -> Matrix:
    """(...) divergences of mixtures *p* from *q* (..., classes): sum p ln(p / q), in nats.

    Nothing is smoothed: of a client from all clients together it is finite, as all have what one has. It is not
    symmetric, and between two clients often infinite.

    >>> round(float(kl(np.array([1.0, 0.0]), np.array([0.5, 0.5]))), 4), float(kl(np.array([0.5, 0.5]), np.eye(2)[0]))
    (0.6931, inf)
    """
    divergences: Matrix = np.maximum((p * (_log(p) - _log(q))).sum(axis=-1), 0.0)  # no rounding error below 0
    return np.where(((p > 0) & (q == 0)).any(axis=-1), np.inf, divergences)


def _log(shares: Matrix) -> Matrix:
    """Natural logarithms; 0 where there is nothing."""
    return np.log(shares, out=np.zeros(shares.shape), where=shares > 0)


def cpd(p: Matrix, q: Matrix) -> Matrix:
    """(...) distances between mixtures (..., classes): (1 - 1/e) |p - q|^2.

    >>> round(float(cpd(np.array([1.0, 0.0]), np.array([0.0, 1.0]))), 4)
    1.2642
    """
    distances: Matrix = CPD_SCALE * np.square(p - q).sum(axis=-1)
    return distances


def to_global(distance: Distance, counts: NDArray[Any]) -> Matrix:
    """(clients,) *distance* of each client's mixture from that of all samples together.

    >>> to_global(earth_movers, np.array([[10, 0], [0, 10]])).tolist()
    [0.5, 0.5]
    """
    everybody = mixtures(counts.sum(axis=0))
    rows = max(AT_ONCE // everybody.size, 1)
    return np.concatenate(
        [distance(mixtures(some), everybody) for some in np.split(counts, range(rows, len(counts), rows))]
    )


def pairwise(distance: Distance, counts: NDArray[Any]) -> Matrix:
    """(clients, clients) *distance* of the mixture of each row's client from that of each column's.

    >>> pairwise(kl, np.array([[1, 1], [2, 0]])).round(4).tolist()
    [[0.0, inf], [0.6931, 0.0]]
    """
    shares = mixtures(counts)
    rows = max(AT_ONCE // shares.size, 1)
    parts = [distance(shares[begin : begin + rows, None], shares) for begin in range(0, len(shares), rows)]
    return np.concatenate(parts)
