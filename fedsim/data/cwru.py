"""Vibration of ball bearings, sound and damaged (Case Western Reserve University, Bearing Data Center).

Windows for training come from the beginning of each recording and windows for tests from its end, or tests are whole
recordings. So none shares a measurement with the other kind; windows that are drawn at random from the same stretch
make results look better than they are. Left out: order tracking.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.partition.natural import Natural
from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.reading.cwru import FAULTS, Recording, read_mat_files, read_packed
from fedsim.data.reading.windows import require_memory, windows
from fedsim.data.sampled import PartitionField, SampledDataset
from fedsim.data.source import SourcePath, locate, matching
from fedsim.data.unseen_recordings import UnseenRecordings
from fedsim.data.vibration_features import Features, features_of, normalised_rows
from fedsim.errors import Misfit, UserError
from fedsim.files import shown
from fedsim.settings import Several, key_rule

__all__ = ["Cwru"]

VERSION = 3  # of what is kept in the cache
WHAT = "recordings of the Bearing Data Center are needed: a folder of .mat files, or one .npz file"
NAMES = dict(zip(FAULTS, ("normal", "ball", "inner race", "outer race"), strict=True))
SIZES_MIL = (7, 14, 21)
SAMPLE_BYTES = 2  # as the 16-bit converter gave them
LABEL_BYTES = 1
RATE_HZ = 12_000.0
DEFAULT_TAIL = 0.2
CUT = {"window", "stride", "test_tail", "test_loads", "test_sizes_mil"}
OPTIONS = CUT | {"sensor", "classes", "clients", "features", "normalise", "normal"}
"""What the samples depend on."""


class Cwru(SampledDataset):
    """Vibration of sound and damaged ball bearings at 12 kHz (Case Western Reserve University).

    The files are not part of fedsim; see docs/data/cwru.md.
    """

    origin: ClassVar[str | None] = "the Bearing Data Center of Case Western Reserve University"
    name: Literal["cwru"] = "cwru"
    partition: PartitionField = Natural()
    """How the samples are spread over the clients; natural: by load or by recording, as *clients* says."""
    path: SourcePath = "cwru"
    """A folder with one .npz file or, if there is none, with .mat files; or that .npz file."""
    sensor: Literal["drive_end", "fan_end"] = "drive_end"
    """Where the acceleration was measured. Recordings without this sensor are left out."""
    window: Annotated[int, Interval(ge=16, le=65_536)] = 1024
    """Measurements in a sample: 1024 are 85 ms."""
    stride: Annotated[int, Interval(ge=1, le=65_536)] = 1024
    """Measurements from one sample of a recording to the next; less than *window* makes samples overlap."""
    classes: Literal["type", "type_size"] = "type"
    """Normal and the place of the fault (ball, inner race, outer race), or normal and each place with sizes of 7, 14
    and 21 thousandths of an inch: 4 or 10 classes."""
    clients: Literal["load", "recording"] = "load"
    """Whose samples are one client's: those of a motor load (four), or of a recording."""
    test_tail: Annotated[float, Interval(gt=0, lt=1)] | None = None
    """Share of each recording, at its end, from which test samples come; no sample lies across the border. Left out,
    0.2; with *test_loads* or *test_sizes_mil*, none."""
    test_loads: Several[Annotated[int, Interval(ge=0, le=1000)]] = ()
    """Motor loads (hp) that nobody trains on: recordings at them are tests, and all others are trained on to their end.
    With *test_sizes_mil* too, recordings of such a load and such a size are tests, and those of only one of the two are
    left out."""
    test_sizes_mil: Several[Annotated[int, Interval(ge=1, le=1000)]] = ()
    """Sizes of faults (thousandths of an inch) that nobody trains on: as each size is in bearings of its own, tests are
    of unseen bearings. With classes *type* only."""
    features: Features = "waveform"
    """What is learned of a window: its measurements, or the amplitudes of its envelope's spectrum up to 1.5 kHz, an
    eighth of the numbers."""
    normalise: Literal["window", "none"] = "window"
    """Each sample to mean 0 and deviation 1 (a constant one becomes 0), or acceleration in g."""
    normal: Literal["keep", "drop"] = "keep"
    """Whether recordings without a fault are used. It is disputed whether they were sampled at 48 kHz, unlike all
    others; a model may then tell them by their speed alone."""

    @key_rule
    def _tests_are_unseen(self) -> None:
        for key in self._unseen.keys:
            for other in ("test_fraction", "test_tail"):
                if (share := getattr(self, other)) is not None:
                    problem = f"{other}={share:g} is of recordings that are trained on, and with {key} tests are others"
                    raise Misfit(f"{problem}; leave one of the two out", other)
        if self.test_sizes_mil and self.classes == "type_size":
            problem = f"test_sizes_mil={list(self.test_sizes_mil)}: with classes type_size these sizes are classes"
            raise Misfit(f"{problem}, on which nobody would train; set classes to type", "test_sizes_mil")

    @property
    def _unseen(self) -> UnseenRecordings:
        return UnseenRecordings(self.test_loads, self.test_sizes_mil)

    @property
    def for_own_tests(self) -> str:
        """What gives clients tests of their own."""
        keys = self._unseen.keys
        return f"leave data.{keys[0]} out" if keys and self.partition.natural else super().for_own_tests

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (1, window), or (1, frequencies), owned by loads or recordings."""
        source = _source(locate(self.path, what=WHAT))
        options = self.model_dump(mode="json", include=OPTIONS)
        return cached(self.name, VERSION, [source], options, lambda: self._read(source))

    def _read(self, source: Path) -> RawDataset:
        if source.is_dir():
            recordings, others = read_mat_files(source, self.sensor)
        else:
            recordings, others = read_packed(source, self.sensor), 0
        groups = self._groups()
        usable = [recording for recording in recordings if len(recording.signal) and self._group(recording) in groups]
        if not usable:
            raise UserError(f"{shown(source)}: has no recording that these settings want; {WHAT}")
        kept = self._unseen.kept(usable)
        parts = [part for recording in kept for part in self._cut(recording)]
        require_memory([len(part) for part in parts], self.window, self.stride)
        cut = [windows(part, self.window, self.stride) for part in parts]
        number = np.array([len(found) for found in cut])
        if not number[0::2].any():
            longest = max(len(part) for part in parts[0::2])
            raise Misfit(f"window={self.window}: recordings have at most {longest} measurements to train on", "window")
        x = features_of(np.concatenate(cut), self.features, RATE_HZ)
        x = normalised_rows(x) if self.normalise == "window" else x.astype(np.float32, copy=False)
        names, owner = self._owners(kept)
        recording_of = np.repeat(np.arange(len(kept)), number[0::2] + number[1::2])
        y = np.array([groups.index(self._group(recording)) for recording in kept])[recording_of]
        test = np.repeat([False, True] * len(kept), number)
        class_names = tuple(f"{NAMES[fault]} {size}".strip() for fault, size in groups)
        unseen = self._unseen.remarks(usable, y, test, class_names)
        return RawDataset(
            x=x[:, None],
            y=y,
            classes=len(groups),
            class_names=class_names,
            sound_class=0 if self.normal == "keep" else None,
            sample_bytes=float(x.shape[1] * SAMPLE_BYTES + LABEL_BYTES),
            owner=owner[recording_of],
            owner_names=names,
            test=test,
            series=recording_of,
            overlap=(self.window - 1) // self.stride,
            remarks=(*self._remarks(recordings, usable, others), *unseen),
        )

    def _group(self, recording: Recording) -> tuple[str, str]:
        """The class of a recording: its fault, and the fault's size where it counts."""
        sized = self.classes == "type_size" and recording.fault != "normal"
        return recording.fault, f"0.{recording.size_mil:03d} in" if sized else ""

    def _groups(self) -> list[tuple[str, str]]:
        """All classes, in their order."""
        sizes = [f"0.{size:03d} in" for size in SIZES_MIL] if self.classes == "type_size" else [""]
        faults = [(fault, size) for fault in FAULTS[1:] for size in sizes]
        return [("normal", ""), *faults] if self.normal == "keep" else faults

    def _cut(self, recording: Recording) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(what to train on, what to test on) of one recording."""
        tested = self._unseen.test_share(recording) if self._unseen.keys else self.test_tail or DEFAULT_TAIL
        assert tested is not None, "not kept"
        border = round(len(recording.signal) * (1 - tested))
        return recording.signal[:border], recording.signal[border:]

    def _owners(self, kept: Sequence[Recording]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """(names, the owner of each recording)."""
        if self.clients == "recording":
            return tuple(recording.name for recording in kept), np.arange(len(kept))
        loads, owner = np.unique([recording.load_hp for recording in kept], return_inverse=True)
        return tuple(f"{load} hp" for load in loads), owner.astype(np.int64)

    def _remarks(self, recordings: Sequence[Recording], kept: Sequence[Recording], others: int) -> tuple[str, ...]:
        said = []
        if others:
            said.append(f"{others} .mat files are neither normal nor of drive-end faults at 12 kHz and were left out")
        if left := len(recordings) - len(kept):
            said.append(
                f"{left} of {len(recordings)} recordings were left out: without the sensor {self.sensor}, or of no "
                "class that is asked for"
            )
        loads = {recording.load_hp for recording in kept}
        normal = sorted({recording.load_hp for recording in kept if recording.fault == "normal"})
        if self.normal == "keep" and len(normal) < len(loads):
            at = f"only at {', '.join(map(str, normal))} hp" if normal else "at no load"
            said.append(f"normal bearings were recorded {at}, of {len(loads)} loads")
        return tuple(said)


def _source(path: Path) -> Path:
    """The .npz file, or the folder of .mat files, that *path* means."""
    if not path.is_dir():
        return path
    packed = matching(path, "*.npz")
    if len(packed) > 1:
        raise UserError(f"{shown(path)}: has {len(packed)} .npz files; name one in path")
    return packed[0] if packed else path
