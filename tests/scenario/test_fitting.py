"""Whether data and model fit each other is said in one message before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_worlds import scenario

from fedsim.errors import UserError
from fedsim.experiment.validate import validate

DIGITS = {"data": {"name": "digits"}, "model": {"name": "softmax"}, "learn": True}
STREAM = {"samples": 5}


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Any]:
    """A table of two news of each topic, as ids of characters."""
    rows = "".join(f'"{topic}","a title","some words {topic}"\n' for topic in (1, 2, 3, 4, 1, 2, 3, 4))
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text(rows, encoding="utf-8")
    return {"name": "ag_news", "path": str(tmp_path), "encoding": "ids"}


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    """Series of numbers, with a number to predict."""
    path = tmp_path / "values.npz"
    rng = np.random.default_rng(1)
    np.savez(path, x=rng.random((20, 1014), np.float32), y=rng.random(20, np.float32))
    return {"name": "arrays", "path": str(path), "target": "value"}


def said(changes: dict[str, Any]) -> str:
    with pytest.raises(UserError) as refusal:
        validate(scenario(changes))
    return str(refusal.value)


def test_a_model_for_numbers_does_not_take_characters(texts: dict[str, Any]) -> None:
    message = said(DIGITS | {"data": texts})
    assert "'softmax' takes numbers, and data set 'ag_news' gives ids below 71, such as characters" in message
    assert "set data.encoding to one_hot" in message


def test_a_model_for_characters_does_not_take_numbers(values: dict[str, Any]) -> None:
    message = said(DIGITS | {"data": values, "model": {"name": "char_cnn"}})
    assert "'char_cnn' takes ids, such as characters, and data set 'arrays' gives numbers" in message


@pytest.mark.parametrize(
    ("test_set", "key"), [("clients", "data.client_test_fraction"), ("unseen", "data.unseen_clients")]
)
def test_a_test_set_that_is_not_there_is_named_with_the_key_that_makes_it(test_set: str, key: str) -> None:
    message = said(DIGITS | {"evaluate": {"on": [test_set]}})
    assert message.startswith(f"evaluate.on: {test_set!r} is named, but ")
    assert message.endswith(f"; set {key}")


@pytest.mark.parametrize("place", ["stop", "protocols"])
def test_numbers_to_predict_have_no_target_accuracy(values: dict[str, Any], place: str) -> None:
    stop = {"target_accuracy": 0.9, "rounds": 3}
    protocol = {"name": "fedavg", "fraction": 1.0}
    change = {"stop": stop} if place == "stop" else {"protocols": [protocol | {"stop": stop}]}
    message = said(DIGITS | {"data": values} | change)
    assert "target_accuracy=0.9 is never reached by a model that predicts numbers (regression)" in message


def test_what_is_no_image_is_not_augmented(values: dict[str, Any]) -> None:
    message = said(DIGITS | {"data": values | {"stream": STREAM | {"augmentation": {}}}})
    assert "augmentation is for images (channels, height, width), and samples are (1014,)" in message


def test_what_has_no_classes_does_not_drift_between_them(values: dict[str, Any]) -> None:
    drift = {"name": "gradual", "begin": 1.0, "end": 2.0}
    message = said(DIGITS | {"data": values | {"stream": STREAM | {"drift": drift}}})
    assert "drift is between groups of classes, and this data set has none" in message


@pytest.mark.parametrize("changes", [{}, {"data.stream": STREAM | {"augmentation": {}}}, {"data.unseen_clients": 2}])
def test_what_fits_is_let_through(changes: dict[str, Any]) -> None:
    validate(scenario(DIGITS | changes))
