"""Natural clients are the owners of the samples, in the order of the source; factories may be its fleets."""

from __future__ import annotations

import numpy as np
import pytest

from fedsim.data.partition.natural import Natural
from fedsim.data.partition.settings import Labels
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError


def test_the_owners_with_most_samples_are_the_clients_in_the_order_of_the_source():
    """Owners 0 to 4 have 2, 5, 0, 9 and 5 samples: 1, 3 and 4 take part, 0 is the unseen one, 2 has nothing."""
    owner = np.repeat([0, 1, 3, 4], [2, 5, 9, 5])
    clients = Clients(3, unseen=1)
    shares = Natural().split(Labels(np.zeros(21, np.int64), owner), clients, np.random.default_rng(1))
    assert [np.unique(owner[share]).tolist() for share in shares] == [[1], [3], [4], [0]]
    fewer = Natural().split(Labels(np.zeros(21, np.int64), owner), Clients(2), np.random.default_rng(1))
    assert [np.unique(owner[share]).tolist() for share in fewer] == [[1], [3]]


FLEETS = ("press", "saw", "press", "saw", "saw", "press")


def test_the_factories_may_be_the_fleets_of_the_source():
    """Presses 0, 2 and 5 have 2, 9 and 5 samples, saws 1, 3 and 4 have 5, 1 and 7; the sensors of the two factories
    take turns. Two presses and one saw take part, and one of each is unseen."""
    owner = np.repeat(np.arange(6), [2, 5, 9, 1, 7, 5])
    labels = Labels(np.zeros(29, np.int64), owner, fleets=FLEETS)
    clients = Clients(3, np.array([0, 1, 0]), unseen=2)
    shares = Natural(factories="fleets").split(labels, clients, np.random.default_rng(1))
    assert [np.unique(owner[share]).tolist() for share in shares] == [[2], [4], [5], [0], [1]]


@pytest.mark.parametrize(
    ("fleets", "factories", "message"),
    [
        ((), [0, 1], "fleets: this source does not say which owners belong together; leave factories out"),
        (
            FLEETS,
            [0, 0],
            r"the source has 2 \(press, saw\), and the topology has 1 factories; have as many factories as",
        ),
        (
            FLEETS,
            [0, 0, 0, 1, 0],
            "fleet 'press' has 3 owners of samples, and 4 clients are wanted in its factory; use",
        ),
    ],
)
def test_factories_that_cannot_be_the_fleets_are_refused(fleets, factories, message):
    labels = Labels(np.zeros(6, np.int64), np.arange(6), fleets=fleets)
    with pytest.raises(UserError, match=message):
        Natural(factories="fleets").split(
            labels, Clients(len(factories), np.array(factories)), np.random.default_rng(1)
        )


def test_owners_that_are_clients_are_in_no_fleet():
    labels = Labels(np.zeros(2, np.int64), np.arange(2), owners_are_clients=True)
    with pytest.raises(UserError, match="this source does not say which owners belong together"):
        Natural(factories="fleets").split(labels, Clients(2, np.arange(2)), np.random.default_rng(1))


def test_more_clients_than_owners_is_refused():
    labels = Labels(np.zeros(9, np.int64), np.arange(9) % 3)
    with pytest.raises(UserError, match=r"natural has 3 owners of samples, and 3 clients and 1 unseen ones are wanted"):
        Natural().split(labels, Clients(3, unseen=1), np.random.default_rng(1))
    with pytest.raises(UserError, match="this source does not say"):
        Natural().split(Labels(np.zeros(9, np.int64)), Clients(3), np.random.default_rng(1))
