"""What a device sees is fixed by the client and the positions on its stream, whenever and wherever it is looked up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from tiers import drawn

from fedsim.data.captures import Capture, capture_samples, captured_ids, phase_of_class
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine
from fedsim.data.stream.drift import Recurring
from fedsim.data.stream.settings import Augmentation, StreamSettings
from fedsim.kernel.streams import Stream, Streams

STREAMS = Streams(1)
CLASSES = 6


def dataset(sizes: tuple[int, ...] = (7, 1, 30), **stream: object) -> FederatedDataset:
    """Grey images of 2 x 3 pixels, each with its id as its grey level; labels in turn."""
    ends = np.cumsum(sizes)
    total = int(ends[-1])
    return FederatedDataset(
        name="grey",
        classes=CLASSES,
        sample_shape=(1, 2, 3),
        sample_bytes=7.0,
        client_samples=np.array(sizes, np.int64),
        stored=np.repeat(np.arange(total, dtype=np.uint8), 6).reshape(total, 1, 2, 3),
        y=np.arange(total, dtype=np.int64) % CLASSES,
        encoding=Affine(scale=1 / 255),
        train_ids=tuple(np.split(np.arange(total), ends[:-1])),
        client_test_ids=tuple(np.empty(0, np.int64) for _ in sizes),
        stream=StreamSettings(samples=4, **stream),
    )


@drawn(60)
@given(client=st.integers(0, 2), cuts=st.lists(st.integers(1, 25), min_size=1, max_size=5))
def test_captures_one_after_the_other_are_one_long_capture(client: int, cuts: list[int]) -> None:
    data, first, parts = dataset(), 0, []
    for samples in cuts:
        parts.append(captured_ids(data, client, Capture(first, samples), STREAMS))
        first += samples
    assert np.array_equal(np.concatenate(parts), captured_ids(data, client, Capture(0, first), STREAMS))


@pytest.mark.parametrize("client", [0, 1, 2])
def test_each_pass_is_a_permutation_of_the_clients_own_samples(client: int) -> None:
    data = dataset()
    own = data.train_ids[client]
    passes = captured_ids(data, client, Capture(0, 5 * len(own)), STREAMS).reshape(5, len(own))
    assert all(np.array_equal(np.sort(one), own) for one in passes)


def test_passes_clients_and_seeds_are_shuffled_independently() -> None:
    data = dataset((40, 40))
    one, other = (captured_ids(data, client, Capture(0, 80), STREAMS) for client in (0, 1))
    assert not np.array_equal(one[:40], one[40:])
    assert not np.array_equal(one[:40], other[:40] - 40)
    assert not np.array_equal(one, captured_ids(data, 0, Capture(0, 80), Streams(2)))


def test_what_is_seen_is_the_samples_with_their_labels() -> None:
    data = dataset()
    ids = captured_ids(data, 2, Capture(3, 8), STREAMS)
    x, y = capture_samples(data, 2, Capture(3, 8), STREAMS)
    assert np.array_equal(x, data.samples(ids))
    assert np.array_equal(y, data.y[ids])
    assert np.array_equal(np.rint(255 * x[:, 0, 0, 0]), ids)


def test_augmentation_is_drawn_anew_in_each_pass_and_the_same_for_the_same_positions() -> None:
    data = dataset((1,), augmentation=Augmentation())
    data = replace(data, stored=np.random.default_rng(1).integers(0, 256, (1, 1, 2, 3)).astype(np.uint8))
    first, second = (capture_samples(data, 0, Capture(number, 1), STREAMS)[0] for number in (0, 1))
    again = capture_samples(data, 0, Capture(0, 1), STREAMS)[0]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)


def test_phases_share_the_classes_evenly_and_every_device_agrees() -> None:
    phase = phase_of_class(11, 3, STREAMS)
    assert sorted(np.bincount(phase)) == [3, 4, 4]
    assert np.array_equal(phase, phase_of_class(11, 3, STREAMS))
    assert any(not np.array_equal(phase, phase_of_class(11, 3, Streams(seed))) for seed in range(2, 5))


@pytest.mark.parametrize("mixture", [(1.0, 0.0), (0.0, 1.0), (0.25, 0.75)])
@pytest.mark.parametrize("strength", [1.0, 0.6])
def test_a_drifting_stream_has_the_stated_mixture_of_classes(mixture: tuple[float, float], strength: float) -> None:
    """Pearson's test over the classes, 6,000 draws: a wrong refusal in one of 10,000, on fixed seeds."""
    data = dataset((7, 60), drift=Recurring(phases=2, length=5, strength=strength))
    counts = np.zeros(CLASSES)
    for number in range(60):
        ids = captured_ids(data, 1, Capture(100 * number, 100, mixture), STREAMS)
        assert np.isin(ids, data.train_ids[1]).all()
        counts += np.bincount(data.y[ids], minlength=CLASSES)
    phase = phase_of_class(CLASSES, 2, STREAMS)
    expected = counts.sum() * ((1 - strength) / CLASSES + strength * np.array(mixture)[phase] / 3)
    assert (counts[expected == 0] == 0).all()
    seen = expected > 0
    statistic = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    assert statistic < chi2.ppf(0.9999, seen.sum() - 1)


