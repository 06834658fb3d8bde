"""Every registered data set and partition keeps the promises of its kind; a new registry line is tested here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedsim import registry
from fedsim.data.dataset import FederatedDataset
from fedsim.errors import UserError

REQUIRED = {"declared": {"samples_per_client": 30}}  # for those that cannot be made from their name alone
EASY = {"dirichlet": {"alpha": 10.0}, "quantity_skew": {"alpha": 10.0}}  # where a draw seldom fails

datasets = pytest.mark.parametrize("dataset", registry.names("datasets"))
partitions = pytest.mark.parametrize("partition", registry.names("partitions"))


def make(kind: str, name: str, options: dict | None = None):
    return registry.load(kind, name)(**(REQUIRED.get(name, {}) if options is None else options))


@pytest.mark.parametrize("kind", ["datasets", "partitions"])
def test_each_says_in_one_sentence_what_it_is(kind):
    for name in registry.names(kind):
        assert make(kind, name).name == name
        assert registry.first_sentence(kind, name).endswith(".")
        fields = registry.load(kind, name).model_fields
        assert all(field.description for key, field in fields.items() if key != "name")


@datasets
def test_equal_settings_and_seed_make_equal_data(dataset, streams):
    made = [make("datasets", dataset).load(6, streams(3)) for _ in range(2)]
    assert made[0].digest == made[1].digest
    assert made[0] is not made[1]


@datasets
def test_data_fits_the_number_of_clients(dataset, streams):
    data = make("datasets", dataset).load(6, streams(3))
    assert isinstance(data, FederatedDataset)
    assert data.name == dataset
    assert data.clients == 6
    assert data.client_samples.dtype == np.int64


@partitions
def test_a_purpose_is_drawn_from_once(partition, streams):
    asked: list[str] = []

    def listening(purpose: str) -> np.random.Generator:
        asked.append(purpose)
        return streams(3)(purpose)

    registry.load("datasets", "digits")(partition=make("partitions", partition)).load(6, listening)
    assert len(asked) == len(set(asked)) == 3
    assert all(purpose.startswith("data/") for purpose in asked)


@partitions
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_shares_are_disjoint_and_cover_every_sample(partition, data):
    clients = data.draw(st.integers(1, 12))
    samples = data.draw(st.integers(12 * clients, 20 * clients))
    y = data.draw(arrays(np.int64, samples, elements=st.integers(0, 9)))
    seed = data.draw(st.integers(0, 2**32))

    shares = make("partitions", partition, EASY.get(partition)).split(y, clients, np.random.default_rng(seed))

    assert len(shares) == clients
    assert all(share.dtype == np.int64 and len(share) >= 1 for share in shares)
    assert all((np.diff(share) > 0).all() for share in shares)
    assert np.array_equal(np.sort(np.concatenate(shares)), np.arange(samples))


@partitions
def test_the_generator_alone_decides(partition):
    y = np.arange(500) % 10
    settled = make("partitions", partition)
    first, again, other = (settled.split(y, 8, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(map(np.array_equal, first, again))
    assert not all(map(np.array_equal, first, other))


@partitions
def test_samples_of_one_class_are_exchangeable(partition):
    """Neighbours share an owner as often as strangers do: 400 replications, 4 standard errors, below 0.15 of 1."""
    settled = make("partitions", partition, EASY.get(partition))
    differences = []
    for seed in range(400):
        owner = settled.owners(np.zeros(100, np.int64), 5, np.random.default_rng(seed))
        differences.append(float(owner[40] == owner[41]) - float(owner[40] == owner[90]))
    error = np.std(differences) / np.sqrt(len(differences))
    assert 4 * error < 0.15
    assert abs(np.mean(differences)) < 4 * error


@partitions
def test_one_client_gets_everything(partition):
    [share] = make("partitions", partition).split(np.arange(50) % 10, 1, np.random.default_rng(1))
    assert share.tolist() == list(range(50))


@partitions
def test_more_clients_than_samples_is_refused(partition):
    with pytest.raises(UserError, match=r"11 training samples are needed, but there are only 10.*fewer clients"):
        make("partitions", partition).split(np.arange(10), 11, np.random.default_rng(1))
