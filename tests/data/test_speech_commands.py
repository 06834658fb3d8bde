"""Speech Commands, in its own layout: words, speakers and lists."""

from __future__ import annotations

import wave

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.data.raw_dataset import Clients
from fedsim.data.speech_commands import COMMANDS, SpeechCommands
from fedsim.errors import UserError

SPEAKERS = ("0a7c2a8d", "1b2c3d4e", "9f00aa11")


def write_wav(path, frequency_hz, rate_hz=16_000, samples=16_000):
    sound = np.round(8000 * np.sin(2 * np.pi * frequency_hz * np.arange(samples) / rate_hz)).astype("<i2")
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(sound.tobytes())


@pytest.fixture
def folder(tmp_path):
    """Ten commands and another word by three speakers; the last one's clips are tests, one is for validation."""
    place = tmp_path / "speech"
    for number, word in enumerate([*COMMANDS, "bed"]):
        for speaker in SPEAKERS:
            write_wav(place / word / f"{speaker}_nohash_0.wav", 200 + 100 * number)
    write_wav(place / "yes" / f"{SPEAKERS[0]}_nohash_1.wav", 150, samples=12_000)
    (place / "go" / "._0a7c2a8d_nohash_0.wav").write_bytes(b"left behind by an archive")
    write_wav(place / "_background_noise_" / "pink_noise.wav", 50, samples=50_000)
    (place / "LICENSE").write_text("free")
    lines = [f"{word}/{SPEAKERS[2]}_nohash_0.wav" for word in [*COMMANDS, "bed"]]
    (place / "testing_list.txt").write_text("\n".join(lines) + "\n")
    (place / "validation_list.txt").write_text(f"yes/{SPEAKERS[0]}_nohash_1.wav\n")
    return place


def raw(folder, **options):
    return SpeechCommands(path=str(folder), **options).raw(Clients(2), np.random.default_rng)


def test_the_ten_commands_are_the_classes_and_speakers_the_owners(folder):
    made = raw(folder)
    assert (made.x.shape, made.x.dtype, made.classes) == ((31, 1, 40, 98), np.float32, 10)
    assert made.class_names == COMMANDS
    assert np.bincount(made.y).tolist() == [4] + [3] * 9
    assert made.owner_names == SPEAKERS
    assert np.bincount(made.owner).tolist() == [11, 10, 10]
    assert made.sample_bytes == 2 * 16_000 + 1
    assert made.remarks == (
        "of 31 clips, 0 are longer than 1 s and were cut, and 1 are shorter and were filled with silence",
    )


def test_the_lists_say_what_is_tested(folder):
    assert np.array_equal(raw(folder).test, raw(folder).owner == 2)
    assert (len(raw(folder, validation="drop").y), raw(folder, validation="test").test.sum()) == (30, 11)


def test_without_a_list_tests_are_drawn_and_the_remarks_say_so(folder):
    (folder / "testing_list.txt").unlink()
    made = raw(folder)
    assert made.test is None
    assert made.remarks[-1] == "there is no testing_list.txt, so tests are drawn from all clips"


def test_all_words_are_the_folders_by_name_without_the_noise(folder):
    assert raw(folder, words="all").class_names == tuple(sorted([*COMMANDS, "bed"]))


def test_a_test_speaker_is_nobodys_client(folder, streams):
    data = SpeechCommands(path=str(folder)).load(Clients(2), streams(1))
    assert data.client_samples.tolist() == [11, 10]
    assert len(data.test_ids) == 10


def test_what_was_read_is_kept_and_options_count(folder, cache_folder):
    assert np.array_equal(raw(folder).x, raw(folder).x)
    assert len(list(cache_folder.iterdir())) == 1
    raw(folder, bands=20)
    write_wav(folder / "go" / f"{SPEAKERS[1]}_nohash_1.wav", 100)
    assert len(raw(folder).y) == 32
    assert len(list(cache_folder.iterdir())) == 3


def test_files_that_are_not_as_they_should_be_are_refused_and_nothing_is_kept(folder, cache_folder):
    cases = [
        (lambda: write_wav(folder / "go" / "hello.wav", 100), r"hello\.wav: the name must be SPEAKER_nohash_NUMBER"),
        (lambda: write_wav(folder / "go" / "0_nohash_7.wav", 9, 8000), "has 8000 samples per second, and 16000 are"),
        (lambda: (folder / "go" / "0_nohash_7.wav").write_bytes(b"RIFF"), "is no WAV file"),
        (lambda: (folder / "testing_list.txt").write_text("yes\n"), r"testing_list\.txt:1: 'yes' is no clip"),
        (lambda: (folder / "testing_list.txt").write_bytes(b"yes\xff"), "is not UTF-8 text"),
        (lambda: (folder / "go").rename(folder / "goo"), r"has no folder 'go'; did you mean 'goo'\?"),
    ]
    listed = (folder / "testing_list.txt").read_text()
    for spoil, message in cases:
        spoil()
        with pytest.raises(UserError, match=message):
            raw(folder)
        for file in ("hello.wav", "0_nohash_7.wav"):
            (folder / "go" / file).unlink(missing_ok=True)
        (folder / "testing_list.txt").write_text(listed)
    assert not list(cache_folder.iterdir())


def test_an_empty_folder_and_none_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="has no folder 'yes' .there are no folders."):
        raw(tmp_path / "empty")
    with pytest.raises(UserError, match="at least 2 are needed"):
        raw(tmp_path / "empty", words="all")
    with pytest.raises(UserError, match="is not there"):
        raw(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is no folder"):
        raw(tmp_path / "file")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"highest_hz": 9000.0}, "highest_hz=9000 must be at most 8000"),
        ({"lowest_hz": 500.0, "highest_hz": 400.0}, "lowest_hz=500 must be below highest_hz=400"),
        ({"duration_s": 0.1, "window_s": 0.2}, "window_s=0.2 must not be longer"),
        ({"duration_s": 60.0, "hop_s": 0.001, "bands": 20}, "hop_s=0.001: a sample would have"),
        ({"bands": 128, "window_s": 0.01}, "bands=128: band .* use fewer bands or a longer window"),
        ({"words": "some"}, "commands"),
    ],
)
def test_a_key_outside_its_range_is_refused(options, message):
    with pytest.raises(ValidationError, match=message):
        SpeechCommands(**options)
