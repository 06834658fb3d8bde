"""Semantic compression and compensation by hand, on round numbers; and rows of semantics in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from fedsim.kernel.streams import Stream
from fedsim.learning.batches import batches
from fedsim.learning.executors.semantics import joined, rows_of, shuffled
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.operations.compensate import Compensate
from fedsim.learning.operations.extract import FEATURES, LABELS, SAMPLES, SEMANTICS
from fedsim.learning.operations.keep import Keep
from fedsim.learning.operations.operation import Inputs, Slot
from fedsim.learning.training import TrainingSettings


def rows(features: Sequence[Any], labels: Sequence[int], samples: Sequence[float] | None = None) -> TensorDict:
    raw = None if samples is None else torch.tensor(samples)
    return rows_of(torch.tensor(features, dtype=torch.float32), torch.tensor(labels), raw)


# -- compensation, by hand ---------------------------------------------------------------------------------------------

REMEMBERED = rows([[1, 1], [2, 0], [5, 5]], [0, 1, 2], [0.1, 0.2, 0.3])
BEFORE = rows([[1, 0], [1, 0], [0, 3]], [0, 0, 1])
NOW = rows([[2, 0], [4, 2], [2, 1]], [0, 0, 1])
"""Class 0 has drifted by (2, 1) in the mean, class 1 by (2, -2), all by (2, 0); of class 2 nothing is known."""


@pytest.mark.parametrize(
    ("by", "absent", "expected"),
    [
        ("per_class", "stays", [[3, 2], [4, -2], [5, 5]]),
        ("per_class", "mean", [[3, 2], [4, -2], [7, 5]]),
        ("mean", "stays", [[3, 1], [4, 0], [7, 5]]),
        ("mean", "mean", [[3, 1], [4, 0], [7, 5]]),
    ],
)
def test_rows_are_moved_by_the_drift_of_their_class(by: str, absent: str, expected: list[list[float]]) -> None:
    before = {name: values.clone() for name, values in REMEMBERED.items()}
    made = compensated(REMEMBERED, NOW, BEFORE, by, absent)
    assert made[FEATURES].tolist() == expected
    assert made[LABELS].tolist() == [0, 1, 2]
    assert torch.equal(made[SAMPLES], REMEMBERED[SAMPLES])
    assert all(torch.equal(REMEMBERED[name], values) for name, values in before.items()), "a stored value has changed"


def test_all_rows_of_a_class_move_alike_whatever_the_shape_of_features() -> None:
    remembered = rows([[[[0.0]], [[1.0]]], [[[2.0]], [[3.0]]]], [4, 4])
    now, before = rows([[[[3.0]], [[5.0]]]], [4]), rows([[[[1.0]], [[1.0]]]], [4])
    made = compensated(remembered, now, before, "per_class", "stays")
    assert made[FEATURES].flatten().tolist() == [2, 5, 4, 7]


def test_an_extractor_that_has_not_changed_moves_nothing() -> None:
    for by in ("per_class", "mean"):
        made = compensated(REMEMBERED, NOW, NOW, by, "mean")
        assert torch.equal(made[FEATURES], REMEMBERED[FEATURES])


# -- storage, by hand --------------------------------------------------------------------------------------------------


def chosen(
    candidates: TensorDict, capacity: int, quotas: list[int] | None = None, stream: Stream | None = None
) -> list[Any]:
    return kept(candidates, capacity, quotas, stream)[FEATURES].flatten().tolist()


THREE_AND_TWO = rows([[6], [10], [3], [14], [0]], [0, 1, 0, 1, 0])
"""Class 0 has its mean at 3, in distances 3, 0, 3; class 1 at 12, in distances 2 and 2. The newest comes first."""


@pytest.mark.parametrize(("capacity", "expected"), [(1, [3]), (2, [3, 10]), (3, [3, 10, 14]), (4, [3, 10, 14, 6])])
def test_the_nearest_rows_are_kept_and_of_equal_ones_the_newest(capacity: int, expected: list[float]) -> None:
    assert chosen(THREE_AND_TWO, capacity) == expected
    tiny = {**THREE_AND_TWO, FEATURES: THREE_AND_TWO[FEATURES] * 2.0**-40}
    assert chosen(tiny, capacity) == [number * 2.0**-40 for number in expected], "whatever the unit"


def test_the_only_row_of_a_class_is_its_mean_and_stays() -> None:
    assert chosen(rows([[1], [3], [100]], [0, 0, 1]), 1) == [100]


def test_distance_is_euclidean_and_to_the_mean_of_the_rows_own_class() -> None:
    """(3, 4) is 5 from its mean at (0, 0), the farthest of all: with the sum of sides (7, 6) it would not be."""
    candidates = rows([[3, 4], [-3, -4], [0, 5.5], [0, -5.5]], [0, 0, 1, 1])
    made = kept(candidates, 2)
    assert made[FEATURES].tolist() == [[3, 4], [-3, -4]]
    assert made[LABELS].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_rows_of_a_class_tie_whatever_their_rounding(dtype: torch.dtype) -> None:
    """Each is half their distance from their mean, in every arithmetic; so the newer one is kept."""
    for seed in range(50):
        features = torch.randn(2, 7, dtype=dtype, generator=torch.Generator().manual_seed(seed))
        made = kept(rows_of(features, torch.tensor([3, 3]), None), 1)
        assert torch.equal(made[FEATURES][0], features[0])


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [([1, 1], [3, 10]), ([2, 1], [3, 10, 6]), ([3, 0], [3, 6, 0]), ([0, 2], [10, 14]), ([3, 2], [3, 10, 14, 6, 0])],
)
def test_quotas_say_how_many_of_each_class(quotas: list[int], expected: list[float]) -> None:
    assert chosen(THREE_AND_TWO, sum(quotas), quotas) == expected


def test_fewer_rows_than_places_are_all_kept_with_their_labels_and_samples() -> None:
    made = kept(REMEMBERED, 9)
    assert {name: sorted(values.flatten().tolist()) for name, values in made.items()} == {
        name: sorted(values.flatten().tolist()) for name, values in REMEMBERED.items()
    }


def test_a_random_choice_is_of_any_rows_and_of_the_stream() -> None:
    candidates = rows([[number] for number in range(40)], [number % 4 for number in range(40)])
    draws = [chosen(candidates, 10, stream=Stream(1, "semantics/kept", 7, use)) for use in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert all(len(set(draw)) == 10 for draw in draws)
    some = kept(candidates, 7, (1, 2, 0, 4), Stream(1, "semantics/kept"))
    assert np.bincount(some[LABELS].numpy(), minlength=4).tolist() == [1, 2, 0, 4]
    assert (some[FEATURES].flatten() % 4).tolist() == some[LABELS].tolist()


def test_a_random_choice_is_fair() -> None:
    """400 draws of 10 of 20: a row is in 200 +- 10 of them; five standard errors."""
    candidates = rows([[number] for number in range(20)], [0] * 20)
    counts = np.zeros(20)
    for use in range(400):
        counts[np.array(chosen(candidates, 10, stream=Stream(1, "semantics/kept", 0, use)), int)] += 1
    assert np.abs(counts - 200).max() < 50


def compensated(remembered: TensorDict, now: TensorDict, before: TensorDict, by: Any, absent: Any) -> TensorDict:
    given = {"remembered": remembered, "now": now, "before": before}
    moved = Compensate(by, absent).apply(Inputs({Slot(role): some for role, some in given.items()}), None)
    return dict(moved[SEMANTICS])


def kept(
    candidates: TensorDict, number: int, quotas: tuple[int, ...] | None = None, stream: Stream | None = None
) -> TensorDict:
    generator = None if stream is None else stream.generator()
    return dict(Keep(number, quotas).apply(Inputs({Slot("rows"): candidates}), generator)[SEMANTICS])


# -- rows in training --------------------------------------------------------------------------------------------------


def test_rows_are_joined_in_their_order() -> None:
    made = joined([NOW, BEFORE])
    assert made[FEATURES].tolist() == NOW[FEATURES].tolist() + BEFORE[FEATURES].tolist()
    assert made[LABELS].tolist() == [0, 0, 1, 0, 0, 1]


def test_mini_batches_of_rows_are_drawn_as_those_of_samples_are() -> None:
    candidates = rows([[number] for number in range(7)], [number % 3 for number in range(7)])
    stream = Stream(1, "batches", 4, 2)
    found = list(shuffled(candidates, TrainingSettings(learning_rate=0.1, batch_size=3, epochs=2), stream))
    expected = batches(np.arange(7), batch_size=3, epochs=2, rng=stream.generator())
    assert [features.flatten().tolist() for features, _ in found] == [ids.tolist() for ids in expected]
    assert all((features.flatten() % 3).tolist() == labels.tolist() for features, labels in found)
