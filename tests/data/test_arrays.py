"""A user's own arrays: kept as they are, or refused with the place of what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.data.arrays import Arrays
from fedsim.data.raw_dataset import Clients
from fedsim.data.target import Target
from fedsim.errors import UserError

X = np.arange(24, dtype=np.float32).reshape(6, 2, 2)
Y = np.array([0, 1, 2, 0, 1, 2])


@pytest.fixture
def raw(tmp_path, streams):
    def made(options=None, **arrays):
        np.savez(tmp_path / "own.npz", **{"x": X, "y": Y, **arrays})
        return Arrays(path=str(tmp_path / "own.npz"), **(options or {})).raw(Clients(2), streams(1))

    return made


@pytest.mark.parametrize(
    ("x", "stored"),
    [
        (X.astype(np.uint8), np.uint8),
        (X.astype(np.int16), np.int16),
        (X.astype(">i2"), np.int16),
        (X, np.float32),
        (X.astype(np.float64), np.float32),
        (X.astype(">f4"), np.float32),
        (np.asfortranarray(X), np.float32),
        (X > 5, np.uint8),
    ],
)
def test_samples_are_what_they_were(raw, x, stored):
    made = raw(x=x)
    assert (made.x.dtype, made.x.shape, made.classes) == (stored, (6, 2, 2), 3)
    assert np.array_equal(made.encoding.decode(made.x), x.astype(np.float32))
    assert made.x.flags.c_contiguous
    assert made.sample_bytes == 4 * np.dtype(stored).itemsize + 1


def test_grey_levels_may_be_scaled(raw):
    made = raw({"scale": 1 / 255, "offset": -0.5}, x=np.full((6, 1), 255, np.uint8))
    assert np.allclose(made.encoding.decode(made.x), 0.5)


def test_clients_are_numbers_or_names(raw):
    by_number = raw(client=np.array([10, 2, 10, 2, -1, -1]))
    assert (by_number.owner.tolist(), by_number.owner_names) == ([2, 1, 2, 1, 0, 0], ("-1", "2", "10"))
    by_name = raw(client=np.array(["press", "saw", "press", "saw", "drill", "drill"]))
    assert (by_name.owner.tolist(), by_name.owner_names) == ([1, 2, 1, 2, 0, 0], ("drill", "press", "saw"))
    assert raw().owner is None


def test_tests_are_those_of_the_file(raw, tmp_path, streams):
    test = np.array([0, 0, 1, 0, 0, 1])
    assert np.array_equal(raw(test=test).test, test == 1)
    assert np.array_equal(raw(test=test == 1).test, test == 1)
    data = Arrays(path=str(tmp_path / "own.npz")).load(Clients(2), streams(1))
    assert data.test_ids.tolist() == [2, 5]
    half = Arrays(path=str(tmp_path / "own.npz"), test_fraction=0.5).load(Clients(2), streams(1))
    assert len(half.test_ids) == 3


def test_clients_of_the_file_keep_their_samples(raw, tmp_path, streams):
    raw(client=np.array([1, 0, 1, 0, 1, 0]), test=np.array([0, 0, 0, 0, 1, 1]))
    natural = Arrays(path=str(tmp_path / "own.npz"), partition={"name": "natural"})
    data = natural.load(Clients(2), streams(1))
    assert [ids.tolist() for ids in data.train_ids] == [[1, 3], [0, 2]]
    assert [ids.tolist() for ids in data.client_test_ids] == [[5], [4]]


def test_values_are_learned_as_numbers(raw):
    made = raw({"target": "value"}, y=np.linspace(-1, 1, 6))
    assert (made.classes, made.y.dtype, made.sample_bytes) == (None, np.float32, 4 * 4 + 4)
    assert raw({"target": "value"}).y.tolist() == Y.tolist()
    assert made.target is None and raw({"target": "value", "unit": "cycles"}).target == Target("cycles", 1.0)


def test_more_classes_than_labels_may_be_declared(raw):
    assert raw({"classes": 7}).classes == 7
    assert [raw({"classes": number}).sample_bytes - 4 * 4 for number in (256, 257)] == [1, 2]


def test_labels_that_do_not_begin_at_0_are_remarked(raw):
    assert raw().remarks == raw({"target": "value"}, y=Y + 1).remarks == ()
    (remark,) = raw(y=Y + 1).remarks
    assert remark.startswith("the smallest label is 1: labels count from 0")


@pytest.mark.parametrize(
    ("options", "arrays", "message"),
    [
        ({}, {"x": np.where(X == 7, np.nan, X)}, r"x\[1, 1, 1\]=nan must be a finite number"),
        ({}, {"x": np.where(X == 7, -np.inf, X)}, r"x\[1, 1, 1\]=-inf must be a finite number"),
        ({}, {"x": np.where(X == 7, 1e39, X.astype(float))}, r"x\[1, 1, 1\]=1e\+39 must be .* at most 3.4e\+38"),
        ({"target": "value"}, {"y": np.array([0, 1, 2, np.nan, 0, 0])}, r"y\[3\]=nan must be a finite number"),
        ({}, {"y": np.array([0, 1, 2, -1, 0, 0])}, r"y\[3\]=-1, and labels must be from 0 to 999999"),
        ({"classes": 2}, {}, r"y\[2\]=2, and labels must be from 0 to 1"),
        ({}, {"y": np.array([0, 1, 2, 2**62, 0, 0])}, r"y\[3\]=4611686018427387904, and labels"),
        ({}, {"y": np.zeros(6, int)}, "all of y is 0; at least 2 classes are needed"),
        ({}, {"y": Y.astype(float)}, "y holds float64, and classes are whole numbers; .* set target: value"),
        ({}, {"y": Y[:, None]}, r"'y' has shape \(6, 1\), and must hold .* with 1 dimension"),
        ({}, {"y": Y[:5]}, "x has 6 rows and y has 5"),
        ({}, {"x": X[:0], "y": Y[:0]}, "x is empty; at least one sample is needed"),
        ({}, {"x": X[:, 0, 0]}, r"x has shape \(6,\); it must be \(samples, ...\)"),
        ({}, {"x": X[:, :, :0]}, r"x has shape \(6, 2, 0\)"),
        ({}, {"x": X.astype(np.int64)}, "'x' holds int64 .* must hold true or false or uint8 or int16 or float32"),
        ({}, {"x": X.astype(np.complex64)}, "'x' holds complex64"),
        ({}, {"client": np.zeros(6)}, "'client' holds float64 .* must hold whole numbers or text, with 1 dimension"),
        ({}, {"client": np.zeros(5, int)}, "x has 6 rows and client has 5"),
        ({}, {"test": np.array([0, 0, 0, 0, 0, 2])}, r"test\[5\]=2 must be 0 \(train\) or 1 \(test\)"),
        ({}, {"test": np.zeros(6, bool)}, "all of test is False; some samples must be 0"),
        ({"scale": 1e18}, {"x": np.full((6, 2), 1e38)}, "larger than 3.4e"),
    ],
)
def test_arrays_that_cannot_be_learned_are_refused(raw, tmp_path, options, arrays, message):
    with pytest.raises(UserError, match=f"^{tmp_path}/own.npz: .*{message}"):
        raw(options, **arrays)


def test_a_misspelt_array_is_named(tmp_path, streams):
    np.savez(tmp_path / "own.npz", x=X, yy=Y)
    with pytest.raises(UserError, match=r"no array is called 'y', .*; did you mean 'yy'\?; there are 'x', 'yy'"):
        Arrays(path=str(tmp_path / "own.npz")).raw(Clients(2), streams(1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"path": "a", "classes": 1},
        {"path": "a", "target": "value", "classes": 3},
        {"path": "a", "scale": "1"},
        {"path": "a", "unit": "mm"},
    ],
)
def test_keys_outside_their_range_are_refused(options):
    with pytest.raises(ValidationError):
        Arrays.model_validate(options)
