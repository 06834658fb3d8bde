"""The laws that each partition states, tested against theory.

Statistical tests take the mean of one number over independent replications, and allow 4 standard errors: one run in
16,000 would fail by chance, and seeds are fixed. Each says how large a fault it would see.
"""

from __future__ import annotations

import numpy as np
import pytest
from against_theory import assert_mean
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import ValidationError
from scipy.stats import binom
from tiers import drawn, mostly_long

from fedsim.data.distances import earth_movers, pairwise
from fedsim.data.partition import settings
from fedsim.data.partition.classes_per_client import ClassesPerClient
from fedsim.data.partition.dirichlet import Dirichlet, QuantitySkew
from fedsim.data.partition.factory_preference import FactoryPreference, served_by_lot
from fedsim.data.partition.iid import Iid, Shards
from fedsim.data.partition.settings import Labels, draw_until_enough, whole_shares
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError

CLASSES = 10


def counts(partition, y, clients, seed) -> np.ndarray:
    """(clients, classes) samples."""
    clients = Clients(clients) if isinstance(clients, int) else clients
    shares = partition.split(Labels(y), clients, np.random.default_rng(seed))
    return np.array([np.bincount(y[share], minlength=CLASSES) for share in shares])


def independence_statistic(table) -> float:
    """Pearson's chi-square of a (clients, classes) table against independence of client and class."""
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())


def independence_mean(table) -> float:
    """Its exact mean when labels are dealt at random with both margins fixed: N/(N - 1) degrees of freedom."""
    clients, classes = table.shape
    return (clients - 1) * (classes - 1) * table.sum() / (table.sum() - 1)


def test_the_minimum_itself_is_enough():
    draws = iter([np.array([[3, 1]]), np.array([[2, 1], [0, 1]]), np.array([[5, 5]])])
    assert draw_until_enough(lambda: next(draws), 2, "dirichlet").sum(axis=0).tolist() == [2, 2]


# --- iid ---


@pytest.mark.parametrize(("samples", "clients"), [(1437, 10), (100, 7), (7, 7), (23, 1)])
def test_iid_sizes_differ_by_one_at_most(samples, clients):
    sizes = counts(Iid(), np.arange(samples) % CLASSES, clients, seed=1).sum(1)
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == samples


def test_iid_labels_are_independent_of_clients():
    """300 replications; 4 standard errors are below 5 % of the mean."""
    y = np.repeat(np.arange(CLASSES), 100)
    tables = [counts(Iid(), y, 8, seed) for seed in range(300)]
    assert_mean([independence_statistic(table) for table in tables], independence_mean(tables[0]), fault=0.05)


