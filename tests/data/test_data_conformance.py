"""Every registered data set and partition keeps the promises of its kind; a new registry line is tested here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiers
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_sources import SOURCES

from fedsim import registry
from fedsim.data.dataset import FederatedDataset
from fedsim.data.digits import Digits
from fedsim.data.encoding import Affine, HashedNgrams, Ids, OneHot
from fedsim.data.partition.settings import Labels
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.errors import UserError
from fedsim.settings import descriptions

REQUIRED = {"declared": {"samples_per_client": 30}}  # for those that need more than their name, or a source
EASY = {"dirichlet": {"alpha": 10.0}, "quantity_skew": {"alpha": 10.0}}  # where a draw seldom fails
FACTORIES = np.array([0, 0, 0, 1, 1, 2])  # of six clients

datasets = pytest.mark.parametrize("dataset", registry.names("datasets"))
partitions = pytest.mark.parametrize("partition", registry.names("partitions"))
drawn = pytest.mark.parametrize("partition", [name for name in registry.names("partitions") if name != "natural"])
feature_skews = pytest.mark.parametrize("feature_skew", registry.names("feature_skews"))


def make(kind: str, name: str, options: dict | None = None):
    return registry.load(kind, name)(**(options or {}))


def that_fits(partition: str, y: np.ndarray):
    """A partition for which the labels *y* suffice, whatever they are."""
    options = {**EASY, "classes_per_client": {"classes": len(np.unique(y))}}
    return make("partitions", partition, options.get(partition))


def owned(y: np.ndarray, owners: int) -> Labels:
    """Labels whose samples were made by so many, in turn."""
    return Labels(y, np.arange(len(y)) % owners)


class OwnedDigits(Digits):
    """Digits by nine people, in turn."""

    def raw(self, clients, stream):
        return replace(super().raw(clients, stream), owner=np.arange(1797) % 9)


@pytest.mark.parametrize("kind", ["datasets", "partitions", "feature_skews", "drifts"])
def test_each_says_in_one_sentence_what_it_is(kind):
    for name in registry.names(kind):
        settings = registry.load(kind, name)
        assert settings.model_fields["name"].default == name
        assert registry.first_sentence(kind, name).endswith(".")
        assert {"name", *descriptions(settings)} == {"name", *settings.model_fields}


@pytest.fixture
def made(dataset, tmp_path, streams):
    """A function that loads a data set, by its required keys and from a small source if it needs one."""
    source = SOURCES[dataset](tmp_path) if dataset in SOURCES else REQUIRED.get(dataset, {})

    def loaded(clients: Clients, **options) -> FederatedDataset:
        return registry.load("datasets", dataset).model_validate({**source, **options}).load(clients, streams(3))

    return loaded


@datasets
def test_equal_settings_and_seed_make_equal_data(made):
    first, second = (made(Clients(2, np.array([0, 1]))) for _ in range(2))
    assert first.digest == second.digest
    assert first is not second


@datasets
def test_data_fits_the_number_of_clients(made, dataset):
    data = made(Clients(6, FACTORIES), **({} if dataset == "declared" else {"partition": {"name": "iid"}}))
    assert isinstance(data, FederatedDataset)
    assert data.name == dataset
    assert data.clients == 6
    assert data.client_samples.dtype == np.int64


@pytest.mark.parametrize("dataset", [name for name in registry.names("datasets") if name != "declared"])
def test_samples_of_unseen_clients_are_nobody_elses(made):
    data = made(Clients(3), unseen_clients=2, partition={"name": "iid"}, client_test_fraction=0.2)
    assert len(data.unseen_test_ids) == 2
    assert all(len(ids) >= 1 for ids in data.unseen_test_ids)
    held = np.concatenate([*data.train_ids, *data.client_test_ids, *data.unseen_test_ids, data.test_ids])
    assert len(np.unique(held)) == len(held)


@pytest.mark.parametrize("dataset", [name for name in registry.names("datasets") if name != "declared"])
def test_training_samples_may_take_the_place_of_tests(made):
    """What is tested then would be trained on otherwise, by the client that tests it; no test is used."""
    options = {"partition": {"name": "iid"}, "client_test_fraction": 0.2}
    last, choosing = (made(Clients(2), **options, **more) for more in ({}, {"validation_fraction": 0.4}))
    used = np.concatenate([*choosing.train_ids, choosing.test_ids])
    assert len(choosing.test_ids) >= 1
    assert len(np.unique(used)) == len(used)
    assert not set(used) & set(last.test_ids)


@partitions
@pytest.mark.parametrize("feature_skew", [None, *registry.names("feature_skews")])
def test_a_purpose_is_drawn_from_once(partition, feature_skew, streams):
    asked: list[str] = []

    def listening(purpose: str) -> np.random.Generator:
        asked.append(purpose)
        return streams(3)(purpose)

    skew = {"feature_skew": {"name": feature_skew}} if feature_skew else {}
    data = OwnedDigits.model_validate({"partition": {"name": partition}, "unseen_clients": 2, **skew})
    data.load(Clients(6, FACTORIES), listening)
    purposes = {"test_split", "partition", *(() if partition == "natural" else ("client_test",))}
    purposes |= {"feature_skew"} if feature_skew else set()
    assert sorted(asked) == sorted(f"data/{purpose}" for purpose in purposes)


@partitions
@tiers.drawn(40)
@given(data=st.data())
def test_shares_are_disjoint_and_cover_every_sample(partition, data):
    """Unseen clients have their shares as all others do; of natural owners, those beyond the clients are left out."""
    total = data.draw(st.integers(1, 12))
    unseen = data.draw(st.integers(0, total - 1))
    factories = data.draw(st.none() | arrays(np.int64, total - unseen, elements=st.integers(0, 3)))
    samples = data.draw(st.integers(12 * total, 20 * total))
    y = data.draw(arrays(np.int64, samples, elements=st.integers(0, 9)))
    if partition == "classes_per_client":  # a class of fewer samples than clients cannot be had by all of them
        y = np.concatenate([np.repeat(np.unique(y), total), y])
    owners = total + data.draw(st.integers(0, 3))
    seed = data.draw(st.integers(0, 2**32))
    clients = Clients(
        total - unseen, factories if factories is None else np.unique(factories, return_inverse=True)[1], unseen
    )

    shares = that_fits(partition, y).split(owned(y, owners), clients, np.random.default_rng(seed))

    assert len(shares) == total
    assert all(share.dtype == np.int64 and len(share) >= 1 for share in shares)
    assert all((np.diff(share) > 0).all() for share in shares)
    everything = np.flatnonzero(np.arange(len(y)) % owners < total) if partition == "natural" else np.arange(len(y))
    assert np.array_equal(np.sort(np.concatenate(shares)), everything)


@drawn
def test_the_generator_alone_decides(partition):
    labels = Labels(np.arange(500) % 10)
    settled = make("partitions", partition)
    first, again, other = (settled.split(labels, Clients(8), np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(map(np.array_equal, first, again))
    assert not all(map(np.array_equal, first, other))


@drawn
def test_samples_of_one_class_are_exchangeable(partition):
    """Neighbours share an owner as often as strangers do: 400 replications, 4 standard errors, below 0.15 of 1."""
    y = np.zeros(100, np.int64)
    settled = that_fits(partition, y)
    differences = []
    for seed in range(400):
        owner = settled.deal(Labels(y), Clients(5), np.random.default_rng(seed))
        differences.append(float(owner[40] == owner[41]) - float(owner[40] == owner[90]))
    error = np.std(differences) / np.sqrt(len(differences))
    assert 4 * error < 0.15
    assert abs(np.mean(differences)) < 4 * error


@partitions
def test_one_client_gets_everything(partition):
    y = np.arange(50) % 10
    [share] = that_fits(partition, y).split(owned(y, 1), Clients(1), np.random.default_rng(1))
    assert share.tolist() == list(range(50))


@partitions
@pytest.mark.parametrize("unseen", [0, 4])
def test_more_clients_than_samples_is_refused(partition, unseen):
    with pytest.raises(UserError, match=r"11 training samples are needed, but there are only 10.*fewer clients"):
        make("partitions", partition).split(
            owned(np.arange(10), 10), Clients(11 - unseen, unseen=unseen), np.random.default_rng(1)
        )


@partitions
def test_numbers_to_predict_are_spread_or_refused_in_one_sentence(partition):
    """Only those that look at no class can spread a regression's values."""
    values = Labels(np.linspace(0, 1, 100, dtype=np.float32), np.arange(100) % 5)

    def split():
        return make("partitions", partition).split(values, Clients(5), np.random.default_rng(1))

    if partition in {"natural", "iid", "quantity_skew"}:
        assert sum(map(len, split())) == 100
    else:
        with pytest.raises(UserError, match=r"numbers to predict \(regression\); use natural, iid or quantity_skew"):
            split()


