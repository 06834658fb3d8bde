"""Bearing vibration: packed and in MATLAB files; windows that never leak."""

from __future__ import annotations

import re
import shutil
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
import scipy.io
from pydantic import ValidationError
from small_worlds import scenario

from fedsim.data.cwru import Cwru
from fedsim.data.raw_dataset import Clients
from fedsim.data.reading import windows
from fedsim.data.reading.cwru import FILES, read_mat_files, read_packed
from fedsim.data.vibration_features import envelope_spectra, normalised_rows
from fedsim.errors import UserError
from fedsim.experiment.validate import validate

RECORDINGS = (  # number, samples; 105 and 106 are of the inner race, 118 of the ball, 3001 of 28 mil
    (97, 500),
    (105, 410),
    (106, 400),
    (118, 430),
    (144, 400),
    (3001, 400),
)


def counts(number: int, samples: int) -> np.ndarray:
    """What the converter gave: each value tells its recording and its place."""
    return (number % 50 * 600 + np.arange(samples)).astype(np.int16)


def arrays() -> dict[str, np.ndarray]:
    facts = [FILES[number] for number, _ in RECORDINGS]
    clips = [counts(*recording) for recording in RECORDINGS]
    fan = [clip if number < 3000 else clip[:0] for (number, _), clip in zip(RECORDINGS, clips, strict=True)]
    return {
        "mat_file": np.array([f"12k_{number}.mat" for number, _ in RECORDINGS]),
        "fault": np.array([fault for fault, _, _ in facts]),
        "size_mil": np.array([size for _, size, _ in facts], np.int16),
        "load_hp": np.array([load for _, _, load in facts], np.int8),
        "de": np.concatenate(clips),
        "de_off": np.cumsum([0, *map(len, clips)]),
        "de_scale": np.full(len(clips), 2.0**-12),
        "fe": np.concatenate(fan),
        "fe_off": np.cumsum([0, *map(len, fan)]),
        "fe_scale": np.array([2.0**-12 if len(clip) else np.nan for clip in fan]),
    }


@pytest.fixture
def packed(tmp_path):
    """A function that writes the packed form, with changes."""

    def written(**changes):
        np.savez_compressed(tmp_path / "cwru.npz", **{**arrays(), **changes})
        return tmp_path / "cwru.npz"

    return written


@pytest.fixture
def folder(tmp_path):
    """MATLAB files under both kinds of names; one holds another's signal too, as 99.mat of the source does."""
    place = tmp_path / "mat"
    place.mkdir()
    for number, samples in RECORDINGS:
        signal = counts(number, samples)[:, None] * 2.0**-12
        variables = {f"X{number:03d}_DE_time": signal, f"X{number:03d}RPM": np.array([[1797]])}
        if number < 3000:
            variables[f"X{number:03d}_FE_time"] = signal
        if number == 106:
            variables["X105_DE_time"] = 0 * signal
        name = f"{number}.mat" if number < 110 else f"12k_Drive_End_X_0_{number}.mat"
        scipy.io.savemat(place / name, variables, do_compression=number == 144)
    (place / "readme.txt").write_text("bearings")
    return place


def raw(path, **options):
    options = {"window": 32, "stride": 32, "normalise": "none", **options}
    return Cwru(path=str(path), **options).raw(Clients(2), np.random.default_rng)


def test_the_packed_form_and_matlab_files_say_the_same(packed, folder):
    one, files = raw(packed()), raw(folder)
    for name in ("x", "y", "owner", "test"):
        assert np.array_equal(getattr(one, name), getattr(files, name))
    assert one.class_names == files.class_names == ("normal", "ball", "inner race", "outer race")
    assert one.owner_names == files.owner_names == ("0 hp", "1 hp")


def test_windows_hold_the_measurements_in_g(packed):
    made = raw(packed())
    assert (made.x.shape[1:], made.x.dtype) == ((1, 32), np.float32)
    assert np.array_equal(made.x[1, 0] * 4096, counts(97, 500)[32:64])
    assert made.sample_bytes == 2 * 32 + 1
    scaled = raw(packed(de_scale=2.0 ** -np.arange(12.0, 12.0 + len(RECORDINGS))), clients="recording")
    assert np.array_equal(scaled.x[scaled.owner == 1][0, 0] * 2**13, counts(105, 410)[:32])


