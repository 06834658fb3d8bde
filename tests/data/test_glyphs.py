"""Glyphs as a data set: who reads which characters how often, how many images, and whose they are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from against_theory import assert_mean
from pydantic import ValidationError

from fedsim.data.class_counts import class_counts
from fedsim.data.generated import drawn_labels, number_of_samples, preference
from fedsim.data.glyphs.dataset import BASE, Glyphs
from fedsim.data.glyphs.style import device_style, draw
from fedsim.data.glyphs.typefaces import CHARACTERS, TYPEFACES, template
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError

FEW = {"images_per_device": 20.0}


# --- who reads what ---


@pytest.mark.parametrize("concentration", [0.5, 5.0])
@pytest.mark.parametrize("expected", [BASE, np.arange(1, 63) / 1953], ids=["equal", "unequal"])
def test_preferences_have_the_mean_and_the_variance_of_a_dirichlet_distribution(expected, concentration):
    """Var p_c = q_c (1 - q_c) / (62 a + 1), summed over classes; 2,000 draws, a fault of 5 % is seen."""
    drawn = np.array([preference(expected, concentration, np.random.default_rng([1, k])) for k in range(2000)])
    assert drawn.sum(1) == pytest.approx(1)
    variance = (expected * (1 - expected)).sum() / (62 * concentration + 1)
    assert_mean(((drawn - expected) ** 2).sum(1), variance, fault=0.05)
    errors = np.sqrt(expected * (1 - expected) / (62 * concentration + 1) / 2000)
    assert (np.abs(drawn.mean(0) - expected) < 4 * errors).all()


def test_infinite_concentration_is_no_preference():
    assert preference(BASE, math.inf, np.random.default_rng(1)) is BASE


@pytest.mark.parametrize("factory", [1e-18, 1e-3, 1.0, 1e18])
@pytest.mark.parametrize("camera", [1e-18, 1e-3, 1.0, 1e18])
def test_preferences_stay_frequencies_at_the_ends_of_their_range(factory, camera):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first = preference(BASE, factory, rng)
        second = preference(first, camera, rng)
        assert second.sum() == pytest.approx(1)
        assert (second >= 0).all()
        assert (second[first == 0] == 0).all()
        assert second[drawn_labels(second, 50, rng)].min() > 0


def test_labels_come_as_often_as_the_preference_says():
    """Chi-square with 61 degrees of freedom, 20,000 labels: 100.9 is the 99.9th percentile."""
    expected = np.arange(1, 63) / 1953
    counts = np.bincount(drawn_labels(expected, 20_000, np.random.default_rng(1)), minlength=62)
    assert ((counts - 20_000 * expected) ** 2 / (20_000 * expected)).sum() < 100.9


def test_numbers_of_images_are_lognormal():
    """4,000 devices; the mean, the logarithm's mean and its variance within 4 standard errors, 10 % is seen."""
    numbers = np.array([number_of_samples(165, 0.35, np.random.default_rng([1, k]), least=10) for k in range(4000)])
    assert_mean(numbers, 165, fault=0.03)
    logarithms = np.log(numbers / 165) + 0.35**2 / 2
    assert abs(logarithms.mean()) < 4 * 0.35 / math.sqrt(4000)
    assert_mean(logarithms**2, 0.35**2, fault=0.1)
    assert {number_of_samples(10, 2.0, np.random.default_rng(k), least=10) >= 10 for k in range(100)} == {True}


# --- the data set ---


def raw(streams, count: int = 4, factories=None, unseen: int = 0, seed: int = 1, **options):
    clients = Clients(count, None if factories is None else np.array(factories), unseen)
    made = Glyphs.model_validate(FEW | options).raw(clients, streams(seed))
    return replace(made, x=np.asarray(made.x))


def owned(made, *owners: int) -> tuple[list, list]:
    keep = np.isin(made.owner, owners)
    return made.x[keep].tolist(), made.y[keep].tolist()


def test_a_raw_dataset_says_what_it_holds(streams):
    made = raw(streams, unseen=1)
    assert (made.x.dtype, made.x.shape[1:], made.classes) == (np.uint8, (1, 28, 28), 62)
    assert made.class_names == tuple(CHARACTERS)
    assert (made.y.dtype, made.sample_bytes) == (np.int64, 785.0)
    assert np.unique(made.owner).tolist() == [0, 1, 2, 3, 4]
    decoded = made.encoding.decode(made.x)
    assert 0 == decoded.min() < decoded.max() <= 1


def test_a_cameras_images_do_not_depend_on_how_many_others_there_are(streams):
    few, many = raw(streams, 2), raw(streams, 6, unseen=2)
    assert owned(few, 0, 1) == owned(many, 0, 1)
    assert owned(many, 0) != owned(many, 1)


def test_unseen_cameras_are_the_same_whoever_takes_part(streams):
    few, many = raw(streams, 2, unseen=2), raw(streams, 4, unseen=3)
    assert owned(few, 2, 3) == owned(many, 4, 5)
    assert owned(many, 4)[1] != owned(many, 0)[1]


