"""Batches: each epoch sees every sample once, in an order of its own."""

from __future__ import annotations

import tracemalloc
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodes import slots, training_of
from small_learner import CLIENTS, data, table

from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.batches import POOL, BatchSizes, batches, training_samples
from fedsim.learning.executors.batched.course import Course, Stage
from fedsim.learning.executors.batched.samples import Samples
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.executors.wave import Training, Wave
from fedsim.models.torch_module import initial_parameters


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


@given(samples=st.integers(1, 40), batch_size=st.integers(1, 50), epochs=st.integers(1, 4))
def test_the_sizes_of_batches_are_those_of_the_batches(samples: int, batch_size: int, epochs: int) -> None:
    sizes = BatchSizes(samples, batch_size, epochs)
    made = batches(np.arange(samples), batch_size=batch_size, epochs=epochs, rng=np.random.default_rng(1))
    listed = [len(batch) for batch in made]
    assert list(sizes) == listed
    assert (sizes.steps, sizes.largest, sizes.total) == (len(listed), max(listed), sum(listed))


LONG: dict[str, Any] = {"learning_rate": 0.1, "batch_size": 4, "epochs": 10**9, "momentum": 0.0, "weight_decay": 0.0}
STEPS = 1000


class _EnoughError(Exception):
    """So many steps show it."""


def stages(epochs: int) -> tuple[Stage, ...]:
    """Each client's training of the small data set."""
    parts, samples = table().parts, data()
    return tuple(
        Stage(
            client,
            Training(
                training_of(samples, client, LONG | {"epochs": epochs}),
                Stream(1, "batches", client, 0),
                slots(model={part: at for at, part in enumerate(parts)}),
                tuple(parts),
            ),
            frozenset(),
            frozenset(),
        )
        for client in range(CLIENTS)
    )


def peak_bytes(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_group_lists_no_step_ahead() -> None:
    def begin() -> None:
        course = Course(lambda stage: iter(()), [(stage,) for stage in stages(10**9)])
        assert list(islice(course.steps(), 4)) == [(CLIENTS, 4), (CLIENTS, 2)] * 2
        assert (course.widest, course.rows(100)) == (4, 100)

    assert peak_bytes(begin) < 1_000_000


def test_the_rows_of_a_short_group_are_all_counted() -> None:
    course = Course(lambda stage: iter(()), [(stage,) for stage in stages(2)])
    assert [course.rows(most) for most in (11, 12, 13)] == [11, 12, 12]
    assert len(list(course.steps())) == 4


@pytest.mark.parametrize("kind", [PlainTrainer, BatchedTrainer])
def test_memory_does_not_grow_with_the_epochs_of_a_training(
    kind: type[Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand steps of two thousand million: the training is under way, and nothing was listed for it."""
    place = "fedsim.learning.executors.plain.mini_batches"
    taken = 0

    def counted(feed: Any) -> Any:
        nonlocal taken
        for batch in feed:
            taken += 1
            if taken > STEPS:
                raise _EnoughError
            yield batch

    if kind is PlainTrainer:
        from fedsim.learning.batches import mini_batches

        monkeypatch.setattr(place, lambda *arguments: counted(mini_batches(*arguments)))
    else:
        drawn = Samples.mini_batches
        monkeypatch.setattr(Samples, "mini_batches", lambda *arguments: counted(drawn(*arguments)))
    model = list(initial_parameters(table(), np.random.default_rng(1)).values())
    wave = Wave(tuple(stage.training for stage in stages(10**9)))

    def train() -> None:
        with pytest.raises(_EnoughError):
            kind(table(), data(), "cpu", "float32").train(wave, model)

    assert peak_bytes(train) < 40_000_000
    assert taken == STEPS + 1
