"""The Free Spoken Digit Dataset, as files and packed."""

from __future__ import annotations

import wave

import numpy as np
import pytest

from fedsim.data.raw_dataset import Clients
from fedsim.data.spoken_digits import SpokenDigits
from fedsim.errors import UserError


def sounds() -> dict[tuple[int, str, int], np.ndarray]:
    """By digit, speaker and index: two digits, two speakers, seven recordings of each."""
    rng = np.random.default_rng(1)
    keys = [(digit, speaker, index) for digit in (3, 7) for speaker in ("jackson", "theo") for index in range(7)]
    return {key: rng.integers(-9000, 9000, 1000 + 100 * key[2]).astype(np.int16) for key in keys}


@pytest.fixture
def recordings(tmp_path):
    folder = tmp_path / "fsdd" / "recordings"
    folder.mkdir(parents=True)
    for (digit, speaker, index), sound in sounds().items():
        with wave.open(str(folder / f"{digit}_{speaker}_{index}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(sound.astype("<i2").tobytes())
    return folder


@pytest.fixture
def packed(tmp_path):
    """A function that writes the packed form, with changes."""

    def written(**changes):
        keys, clips = list(sounds()), list(sounds().values())
        arrays = {
            "audio": np.concatenate(clips),
            "offset": np.cumsum([0, *map(len, clips)]),
            "label": np.array([digit for digit, _, _ in keys], np.uint8),
            "speaker": np.array([speaker for _, speaker, _ in keys]),
            "index": np.array([index for _, _, index in keys], np.uint8),
            "sample_rate": np.array(8000),
        }
        np.savez_compressed(tmp_path / "fsdd.npz", **{**arrays, **changes})
        return tmp_path / "fsdd.npz"

    return written


def raw(path, **options):
    return SpokenDigits(path=str(path), **options).raw(Clients(2), np.random.default_rng)


def test_files_and_the_packed_form_say_the_same(recordings, packed):
    files, one = raw(recordings.parent), raw(packed())
    assert files.x.shape == (28, 1, 40, 98)
    for name in ("x", "y", "owner", "test"):
        assert np.array_equal(getattr(files, name), getattr(one, name))
    assert files.owner_names == one.owner_names == ("jackson", "theo")
    assert files.sample_bytes == 16_001


def test_the_first_five_recordings_of_each_digit_and_speaker_are_tests(packed):
    """The source's rule (its README, "Usage"): 0 to 4 are the test set."""
    assert raw(packed()).test.reshape(4, 7).tolist() == [[True] * 5 + [False] * 2] * 4
    assert raw(packed(), test_recordings=1).test.sum() == 4


def test_every_speaker_is_a_client(packed, streams):
    data = SpokenDigits(path=str(packed())).load(Clients(2), streams(1))
    assert data.client_samples.tolist() == [4, 4]
    assert [len(ids) for ids in data.client_test_ids] == [10, 10]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample_rate": np.array(16_000)}, "sample_rate=16000 must be 8000"),
        ({"label": np.full(28, 10, np.uint8)}, r"label\[0\]=10 must be from 0 to 9"),
        ({"label": np.full(28, -1)}, r"label\[0\]=-1 must be from 0 to 9"),
        ({"label": np.zeros(27, np.uint8)}, "label has 27 rows and speaker has 28|speaker has 28"),
        ({"offset": np.zeros(29, np.int64)}, "offset must rise from 0 to"),
        ({"offset": np.arange(28)}, "offset must rise from 0 to"),
        ({"audio": np.zeros(5, np.int16)}, "offset must rise from 0 to 5"),
        ({"audio": np.zeros(5, np.float64)}, "'audio' holds float64"),
        ({"speaker": np.array([{}] * 28, object)}, "holds Python objects, which are never opened"),
    ],
)
def test_a_packed_file_that_is_not_as_it_should_be_is_refused(packed, cache_folder, changes, message):
    path = packed(**changes)
    with pytest.raises(UserError, match=message) as caught:
        raw(path)
    assert str(caught.value).startswith(str(path))
    assert not list(cache_folder.iterdir())


def test_a_name_that_does_not_say_digit_and_speaker_is_refused(recordings):
    (recordings / "7_jackson_0.wav").rename(recordings / "seven_jackson_0.wav")
    with pytest.raises(UserError, match=r"seven_jackson_0\.wav: the name must be DIGIT_SPEAKER_NUMBER\.wav"):
        raw(recordings)


def test_a_folder_with_no_sound_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"has no \.wav files, and 0 \.npz files where one is needed"):
        raw(tmp_path)


@pytest.mark.data
def test_the_published_set_has_its_published_numbers(streams):
    """3,000 clips, 500 for each of six speakers, 300 of each digit, of 0.14 to 2.28 s (its README and measured)."""
    data = SpokenDigits().load(Clients(6), streams(1))
    assert (data.x.shape, data.classes) == ((3000, 1, 40, 98), 10)
    assert np.bincount(data.y).tolist() == [300] * 10
    assert data.client_samples.tolist() == [450] * 6
    assert [len(ids) for ids in data.client_test_ids] == [50] * 6
    assert len(data.test_ids) == 300
    assert data.remarks[0].startswith("of 3000 clips, 20 are longer than 1 s")
    speech = data.x[:, :, :, :15]  # 0.14 s is the shortest clip
    assert abs(speech.mean()) < 0.5
    assert 0.8 < speech.std() < 1.2


@pytest.mark.data
def test_the_nearest_published_recording_is_mostly_of_the_same_digit(streams):
    """Of the 300 tests, more than eight in ten are told by their nearest neighbour; chance is one in ten."""
    data = SpokenDigits().load(Clients(6), streams(1))
    x = data.x.reshape(3000, -1)
    trained = np.concatenate(data.train_ids)
    distance = (x[trained] ** 2).sum(axis=1) - 2 * x[data.test_ids] @ x[trained].T
    assert (data.y[trained][distance.argmin(axis=1)] == data.y[data.test_ids]).mean() > 0.8
