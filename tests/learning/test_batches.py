"""Batches: each epoch sees every sample once, in an order of its own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from small_learner import CLIENTS, data

from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.batches import POOL, batches, training_samples


@given(samples=st.integers(1, 40), batch_size=st.integers(1, 50), epochs=st.integers(1, 4), seed=st.integers(0, 9))
def test_every_epoch_sees_every_sample_once(samples: int, batch_size: int, epochs: int, seed: int) -> None:
    ids = np.arange(samples) * 7 + 3
    rng = Stream(seed, "batches").generator()
    made = list(batches(ids, batch_size=batch_size, epochs=epochs, rng=rng))
    per_epoch = -(-samples // batch_size)
    assert len(made) == epochs * per_epoch
    for epoch in range(epochs):
        seen = made[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sorted(np.concatenate(seen)) == ids.tolist()
        assert [len(batch) for batch in seen[:-1]] == [batch_size] * (per_epoch - 1)


def test_epochs_and_uses_have_orders_of_their_own() -> None:
    ids, streams = np.arange(100), Streams(1)

    def order(client: int, use: int) -> list[list[int]]:
        made = batches(ids, batch_size=100, epochs=2, rng=streams("batches", client, use).generator())
        return [batch.tolist() for batch in made]

    orders = [*order(0, 0), *order(0, 1), *order(1, 0)]
    assert all(orders.count(one) == 1 for one in orders)
    assert order(0, 0) == orders[:2]


def test_the_pool_holds_everybodys_samples_in_the_order_of_clients() -> None:
    dataset = data()
    pool = training_samples(dataset, POOL)
    assert pool.tolist() == [number for ids in dataset.train_ids for number in ids]
    assert all(training_samples(dataset, client) is dataset.train_ids[client] for client in range(CLIENTS))
