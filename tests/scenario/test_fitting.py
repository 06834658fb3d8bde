"""Whether data and model fit each other is said in one message before anything runs."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_worlds import scenario

from fedsim.errors import UserError
from fedsim.experiment import validate as validation
from fedsim.experiment.validate import seeds_tried, validate
from fedsim.scenario.fitting import check_samples

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
    assert "set data.encoding to one_hot or ngrams" in message


def test_a_model_for_characters_takes_no_more_than_it_knows() -> None:
    letters = SimpleNamespace(vocabulary=72, name="letters")
    with pytest.raises(UserError, match="'char_cnn' takes ids below 71, and data set 'letters' gives ids below 72"):
        check_samples(scenario({"model": {"name": "char_cnn"}}).model, letters)


def test_a_model_for_characters_does_not_take_numbers(values: dict[str, Any]) -> None:
    message = said(DIGITS | {"data": values, "model": {"name": "char_cnn"}})
    assert "'char_cnn' takes ids, such as characters, and data set 'arrays' gives numbers" in message
    assert message.endswith("choose softmax or mlp, or for series conv1d or gru")


def test_ngrams_are_numbers_for_models_of_any_shape(texts: dict[str, Any]) -> None:
    texts |= {"encoding": "ngrams", "buckets": 1014}
    validate(scenario(DIGITS | {"data": texts}))
    message = said(DIGITS | {"data": texts, "model": {"name": "char_cnn"}})
    assert "data set 'ag_news' gives numbers; choose softmax or mlp" in message
    assert message.endswith("or gru, or set data.encoding to ids")


def test_a_model_for_characters_takes_as_many_as_there_are(texts: dict[str, Any]) -> None:
    validate(scenario(DIGITS | {"data": texts, "model": {"name": "char_cnn", "depth": 3}}))


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize(
    ("test_set", "key"),
    [("clients", "data.client_test_fraction"), ("own", "data.client_test_fraction"), ("unseen", "data.unseen_clients")],
)
def test_a_test_set_that_is_not_there_is_named_with_the_key_that_makes_it(test_set: str, key: str, learn: bool) -> None:
    other = {"data.client_test_fraction": 0.2} if test_set == "unseen" else {"data.unseen_clients": 2}
    message = said(DIGITS | other | {"evaluate": {"on": [test_set]}, "learn": learn})
    assert message.startswith(f"evaluate.on: {test_set!r} is named, but ")
    assert message.endswith(f"; set {key}")


def test_clients_own_tests_are_parts_of_the_global_set_where_the_partition_is_natural(tmp_path: Path) -> None:
    """The source's test samples are nobody's, as those of C-MAPSS: a share of each client's own is the way out."""
    path = tmp_path / "engines.npz"
    engine = np.repeat(np.arange(4), 5)
    np.savez(path, x=np.zeros((20, 3), np.float32), y=np.arange(20) % 2, client=engine, test=engine > 1)
    data = {"name": "arrays", "path": str(path), "partition": {"name": "natural"}}
    asked = DIGITS | {"data": data, "evaluate": {"on": ["clients"]}}
    assert said(asked).endswith("no client holds test samples; set data.test_fraction")
    validate(scenario(asked | {"data.test_fraction": 0.2}))


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


@pytest.mark.parametrize(
    ("brightest", "scale", "offset", "range_said"),
    [(255, 1.0, 0.0, "0 to 255"), (255, 2 / 255, -1.0, "-1 to 1"), (2, 1.0, 0.0, "0 to 2")],
)
def test_images_that_augmentation_would_saturate_are_refused(
    tmp_path: Path, brightest: int, scale: float, offset: float, range_said: str
) -> None:
    message = said(DIGITS | {"data": grey_images(tmp_path, brightest, scale=scale, offset=offset)})
    assert message.startswith("data.stream.augmentation: ")
    assert f"values from 0 to 1, and those of this data set run from {range_said}; " in message


@pytest.mark.parametrize(("scale", "offset"), [(1 / 255, 0.0), (-1 / 255, 1.0)])
def test_white_may_miss_one_by_a_rounding_error(tmp_path: Path, scale: float, offset: float) -> None:
    validate(scenario(DIGITS | {"data": grey_images(tmp_path, 255, scale=scale, offset=offset)}))


def grey_images(folder: Path, brightest: int, **encoding: float) -> dict[str, Any]:
    """Augmented images of bytes from 0 to the *brightest*, with classes."""
    path = folder / "images.npz"
    x = np.zeros((20, 1, 2, 2), np.uint8)
    x[::2] = brightest
    np.savez(path, x=x, y=np.arange(20) % 2)
    return {"name": "arrays", "path": str(path), "stream": STREAM | {"augmentation": {}}} | encoding