@feature_skews
def test_a_feature_skew_changes_what_clients_hold_and_nothing_else(feature_skew, streams):
    """Who holds what stays, so does the type that is stored, and nobody's samples stay as they were measured."""
    options = {"client_test_fraction": 0.2, "unseen_clients": 2}
    skew = {"feature_skew": {"name": feature_skew}}
    plain, skewed, again = (
        Digits.model_validate({**options, **more}).load(Clients(6, FACTORIES), streams(3)) for more in ({}, skew, skew)
    )

    assert (skewed.x.dtype, skewed.x.shape) == (plain.x.dtype, plain.x.shape)
    assert all(map(np.array_equal, skewed.train_ids, plain.train_ids))
    assert np.array_equal(skewed.x[skewed.test_ids], plain.x[plain.test_ids])
    assert not np.array_equal(skewed.x[skewed.train_ids[-1]], plain.x[plain.train_ids[-1]])
    assert not np.array_equal(skewed.x[skewed.client_test_ids[-1]], plain.x[plain.client_test_ids[-1]])
    assert not np.array_equal(skewed.x[skewed.unseen_test_ids[0]], plain.x[plain.unseen_test_ids[0]])
    assert np.array_equal(skewed.y, plain.y)
    assert skewed.digest == again.digest != plain.digest


