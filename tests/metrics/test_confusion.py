"""Formulas from finished counts: by hand, and against scikit-learn."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from fedsim.metrics.chosen import ChosenMetrics, chosen_column, chosen_columns
from fedsim.metrics.confusion import (
    counts_of,
    false_alarms,
    macro_f1,
    missed_faults,
    recall,
)
from fedsim.metrics.tables import confusion_table

BEARINGS = np.array([[40, 8, 2], [5, 20, 5], [0, 10, 10]])
"""50 sound ones, 30 with faulty balls and 20 with faulty races; a column is what they were taken for."""


def test_by_hand() -> None:
    assert recall(BEARINGS).tolist() == [0.8, 20 / 30, 0.5]
    assert false_alarms(BEARINGS, sound=0) == 10 / 50
    assert missed_faults(BEARINGS, sound=0) == 5 / 50, "taken for another fault is not missed"
    assert macro_f1(BEARINGS) == pytest.approx((80 / 95 + 40 / 68 + 20 / 37) / 3)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, n)] * 2), min_size=1, max_size=40)))
def test_scikit_learn_comes_to_the_same(pairs: list[tuple[int, int]]) -> None:
    """Also of classes that are only in the truth, only predicted, or in neither: there are 8."""
    y, predicted = zip(*pairs, strict=True)
    counts = metrics.confusion_matrix(y, predicted, labels=range(8))
    rows, columns = np.nonzero(counts)
    triples = [int(number) for at in zip(rows, columns, counts[rows, columns], strict=True) for number in at]
    assert (counts_of(triples, 8) == counts).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of recall without samples
        assert macro_f1(counts) == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
        of_class = metrics.recall_score(y, predicted, labels=range(8), average=None)
    known = np.isin(range(8), y)
    assert recall(counts)[known].tolist() == pytest.approx(of_class[known].tolist())
    assert np.isnan(recall(counts)[~known]).all(), "no samples, so nothing is known"
    sound = [label for label in y if label == 0]
    taken_for_sound = [label for label, made in pairs if label != 0 and made == 0]
    alarms = sum(1 for label, made in pairs if label == 0 and made != 0)
    assert false_alarms(counts, 0) == pytest.approx(alarms / len(sound) if sound else math.nan, nan_ok=True)
    faulty = len(y) - len(sound)
    missed = len(taken_for_sound) / faulty if faulty else math.nan
    assert missed_faults(counts, 0) == pytest.approx(missed, nan_ok=True)
    if sound:
        assert false_alarms(counts, 0) == pytest.approx(1 - recall(counts)[0])


# -- columns ----------------------------------------------------------------------------------------------------------

TRIPLES = [0, 0, 40, 0, 1, 8, 0, 2, 2, 1, 0, 5, 1, 1, 20, 1, 2, 5, 2, 1, 10, 2, 2, 10]


def test_columns_of_chosen_metrics_stand_in_the_order_of_the_choice() -> None:
    chosen = ChosenMetrics(("missed_faults", "recall", "false_alarms", "macro_f1"), ("normal", "ball", "race"), 0)
    found = chosen.of({"accuracy": 0.7, "confusion": TRIPLES})
    assert found == {
        "missed_faults": 0.1,
        **{"recall_normal": 0.8, "recall_ball": 20 / 30, "recall_race": 0.5},
        "false_alarms": 0.2,
        "macro_f1": macro_f1(BEARINGS),
    }
    assert list(found) == chosen.columns
    for nothing in ({}, {"accuracy": None, "confusion": None}):
        assert list(chosen.of(nothing)) == chosen.columns and all(map(math.isnan, chosen.of(nothing).values()))


def test_errors_and_scores_are_taken_as_they_are() -> None:
    chosen = ChosenMetrics(("phm08", "rmse_cycles"))
    assert chosen.of({"rmse": 0.2, "rmse_cycles": 25.0, "phm08": math.inf}) == {"phm08": math.inf, "rmse_cycles": 25.0}
    assert math.isnan(chosen.of({})["phm08"])
    assert ChosenMetrics().of({"rmse": 0.2}) == {}


@pytest.mark.parametrize(
    ("name", "metric", "test_set", "class_name", "unit"),
    [
        ("macro_f1", "macro_f1", "", None, None),
        ("phm08_unseen", "phm08", "unseen", None, None),
        ("recall_inner race_own", "recall_inner race", "own", "inner race", None),
        ("recall_own", "recall_own", "", "own", None),
        ("recall_rmse_cycles", "recall_rmse_cycles", "", "rmse_cycles", None),
        ("rmse_cycles", "rmse_cycles", "", None, "cycles"),
        ("rmse_mm_clients", "rmse_mm", "clients", None, "mm"),
        ("newcomers_rmse_cycles", "newcomers_rmse_cycles", "", None, "cycles"),
    ],
)
def test_a_column_is_known_by_its_name(
    name: str, metric: str, test_set: str, class_name: str | None, unit: str | None
) -> None:
    column = chosen_column(name)
    assert column == (metric, test_set)
    assert (column.class_name, column.unit) == (class_name, unit)


def test_columns_of_other_things_are_of_no_chosen_metric() -> None:
    plain = ["rmse", "rmse_own", "rmse_std", "rmse_mean_own", "accuracy", "loss", "recall", "newcomers_rmse", "rmse_A"]
    assert chosen_columns(plain) == []
    bare = {"rmse_cycles": "rmse", "rmse_mm_own": "rmse_own", "newcomers_rmse_cycles": "newcomers_rmse"}
    assert {name: chosen_column(name).without_unit for name in bare} == bare


def test_a_table_of_counts_has_names_and_numbers_of_classes() -> None:
    table = confusion_table(
        {"global": {"confusion": [0, 1, 3, 1, 1, 2]}, "own": {"accuracy": None, "confusion": None}}, ("sound", "faulty")
    )
    assert table.to_dict("list") == {
        "test_set": ["global", "global"],
        **{"true": ["sound", "faulty"], "predicted": ["faulty", "faulty"]},
        **{"true_index": [0, 1], "predicted_index": [1, 1], "count": [3, 2]},
    }
