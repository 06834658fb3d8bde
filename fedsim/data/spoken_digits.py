"""The Free Spoken Digit Dataset (Z. Jackson et al., 2016-2020): English digits at 8 kHz, by six speakers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.raw_dataset import Clients, Generators, RawDataset, numbered
from fedsim.data.reading.npz import Wanted, read_npz, same_length
from fedsim.data.reading.sound import read_wav
from fedsim.data.sound import SoundDataset
from fedsim.data.source import Missing, SourcePath, locate, matching
from fedsim.errors import UserError
from fedsim.files import shown

__all__ = ["SpokenDigits"]

VERSION = 1  # of what is kept in the cache
WHAT = "the recordings of the Free Spoken Digit Dataset are needed, as .wav files or as one .npz file"
CLASSES = 10
CLIP = re.compile(r"(?P<digit>\d)_(?P<speaker>[^_]+)_(?P<index>\d{1,6})\.wav")
ARRAYS = {
    "audio": Wanted("i2", 1),
    "offset": Wanted("iu", 1),
    "label": Wanted("iu", 1),
    "speaker": Wanted("U", 1),
    "index": Wanted("iu", 1),
    "sample_rate": Wanted("iu", 0),
}


@dataclass(frozen=True, eq=False)
class _Recordings:
    """What both kinds of files say."""

    clips: Iterable[NDArray[np.int16]]
    label: NDArray[np.int64]
    speaker: NDArray[np.str_]
    index: NDArray[np.int64]
    """Of a recording among those of the same digit by the same speaker."""


class SpokenDigits(SoundDataset):
    """3,000 recordings of the spoken digits by six speakers (the Free Spoken Digit Dataset).

    The files are not part of fedsim; see docs/data/spoken_digits.md.
    """

    rate_hz: ClassVar[int] = 8000
    origin: ClassVar[str | None] = "https://github.com/Jakobovski/free-spoken-digit-dataset"
    name: Literal["spoken_digits"] = "spoken_digits"
    path: SourcePath = "spoken_digits"
    """A folder with .wav files (or with the source's folder ``recordings``) or with one .npz file, or that file."""
    test_recordings: Annotated[int, Interval(ge=1, le=10**6)] = 5
    """Of each digit and speaker, recordings numbered below this are the test set. The source says 5, of 50."""

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (1, bands, frames), owned by their speakers."""
        source = _source(locate(self.path, what=WHAT))
        options = {**self.feature_options, "test_recordings": self.test_recordings}
        return cached(self.name, VERSION, [source], options, lambda: self._read(source))

    def _read(self, source: Path) -> RawDataset:
        recordings = _from_folder(source, self.rate_hz) if source.is_dir() else _from_npz(source, self.rate_hz)
        x, remarks = self.features(recordings.clips, len(recordings.label))
        owner, names = numbered(recordings.speaker)
        return RawDataset(
            x=x,
            y=recordings.label,
            classes=CLASSES,
            class_names=tuple("0123456789"),
            sample_bytes=self.clip_bytes,
            owner=owner,
            owner_names=names,
            test=recordings.index < self.test_recordings,
            remarks=remarks,
        )


def _source(path: Path) -> Path:
    """The file, or the folder with .wav files, that *path* means."""
    if not path.is_dir():
        return path
    for folder in (path, path / "recordings"):
        if folder.is_dir() and matching(folder, "*.wav"):
            return folder
    packed = matching(path, "*.npz")
    if len(packed) != 1:
        raise Missing(f"{shown(path)}: has no .wav files, and {len(packed)} .npz files where one is needed; {WHAT}")
    return packed[0]


def _from_folder(folder: Path, rate_hz: int) -> _Recordings:
    files = matching(folder, "*.wav")
    facts = []
    for file in files:
        match = CLIP.fullmatch(file.name)
        if match is None:
            rule = "the name must be DIGIT_SPEAKER_NUMBER.wav, as in 7_jackson_32.wav"
            raise UserError(f"{shown(file)}: {rule}; rename or remove the file")
        facts.append((int(match["digit"]), match["speaker"], int(match["index"])))
    return _Recordings(
        clips=(read_wav(file, rate_hz=rate_hz) for file in files),
        label=np.array([digit for digit, _, _ in facts], np.int64),
        speaker=np.array([speaker for _, speaker, _ in facts]),
        index=np.array([index for _, _, index in facts], np.int64),
    )


def _from_npz(file: Path, rate_hz: int) -> _Recordings:
    arrays = read_npz(file, ARRAYS, what="the Free Spoken Digit Dataset")
    number = same_length(file, arrays, "label", "speaker", "index")
    if arrays["sample_rate"] != rate_hz:
        raise UserError(f"{shown(file)}: sample_rate={arrays['sample_rate']} must be {rate_hz}, the rate of the source")
    audio, offset = arrays["audio"], arrays["offset"].astype(np.int64)
    if len(offset) != number + 1 or offset[0] != 0 or offset[-1] != len(audio) or (np.diff(offset) < 1).any():
        raise UserError(
            f"{shown(file)}: offset must rise from 0 to {len(audio)}, the samples in audio, in {number} steps: one "
            "for each label"
        )
    label = arrays["label"].astype(np.int64)
    wrong = np.flatnonzero((label < 0) | (label >= CLASSES))
    if wrong.size:
        raise UserError(f"{shown(file)}: label[{wrong[0]}]={label[wrong[0]]} must be from 0 to {CLASSES - 1}")
    return _Recordings(
        clips=(audio[start:end] for start, end in pairwise(offset)),
        label=label,
        speaker=arrays["speaker"],
        index=arrays["index"].astype(np.int64),
    )
