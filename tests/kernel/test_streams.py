"""Named random streams: a pure function of the name, the same on every machine."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.kernel.streams import Stream, Streams

NAMES = [
    *(("batches", index, use) for index in range(3) for use in range(3)),
    *(("network/loss", 0, 0), ("selection", 0, 1), ("selection", 0, 2)),
]


def first(stream: Stream, count: int = 4) -> list[int]:
    return stream.generator().integers(0, 2**63, count).tolist()


def test_a_stream_does_not_depend_on_when_it_is_opened() -> None:
    there = {name: first(Streams(1)(*name)) for name in NAMES}
    back = {name: first(Streams(1)(*name)) for name in reversed(NAMES)}
    assert there == back


def test_two_generators_of_one_stream_draw_the_same() -> None:
    stream = Streams(1)("batches", 7)
    one, other = stream.generator(), stream.generator()
    interleaved = [(one.random(), other.random()) for _ in range(5)]
    assert all(a == b for a, b in interleaved)


@given(st.integers(0, 2**63), st.integers(0, 10**9))
def test_a_generator_is_philox_with_the_key_of_its_stream(seed: int, index: int) -> None:
    stream = Streams(seed)("batches", index)
    plain = np.random.Generator(np.random.Philox(key=stream.key))
    assert stream.generator().random(6).tolist() == plain.random(6).tolist()


def test_different_names_draw_differently() -> None:
    draws = [tuple(first(Streams(seed)(*name))) for seed in (1, 2) for name in NAMES]
    assert len(set(draws)) == len(draws)


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.text("ab1/", max_size=5), st.integers(0, 99), st.integers(0, 99)), unique=True
    )
)
def test_different_streams_have_different_texts(names: list[tuple[int, str, int, int]]) -> None:
    texts = [Stream(*name).text for name in names]
    assert len(set(texts)) == len(texts)


def test_index_and_use_are_not_the_same() -> None:
    assert first(Streams(1)("batches", 2, 3)) != first(Streams(1)("batches", 3, 2))
    assert first(Streams(1)("batches", 1, 23)) != first(Streams(1)("batches", 12, 3))


def test_index_and_use_are_zero_when_left_out() -> None:
    assert Streams(5)("selection") == Stream(seed=5, purpose="selection", index=0, use=0)


def test_neighbouring_streams_are_uncorrelated() -> None:
    # 20 streams of 4,000 numbers: each of the 190 correlations has standard error 1 / sqrt(4000) = 0.016. The largest
    # exceeds 4.5 of them with probability 0.0013; streams that share one number in ten would reach 6.
    draws = np.array([Streams(1)("batches", index).generator().standard_normal(4_000) for index in range(20)])
    off_diagonal = [abs(np.corrcoef(draws)[pair]) for pair in itertools.combinations(range(20), 2)]
    assert max(off_diagonal) < 4.5 / np.sqrt(4_000)


@pytest.mark.parametrize(
    ("name", "raw", "uniform"),
    [
        (("batches", 0, 0), [12223913824434330980, 12485163384894787828, 3556149235205937635], 0.6626596962363646),
        (("network/loss", 3, 0), [3209063399437205929, 4933892856247581431, 2012488451456873757], 0.17396367546567681),
    ],
)
def test_the_first_draws_are_the_same_on_every_machine_and_in_every_release(
    name: tuple[str, int, int], raw: list[int], uniform: float
) -> None:
    stream = Streams(1)(*name)
    assert stream.generator().bit_generator.random_raw(3).tolist() == raw
    assert stream.generator().random() == uniform  # the upper 53 bits of the first raw draw
    assert uniform == (raw[0] >> 11) / 2**53
