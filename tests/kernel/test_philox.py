"""Philox on arrays of counters: numpy's own numbers, and normal ones that plain arithmetic finds too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.kernel.philox import each, normals, philox

WORDS = st.integers(0, 2**64 - 1)
ENDS = (0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1)


def of_numpy(key: int, counter: tuple[int, ...]) -> list[int]:
    """The same block, from the generator that counts up before it draws."""
    number = sum(word << 64 * place for place, word in enumerate(counter))
    return np.random.Philox(key=key, counter=(number - 1) % 2**256).random_raw(4).tolist()


def words(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


@given(
    key=st.integers(0, 2**128 - 1),
    counters=st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=5),
)
def test_a_block_is_numpys_whatever_the_key_and_the_counter(key: int, counters: list[tuple[int, ...]]) -> None:
    blocks = philox(key, *(words(*column) for column in zip(*counters, strict=True)))
    assert blocks.T.tolist() == [of_numpy(key, counter) for counter in counters]


@pytest.mark.parametrize("key", [0, 2**64 - 1, 2**64, 2**128 - 1])
def test_so_it_is_at_the_ends_of_every_word(key: int) -> None:
    grid = np.meshgrid(*[words(*ENDS)] * 4)
    blocks = philox(key, *grid).reshape(4, -1).T
    counters = zip(*(column.ravel().tolist() for column in grid), strict=True)
    assert blocks.tolist() == [of_numpy(key, counter) for counter in counters]


def test_counters_may_be_given_by_their_parts() -> None:
    parts = philox(7, words(1, 2, 3)[:, None], words(10, 20), words(5), words(0))
    assert parts.shape == (4, 3, 2)
    assert parts[:, 2, 1].tolist() == philox(7, words(3), words(20), words(5), words(0)).ravel().tolist()


def test_a_normal_number_is_box_and_mullers_of_its_own_counter() -> None:
    """Number by number, in floats of Python: the same bits."""
    many = normals(99, np.arange(200, dtype=np.uint64), words(4), words(2), words(0))
    for number, drawn in enumerate(many.tolist()):
        first, second = (word >> 11 for word in of_numpy(99, (number, 4, 2, 0))[:2])
        radius = math.sqrt(-2.0 * math.log((first + 1) * 2.0**-53))
        assert drawn == radius * math.cos(2.0 * math.pi * (second * 2.0**-53))


def test_the_rarest_normal_numbers_are_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = np.array([[0, 0, 2**64 - 1], [0, 2**63, 0], [0, 0, 0], [0, 0, 0]], np.uint64)
    monkeypatch.setattr("fedsim.kernel.philox.philox", lambda *_: ends)
    assert normals(0).tolist() == [math.sqrt(106 * math.log(2)), -math.sqrt(106 * math.log(2)), 0.0]


@given(numbers=st.lists(st.floats(0, 1e300)))
def test_a_function_of_each_has_the_bits_that_it_has_alone(numbers: list[float]) -> None:
    assert each(math.log1p, np.array(numbers)).tolist() == list(map(math.log1p, numbers))