def test_equal_seeds_make_equal_images_and_others_do_not(streams):
    assert owned(raw(streams), 0, 1, 2, 3) == owned(raw(streams), 0, 1, 2, 3)
    assert owned(raw(streams, seed=2), 0)[1] != owned(raw(streams), 0)[1]


def test_images_are_drawn_only_when_somebody_looks_at_them(streams):
    asked = []

    def listening(purpose):
        asked.append(purpose)
        return streams(1)(purpose)

    made = Glyphs(**FEW).raw(Clients(3, np.array([0, 1, 1]), unseen=2), listening)
    cameras = [*(f"data/glyphs/device/{k}" for k in range(3)), *(f"data/glyphs/unseen/{k}" for k in range(2))]
    assert sorted(asked) == sorted([*cameras, "data/glyphs/factory/0", "data/glyphs/factory/1"])
    asked.clear()
    assert (made.x.shape, made.x.dtype) == ((len(made.y), 1, 28, 28), np.uint8)
    assert asked == []
    assert np.asarray(made.x).shape == made.x.shape
    assert asked == cameras  # whose labels are drawn again, to the same ones, as images come after them


def test_preferences_change_neither_styles_nor_numbers(streams):
    one, other = raw(streams), raw(streams, camera_preference=math.inf)
    assert np.array_equal(one.owner, other.owner)
    assert not np.array_equal(one.y, other.y)


def test_cameras_of_a_factory_prefer_what_it_prints(streams):
    """Cameras that follow their factory: label mixtures of 400 images are closer within than between factories."""
    options = {"images_per_device": 400.0, "images_spread": 0.0, "camera_preference": math.inf}
    made = raw(streams, 4, [0, 0, 1, 1], **options)
    mixtures = np.bincount(62 * made.owner + made.y, minlength=4 * 62).reshape(4, 62) / 400

    def apart(one: int, other: int) -> float:
        return np.abs(mixtures[one] - mixtures[other]).sum() / 2

    assert max(apart(0, 1), apart(2, 3)) < 0.25 < 0.4 < min(apart(0, 2), apart(0, 3), apart(1, 2), apart(1, 3))


def test_one_camera_sees_alike():
    """The nearest neighbour (Euclid) of an image is by the same of 10 devices in a third of cases; chance is 10 %."""
    images, owners = [], np.repeat(np.arange(10), 40)
    for k in range(10):
        rng = np.random.default_rng([4, k])
        style = replace(device_style(rng), typeface=TYPEFACES[8 + k % 2])
        images.append(draw(template(style.typeface), rng.integers(0, 62, 40), style, rng))
    x = np.concatenate(images).reshape(400, -1) / 255
    apart = (x**2).sum(1) - 2 * x @ x.T
    np.fill_diagonal(apart, np.inf)
    assert np.mean(owners[apart.argmin(1)] == owners) > 1 / 3


def test_clients_keep_what_their_own_camera_read(streams):
    data = Glyphs(**FEW, test_fraction=0.1).load(Clients(4), streams(1))
    made = raw(streams)
    for client, ids in enumerate(data.train_ids):
        assert set(made.owner[ids]) == {client}
    assert class_counts(data).shape == (4, 62)
    assert len(data.test_ids) == sum(round(0.1 * number) for number in np.bincount(made.owner))


@pytest.mark.parametrize(
    "options",
    [
        {"images_per_device": 9.0},
        {"images_per_device": math.inf},
        {"images_spread": -0.1},
        {"images_spread": 2.1},
        {"factory_preference": 0.0},
        {"camera_preference": math.nan},
        {"typeface": "cmr10"},
    ],
)
def test_a_key_outside_its_range_is_refused(options):
    with pytest.raises(ValidationError):
        Glyphs.model_validate(options)


@pytest.mark.parametrize("unseen", [0, 3])
def test_client_k_is_camera_k_however_many_images_the_unseen_ones_have(unseen, streams):
    """Natural clients of files are those with most samples; cameras are made for their places in the factories."""
    factories = np.array([0, 0, 1, 1, 1])
    clients = Clients(5, factories)
    alone = Glyphs(test_fraction=0.2).load(clients, streams(4))
    data = Glyphs(test_fraction=0.2, unseen_clients=unseen).load(clients, streams(4))
    for client in range(5):
        mine = np.union1d(data.train_ids[client], data.client_test_ids[client])
        same = np.union1d(alone.train_ids[client], alone.client_test_ids[client])
        assert np.array_equal(data.x[mine], alone.x[same])
    assert len(data.unseen_test_ids) == unseen


def test_more_images_than_memory_holds_are_refused(streams):
    """Before any is drawn."""
    with pytest.raises(
        UserError, match=r"1e\+06 images of each of 11 cameras are about 11,000,000, and 10,000,000 are"
    ):
        Glyphs(images_per_device=1e6).load(Clients(11), streams(1))
