"""The digits are the real ones, cut and spread as their settings say."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.datasets import load_digits
from tiers import drawn

from fedsim import registry
from fedsim.data import digits
from fedsim.data.class_counts import class_counts
from fedsim.data.digits import Digits, bilinear
from fedsim.data.raw_dataset import Clients
from fedsim.data.reading.packaged import packaged_file
from fedsim.data.shares import hold_out, stratified_sample
from fedsim.errors import UserError


@pytest.fixture
def load(streams):
    """Digits for so many clients, by the options of a scenario."""

    def made(clients: int = 10, seed: int = 1, **options):
        return Digits.model_validate(options).load(Clients(clients), streams(seed))

    return made


def test_the_digits_are_the_published_ones(load):
    """Class counts of the UCI test part; the first image is a 0, its first row as printed in scikit-learn's guide."""
    data = load()
    assert (len(data.x), data.classes, data.sample_shape) == (1797, 10, (1, 8, 8))
    assert (data.x.dtype, data.x.min(), data.x.max()) == (np.float32, 0.0, 1.0)
    assert np.bincount(data.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert data.y[0] == 0
    assert (16 * data.x[0, 0, 0]).tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    assert data.sample_bytes == 8 * 8 + 1


@pytest.fixture
def read_anew(monkeypatch):
    """Digits are read from the file, also if they have been before; lets another file take its place."""
    digits._handwritten.cache_clear()
    yield lambda file: monkeypatch.setattr(digits, "packaged_file", lambda *_: file)
    digits._handwritten.cache_clear()


def test_they_are_what_scikit_learn_loads(read_anew):
    images, y = digits._handwritten()
    source = load_digits()
    assert np.array_equal(16 * images, source.images)
    assert np.array_equal(y, source.target)


def test_a_file_with_other_numbers_and_one_that_is_not_there_are_named(read_anew, load, tmp_path):
    rows = gzip.decompress(packaged_file("sklearn", digits.FILE).read_bytes())
    other = tmp_path / "digits.csv.gz"
    other.write_bytes(gzip.compress(rows.replace(b"16", b"15", 1)))
    read_anew(other)
    with pytest.raises(UserError, match=r"digits\.csv\.gz holds other numbers than those of UCI; install"):
        load()
    other.unlink()
    read_anew(other)
    with pytest.raises(UserError, match=r"digits\.csv\.gz: there is no such file"):
        load()
    read_anew(None)
    with pytest.raises(UserError, match="data set 'digits' comes with scikit-learn; install scikit-learn"):
        load()


def test_a_packages_file_is_found_without_the_package():
    code = (
        "import sys; from fedsim.data.reading.packaged import packaged_file\n"
        "assert packaged_file('sklearn', 'datasets').is_dir()\n"
        "assert packaged_file('no_such_package', 'datasets') is packaged_file('math', 'a') is None\n"
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_digit_is_used_once(load):
    data = load(client_test_fraction=0.25)
    used = np.concatenate([*data.train_ids, *data.client_test_ids, data.test_ids])
    assert np.array_equal(np.sort(used), np.arange(1797))


@pytest.mark.parametrize("test_fraction", [0.2, 0.5])
def test_the_test_set_holds_its_share_of_every_class(load, test_fraction):
    data = load(test_fraction=test_fraction)
    share = np.bincount(data.y[data.test_ids]) / np.bincount(data.y)
    assert np.abs(share - test_fraction).max() <= 0.5 / 174


@pytest.mark.parametrize("test_fraction", [1e-6, 1 - 1e-6])
def test_no_class_goes_without_tests_or_training(load, test_fraction):
    data = load(test_fraction=test_fraction)
    tested = np.bincount(data.y[data.test_ids], minlength=10)
    assert (tested >= 1).all()
    assert (tested < np.bincount(data.y)).all()


def test_the_test_set_is_the_same_for_every_partition_and_number_of_clients(load):
    expected = load().test_ids
    for name in (name for name in registry.names("partitions") if name != "natural"):
        for clients in (5, 20):
            data = load(clients, partition={"name": name}, client_test_fraction=0.1, pixels=9)
            assert np.array_equal(data.test_ids, expected)
    assert not np.array_equal(load(seed=2).test_ids, expected)


def test_a_clients_own_tests_do_not_change_its_share(load):
    plain, split = load(), load(client_test_fraction=0.3)
    for client in range(10):
        both = np.union1d(split.train_ids[client], split.client_test_ids[client])
        assert np.array_equal(both, plain.train_ids[client])
        assert len(split.client_test_ids[client]) == round(0.3 * len(both))


@pytest.mark.parametrize("partition", ["iid", "shards", "classes_per_client", "factory_preference"])
def test_unseen_clients_hold_what_the_last_of_as_many_clients_would(load, partition):
    """They take nothing from the test set, and come last: who takes part has the share of one among all of them."""
    options = {"partition": {"name": partition}, "client_test_fraction": 0.3}
    everybody, some = load(9, **options), load(7, unseen_clients=2, **options)
    assert (some.clients, len(some.unseen_test_ids)) == (7, 2)
    assert all(map(np.array_equal, some.train_ids, everybody.train_ids[:7]))
    assert all(map(np.array_equal, some.client_test_ids, everybody.client_test_ids[:7]))
    whole = map(np.union1d, everybody.train_ids[7:], everybody.client_test_ids[7:])
    assert all(map(np.array_equal, some.unseen_test_ids, whole))
    assert np.array_equal(some.test_ids, everybody.test_ids)


def test_partitions_are_told_the_labels_of_the_samples_that_they_deal(load):
    data = load(5, partition={"name": "classes_per_client", "classes": 2})
    assert (class_counts(data) > 0).sum(axis=1).tolist() == [2] * 5


def test_a_client_keeps_one_sample_to_train_on(load):
    data = load(clients=1437, client_test_fraction=0.99)
    assert len(data.train_ids) == 1437
    assert data.client_samples.tolist() == [1] * 1437


def test_more_clients_than_digits_is_refused(load):
    training = len(np.concatenate(load().train_ids))
    assert load(clients=training).clients == training
    with pytest.raises(UserError, match=f"{training + 1} training samples are needed, but there are only {training}"):
        load(clients=training + 1)


def test_class_counts_add_up_to_the_training_samples(load):
    data = load(partition={"name": "dirichlet", "alpha": 0.1})
    table = class_counts(data)
    assert table.shape == (10, 10)
    assert np.array_equal(table.sum(1), data.client_samples)
    trained = np.concatenate(data.train_ids)
    assert np.array_equal(table.sum(0), np.bincount(data.y[trained]))
    assert np.array_equal(table[3], np.bincount(data.y[data.train_ids[3]], minlength=10))


def test_equal_seeds_equal_digest_and_every_option_counts(load):
    assert load().digest == load().digest
    changes = [
        {"seed": 2},
        {"clients": 11},
        {"test_fraction": 0.3},
        {"client_test_fraction": 0.1},
        {"pixels": 9},
        {"partition": {"name": "shards"}},
        {"partition": {"name": "quantity_skew"}},
    ]
    assert len({load(**change).digest for change in changes} | {load().digest}) == len(changes) + 1


def test_larger_digits_stay_in_range_and_keep_their_ink(load):
    """Interpolation at evenly spread points keeps the mean up to what the frame of each image weighs."""
    small, large = load(), load(pixels=28)
    assert (large.sample_shape, large.x.shape, large.x.dtype) == ((1, 28, 28), (1797, 1, 28, 28), np.float32)
    assert large.sample_bytes == 28 * 28 + 1
    assert large.x.min() == 0.0
    assert 0.9 < large.x.max() <= 1.0
    assert abs(large.x.mean() - small.x.mean()) < 0.02 * small.x.mean()
    assert np.array_equal(large.y, small.y)


def test_eight_pixels_are_as_they_are():
    images = np.random.default_rng(1).random((4, 8, 8))
    assert np.array_equal(bilinear(images, 8), images)


@drawn(50)
@given(pixels=st.integers(8, 64), value=st.floats(0, 1))
def test_a_constant_image_stays_constant(pixels, value):
    assert (bilinear(np.full((1, 8, 8), value), pixels) == value).all()


@drawn(50)
@given(pixels=st.integers(8, 64), seed=st.integers(0, 2**32))
def test_interpolation_leaves_no_range(pixels, seed):
    images = np.random.default_rng(seed).integers(0, 17, (2, 8, 8)) / 16
    larger = bilinear(images, pixels).astype(np.float32)
    assert larger.min() >= images.min()
    assert larger.max() <= images.max()


@drawn(50)
@given(pixels=st.integers(8, 64), down=st.floats(-1, 1), right=st.floats(-1, 1))
def test_a_slope_stays_a_slope(pixels, down, right):
    """A plane comes out as the same plane at the new centres, except within half a source pixel of the edge."""
    row, column = np.meshgrid(np.arange(8), np.arange(8), indexing="ij")
    at = (np.arange(pixels) + 0.5) * 8 / pixels - 0.5
    inside = (at >= 0) & (at <= 7)
    expected = down * at[inside][:, None] + right * at[inside][None, :]
    larger = bilinear((down * row + right * column)[None], pixels)[0]
    assert larger[np.ix_(inside, inside)] == pytest.approx(expected, abs=1e-12)


@given(
    sizes=st.lists(st.integers(2, 40), min_size=1, max_size=6),
    fraction=st.floats(0.001, 0.999),
    seed=st.integers(0, 2**32),
)
@drawn(50)
def test_a_stratified_sample_takes_its_share_of_every_class(sizes, fraction, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    taken = stratified_sample(y, fraction, np.random.default_rng(seed))
    assert (np.diff(taken) > 0).all()
    numbers = np.bincount(y[taken], minlength=len(sizes))
    expected = np.clip(np.rint(fraction * np.array(sizes)), 1, np.array(sizes) - 1)
    assert np.array_equal(numbers, expected)


@given(ids=st.sets(st.integers(0, 999), min_size=1, max_size=50), fraction=st.floats(0, 0.999))
@drawn(50)
def test_what_is_held_out_and_what_is_kept_make_the_whole(ids, fraction):
    kept, out = hold_out(np.array(sorted(ids), np.int64), fraction, np.random.default_rng(1))
    assert len(kept) >= 1
    assert sorted([*kept, *out]) == sorted(ids)
    assert (np.diff(kept) > 0).all()
    assert (np.diff(out) > 0).all()


@pytest.mark.parametrize(
    "set_aside",
    [
        lambda rng: stratified_sample(np.zeros(10, np.int64), 0.3, rng),
        lambda rng: hold_out(np.arange(10), 0.3, rng)[1],
    ],
)
def test_every_sample_is_set_aside_equally_often(set_aside):
    """2,000 replications: 4 standard errors of a frequency of 0.3 are 0.041."""
    times = sum(np.bincount(set_aside(np.random.default_rng(seed)), minlength=10) for seed in range(2000))
    assert np.abs(times / 2000 - 0.3).max() < 4 * np.sqrt(0.3 * 0.7 / 2000)


@pytest.mark.parametrize(
    "options",
    [
        {"pixels": 7},
        {"pixels": 28.0},
        {"pixels": 193},
        {"test_fraction": 0.0},
        {"test_fraction": 1.0},
        {"client_test_fraction": 1.0},
        {"client_test_fraction": -0.1},
        {"partition": {"name": "dirichlett"}},
        {"partition": {"name": "dirichlet", "alpha": 0}},
        {"partition": {"name": "iid", "alpha": 0.5}},
        {"partitions": {"name": "iid"}},
    ],
)
def test_a_key_outside_its_range_is_refused(options):
    with pytest.raises(ValidationError):
        Digits.model_validate(options)


def test_digits_are_the_default_of_a_scenario() -> None:
    from fedsim.scenario.schema import Scenario

    assert Scenario.model_fields["data"].get_default() == Digits()