@pytest.mark.parametrize("stride", [5, 32, 50])
@pytest.mark.parametrize("test_tail", [0.1, 0.2, 0.5])
def test_no_measurement_is_in_a_training_and_in_a_test_window(packed, stride, test_tail):
    """Every value tells its recording and its place, so that a leak is a value in both."""
    made = raw(packed(), stride=stride, test_tail=test_tail, clients="recording")
    train, test = made.x[~made.test], made.x[made.test]
    assert not set(train.ravel()) & set(test.ravel())
    for recording in range(len(RECORDINGS)):
        of_it = made.owner == recording
        assert made.x[of_it & made.test].min() > made.x[of_it & ~made.test].max()


def test_the_tail_of_each_recording_is_tested(packed):
    """400 measurements: 320 make 10 windows of 32 for training, 80 make 2 for tests."""
    made = raw(packed(), clients="recording")
    for recording, (_, samples) in enumerate(RECORDINGS):
        of_it = made.owner == recording
        train = round(samples * 0.8)
        assert np.count_nonzero(of_it & ~made.test) == train // 32
        assert np.count_nonzero(of_it & made.test) == (samples - train) // 32


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


def test_samples_have_mean_0_and_deviation_1_unless_they_are_constant(packed):
    changed = arrays()["de"]
    changed[:500] = 7
    x = raw(packed(de=changed), normalise="window").x[:, 0]
    normal = 400 // 32 + 100 // 32
    assert (x[:normal] == 0).all()
    assert x[normal:].mean(axis=1) == pytest.approx(0, abs=1e-6)
    assert x[normal:].std(axis=1) == pytest.approx(1, rel=1e-5)


def test_ten_classes_tell_the_sizes_and_leave_out_28_mil(packed):
    made = raw(packed(), classes="type_size")
    assert len(made.class_names) == made.classes == 10
    assert [made.class_names[label] for label in np.unique(made.y)] == [
        "normal",
        "ball 0.007 in",
        "inner race 0.007 in",
        "outer race 0.007 in",
    ]
    assert made.remarks[0].startswith("1 of 6 recordings were left out")


def test_normal_bearings_are_dropped_with_their_class(packed):
    assert raw(packed()).sound_class == 0
    made = raw(packed(), normal="drop")
    assert made.sound_class is None
    assert made.class_names == ("ball", "inner race", "outer race")
    assert set(made.y) == {0, 1, 2}
    assert made.remarks == (
        "1 of 6 recordings were left out: without the sensor drive_end, or of no class that is asked for",
    )


def test_a_file_with_another_ones_signal_alone_is_read(packed, folder):
    before = raw(folder).x
    signal = counts(105, 410)[:, None] * 2.0**-12
    scipy.io.savemat(folder / "105.mat", {"X105RPM": np.array([[1797]]), "X999_DE_time": signal})
    assert np.array_equal(raw(folder).x, before)


def test_a_recording_without_the_sensor_is_left_out_with_a_remark(packed, folder):
    for source in (packed(), folder):
        made = raw(source, sensor="fan_end", clients="recording")
        assert made.owner.max() == 4
        assert made.remarks[0].startswith("1 of 6 recordings were left out: without the sensor fan_end")


def test_normal_bearings_of_one_load_are_remarked(packed):
    assert raw(packed()).remarks == ("normal bearings were recorded only at 0 hp, of 2 loads",)


def test_loads_are_the_clients(packed, streams):
    data = Cwru(path=str(packed()), window=32, stride=32).load(Clients(2), streams(1))
    assert data.client_samples.tolist() == [12 + 10 + 10 + 10 + 10, 10]
    assert (data.sample_shape, len(data.test_ids)) == ((1, 32), 3 + 2 + 2 + 2 + 2 + 2)


def test_files_of_other_experiments_are_left_out_with_a_remark(folder):
    scipy.io.savemat(folder / "109.mat", {"X109_DE_time": np.zeros((40, 1))})
    scipy.io.savemat(folder / "notes.mat", {"a": np.zeros((40, 1))})
    assert raw(folder).remarks[0].startswith("2 .mat files are neither normal nor of drive-end faults at 12 kHz")