@feature_skews
def test_the_source_is_left_as_it_is(feature_skew):
    x = np.random.default_rng(1).integers(0, 256, (40, 1, 5, 5)).astype(np.uint8)
    x.flags.writeable = False
    raw = RawDataset(x, np.zeros(40, np.int64), 1, 26.0, encoding=Affine(1 / 255))
    held = list(np.arange(40).reshape(4, 10))
    skewed = make("feature_skews", feature_skew).apply(
        raw, Clients(4, np.array([0, 0, 1, 1])), held, np.random.default_rng(1)
    )
    assert skewed.dtype == np.uint8
    assert not np.shares_memory(skewed, x)


@feature_skews
@pytest.mark.parametrize("encoding", [Ids(70), OneHot(70), HashedNgrams(70, 3, 50)])
def test_characters_have_no_feature_skew(feature_skew, encoding):
    raw = RawDataset(np.zeros((10, 12), np.uint8), np.zeros(10, np.int64), 1, 13.0, encoding=encoding)
    with pytest.raises(UserError, match=f"{feature_skew} needs .*leave feature_skew out"):
        make("feature_skews", feature_skew).apply(
            raw, Clients(1, unseen=1), [np.arange(5), np.arange(5, 10)], np.random.default_rng(1)
        )


TO_BE_GOT = [name for name in registry.names("datasets") if getattr(registry.load("datasets", name), "origin", None)]


@pytest.mark.parametrize("source", ["nothing", "an empty folder"])
@pytest.mark.parametrize("dataset", TO_BE_GOT)
def test_what_has_to_be_got_says_where_when_it_is_missing(dataset, source, streams, tmp_path):
    settings = registry.load("datasets", dataset)
    folder = tmp_path / "source"
    if source != "nothing":
        folder.mkdir()
    with pytest.raises(UserError) as refusal:
        settings(path=str(folder)).load(Clients(2), streams(1))
    assert str(refusal.value).startswith(f"{folder}: ")
    assert str(refusal.value).endswith(f"; get it from {settings.origin} (docs/data/{dataset}.md)")


def test_all_published_data_sets_say_where_people_get_them():
    own = {"declared", "arrays", "images", "csv", "python"}
    without = {"digits", "glyphs", "bearings", *own}  # nothing to get, or the user's own
    assert set(registry.names("datasets")) == without | set(TO_BE_GOT)