def test_phases_have_the_classes_that_are_named() -> None:
    """A class in both phases, and one in none, which is there only where strength is less than 1."""
    drift = Recurring(phases=2, length=5, groups=(("0", "1"), ("1", "2", "3")))
    data = dataset((7, 60), drift=drift)
    seen = [set(data.y[captured_ids(data, 1, Capture(0, 400, mixture), STREAMS)]) for mixture in ((1.0, 0), (0, 1.0))]
    assert seen == [{0, 1}, {1, 2, 3}]
    named = replace(data, class_names=("a", "b", "c", "d", "e", "f"))
    by_name = drift.model_copy(update={"groups": (("a", "b"), ("b", "c", "d"))})
    named = replace(named, stream=StreamSettings(samples=4, drift=by_name))
    ids = captured_ids(named, 1, Capture(0, 400, (0.5, 0.5)), STREAMS)
    assert np.array_equal(ids, captured_ids(data, 1, Capture(0, 400, (0.5, 0.5)), STREAMS))
    weak = replace(data, stream=StreamSettings(samples=4, drift=drift.model_copy(update={"strength": 0.5})))
    assert set(weak.y[captured_ids(weak, 1, Capture(0, 400, (1.0, 0.0)), STREAMS)]) == set(range(6))


@pytest.mark.parametrize("mixture", [None, (0.5, 0.5)])
def test_every_client_and_place_draws_from_streams_of_its_own(mixture: tuple[float, float] | None) -> None:
    data = dataset(augmentation=Augmentation(), drift=Recurring(phases=2, length=5))
    asked = []

    def streams(*name: object) -> Stream:
        asked.append(STREAMS(*name))
        return asked[-1]

    for client in (0, 2):
        for first in (0, 100):
            capture_samples(data, client, Capture(first, 4, mixture), streams)
    own = [stream for stream in asked if stream.purpose != "data/drift"]
    assert len(own) == 2 * 2 * 2
    assert len(set(own)) == len(own)


def test_a_device_without_the_phases_classes_shows_what_it_has() -> None:
    data = dataset((1,), drift=Recurring(phases=2, length=5))
    for mixture in ((1.0, 0.0), (0.0, 1.0)):
        assert captured_ids(data, 0, Capture(0, 9, mixture), STREAMS).tolist() == [0] * 9


def test_shares_that_add_up_to_a_little_less_than_one_are_no_trap() -> None:
    data = dataset((12,), drift=Recurring(phases=10, length=1))
    ids = captured_ids(data, 0, Capture(0, 5_000, (0.1,) * 10), STREAMS)
    assert set(ids) == set(range(12))
