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
from cwru_recordings import RECORDINGS, arrays, counts, raw
from pydantic import ValidationError

from fedsim.data.cwru import Cwru
from fedsim.data.raw_dataset import Clients
from fedsim.data.reading import windows
from fedsim.data.reading.cwru import FILES, read_mat_files, read_packed
from fedsim.data.vibration_features import envelope_spectra, normalised_rows
from fedsim.errors import UserError


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
