"""Metrics that a scenario asks for: those that fit its data are shown, others refused before anything is written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_learner import data

from fedsim.data.dataset import FederatedDataset
from fedsim.data.declared import Declared
from fedsim.data.raw_dataset import Clients
from fedsim.data.target import Target
from fedsim.errors import Misfit
from fedsim.metrics.chosen import ChosenMetrics
from fedsim.protocols.evaluate_settings import EvaluateSettings
from fedsim.scenario.chosen_metrics import chosen_metrics, counted_classes

CLASSES = data()
NAMED = replace(CLASSES, class_names=("normal", "inner race", "outer race"), sound_class=0)
VALUES = replace(CLASSES, classes=None, y=np.zeros(len(CLASSES.y), np.float32))
LIFE = replace(VALUES, target=Target("cycles", 125.0))
MANY = replace(CLASSES, classes=257)


def chosen(dataset: FederatedDataset, **keys: object) -> ChosenMetrics:
    return chosen_metrics(EvaluateSettings.model_validate(keys), dataset)


def test_what_fits_is_shown() -> None:
    asked = ["recall", "false_alarms"]
    assert chosen(NAMED, metrics=asked) == ChosenMetrics(("recall", "false_alarms"), NAMED.class_names, 0)
    assert chosen(NAMED, metrics=asked, sound_class="inner race").sound_class == 1, "a scenario's word goes first"
    assert chosen(CLASSES, metrics=asked, sound_class="2") == ChosenMetrics(tuple(asked), ("0", "1", "2"), 2)
    assert chosen(LIFE, metrics=["phm08", "rmse_cycles"]).columns == ["phm08", "rmse_cycles"]


def test_an_error_in_its_unit_is_shown_without_being_asked_for() -> None:
    assert chosen(LIFE).columns == ["rmse_cycles"] and chosen(LIFE, metrics=[]).columns == []
    assert chosen(replace(VALUES, target=Target("mm"))).columns == ["rmse_mm"]
    for dataset in (VALUES, NAMED, MANY):
        assert chosen(dataset).columns == []
    declared = Declared(samples_per_client=3).load(Clients(2), lambda _: np.random.default_rng(1))
    assert chosen(declared, metrics=["recall"]) == ChosenMetrics(), "there are only numbers of samples"


@pytest.mark.parametrize(
    ("dataset", "keys", "message"),
    [
        (LIFE, {"metrics": ["recall"]}, "'recall' is of classes, .* choose rmse_cycles or phm08, or leave it out"),
        (VALUES, {"metrics": ["macro_f1"]}, "'macro_f1' is of classes, and .*to predict; leave it out"),
        (VALUES, {"metrics": ["rmse_cycles"]}, "needs the unit of what is predicted, and .* says none; give data.unit"),
        (VALUES, {"metrics": ["phm08"]}, "needs the unit"),
        (LIFE, {"metrics": ["rmse_hours"]}, "'rmse_hours' does not fit the unit .* which is cycles; choose rmse_cyc"),
        (replace(VALUES, target=Target("mm")), {"metrics": ["phm08"]}, "which is mm; choose rmse_mm, or leave it out"),
        (NAMED, {"metrics": ["phm08"]}, "has classes; choose from recall, macro_f1, false_alarms, missed_faults, or"),
        (NAMED, {"metrics": ["rmse_cycles"]}, "'rmse_cycles' is of numbers to predict"),
        (MANY, {"metrics": ["recall"]}, "at most 256 classes, and data set 'random' has 257; leave it out"),
        (CLASSES, {"metrics": ["missed_faults"]}, "says none; name it with evaluate.sound_class, .*'0', '1', '2'"),
    ],
)
def test_what_does_not_fit_is_refused(dataset: FederatedDataset, keys: dict[str, object], message: str) -> None:
    with pytest.raises(Misfit, match=message) as caught:
        chosen(dataset, **keys)
    assert caught.value.key == ("evaluate", "metrics")


def test_a_sound_class_is_one_of_the_classes() -> None:
    with pytest.raises(Misfit, match="'outer rase' is no class .*did you mean 'outer race'") as caught:
        chosen(NAMED, metrics=["false_alarms"], sound_class="outer rase")
    assert caught.value.key == ("evaluate", "sound_class")
    for keys in ({"sound_class": "normal"}, {"sound_class": "normal", "metrics": ["recall"]}):
        with pytest.raises(ValueError, match="'normal' is for false_alarms and missed_faults, and .* names neither"):
            EvaluateSettings.model_validate(keys)


def test_no_two_columns_have_one_name() -> None:
    twins = replace(CLASSES, class_names=("a", "b", "a"))
    endings = replace(CLASSES, class_names=("a", "a_own", "b"))
    for dataset, on in ((twins, ["global"]), (endings, ["global", "own"])):
        with pytest.raises(Misfit, match="several columns would be called 'recall_a"):
            chosen(dataset, metrics=["recall"], on=on)
    assert chosen(endings, metrics=["recall"], on=["own"]).columns == ["recall_a", "recall_a_own", "recall_b"]
    assert chosen(twins, metrics=["macro_f1"]).columns == ["macro_f1"]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (["macro_f2"], "no metric is called 'macro_f2'; did you mean 'macro_f1'"),
        (["rmse"], "no metric is called 'rmse'"),
        (["rmse_"], "no metric is called"),
        (["accuracy"], r"\(recall, macro_f1, false_alarms, missed_faults, phm08, or rmse_ and a unit\)"),
        (["recall", "recall"], "must name each metric once"),
    ],
)
def test_a_metric_that_there_is_not_is_refused(metrics: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EvaluateSettings.model_validate({"metrics": metrics})


def test_classes_are_called_so_that_a_table_can_be_read_again() -> None:
    odd = replace(CLASSES, class_names=("", "two\nlines", "c"))
    assert counted_classes(odd) == ("0", "two\\nlines", "c")
    assert counted_classes(CLASSES) == ("0", "1", "2")
    assert counted_classes(MANY) == counted_classes(LIFE) == ()