@pytest.mark.parametrize("shape", [(5,), (2, 5)])
def test_series_and_characters_are_not_augmented(texts: dict[str, Any], tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.savez(tmp_path / "series.npz", x=np.ones((20, *shape), np.float32), y=np.arange(20) % 2)
    augmented = {"stream": STREAM | {"augmentation": {}}}
    series = {"name": "arrays", "path": str(tmp_path / "series.npz")}
    for changes in ({"data": series | augmented}, {"data": texts | augmented, "model": {"name": "vdcnn"}}):
        assert "augmentation is for images (channels, height, width)" in said(DIGITS | changes)


def test_what_has_no_classes_does_not_drift_between_them(values: dict[str, Any]) -> None:
    drift = {"name": "gradual", "begin": 1.0, "end": 2.0}
    message = said(DIGITS | {"data": values | {"stream": STREAM | {"drift": drift}}})
    assert "drift is between groups of classes, and this data set has none" in message


@pytest.mark.parametrize("changes", [{}, {"data.stream": STREAM | {"augmentation": {}}}, {"data.unseen_clients": 2}])
def test_what_fits_is_let_through(changes: dict[str, Any]) -> None:
    validate(scenario(DIGITS | changes))


def test_every_phase_of_a_drift_needs_a_class_of_its_own() -> None:
    drift = {"name": "recurring", "phases": 11, "length": 1.0}
    assert "11 phases share 10 classes" in said(DIGITS | {"data.stream": STREAM | {"drift": drift}})


def test_the_classes_of_a_phase_are_the_data_sets() -> None:
    drift = {"name": "sudden", "at": [2.0], "groups": [["0", "1"], ["1", "7", "11"]]}
    message = said(DIGITS | {"data.stream": STREAM | {"drift": drift}})
    assert "data.stream.drift.groups[1]: the data set has no class '11'" in message
    assert "(classes: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)" in message
    twice = drift | {"groups": [["0", "0"], ["1"]]}
    assert "groups[0]: names a class twice" in said(DIGITS | {"data.stream": STREAM | {"drift": twice}})
    right = drift | {"groups": [["0", "1"], ["1", "7"]]}
    validate(scenario(DIGITS | {"data.stream": STREAM | {"drift": right}}))


def test_a_network_study_may_take_the_sizes_of_texts(texts: dict[str, Any]) -> None:
    validate(scenario({"data": texts, "model": {"name": "declared", "parameters": 1000.0}}))


LENGTH, SQUARE = (1024,), (28, 28)
NEW_AXIS, LAST_AXIS = "save x[:, None], as the channel axis is missing", "save np.moveaxis(x, -1, 1), as channels come"
SHAPES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "a series for conv1d": ("conv1d", LENGTH, f"series (channels, length) ... samples of shape (1024,); {NEW_AXIS}"),
    "a series for gru": (
        "gru",
        LENGTH,
        f"series (channels, time), the data set has samples of shape (1024,); {NEW_AXIS}",
    ),
    "channels behind a series": (
        "conv1d",
        (2048, 2),
        f"(channels, length) ... samples of shape (2048, 2); {LAST_AXIS}",
    ),
    "images for small_cnn": (
        "small_cnn",
        SQUARE,
        f"(channels, height, width) ... samples of shape (28, 28); {NEW_AXIS}",
    ),
    "images for resnet": ("resnet", SQUARE, f"(channels, height, width) ... samples of shape (28, 28); {NEW_AXIS}"),
    "images for vgg": ("vgg", (32, 32), f"(channels, height, width) ... samples of shape (32, 32); {NEW_AXIS}"),
    "colours behind images": ("resnet", (28, 28, 3), f"(channels, height, width) ... (28, 28, 3); {LAST_AXIS}"),
    "images for hfedms_cnn": (
        "hfedms_cnn",
        SQUARE,
        f"samples of shape (1, 28, 28), the data set has (28, 28); {NEW_AXIS}",
    ),
    "grey behind images": ("leaf_cnn", (28, 28, 1), f"shape (1, 28, 28), the data set has (28, 28, 1); {LAST_AXIS}"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_samples_without_channels_first_are_told_how_to_get_them(case: str, tmp_path: Path) -> None:
    model, shape, expected = SHAPES[case]
    np.savez(tmp_path / "x.npz", x=np.ones((20, *shape), np.float32), y=np.arange(20) % 2)
    message = said(DIGITS | {"data": {"name": "arrays", "path": str(tmp_path / "x.npz")}, "model": {"name": model}})
    assert re.search(re.escape(expected).replace(re.escape("..."), ".*"), message), message


@pytest.mark.parametrize(("model", "shape"), [("small_cnn", (5,)), ("hfedms_cnn", (14, 30)), ("small_cnn", (1, 3, 28))])
def test_where_channels_would_not_help_nothing_is_said_of_them(
    model: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((20, *shape), np.float32), y=np.arange(20) % 2)
    message = said(DIGITS | {"data": {"name": "arrays", "path": str(tmp_path / "x.npz")}, "model": {"name": model}})
    assert "save " not in message and "choose softmax or mlp, which take any shape" in message


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds whose data are made, as they are made."""
    seen: list[int] = []
    gather = validation.gather_materials

    def gathered(settings: Any, seed: int) -> Any:
        seen.append(seed)
        return gather(settings, seed)

    monkeypatch.setattr(validation, "gather_materials", gathered)
    return seen


MANY_SEEDS = {**DIGITS, "topology": {"name": "star", "devices": 4}, "seeds": list(range(8))}


@pytest.mark.parametrize(
    ("key", "limit", "number"),
    [("MOST_SEEDS", 6, 6), ("MOST_CLIENTS", 12, 3), ("MOST_CLIENTS", 1, 1), ("MOST_BYTES", 1, 1)],
)
def test_of_many_seeds_as_many_are_tried_as_take_seconds(
    tried: list[int], monkeypatch: pytest.MonkeyPatch, key: str, limit: int, number: int
) -> None:
    monkeypatch.setattr(validation, key, limit)
    many = scenario(MANY_SEEDS)
    assert seeds_tried(many, validate(many, every_seed=False)) == len(tried) == number


def test_a_run_tries_all_seeds_however_many_there_are(tried: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MOST_SEEDS", 1)
    validate(scenario(MANY_SEEDS))
    assert tried == MANY_SEEDS["seeds"]
