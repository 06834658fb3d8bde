"""Recordings at loads, and of bearings, that nobody trains on; and the ends of recordings in place of tests."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cwru_recordings import raw
from pydantic import ValidationError
from small_worlds import scenario

from fedsim.data.cwru import Cwru
from fedsim.data.raw_dataset import Clients
from fedsim.data.reading.cwru import FILES, read_packed
from fedsim.errors import UserError
from fedsim.experiment.validate import validate


def told(x: np.ndarray) -> list[int]:
    """The numbers of the recordings, below 50, that windows are of."""
    return np.unique((x * 4096).round().astype(int) // 600).tolist()


def test_recordings_at_an_unseen_load_are_tests_and_all_others_are_trained_on_to_their_end(packed):
    """106 alone is at 1 hp. Recordings of 500, 410, 430, 400 and 400 measurements have 15 + 12 + 13 + 12 + 12 windows
    of 32; 106 has 12."""
    made = raw(packed(), test_loads=[1])
    assert told(made.x[made.test]) == [106 % 50]
    assert told(made.x[~made.test]) == sorted(number % 50 for number in (97, 105, 118, 144, 3001))
    assert (np.count_nonzero(made.test), np.count_nonzero(~made.test)) == (12, 64)
    assert made.remarks == (
        "normal bearings were recorded only at 0 hp, of 2 loads",
        "the 1 recordings at 1 hp are the tests; 5 others are trained on",
        "tests have no samples of normal, ball, outer race: results do not tell how well that is recognised",
    )


def test_faults_of_an_unseen_size_are_tests(packed):
    made = raw(packed(), test_sizes_mil=[28], clients="recording")
    assert (told(made.x[made.test]), np.count_nonzero(made.test)) == ([3001 % 50], 12)
    assert set(made.owner[made.test]) == {5}
    assert made.remarks[1] == "the 1 recordings with faults of 28 mil are the tests; 5 others are trained on"


def test_unseen_loads_and_sizes_together_leave_out_what_is_unseen_in_one_respect_only(packed):
    """With 3001 at 1 hp too, it is the test; 106 has that load and another size, and 105 another load."""
    made = raw(packed(load_hp=np.array([0, 0, 1, 0, 0, 1], np.int8)), test_loads=[1], test_sizes_mil=[28])
    assert told(made.x[made.test]) == [1]
    assert told(made.x[~made.test]) == [5, 18, 44, 47]
    assert made.remarks[1:3] == (
        "the 1 recordings at 1 hp with faults of 28 mil are the tests; 4 others are trained on",
        "1 recordings were left out: of such a load or of such a size, and not of both",
    )


def test_recordings_that_are_tests_are_nobodys_and_loads_have_their_own(packed, streams):
    """Whole recordings test everybody; where a client is a load, those at its load are its own."""
    options = {"path": str(packed()), "window": 32, "stride": 32}
    recordings = Cwru(**options, clients="recording", test_sizes_mil=(28,)).load(Clients(5), streams(1))
    assert (len(recordings.test_ids), [len(ids) for ids in recordings.client_test_ids]) == (12, [0] * 5)
    loads = Cwru(**options, test_sizes_mil=(28,)).load(Clients(2), streams(1))
    assert (len(loads.test_ids), [len(ids) for ids in loads.client_test_ids]) == (12, [12, 0])
    with pytest.raises(UserError, match="natural has 1 owners of samples, and 2 clients are wanted"):
        Cwru(**options, test_loads=(1,)).load(Clients(2), streams(1))


def test_the_end_of_each_recordings_training_stretch_takes_the_place_of_tests(packed, streams):
    """Windows of 32, 16 apart, overlap with one neighbour: of 19 in 320 measurements the last 4 are tested, and 14
    trained on. What is trained on, tested and held back for the last run has no measurement in common."""
    options = {"path": str(packed()), "window": 32, "stride": 16, "clients": "recording", "normalise": "none"}
    last = Cwru(**options).load(Clients(6), streams(1))
    choosing = Cwru(**options, validation_fraction=0.2).load(Clients(6), streams(1))
    assert (choosing.client_samples[4], len(choosing.client_test_ids[4]), last.client_samples[4]) == (14, 4, 19)
    for client in range(6):
        trained, tested = (choosing.x[ids[client]] for ids in (choosing.train_ids, choosing.client_test_ids))
        assert trained.max() < tested.min()
        assert tested.max() < last.x[last.client_test_ids[client]].min()
        assert tested[-1].max() == last.x[last.train_ids[client]].max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_loads": [2]}, "test_loads: no recording is of 2 hp; there are 0 and 1 hp"),
        ({"test_sizes_mil": [14]}, "test_sizes_mil: no recording is of 14 mil; there are 7 and 28 mil"),
        ({"test_loads": [0, 1]}, r"test_loads=\[0, 1\] leaves no recording to train on; name fewer"),
        (
            {"test_loads": [1], "test_sizes_mil": [28]},
            r"test_sizes_mil=\[28\] leaves no recording to test on; name oth",
        ),
        (
            {"test_loads": [0]},
            r"test_loads=\[0\] makes tests of the class 'normal', which nobody trains on then; name others, or set",
        ),
        ({"test_loads": [0], "normal": "drop"}, r"makes tests of the class 'ball', which nobody .* then; name others$"),
    ],
)
def test_unseen_loads_and_sizes_that_leave_nothing_to_learn_or_to_test_are_refused(packed, options, message):
    with pytest.raises(UserError, match=message):
        raw(packed(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"test_loads": [3], "test_tail": 0.2},
            "test_tail=0.2 is of recordings that are trained on, and with test_loads",
        ),
        (
            {"test_sizes_mil": [14], "test_fraction": 0.2},
            "test_fraction=0.2 is of .* and with test_sizes_mil tests are",
        ),
        ({"test_sizes_mil": [14], "classes": "type_size"}, "with classes type_size these sizes are classes, on which"),
        ({"test_sizes_mil": [0]}, "greater than or equal to 1"),
    ],
)
def test_keys_that_say_other_tests_are_refused_beside_unseen_loads_and_sizes(options, message):
    with pytest.raises(ValidationError, match=message):
        Cwru.model_validate(options)


@pytest.mark.parametrize(
    ("partition", "way_out"), [("natural", "leave data.test_loads out"), ("iid", "set data.client_test_fraction")]
)
def test_clients_that_have_no_tests_of_their_own_are_told_the_key(packed, partition, way_out):
    data = {"name": "cwru", "path": str(packed()), "window": 32, "clients": "recording", "test_loads": [1]}
    changes = {"data": data | {"partition": {"name": partition}}, "evaluate": {"on": ["clients"]}}
    with pytest.raises(UserError, match=f"no client holds test samples; {way_out}"):
        validate(scenario(changes | {"model": {"name": "mlp", "hidden": [2]}}))


@pytest.mark.data
@pytest.mark.parametrize(
    ("options", "clients", "trained", "tested"),
    [
        ({"test_loads": [3]}, 46, [238, 1420, 1418, 2492], [0, 474, 475, 832]),
        ({"test_sizes_mil": [14]}, 49, [238, 1419, 1421, 2850], [0, 475, 472, 474]),
        ({"test_loads": [3], "test_sizes_mil": [14]}, 37, [238, 1064, 1064, 2137], [0, 119, 118, 119]),
    ],
)
def test_published_recordings_of_unseen_loads_and_bearings(streams, data_folder, options, clients, trained, tested):
    """Told by the names of the recordings, which hold numbers of the source: of each load and size as it says."""
    settings = Cwru.model_validate({**options, "clients": "recording"})
    made, data = settings.raw(Clients(1), streams(1)), settings.load(Clients(clients), streams(1))
    assert np.bincount(data.y[np.concatenate(data.train_ids)], minlength=4).tolist() == trained
    assert np.bincount(data.y[data.test_ids], minlength=4).tolist() == tested
    of_test = {made.owner_names[owner] for owner in made.owner[data.test_ids]}
    unseen = {"test_loads": 2, "test_sizes_mil": 1}
    for recording in read_packed(data_folder / "cwru" / "cwru_12k_de.npz", "drive_end"):
        facts = FILES[int(re.search(r"(\d+)\.mat", recording.name)[1])]
        assert (recording.name in of_test) == all(facts[unseen[key]] in values for key, values in options.items())
    tests = {row.tobytes() for row in data.x[data.test_ids]}
    assert not tests & {row.tobytes() for ids in data.train_ids for row in data.x[ids]}
