"""What every federated data set promises, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from fedsim.data import dataset
from fedsim.data.captures import classes_seen
from fedsim.data.class_counts import class_counts, classes_held
from fedsim.data.dataset import FederatedDataset
from fedsim.data.declared import Declared
from fedsim.data.encoding import Affine, Ids
from fedsim.data.raw_dataset import Clients
from fedsim.data.target import Target
from fedsim.errors import UserError
from fedsim.kernel.streams import Streams


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.fixture
def tiny() -> FederatedDataset:
    """Six samples of two numbers in three classes: client 0 trains on two of them, client 1 on one."""
    return FederatedDataset(
        name="tiny",
        classes=3,
        sample_shape=(2,),
        sample_bytes=9.0,
        client_samples=ids(2, 1),
        stored=np.arange(12, dtype=np.float32).reshape(6, 2),
        y=ids(0, 1, 2, 0, 1, 2),
        train_ids=(ids(0, 3), ids(1)),
        test_ids=ids(2),
        client_test_ids=(ids(4), ids()),
    )


def test_class_counts_by_hand(tiny):
    assert class_counts(tiny).tolist() == [[2, 0, 0], [0, 1, 0]]


def test_numbers_are_counted_by_their_levels(tiny):
    """A level begins at its bound: 0.25 and above, 1 and above. Without levels nothing is counted."""
    values = replace(tiny, classes=None, y=np.float32([1.0, 0.2, 0.5, 0.25, 0.7, 0.0]), levels=(0.25, 1.0))
    assert (values.counted_classes, values.class_or_level.tolist()) == (3, [2, 0, 1, 1, 1, 0])
    assert class_counts(values).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert classes_held(values).tolist() == [2, 1]
    assert classes_seen(values, 0, None, Streams(1)).tolist() == [0, 1, 1]
    assert replace(values, levels=()).counted_classes is None


def test_a_number_that_is_a_bound_is_in_the_level_that_begins_there(tiny):
    """Although float32 has no 0.7, and the number next to it is smaller."""
    values = replace(tiny, classes=None, y=np.full(6, 0.7, np.float32), levels=(0.7,))
    assert float(np.float32(0.7)) < 0.7
    assert values.class_or_level.tolist() == [1] * 6


@pytest.mark.parametrize("at_once", [1, 3, 6, 2**22])
def test_classes_of_clients_are_counted_some_clients_at_once(at_once, monkeypatch):
    monkeypatch.setattr("fedsim.data.class_counts.AT_ONCE", at_once)
    y = np.array([0, 0, 2, 1, 1, 0, 1, 2])
    data = FederatedDataset(
        name="three",
        classes=3,
        sample_shape=(1,),
        sample_bytes=1.0,
        client_samples=np.array([3, 2, 3]),
        stored=np.zeros((8, 1), np.float32),
        y=y,
        train_ids=(np.arange(3), np.arange(3, 5), np.arange(5, 8)),
        client_test_ids=(np.empty(0, np.int64),) * 3,
    )
    assert classes_held(data).tolist() == [2, 1, 3]


def test_raw_bytes_by_hand(tiny):
    assert (tiny.raw_bytes(0), tiny.raw_bytes(1)) == (18.0, 9.0)


def test_arrays_are_read_only(tiny):
    tiny = replace(tiny, unseen_test_ids=(ids(5),))
    sets = [tiny.test_ids, *tiny.train_ids, *tiny.client_test_ids, *tiny.unseen_test_ids]
    arrays = [tiny.client_samples, tiny.x, tiny.y, *sets]
    assert not any(array.flags.writeable for array in arrays)
    with pytest.raises(ValueError, match="read-only"):
        tiny.x[0, 0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client_samples": ids(2, 0)}, "at least 1"),
        ({"client_samples": np.array([2.0, 1.0])}, "int64"),
        ({"client_samples": ids(1, 1)}, "lengths of train_ids"),
        ({"sample_bytes": 0.0}, "positive and finite"),
        ({"stored": np.zeros((6, 2))}, "float64"),
        ({"stored": np.zeros((6, 3), np.float32)}, r"\(6, 3\)"),
        ({"stored": np.full((6, 2), np.nan, np.float32)}, "finite"),
        ({"y": ids(0, 1, 2)}, r"y is int64 \(3,\)"),
        ({"y": np.zeros(6, np.int32)}, "int32"),
        ({"y": ids(0, 1, 2, 0, 1, 3)}, "labels run from 0 to 3, not from 0 to 2"),
        ({"classes": None}, r"y is int64 \(6,\), not int64 \(float32 without classes\)"),
        ({"classes": None, "y": np.full(6, np.nan, np.float32)}, "y must be finite"),
        ({"y": None}, "together"),
        ({"class_names": ("a", "b")}, "2 names for 3 classes"),
        ({"sound_class": 3}, "sound_class=3 is none of 3 classes"),
        ({"target": Target("mm")}, "a target is what values are, and here are classes"),
        ({"levels": (1.0,)}, "levels are of values, and here are classes"),
        (
            {"classes": None, "y": np.zeros(6, np.float32), "levels": (2.0, 1.0)},
            r"levels=\(2.0, 1.0\) must be finite, and ascend",
        ),
        ({"encoding": Ids(4), "stored": np.full((6, 2), 4, np.uint8)}, "ids run from 4 to 4, not from 0 to 3"),
        ({"stored": None, "y": None, "classes": None, "sample_shape": None}, "ids need samples"),
        (
            {"stored": None, "y": None, "classes": None, "sample_shape": None, "levels": (1.0,)},
            "levels are of values, and none are given",
        ),
        ({"train_ids": (ids(0, 3), ids(6))}, "ids run from 0 to 6, but there are 6"),
        ({"train_ids": (ids(3, 0), ids(1))}, "ascend"),
        ({"train_ids": (ids(0, 3), ids(3))}, "sample 3 is trained on, and belongs to another set too"),
        ({"test_ids": ids(1)}, "sample 1 is trained on"),
        ({"client_test_ids": (ids(1), ids())}, "sample 1 is trained on"),  # by another client
        ({"unseen_test_ids": (ids(5), ids(2, 3))}, "sample 3 is trained on"),
        ({"client_test_ids": ()}, "one array for each of 2 clients"),
        ({"train_ids": (ids(0, 3), np.array([1.0]))}, "ids must be int64"),
    ],
)
def test_contradictions_are_refused(tiny, change, message):
    with pytest.raises(ValueError, match=message):
        replace(tiny, **change)


def test_test_sets_may_share_samples(tiny):
    """With samples kept by those who made them, the global test set is that of all clients together."""
    shared = replace(tiny, test_ids=ids(2, 4), client_test_ids=(ids(4), ids(2)), unseen_test_ids=(ids(4, 5), ids(5)))
    assert shared.test_ids.tolist() == [2, 4]
    assert [own.tolist() for own in (*shared.client_test_ids, *shared.unseen_test_ids)] == [[4], [2], [4, 5], [5]]


def test_numbers_to_predict_need_no_classes(tiny):
    regression = replace(tiny, classes=None, y=np.linspace(0, 1, 6, dtype=np.float32))
    assert (regression.regression, regression.outputs, tiny.regression, tiny.outputs) == (True, 1, False, 3)


def test_digest_is_the_address_of_what_training_can_see(tiny):
    same = replace(tiny, name="other", sample_bytes=1.0, stored=tiny.x.astype(">f4").astype(np.float32), sound_class=1)
    assert same.digest == tiny.digest

    brighter = tiny.x.copy()
    brighter[5, 1] += 1
    changes = [
        {"stored": brighter},
        {"y": ids(0, 1, 2, 0, 1, 1)},
        {"classes": 4},
        {"sample_shape": (2, 1), "stored": tiny.x[..., None]},
        {"train_ids": (ids(0, 5), ids(1))},
        {"train_ids": (ids(0), ids(1, 3)), "client_samples": ids(1, 2)},
        {"test_ids": ids(5)},
        {"test_ids": ids(2, 5)},
        {"client_test_ids": (ids(), ids(4))},
        {"client_test_ids": (ids(), ids()), "test_ids": ids(2, 4)},
        {"unseen_test_ids": (ids(5),)},
        {"unseen_test_ids": (ids(), ids(5))},
        {"encoding": Affine(scale=2.0)},
        {"classes": None, "y": tiny.y.astype(np.float32)},
    ]
    elsewhere = type("Affine", (Affine,), {"__module__": __name__})()  # which says of itself what Affine says
    assert repr(elsewhere) == repr(tiny.encoding)
    changes.append({"encoding": elsewhere})
    digests = {replace(tiny, **change).digest for change in changes}
    assert len(digests | {tiny.digest}) == len(changes) + 1


def test_declared_data_has_numbers_only():
    data = Declared(samples_per_client=600, sample_bytes=785).load(Clients(4), generator=np.random.default_rng)
    assert (data.clients, data.client_samples.tolist()) == (4, [600] * 4)
    assert data.raw_bytes(2) == 600 * 785
    assert (data.x, data.y, data.classes, data.sample_shape, data.train_ids) == (None, None, None, None, ())
    with pytest.raises(UserError, match="declares numbers only; it has no classes to count"):
        class_counts(data)
    with pytest.raises(UserError, match="no classes to count"):
        classes_held(data)


def test_unknown_sample_size_is_absent_not_zero():
    data = Declared(samples_per_client=600).load(Clients(4), generator=np.random.default_rng)
    assert data.sample_bytes is None
    with pytest.raises(UserError, match=r"give data\.sample_bytes"):
        data.raw_bytes(0)


def test_importing_the_data_modules_loads_no_heavy_library():
    modules = ["fedsim.data", "fedsim.data.digits", "fedsim.data.declared", "fedsim.data.partition.dirichlet"]
    heavy = ("sklearn", "scipy", "torch", "pandas")
    program = f"import sys, {', '.join(modules)}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("place", [0, 5, 11])
def test_samples_are_looked_at_some_at_once(tiny, monkeypatch, place):
    looked_at = []
    isfinite = np.isfinite

    def noted(array):
        looked_at.append(array.size)
        return isfinite(array)

    monkeypatch.setattr(dataset, "AT_ONCE", 4)
    monkeypatch.setattr(np, "isfinite", noted)
    replace(tiny)
    assert looked_at == [4, 4, 4]
    x = tiny.x.copy()
    x.flat[place] = np.nan
    with pytest.raises(ValueError, match="x must be finite"):
        replace(tiny, stored=x)
