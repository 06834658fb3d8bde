"""Counting classes again and again: the same as counting anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.data.captures import Capture, classes_seen
from fedsim.data.class_counts import ClassCounts
from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.settings import StreamSettings
from fedsim.kernel.streams import Streams

SIZES = (5, 1, 8)
DRIFT = {"name": "recurring", "phases": 2, "length": 3, "strength": 0.7}


@pytest.fixture(scope="module")
def dataset() -> FederatedDataset:
    """Three clients with 5, 1 and 8 samples of three classes."""
    labels = np.random.default_rng(3).integers(0, 3, 14)
    return FederatedDataset(
        name="tiny",
        classes=3,
        sample_shape=(1,),
        sample_bytes=2.0,
        client_samples=np.array(SIZES),
        stored=np.zeros((14, 1), np.float32),
        y=labels,
        train_ids=tuple(np.split(np.arange(14), np.cumsum(SIZES)[:-1])),
        client_test_ids=(np.empty(0, np.int64),) * 3,
        stream=StreamSettings.model_validate({"samples": 2, "drift": DRIFT}),
    )


CAPTURES = st.one_of(
    st.none(),
    st.builds(Capture, st.integers(0, 40), st.integers(1, 12), st.none()),
    st.builds(Capture, st.integers(0, 40), st.integers(1, 12), st.just((0.25, 0.75))),
)


@given(st.lists(st.dictionaries(st.integers(0, 2), CAPTURES, min_size=1), min_size=1, max_size=4))
def test_counts_of_captures_are_those_of_the_classes_seen(
    dataset: FederatedDataset, asked: list[dict[int, Capture | None]]
) -> None:
    streams = Streams(7)
    counts = ClassCounts(dataset, streams)
    for captures in [some for each in asked for some in (each, each)]:
        rows = counts.rows(list(captures.items()))
        anew = [classes_seen(dataset, client, capture, streams) for client, capture in captures.items()]
        assert rows.tolist() == [row.tolist() for row in anew]
