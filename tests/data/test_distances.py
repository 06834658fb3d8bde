"""Distances between class mixtures: by hand, against SciPy, and by the laws of a distance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import rel_entr
from scipy.stats import wasserstein_distance, wasserstein_distance_nd
from tiers import drawn

from fedsim.data import distances
from fedsim.data.distances import cpd, earth_movers, kl, mixtures, pairwise, to_global

DISTANCES = [earth_movers, kl, cpd]
each_distance = pytest.mark.parametrize("distance", DISTANCES, ids=lambda distance: distance.__name__)
TABLE = np.array([[4, 0, 0], [2, 2, 0], [0, 1, 3]])
"""Mixtures (1, 0, 0), (1/2, 1/2, 0), (0, 1/4, 3/4); all together (1/2, 1/4, 1/4)."""

tables = st.integers(2, 6).flatmap(
    lambda classes: arrays(np.int64, st.tuples(st.integers(1, 8), st.just(classes)), elements=st.integers(0, 50)).map(
        lambda counts: counts + np.eye(len(counts), classes, dtype=np.int64) + (np.arange(classes) == 0)
    )
)


def random_table(clients: int, classes: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(200, rng.dirichlet(np.full(classes, 0.3), clients)) + (np.arange(classes) == 0)


def test_the_earth_movers_distance_by_hand():
    assert to_global(earth_movers, TABLE).tolist() == [0.5, 0.25, 0.5]
    assert pairwise(earth_movers, TABLE).tolist() == [[0, 0.5, 1], [0.5, 0, 0.75], [1, 0.75, 0]]


def test_the_divergence_by_hand():
    """ln 2; 1/2 ln 1 + 1/2 ln 2; 1/4 ln 1 + 3/4 ln 3."""
    expected = [math.log(2), math.log(2) / 2, 0.75 * math.log(3)]
    assert to_global(kl, TABLE) == pytest.approx(expected, rel=1e-15)
    between = pairwise(kl, TABLE)
    assert between[0, 1] == pytest.approx(math.log(2), rel=1e-15)
    assert between[1, 0] == between[0, 2] == between[2, 0] == math.inf


def test_the_class_probability_distance_by_hand():
    """|p - q|^2: 1/4 + 1/16 + 1/16; 0 + 1/16 + 1/16; 1/4 + 0 + 1/4; and between clients 1/2, 1 + 1/16 + 9/16, 7/8."""
    scale = 1 - math.exp(-1)
    assert to_global(cpd, TABLE) == pytest.approx([scale * 3 / 8, scale / 8, scale / 2], rel=1e-15)
    between = pairwise(cpd, TABLE)
    assert (between[0, 1], between[0, 2], between[1, 2]) == pytest.approx(
        (scale / 2, scale * 13 / 8, scale * 7 / 8), rel=1e-15
    )


def test_the_class_probability_distance_is_the_discrepancy_of_a_gaussian_kernel():
    """E K(x, x') - 2 E K(x, y) + E K(y, y'), the expectations of HFedMS's definition, over one-hot labels, width 1."""
    for clients in range(2, 7):
        shares = mixtures(random_table(clients, 5, seed=clients))
        one_hot = np.eye(5)
        kernel = np.exp(-np.square(one_hot[:, None] - one_hot).sum(-1) / 2)
        within = np.einsum("ai,ij,aj->a", shares, kernel, shares)
        across = np.einsum("ai,ij,bj->ab", shares, kernel, shares)
        expected = within[:, None] - 2 * across + within
        assert pairwise(cpd, random_table(clients, 5, seed=clients)) == pytest.approx(expected, abs=1e-14)


def test_between_two_classes_the_earth_movers_distance_is_that_on_a_line():
    """SciPy's distance is on the real line; with two classes at 0 and 1, nothing is farther apart than 1."""
    counts = random_table(12, 2)
    expected = [[wasserstein_distance([0, 1], [0, 1], p, q) for q in counts] for p in counts]
    assert pairwise(earth_movers, counts) == pytest.approx(np.array(expected), abs=1e-12)