def test_what_was_read_is_kept_and_options_count(packed, cache_folder):
    assert np.array_equal(raw(packed()).x, raw(packed()).x)
    assert len(list(cache_folder.iterdir())) == 1
    for number, options in enumerate(({"stride": 16}, {"test_loads": [1]}, {"test_sizes_mil": [28]}), start=2):
        raw(packed(), **options)
        assert len(list(cache_folder.iterdir())) == number


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fault": np.array(["X"] * 6)}, "recording 0 .*has fault 'X'"),
        ({"size_mil": np.full(6, -1, np.int16)}, "size_mil=-1"),
        ({"de_scale": np.full(6, np.nan)}, r"de_scale\[0\]=nan must be above 0"),
        ({"de_scale": np.full(6, np.inf)}, r"de_scale\[0\]=inf must be above 0"),
        ({"de_scale": np.full(5, 1.0)}, "de_scale has 5"),
        ({"de_off": np.arange(7)}, "de_off must rise from 0 to 2540"),
        ({"de_off": np.array([0, 500, 400, 900, 1000, 2000, 2540])}, "de_off must rise"),
        ({"de": np.zeros(3, np.float32)}, "'de' holds float32"),
        ({"mat_file": np.array([None] * 6, object)}, "holds Python objects, which are never opened"),
    ],
)
def test_a_packed_file_that_is_not_as_it_should_be_is_refused(packed, cache_folder, changes, message):
    path = packed(**changes)
    with pytest.raises(UserError, match=message) as caught:
        raw(path)
    assert str(caught.value).startswith(str(path))
    assert not list(cache_folder.iterdir())


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X105_DE_time": np.full((40, 1), np.nan)}, "X105_DE_time must hold numbers, at most 1e6"),
        ({"X105_DE_time": np.full((40, 1), np.inf)}, "X105_DE_time must hold numbers"),
        ({"X105_DE_time": np.zeros((40, 2))}, r"X105_DE_time is double of shape \(40, 2\), and one column"),
        ({"X105_DE_time": np.zeros((0, 1))}, r"of shape \(0, 1\)"),
        ({"X105_DE_time": np.array([{"a": 1}], object)}, "X105_DE_time is cell"),
        ({"X105_DE_time": "words"}, "X105_DE_time is char"),
        ({"signal": np.zeros((40, 1))}, "has no signal 'X105_DE_time'; its variables are 'signal'"),
        ({"X1_DE_time": np.zeros((4, 1)), "X2_DE_time": np.zeros((4, 1))}, "none of them is 'X105_DE_time'"),
    ],
)
def test_a_matlab_file_that_is_not_as_it_should_be_is_refused(folder, cache_folder, variables, message):
    scipy.io.savemat(folder / "105.mat", variables)
    with pytest.raises(UserError, match=message) as caught:
        raw(folder)
    assert str(caught.value).startswith(str(folder / "105.mat"))
    assert not list(cache_folder.iterdir())


@pytest.mark.parametrize("number", [105, 144])
def test_whatever_bytes_are_damaged_a_matlab_file_is_read_or_refused(folder, number):
    [path] = folder.glob(f"*{number}.mat")
    plain, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for other in folder.glob("*.mat"):
        if other != path:
            other.unlink()
    for trial in range(200):
        content = bytearray(plain if trial % 2 else plain[: rng.integers(0, len(plain))])
        for place in rng.integers(0, max(min(len(content), 400), 1), 3):
            if content:
                content[place] = rng.integers(256)
        path.write_bytes(bytes(content))
        try:
            raw(folder)
        except UserError as error:
            refused += 1
            assert str(path) in str(error) or "has no recording" in str(error)
    assert refused > 100


def variable(name: bytes, shape: tuple[int, ...], says: int, numbers: bytes, kind: int = 6, whole: int = 0) -> bytes:
    """A MATLAB variable whose numbers are to take as many bytes as it *says*, and the *whole* of it others."""

    def element(of: int, data: bytes) -> bytes:
        return struct.pack("<II", of, len(data)) + data + bytes(-len(data) % 8)

    body = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack(f"<{len(shape)}i", *shape))
    body += element(1, name) + struct.pack("<II", 9, says) + numbers
    return struct.pack("<II", 14, whole or len(body)) + body


