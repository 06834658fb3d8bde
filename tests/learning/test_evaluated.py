"""What is counted of a model's predictions, against plain loops; and what comes of counts of several clients."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedsim.data.target import Target
from fedsim.learning.divergence import diverged
from fedsim.learning.executors.evaluated import Scored, confusion, metrics_of, phm08
from fedsim.learning.executors.trainer import Score, scores_from
from fedsim.learning.keyed import described
from fedsim.learning.operations.evaluate import Evaluate, EvaluateOwn
from fedsim.learning.spread import spread, spread_of_own

CYCLES = Target("cycles", 125.0)
LABELS = st.integers(1, 256).flatmap(
    lambda classes: st.tuples(
        st.just(classes), st.lists(st.tuples(*[st.integers(0, classes - 1)] * 2), min_size=1, max_size=60)
    )
)


def scored(y: list[int], predicted: list[int], loss: float = 1.0) -> Scored:
    """The samples of a test set, in batches of 7."""
    true, made = np.array(y), np.array(predicted, np.int32)
    parts = [slice(begin, begin + 7) for begin in range(0, len(y), 7)]
    scores = [Score(loss, int((true[part] == made[part]).sum()), made[part]) for part in parts]
    return Scored(scores, true)


@given(LABELS)
def test_counts_are_those_of_a_plain_loop_and_their_trace_is_the_accuracy(
    drawn: tuple[int, list[tuple[int, int]]],
) -> None:
    classes, pairs = drawn
    y, predicted = (list(labels) for labels in zip(*pairs, strict=True))
    expected = [number for pair, samples in sorted(Counter(pairs).items()) for number in (*pair, samples)]
    found = metrics_of([scored(y, predicted)], classes=classes, target=None, several=False)
    assert found["confusion"] == expected == confusion(np.array(y), np.array(predicted, np.int32), classes)
    right = sum(number for true, label, number in triples(found["confusion"]) if true == label)
    assert found["accuracy"] == right / len(pairs)
    assert all(type(number) is int for number in found["confusion"]), "JSON keeps them"


def triples(counts: list[int]) -> list[tuple[int, int, int]]:
    return list(zip(counts[::3], counts[1::3], counts[2::3], strict=True))


def test_the_counts_of_several_clients_are_those_of_all_their_samples() -> None:
    ours, theirs = scored([0, 1, 2, 2], [0, 2, 2, 0]), scored([2, 0], [2, 0])
    whole = metrics_of([ours, theirs], classes=3, target=None, several=True)
    alone = [metrics_of([one], classes=3, target=None, several=False) for one in (ours, theirs)]
    assert whole["confusion"] == [0, 0, 2, 1, 2, 1, 2, 0, 1, 2, 2, 2]
    assert whole == spread(alone), "counts add up"
    assert spread_of_own(alone)["confusion"] == whole["confusion"]
    assert whole["accuracy"] == pytest.approx(4 / 6)


def test_what_is_not_counted() -> None:
    lost = metrics_of([scored([0, 1], [0, 1], loss=math.inf)], classes=2, target=None, several=False)
    assert diverged(lost) and lost["confusion"] is None and lost["accuracy"] is None
    sound = metrics_of([scored([0, 1], [0, 1])], classes=2, target=None, several=False)
    assert spread([sound, lost])["confusion"] is None
    assert "confusion" not in metrics_of([scored([0], [0])], classes=257, target=None, several=False)
    numbers = Scored([Score(math.inf, 0, np.array([math.nan]))], np.zeros(1, np.float32))
    found = metrics_of([numbers], classes=None, target=CYCLES, several=False)
    assert found == {"loss": math.inf, "rmse": math.inf, "samples": 1, "rmse_cycles": math.inf, "phm08": math.inf}
    assert spread([found])["phm08"] == math.inf


# -- remaining life ---------------------------------------------------------------------------------------------------


def test_the_phm08_score_by_hand() -> None:
    """13 cycles too early cost as much as 10 too late; a right prediction costs nothing."""
    assert phm08(np.array([87.0]), np.array([100.0])) == pytest.approx(math.e - 1, rel=1e-14)
    assert phm08(np.array([110.0]), np.array([100.0])) == pytest.approx(math.e - 1, rel=1e-14)
    assert phm08(np.array([120.0, 100.0, 74.0]), np.full(3, 100.0)) == pytest.approx(2 * (math.e**2 - 1), rel=1e-14)
    assert phm08(np.full(4, 7.5), np.full(4, 7.5)) == 0.0


@pytest.mark.filterwarnings("error")
def test_a_score_that_is_too_large_is_infinite_and_says_so_of_itself() -> None:
    """7,090 cycles too late are still a number; nothing warns, as a remark after the run does."""
    assert phm08(np.array([7090.0]), np.zeros(1)) == pytest.approx(math.exp(709.0), rel=1e-12)
    assert phm08(np.array([7100.0]), np.zeros(1)) == math.inf
    assert phm08(np.full(20, 7095.0), np.zeros(20)) == math.inf
    each = {"loss": 1.0, "rmse": 1.0, "samples": 1, "rmse_cycles": 125.0, "phm08": 1.7e308}
    assert spread([each, each])["phm08"] == math.inf


@given(st.lists(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=9), min_size=1, max_size=5))
def test_errors_of_clients_are_pooled_and_scores_add_up(clients: list[list[tuple[float, float]]]) -> None:
    tests = []
    for pairs in clients:
        y, predicted = (np.array(values, np.float32) for values in zip(*pairs, strict=True))
        squares = float(((predicted.astype(np.float64) - y) ** 2).sum())
        tests.append(Scored([Score(squares, 0, predicted.astype(np.float64))], y))
    found = metrics_of(tests, classes=None, target=CYCLES, several=True)
    late = [125 * (float(p) - float(y)) for test in tests for p, y in zip(test.predicted, test.y, strict=True)]
    rmse = math.sqrt(math.fsum(d * d for d in late) / len(late))
    assert found["rmse_cycles"] == pytest.approx(rmse, rel=1e-9, abs=1e-9)
    assert found["rmse_cycles"] == pytest.approx(125 * found["rmse"], rel=1e-9, abs=1e-9)
    cost = math.fsum(math.exp(-d / 13) - 1 if d < 0 else math.exp(d / 10) - 1 for d in late)
    assert found["phm08"] == pytest.approx(cost, rel=1e-9, abs=1e-9)


def test_evaluations_of_other_targets_have_other_keys() -> None:
    """The numbers differ, though the samples do not."""
    targets = (None, CYCLES, Target("cycles", 130.0), Target("mm", 125.0))
    for kind, more in ((Evaluate, ()), (EvaluateOwn, (1,))):
        described_all = [described(kind("model", "data", "own", *more, target=target)) for target in targets]
        assert len({json.dumps(one) for one in described_all}) == len(targets)


# -- from tensors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_predictions_come_as_they_were_made(dtype: torch.dtype) -> None:
    values = torch.tensor([1 / 3, -2.5e-30, 7.0], dtype=dtype)
    classes = torch.tensor([255, 0])
    tallies = [(torch.tensor(0.1, dtype=dtype), values), (torch.tensor(2.5, dtype=dtype), values[:1])]
    numbers = scores_from(tallies, [np.zeros(3, np.float32), np.zeros(1, np.float32)])
    assert [one.predicted.tolist() for one in numbers] == [values.double().tolist(), values[:1].double().tolist()]
    assert [(one.loss, one.correct) for one in numbers] == [(torch.tensor(0.1, dtype=dtype).item(), 0), (2.5, 0)]
    (labels,) = scores_from([(torch.tensor(0.5), classes)], [np.array([255, 1])])
    assert labels.predicted.tolist() == [255, 0] and labels.correct == 1
    assert scores_from([], []) == []


@pytest.mark.parametrize(
    ("unit", "scale"), [("Cycles", 1.0), ("own", 1.0), ("a_b", 1.0), ("", 1.0), ("cycles", 0.0), ("cycles", math.inf)]
)
def test_a_target_has_a_word_for_its_unit_and_a_scale(unit: str, scale: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        Target(unit, scale)