def test_the_independence_test_would_see_a_tenth_of_the_samples_left_in_order():
    y = np.repeat(np.arange(CLASSES), 100)
    values = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        owner = np.arange(len(y)) * 8 // len(y)
        mixed = rng.permutation(len(y))[: len(y) * 9 // 10]
        owner[mixed] = rng.permutation(owner[mixed])
        table = np.zeros((8, CLASSES))
        np.add.at(table, (owner, y), 1)
        values.append(independence_statistic(table))
    with pytest.raises(AssertionError, match="the mean is"):
        assert_mean(values, independence_mean(table), fault=0.1)


# --- whole shares ---


def test_rounding_favours_no_client():
    """20,000 draws; a client short of a hundredth of a sample (rounding down would cost some half a sample) is seen."""
    rng = np.random.default_rng(1)
    proportions = np.array([0.03, 0.47, 0.0, 0.31, 0.19])
    drawn = np.array([whole_shares(proportions, 7, rng) for _ in range(20_000)])
    assert (drawn.sum(1) == 7).all()
    assert (np.abs(drawn - 7 * proportions) < 1).all()
    error = drawn.std(0) / np.sqrt(len(drawn))
    assert error.max() < 0.01 / 2
    assert (np.abs(drawn.mean(0) - 7 * proportions) <= 4 * error).all()


# --- Dirichlet ---


@pytest.mark.parametrize("alpha", mostly_long([0.1, 1.0, 10.0], now=[1.0]))
def test_dirichlet_shares_of_a_class_have_the_variance_of_the_law(alpha):
    """Sum over clients of (p - 1/n)^2 has mean (1 - 1/n) / (n alpha + 1). Without the rule classes are independent.

    2,500 class draws of 1,000 samples, so that rounding moves the mean by less than 0.1 %; a fault of 10 % is seen.
    """
    clients, each = 5, 1000
    y = np.repeat(np.arange(CLASSES), each)
    partition = Dirichlet(alpha=alpha, capacity_rule=False)
    shares = np.concatenate([counts(partition, y, clients, seed).T / each for seed in range(250)])
    assert_mean(((shares - 1 / clients) ** 2).sum(1), (1 - 1 / clients) / (clients * alpha + 1), fault=0.1)


@pytest.mark.long
def test_the_capacity_rule_leaves_the_first_class_alone():
    """As above, over the first class only: 1,000 draws, a fault of 15 % is seen."""
    clients, each, alpha = 5, 300, 1.0
    y = np.repeat(np.arange(CLASSES), each)
    shares = np.array([counts(Dirichlet(alpha=alpha), y, clients, seed)[:, 0] / each for seed in range(1000)])
    assert_mean(((shares - 1 / clients) ** 2).sum(1), (1 - 1 / clients) / (clients * alpha + 1), fault=0.15)


@pytest.mark.parametrize("capacity_rule", mostly_long([True, False], now=[True]))
def test_dirichlet_favours_no_client(capacity_rule):
    """Every client's mean size is N/n within 4 standard errors: 400 replications, a fault of 15 % is seen."""
    y = np.repeat(np.arange(CLASSES), 40)
    partition = Dirichlet(alpha=0.5, capacity_rule=capacity_rule)
    sizes = np.array([counts(partition, y, 5, seed).sum(1) for seed in range(400)])
    for client in range(5):
        assert_mean(sizes[:, client], 80, fault=0.15)


def test_a_full_client_gets_nothing_of_the_classes_that_follow():
    y = np.repeat(np.arange(CLASSES), [50, 10, 40, 30, 20, 60, 25, 35, 45, 5])
    filled = 0
    for seed in range(50):
        table = counts(Dirichlet(alpha=0.3), y, 6, seed)
        full_before = np.cumsum(table, axis=1)[:, :-1] >= len(y) / 6
        assert (table[:, 1:][full_before] == 0).all()
        filled += full_before.sum()
    assert filled > 0


def test_the_capacity_rule_evens_out_the_sizes():
    y = np.repeat(np.arange(CLASSES), 100)

    def spread(capacity_rule: bool) -> float:
        partition = Dirichlet(alpha=0.3, capacity_rule=capacity_rule)
        return float(np.mean([counts(partition, y, 8, seed).sum(1).std() for seed in range(50)]))

    assert spread(True) < 0.8 * spread(False)


@pytest.mark.parametrize("capacity_rule", mostly_long([True, False], now=[True]))
def test_smaller_alpha_means_larger_skew(capacity_rule):
    """Skew: mean distance (total variation) of a client's label mixture from everybody's."""
    y = np.repeat(np.arange(CLASSES), 100)

    def skew(alpha: float) -> float:
        distances = []
        for seed in range(20):
            table = counts(Dirichlet(alpha=alpha, capacity_rule=capacity_rule), y, 8, seed)
            mixtures = table / table.sum(1, keepdims=True)
            distances.append(np.abs(mixtures - 1 / CLASSES).sum(1).mean() / 2)
        return float(np.mean(distances))

    skews = [skew(alpha) for alpha in (0.1, 0.5, 2.0, 10.0, 1e6)]
    assert skews == sorted(skews, reverse=True)
    assert skews[0] > 0.5
    assert skews[-1] < 0.02


@pytest.mark.parametrize("alpha", [1e-300, 1e-9])
def test_extreme_concentration_still_covers(alpha):
    """One client takes a whole class; the capacity rule passes the next class on."""
    y = np.repeat(np.arange(CLASSES), 30)
    table = counts(Dirichlet(alpha=alpha), y, 5, seed=1)
    assert table.sum(0).tolist() == [30] * CLASSES
    assert sorted(np.count_nonzero(table, axis=1)) == [2] * 5


def test_dirichlet_gives_everybody_the_minimum_or_refuses():
    y = np.repeat(np.arange(CLASSES), 50)
    for seed in range(20):
        assert counts(Dirichlet(alpha=0.3, minimum_samples=20), y, 8, seed).sum(1).min() >= 20
    with pytest.raises(UserError, match=r"alpha=0\.01.*minimum_samples=60 of 500 .* each of 1000 draws; raise alpha"):
        counts(Dirichlet(alpha=0.01, minimum_samples=60), y, 8, seed=1)
    with pytest.raises(UserError, match="504 training samples are needed, but there are only 500: minimum_samples=63"):
        counts(Dirichlet(minimum_samples=63), y, 8, seed=1)


@pytest.mark.parametrize(
    ("partition", "y", "clients", "draws"),
    [
        (Dirichlet(alpha=0.01, minimum_samples=60), np.repeat(np.arange(CLASSES), 50), 8, 5),
        (QuantitySkew(alpha=0.01), np.repeat(np.arange(CLASSES), 50), 8, 50),
        (ClassesPerClient(classes=2), np.repeat([0, 1, 2], [90, 90, 1]), 8, 16),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_clients_that_are_many_are_drawn_fewer_times(monkeypatch, partition, y, clients, draws):
    """What is drawn altogether has a limit, so that a refusal never takes minutes."""
    monkeypatch.setattr(settings, "MOST_NUMBERS", 400)
    with pytest.raises(UserError, match=f"in each of {draws} draws; "):
        counts(partition, y, clients, seed=1)


# --- quantity skew ---


@pytest.mark.parametrize("alpha", mostly_long([0.5, 5.0], now=[0.5]))
def test_quantity_skew_sizes_have_the_variance_of_the_law(alpha):
    """1,200 replications; a fault of 10 % is seen.

    The minimum of one sample turns away 5 % of the draws for alpha = 0.5, which lowers the mean by some 1.5 %.
    """
    clients, samples = 5, 10_000
    y = np.zeros(samples, np.int64)
    sizes = np.array([counts(QuantitySkew(alpha=alpha), y, clients, seed)[:, 0] for seed in range(1200)])
    assert_mean(((sizes / samples - 1 / clients) ** 2).sum(1), (1 - 1 / clients) / (clients * alpha + 1), fault=0.1)


def test_quantity_skew_labels_are_independent_of_clients():
    """300 replications; 4 standard errors are below 5 % of the mean."""
    y = np.repeat(np.arange(CLASSES), 200)
    tables = [counts(QuantitySkew(alpha=2.0, minimum_samples=20), y, 8, seed) for seed in range(300)]
    assert_mean([independence_statistic(table) for table in tables], independence_mean(tables[0]), fault=0.05)


def test_quantity_skew_gives_everybody_the_minimum_or_refuses():
    y = np.zeros(500, np.int64)
    for seed in range(20):
        assert counts(QuantitySkew(alpha=0.5, minimum_samples=10), y, 8, seed).sum(1).min() >= 10
    with pytest.raises(UserError, match=r"in each of 1000 draws; raise alpha, lower minimum_samples"):
        counts(QuantitySkew(alpha=0.01, minimum_samples=50), y, 8, seed=1)


# --- shards ---


def test_shards_that_fit_the_classes_hold_one_class_each():
    """McMahan's case: 10 classes of 60, 20 shards of 30, so that 10 clients hold 60 samples of at most two classes."""
    y = np.random.default_rng(1).permutation(np.repeat(np.arange(CLASSES), 60))
    for seed in range(20):
        table = counts(Shards(), y, 10, seed)
        assert (table.sum(1) == 60).all()
        assert np.count_nonzero(table, axis=1).max() <= 2
        assert set(np.unique(table)) <= {0, 30, 60}


@pytest.mark.parametrize(("clients", "shards_per_client"), [(7, 2), (9, 3), (13, 1)])
def test_each_boundary_between_classes_adds_one_class_at_most(clients, shards_per_client):
    y = np.random.default_rng(1).choice(CLASSES, size=1000, p=np.arange(1, 11) / 55)
    shards = clients * shards_per_client
    for seed in range(20):
        table = counts(Shards(shards_per_client=shards_per_client), y, clients, seed)
        sizes = table.sum(1)
        assert np.count_nonzero(table) <= shards + CLASSES - 1
        assert sizes.min() >= shards_per_client * (1000 // shards)
        assert sizes.max() <= shards_per_client * -(-1000 // shards)


def test_shards_are_dealt_at_random():
    """Both shards of a client have the same class with probability 1/19; 1,500 replications of 10, a fault of 15 %."""
    y = np.repeat(np.arange(CLASSES), 20)
    single = [np.mean(np.count_nonzero(counts(Shards(), y, 10, seed), axis=1) == 1) for seed in range(1500)]
    assert_mean(single, 1 / 19, fault=0.15)


def test_more_shards_than_samples_is_refused():
    with pytest.raises(UserError, match=r"12 training samples are needed, but there are only 10: shards_per_client=3"):
        counts(Shards(shards_per_client=3), np.arange(10), 4, seed=1)


# --- classes per client ---


@drawn(60)
@given(data=st.data())
def test_each_client_has_exactly_so_many_classes_and_each_class_is_shared_evenly(data):
    present = data.draw(st.integers(1, CLASSES))
    classes = data.draw(st.integers(1, present))
    clients = data.draw(st.integers(-(-present // classes), 30))
    y = np.repeat(np.arange(present), data.draw(st.lists(st.integers(clients, 90), min_size=present, max_size=present)))
    table = counts(ClassesPerClient(classes=classes), y, clients, data.draw(st.integers(0, 2**32)))[:, :present]
    assert (np.count_nonzero(table, axis=1) == classes).all()
    assert (np.count_nonzero(table, axis=0) >= max(clients // present, 1)).all()
    for of_class in table.T:
        held = of_class[of_class > 0]
        assert held.max() - held.min() <= 1


@pytest.mark.parametrize(("clients", "classes"), mostly_long([(20, 2), (50, 3), (10, 9)], now=[(20, 2)]))
def test_the_classes_that_fill_up_a_client_are_equally_likely(clients, classes):
    """Those who have a class: n/K sure, and each other client with chance p = (k - 1)/(K - 1), independently.

    The variance is n (1 - 1/K) p (1 - p). The classes of a replication share their sum, so their mean is one value;
    600 replications, a fault of 10 % is seen.
    """
    y = np.repeat(np.arange(CLASSES), clients)
    partition = ClassesPerClient(classes=classes)
    holders = np.array([np.count_nonzero(counts(partition, y, clients, seed), axis=0) for seed in range(600)])
    chance = (classes - 1) / (CLASSES - 1)
    squares = (holders - clients * classes / CLASSES) ** 2
    assert_mean(squares.mean(1), clients * (1 - 1 / CLASSES) * chance * (1 - chance), fault=0.1)


def test_with_one_class_each_all_classes_have_equally_many_clients():
    y = np.repeat(np.arange(CLASSES), 60)
    for seed in range(20):
        table = counts(ClassesPerClient(classes=1), y, 30, seed)
        assert np.count_nonzero(table, axis=0).tolist() == [3] * CLASSES
        assert (table.sum(1) == 20).all()


def test_chance_says_which_class_a_client_has():
    """Client 0 has each of 10 classes with a chance of 1/10: fewer than 5 in 20 draws come twice in a million."""
    y = np.repeat(np.arange(CLASSES), 20)
    met = {int(counts(ClassesPerClient(classes=1), y, 10, seed)[0].argmax()) for seed in range(20)}
    assert len(met) >= 5


def test_what_is_left_over_of_a_class_favours_no_client():
    """3 clients share 10 classes of 4 samples: each has 40/3 on average. 2,000 replications, a fault of 2 % is seen."""
    y = np.repeat(np.arange(CLASSES), 4)
    sizes = np.array([counts(ClassesPerClient(classes=10), y, 3, seed).sum(1) for seed in range(2000)])
    for client in range(3):
        assert_mean(sizes[:, client], 40 / 3, fault=0.02)


def test_fewer_clients_than_classes_still_have_them_all():
    y = np.repeat(np.arange(CLASSES), 9)
    for seed in range(20):
        table = counts(ClassesPerClient(classes=4), y, 3, seed)
        assert (table.sum(0) == 9).all()
        assert (np.count_nonzero(table, axis=1) == 4).all()


@pytest.mark.parametrize(
    ("classes", "sizes", "clients", "message"),
    [
        (11, [9] * 10, 10, "classes=11 for each client, but the training samples have only 10; lower it"),
        (2, [9] * 10, 4, "classes=2 for each of 4 clients leaves some of 10 classes to nobody; raise it to 3 or more"),
        (
            3,
            [1, 50, 50],
            5,
            r"more clients than it has samples \(the smallest has 1\) in each of 1000 draws; lower clas",
        ),
    ],
)
def test_classes_that_cannot_be_dealt_are_refused(classes, sizes, clients, message):
    with pytest.raises(UserError, match=message):
        counts(ClassesPerClient(classes=classes), np.repeat(np.arange(len(sizes)), sizes), clients, seed=1)


# --- factory preference ---


def two_classes(partition, factories, seed, each=100) -> np.ndarray:
    """(clients,) share of class 0, which 3 of 10 samples have, in samples of so many for *each* client."""
    y = np.repeat([0, 1], [3 * each * len(factories) // 10, 7 * each * len(factories) // 10])
    return counts(partition, y, Clients(len(factories), factories), seed)[:, 0] / each


LAWS = [(1.0, 1e6), (0.5, 4.0), (3.0, 20.0)]


@pytest.mark.parametrize(("alpha", "concentration"), mostly_long(LAWS, now=[(3.0, 20.0)]))
def test_preferences_have_the_variance_of_the_law(alpha, concentration):
    """A client's share of a class, of m samples: q (1 - q) (1 - (1 - 1/(alpha C + 1)) (1 - 1/(s + 1)) (1 - 1/m)).

    2,000 factories of one client, so that what is wished is nearly what there is: of each class within some 1 %, and
    second moments are out by the square of that. 8 replications; a fault of 10 % is seen.
    """
    partition = FactoryPreference(alpha=alpha, concentration=concentration)
    shares = np.array([two_classes(partition, np.arange(2000), seed) for seed in range(8)])
    rest = (1 - 1 / (2 * alpha + 1)) * (1 - 1 / (concentration + 1)) * (1 - 1 / 100)
    assert_mean(((shares - 0.3) ** 2).mean(1), 0.3 * 0.7 * (1 - rest), fault=0.1)


def test_clients_of_one_factory_have_its_preference_in_common():
    """Their covariance is that of p_f, q (1 - q) / (alpha C + 1); that of strangers is 0 (4 standard errors, 2 %)."""
    partition = FactoryPreference(alpha=1.0, concentration=4.0)
    shares = np.array([two_classes(partition, np.arange(2000) // 2, seed) for seed in range(12)]) - 0.3
    factory_mates, strangers = shares[:, ::2] * shares[:, 1::2], shares[:, 1:-1:2] * shares[:, 2::2]
    assert_mean(factory_mates.mean(1), 0.3 * 0.7 / 3, fault=0.1)
    error = strangers.mean(1).std(ddof=1) / np.sqrt(len(strangers))
    assert 4 * error < 0.1 * 0.3 * 0.7 / 3
    assert abs(strangers.mean()) < 4 * error


def test_clients_of_one_factory_are_nearer_to_each_other_than_to_others():
    """And the larger the concentration, the more so."""
    y = np.random.default_rng(1).integers(0, CLASSES, 8000)
    clients = Clients(40, np.arange(40) // 10)

    def mean_distances(concentration: float) -> tuple[float, float]:
        between = pairwise(earth_movers, counts(FactoryPreference(concentration=concentration), y, clients, seed=1))
        same = clients.factory[:, None] == clients.factory
        return between[same & ~np.eye(40, dtype=bool)].mean(), between[~same].mean()

    within, across = zip(*map(mean_distances, (1.0, 10.0, 1000.0)), strict=True)
    assert list(within) == sorted(within, reverse=True)
    assert all(near < far for near, far in zip(within, across, strict=True))
    assert within[-1] < across[-1] / 3


def test_unseen_clients_prefer_what_their_factory_prefers():
    y = np.repeat(np.arange(CLASSES), 400)
    table = counts(FactoryPreference(alpha=0.1, concentration=1e6), y, Clients(10, np.arange(10) % 2, unseen=2), seed=3)
    between = pairwise(earth_movers, table)
    for client, factory in ((10, 0), (11, 1)):
        assert between[client, factory:10:2].max() < between[client, 1 - factory : 10 : 2].min()


@drawn(60)
@given(data=st.data())
def test_all_that_is_there_is_dealt_and_everybody_gets_what_there_is_room_for(data):
    """Whatever is preferred, down to nothing at all, and to numbers that have no inverse."""
    weights = st.sampled_from([0.0, 5e-324, 1e-300, 0.1, 0.5, 1.0])
    clients, classes = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 6))
    preference = data.draw(arrays(np.float64, (clients, classes), elements=weights))
    stock = data.draw(arrays(np.int64, classes, elements=st.integers(0, 40)))
    room = stock.sum() // clients + (np.arange(clients) < stock.sum() % clients)
    dealt = served_by_lot(preference, room, stock, np.random.default_rng(data.draw(st.integers(0, 2**32))))
    assert dealt.min() >= 0
    assert np.array_equal(dealt.sum(0), stock)
    assert np.array_equal(dealt.sum(1), room)


@pytest.mark.long
def test_where_more_is_wished_than_there_is_chance_decides_which_wishes_are_met():
    """20 wishes by two clients for 10 samples: hypergeometric, mean 5 and variance 10/4 * 10/19. A fault of 20 %."""
    wanted = np.array([[1.0, 0.0], [1.0, 0.0]])
    both = np.array([10, 10])
    got = [served_by_lot(wanted, both, both, np.random.default_rng(seed))[0, 0] for seed in range(3000)]
    assert_mean(got, 5, fault=0.05)
    assert_mean((np.array(got) - 5) ** 2, 10 / 4 * 10 / 19, fault=0.2)


def test_who_prefers_nothing_that_is_left_wishes_in_proportion_to_what_is_left():
    """Both have room for 9, and 12 and 6 are left; the second client wishes for 9 of the 6, the first one has no wish.

    It takes W ~ Bin(9, 1/3) chances on the 6, and gets 6 W / (9 + W) of them on average. A fault of 10 % is seen: with
    even chances it would get a third more.
    """
    wanted, room, stock = np.array([[1.0, 0, 0], [0.0, 0, 1]]), np.array([9, 9]), np.array([0, 12, 6])
    got = [served_by_lot(wanted, room, stock, np.random.default_rng(seed))[0, 2] for seed in range(2000)]
    expected = sum(binom.pmf(w, 9, 1 / 3) * 6 * w / (9 + w) for w in range(10))
    assert_mean(got, expected, fault=0.1)


@pytest.mark.parametrize("alpha", [1e-300, 1e-9, 1e6])
@pytest.mark.parametrize("concentration", [1e-300, 1e-9, 1e6])
def test_extreme_preferences_still_cover(alpha, concentration):
    y = np.repeat(np.arange(CLASSES), np.arange(1, 11))
    table = counts(
        FactoryPreference(alpha=alpha, concentration=concentration), y, Clients(6, np.arange(6) // 2), seed=1
    )
    assert table.sum(0).tolist() == list(range(1, 11))
    assert sorted(table.sum(1)) == [9] * 5 + [10]


# --- keys ---


@pytest.mark.parametrize(
    ("partition", "options"),
    [
        (Dirichlet, {"alpha": 0.0}),
        (Dirichlet, {"alpha": float("nan")}),
        (Dirichlet, {"alpha": float("inf")}),
        (Dirichlet, {"alpha": "0.5"}),
        (Dirichlet, {"minimum_samples": 0}),
        (QuantitySkew, {"alpha": -1.0}),
        (QuantitySkew, {"minimum_samples": 2.5}),
        (Shards, {"shards_per_client": 0}),
        (ClassesPerClient, {"classes": 0}),
        (FactoryPreference, {"concentration": 0.0}),
        (Iid, {"alpha": 0.5}),
    ],
)
def test_a_key_outside_its_range_is_refused(partition, options):
    with pytest.raises(ValidationError):
        partition(**options)