def shrunk(*parts: bytes) -> bytes:
    """A compressed variable."""
    packer = zlib.compressobj(9)
    content = b"".join([packer.compress(part) for part in parts] + [packer.flush()])
    return struct.pack("<II", 15, len(content)) + content


MATLAB = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
OWN = b"X105_DE_time"
ZEROS = bytes(1_000_000)
HOSTILE = {
    "64 MB for 100 numbers": shrunk(variable(OWN, (100, 1), 64_000_000, b""), *[ZEROS] * 64),
    "a name of 64 MB": shrunk(
        struct.pack("<II", 14, 65_000_000)
        + struct.pack("<IIII", 6, 8, 6, 0)
        + struct.pack("<IIii", 5, 8, 10, 1)
        + struct.pack("<II", 1, 64_000_000),
        *[ZEROS] * 64,
    ),
    "64 MB of another one's numbers": shrunk(variable(b"other", (8_000_000, 1), 64_000_000, b""), *[ZEROS] * 64),
    "4 GB of numbers that are not there": variable(OWN, (100, 1), 4_000_000_000, bytes(800)),
    "a variable of 4 GB that is not there": variable(OWN, (100, 1), 800, bytes(800), whole=4_000_000_000),
    "a hundred thousand variables": variable(b"other", (1, 1), 8, bytes(8)) * 100_000,
    "one name twice": variable(OWN, (1, 1), 8, bytes(8)) + variable(OWN, (2, 1), 64_000_000, bytes(64_000_000)),
    "a long name": variable(b"o" * 4000, (1, 1), 8, bytes(8)),
    "a deep cell": variable(OWN, (1, 1), 8, bytes(8), kind=1),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_matlab_file_takes_little_memory(tmp_path, what):
    """Nothing is unpacked beyond what the shape of the signal says, and nothing that is only declared is believed."""
    (tmp_path / "105.mat").write_bytes(MATLAB + HOSTILE[what])
    tracemalloc.start()
    try:
        if what == "one name twice":
            assert len(read_mat_files(tmp_path, "drive_end")[0][0].signal) == 1
        else:
            with pytest.raises(UserError, match="105.mat: ") as caught:
                read_mat_files(tmp_path, "drive_end")
            assert len(str(caught.value)) < 600
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_matlab_files_in_both_orders_of_bytes_are_read(tmp_path):
    numbers = np.array([1.0, -2.0, 0.5])
    (tmp_path / "105.mat").write_bytes(MATLAB + shrunk(variable(OWN, (3, 1), 24, numbers.tobytes())))
    big = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 3, 1)
    big += (
        struct.pack(">II", 1, 12)
        + b"X106_DE_time"
        + bytes(4)
        + struct.pack(">II", 9, 24)
        + numbers.astype(">f8").tobytes()
    )
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "106.mat").write_bytes(header + struct.pack(">II", 14, len(big)) + big)
    for recording in read_mat_files(tmp_path, "drive_end")[0]:
        assert recording.signal.tolist() == numbers.tolist()


def test_a_file_of_another_version_and_an_empty_folder_are_refused(folder, tmp_path):
    (folder / "105.mat").write_bytes(b"MATLAB 7.3 MAT-file" + bytes(200))
    with pytest.raises(UserError, match="is no MATLAB file of version 5"):
        raw(folder)
    (folder / "105.mat").write_bytes(b"\x80\x04]q\x00.")  # a pickle
    with pytest.raises(UserError, match="is no MATLAB file of version 5"):
        raw(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"has no recording of a drive-end fault .* as 105\.mat does"):
        raw(tmp_path / "empty")


def test_two_files_of_one_number_and_two_packed_ones_are_refused(folder):
    (folder / "copy_105.mat").write_bytes((folder / "105.mat").read_bytes())
    with pytest.raises(UserError, match=r"105\.mat and copy_105\.mat have one number; keep one"):
        raw(folder)
    for name in ("a.npz", "b.npz"):
        (folder / name).write_bytes(b"")
    with pytest.raises(UserError, match=r"has 2 \.npz files; name one in path"):
        raw(folder)