def test_between_many_classes_it_is_that_between_the_corners_of_a_simplex():
    """One-hot vectors divided by the root of 2 are 1 apart, each from each other; SciPy solves for the transport."""
    shares = mixtures(random_table(4, 4))
    corners = np.eye(4) / math.sqrt(2)
    expected = [[wasserstein_distance_nd(corners, corners, p, q) for q in shares] for p in shares]
    assert pairwise(earth_movers, shares) == pytest.approx(np.array(expected), abs=1e-9)


def test_the_divergence_is_the_sum_of_relative_entropies():
    shares = mixtures(random_table(20, 6))
    assert pairwise(kl, shares) == pytest.approx(rel_entr(shares[:, None], shares).sum(-1), abs=1e-14)


@each_distance
@drawn(60)
@given(counts=tables)
def test_nothing_is_nearer_than_oneself(distance, counts):
    between = pairwise(distance, counts)
    assert (between >= 0).all()
    assert np.diag(between).tolist() == [0.0] * len(counts)
    shares = mixtures(counts)
    apart = np.abs(shares[:, None] - shares).max(-1) > 1e-6
    assert (between[apart] > 0).all()


@drawn(60)
@given(counts=tables)
def test_symmetry_the_triangle_and_pinskers_inequality(counts):
    """CPD is the square of a distance. Pinsker: the total variation is at most the root of half the divergence."""
    movers = pairwise(earth_movers, counts)
    for metric in (movers, np.sqrt(pairwise(cpd, counts))):
        assert np.array_equal(metric, metric.T)
        assert (metric[:, None] <= metric[:, :, None] + metric[None] + 1e-12).all()
    assert (movers <= np.sqrt(pairwise(kl, counts) / 2) + 1e-7).all()


@each_distance
@drawn(60)
@given(counts=tables, times=st.integers(1, 9), seed=st.integers(0, 99))
def test_neither_the_number_of_samples_nor_the_order_of_classes_counts(distance, counts, times, seed):
    order = np.random.default_rng(seed).permutation(counts.shape[1])
    assert pairwise(distance, times * counts[:, order]) == pytest.approx(pairwise(distance, counts), abs=1e-12)


@each_distance
def test_the_distance_to_all_is_finite_and_within_its_bounds(distance):
    """C clients of one class each, C = 10: 1 - 1/C, ln C, and (1 - 1/e) (1 - 1/C)."""
    alone = to_global(distance, np.eye(10, dtype=np.int64))
    bound = {"earth_movers": 0.9, "kl": math.log(10), "cpd": (1 - math.exp(-1)) * 0.9}[distance.__name__]
    assert alone == pytest.approx([bound] * 10, rel=1e-12)
    others = to_global(distance, random_table(50, 10))
    assert np.isfinite(others).all()


@each_distance
def test_a_table_too_large_for_one_piece_is_what_its_rows_are(distance):
    counts = random_table(700, 20)
    between = pairwise(distance, counts)
    shares = mixtures(counts)
    for client in (0, 299, 300, 699):
        assert np.array_equal(between[client], distance(shares[client], shares))


@pytest.mark.parametrize(
    "counts", [[[0, 0], [1, 2]], [[1, -1], [1, 2]], [[1.0, math.nan]], [[1.0, math.inf]], np.empty((0, 3))]
)
def test_a_client_without_samples_has_no_mixture(counts):
    with pytest.raises(ValueError, match="have something in it"):
        mixtures(np.array(counts))


@pytest.mark.parametrize("distance", [earth_movers, kl, cpd])
def test_clients_that_are_many_are_compared_some_at_once(monkeypatch, distance):
    counts = np.random.default_rng(1).integers(1, 9, (11, 3))
    expected = to_global(distance, counts)
    largest = 0

    def noted(p, q):
        nonlocal largest
        largest = max(largest, p.size)
        return distance(p, q)

    monkeypatch.setattr(distances, "AT_ONCE", 6)
    assert np.array_equal(to_global(noted, counts), expected)
    assert largest == 6
