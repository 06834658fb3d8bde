"""Spoken English words, one second each (P. Warden, *Speech Commands*, arXiv:1804.03209, 2018), by speaker.

Left out: noise and silence (``_background_noise_``), and a class for unknown words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.raw_dataset import Clients, Generators, RawDataset, numbered
from fedsim.data.reading.sound import read_wav
from fedsim.data.sound import SoundDataset
from fedsim.data.source import Missing, SourcePath, locate, matching
from fedsim.errors import UserError, nearest, some
from fedsim.files import read_text_file, shown

__all__ = ["COMMANDS", "SpeechCommands"]

VERSION = 1  # of what is kept in the cache
WHAT = "the unpacked archive speech_commands_v0.02.tar.gz is needed: a folder for each word, with .wav files"
COMMANDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
"""The ten words that are commands (Warden 2018, section 6)."""
CLIP = re.compile(r"(?P<speaker>[^_]+)_nohash_\d+\.wav")
LISTS = {"test": "testing_list.txt", "validation": "validation_list.txt"}


class SpeechCommands(SoundDataset):
    """Spoken English words of one second, by 2,618 speakers (Google Speech Commands, version 2).

    The files are not part of fedsim; see docs/data/speech_commands.md.
    """

    rate_hz: ClassVar[int] = 16_000
    origin: ClassVar[str | None] = "Google, as https://arxiv.org/abs/1804.03209 says"
    name: Literal["speech_commands"] = "speech_commands"
    path: SourcePath = "speech_commands"
    """The folder with a folder for each word."""
    words: Literal["commands", "all"] = "commands"
    """The ten commands (yes, no, up, down, left, right, on, off, stop, go), or all words for which there is a
    folder."""
    validation: Literal["train", "test", "drop"] = "train"
    """Where the clips go that the source names in ``validation_list.txt``."""

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (1, bands, frames), owned by their speakers; tests by ``testing_list.txt``."""
        folder = locate(self.path, what=WHAT)
        options = {**self.feature_options, "words": self.words, "validation": self.validation}
        return cached(self.name, VERSION, [folder], options, lambda: self._read(folder))

    def _read(self, folder: Path) -> RawDataset:
        words = self._words(folder)
        listed = {part: _listed(folder / name) for part, name in LISTS.items()}
        files = [(label, file) for label, word in enumerate(words) for file in _clips(folder / word)]
        if self.validation == "drop":
            unwanted = listed["validation"] or frozenset()
            files = [(label, file) for label, file in files if _key(file) not in unwanted]
        if not files:
            raise UserError(f"{shown(folder)}: no clips are left for training or tests; {WHAT}")
        owner, names = numbered(np.array([_speaker(file) for _, file in files]))
        test, remarks = self._tests(listed, [_key(file) for _, file in files])
        clips = (read_wav(file, rate_hz=self.rate_hz) for _, file in files)
        x, said = self.features(clips, len(files))
        return RawDataset(
            x=x,
            y=np.array([label for label, _ in files], np.int64),
            classes=len(words),
            class_names=words,
            sample_bytes=self.clip_bytes,
            owner=owner,
            owner_names=names,
            test=test,
            remarks=(*said, *remarks),
        )

    def _words(self, folder: Path) -> tuple[str, ...]:
        if not folder.is_dir():
            raise UserError(f"{shown(folder)}: is no folder; {WHAT}")
        there = [inner.name for inner in matching(folder, "[!_]*") if inner.is_dir()]
        if self.words == "all":
            if len(there) < 2:
                raise UserError(
                    f"{shown(folder)}: has {len(there)} folders with words, and at least 2 are needed; {WHAT}"
                )
            return tuple(there)
        for word in COMMANDS:
            if word not in there:
                has = f"the folders are {some(there, most=5)}" if there else "there are no folders"
                raise Missing(f"{shown(folder)}: has no folder {word!r}{nearest(word, there)} ({has}); {WHAT}")
        return COMMANDS

    def _tests(
        self, listed: dict[str, frozenset[str] | None], keys: list[str]
    ) -> tuple[NDArray[np.bool_] | None, tuple[str, ...]]:
        """(which clips the source sets aside, remarks)."""
        testing = listed["test"]
        if testing is None:
            return None, (f"there is no {LISTS['test']}, so tests are drawn from all clips",)
        if self.validation == "test":
            testing |= listed["validation"] or frozenset()
        return np.array([key in testing for key in keys], bool), ()


def _clips(folder: Path) -> list[Path]:
    """The sound files in the folder of one word, by name. Raises `UserError` when there are none."""
    found = matching(folder, "*.wav")
    if not found:
        raise UserError(f"{shown(folder)}: has no .wav files; {WHAT}")
    return found


def _speaker(file: Path) -> str:
    match = CLIP.fullmatch(file.name)
    if match is None:
        raise UserError(
            f"{shown(file)}: the name must be SPEAKER_nohash_NUMBER.wav, as in 0a7c2a8d_nohash_0.wav, for the speaker "
            "is the client; rename or remove the file"
        )
    return match["speaker"]


def _key(file: Path) -> str:
    """How the source's lists name a clip: ``yes/0a7c2a8d_nohash_0.wav``."""
    return f"{file.parent.name}/{file.name}"


def _listed(file: Path) -> frozenset[str] | None:
    """The clips that a list of the source names; None when there is no such list."""
    if not file.exists():
        return None
    lines = read_text_file(file, what="a list of clips").split("\n")
    for number, line in enumerate(lines, start=1):
        if line.strip() and not re.fullmatch(r"[^/]+/[^/]+\.wav", line.strip()):
            raise UserError(
                f"{shown(file)}:{number}: {line.strip()[:60]!r} is no clip, as in yes/0a7c2a8d_nohash_0.wav"
            )
    return frozenset(line.strip() for line in lines) - {""}