def test_the_bound_of_memory_counts_every_window(monkeypatch):
    """Records of 9, 10 and 13 values have 0, 1 and 2 windows of 10, 3 apart: 3 windows of 10 numbers of 4 bytes."""
    monkeypatch.setattr(windows, "MOST_BYTES", 120)
    windows.require_memory([9, 10, 13], 10, 3)
    monkeypatch.setattr(windows, "MOST_BYTES", 119)
    with pytest.raises(UserError, match="3 windows of 10 would take"):
        windows.require_memory([9, 10, 13], 10, 3)


def test_windows_that_do_not_fit_recordings_or_memory_are_refused(packed):
    with pytest.raises(UserError, match="window=401: recordings have at most 400 measurements to train on"):
        raw(packed(), window=401)
    long = np.zeros(10**7, np.int16)
    path = packed(de=long, de_off=np.array([0, 1, 2, 3, 4, 5, len(long)]))
    with pytest.raises(UserError, match=r"stride=1: \d+ windows of 1024 would take 41 GB, and 4 GB is the most"):
        raw(path, window=1024, stride=1)


@pytest.mark.parametrize("options", [{"window": 8}, {"stride": 0}, {"test_tail": 0.0}, {"test_tail": 1.0}])
def test_a_key_outside_its_range_is_refused(options):
    with pytest.raises(ValidationError):
        Cwru(**options)


@pytest.mark.data
def test_the_published_recordings_have_their_published_numbers(streams):
    """Each load has 7 recordings of the outer race, 4 of the ball, 4 of the inner race; a normal one at 0 hp only."""
    data = Cwru(normalise="none", test_tail=0.2).load(Clients(4), streams(1))
    assert (data.classes, data.sample_shape) == (4, (1, 1024))
    assert np.bincount(data.y).tolist() == [237, 1881, 1884, 3302]
    assert data.client_samples.tolist() == [1612, 1421, 1420, 1423]
    root_mean_square = [float(np.sqrt(np.mean(data.x[data.y == label] ** 2))) for label in range(4)]
    assert root_mean_square[0] == pytest.approx(0.074, abs=0.002)
    assert root_mean_square[1] > 1.5 * root_mean_square[0]


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


@pytest.mark.data
def test_the_numbers_of_the_files_are_those_of_the_source(data_folder):
    """The packed file names each recording as the source does: fault, size, load and number."""
    recordings = read_packed(data_folder / "cwru" / "cwru_12k_de.npz", "drive_end")
    assert len(recordings) == 61
    for recording in recordings:
        number = int(re.search(r"(\d+)\.mat", recording.name)[1])
        assert FILES[number] == (recording.fault, recording.size_mil, recording.load_hp)
    assert len(FILES) == 61 + 3  # normal bearings at three other loads


@pytest.mark.data
def test_an_original_file_holds_what_was_packed(tmp_path, data_folder):
    source = data_folder / "cwru"
    shutil.copy(source / "12k_Drive_End_IR007_0_105.mat", tmp_path)
    for sensor in ("drive_end", "fan_end"):
        [[original], others] = read_mat_files(tmp_path, sensor)
        packed = next(r for r in read_packed(source / "cwru_12k_de.npz", sensor) if r.name.endswith("_105.mat"))
        assert (others, original.fault, original.size_mil, original.load_hp) == (0, "IR", 7, 0)
        assert original.signal == pytest.approx(packed.signal, abs=1e-6)
        assert len(original.signal) == 121_265


def test_spectra_of_envelopes_take_the_place_of_measurements(packed):
    path = packed()
    plain = raw(path, normalise="none")
    spectra = raw(path, normalise="none", features="envelope_spectrum")
    assert np.array_equal(spectra.y, plain.y)
    expected = envelope_spectra(plain.x[:, 0], 12_000.0)
    assert spectra.x[:, 0] == pytest.approx(expected, rel=1e-5)
    assert spectra.sample_bytes == 2 * expected.shape[1] + 1
    normalised = raw(path, normalise="window", features="envelope_spectrum").x[:, 0]
    assert normalised == pytest.approx(normalised_rows(expected), abs=1e-5)
