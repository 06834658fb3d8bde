"""Turbofan engines that run to failure, simulated (A. Saxena, K. Goebel, D. Simon, N. Eklund, *Damage Propagation
Modeling for Aircraft Engine Run-to-Failure Simulation*, PHM 2008; NASA's C-MAPSS).

A sample is a window of cycles; its target is how long the engine still runs, as a number or as a class. Left out:
normalisation for each of the six operating conditions of FD002 and FD004.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval, MinLen
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.partition.natural import Natural
from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.reading.cmapss import Engines, read_engines, read_lives
from fedsim.data.reading.windows import require_memory, windows
from fedsim.data.sampled import PartitionField, SampledDataset
from fedsim.data.source import Missing, SourcePath, locate, matching
from fedsim.data.target import CYCLES, Target
from fedsim.errors import Misfit, UserError
from fedsim.files import shown
from fedsim.settings import Positive, Several, key_rule

__all__ = ["INFORMATIVE", "Cmapss"]

VERSION = 3  # of what is kept in the cache
WHAT = "the folder of NASA's C-MAPSS files is needed (train_FD001.txt, test_FD001.txt, RUL_FD001.txt, ...)"
INFORMATIVE = (2, 3, 4, 7, 8, 9, 11, 12, 13, 14, 15, 17, 20, 21)
"""The sensors that change in FD001 (X. Li, Q. Ding, J.-Q. Sun, Reliability Engineering and System Safety 172, 2018)."""
SETTINGS = 3
FLOAT_BYTES = 4
LABEL_BYTES = 1
OPTIONS = {"subsets", "test_subsets", "window", "stride", "channels", "normalise", "target", "cap", "bounds"}
"""What the samples depend on."""


@dataclass(frozen=True, eq=False)
class _Windows:
    """Of the engines of one file."""

    x: NDArray[np.float32]
    """(windows, channels, window)"""
    life: NDArray[np.float64]
    """(windows,) cycles that the engine still runs after the last one of the window."""
    engine: NDArray[np.int64]
    """(windows,)"""


class Cmapss(SampledDataset):
    """Turbofan engines that run to failure, and how long each one still runs (NASA C-MAPSS).

    The files are not part of fedsim; see docs/data/cmapss.md.
    """

    origin: ClassVar[str | None] = "the data repository of NASA's Prognostics Center of Excellence"
    name: Literal["cmapss"] = "cmapss"
    partition: PartitionField = Natural()
    """How the samples are spread over the clients; natural: every engine is a client."""
    path: SourcePath = "cmapss"
    """The folder with the files, as they are or compressed with gzip."""
    subsets: Annotated[Several[Literal["FD001", "FD002", "FD003", "FD004"]], MinLen(1)] = ("FD001",)
    """Fleets: one operating condition (FD001, FD003) or six (FD002, FD004), one kind of fault (FD001, FD002) or two."""
    test_subsets: Annotated[Several[Literal["FD001", "FD002", "FD003", "FD004"]], MinLen(1)] | None = None
    """Fleets whose test engines are the tests; left out, those of *subsets*."""
    window: Annotated[int, Interval(ge=1, le=500)] = 30
    """Cycles in a sample. Engines with fewer are left out."""
    stride: Annotated[int, Interval(ge=1, le=500)] = 1
    """Cycles from one sample of an engine to the next."""
    channels: Literal["informative", "all"] = "informative"
    """The 14 sensors that are not constant in FD001 (2, 3, 4, 7, 8, 9, 11 to 15, 17, 20, 21), or the three settings and
    all 21 sensors."""
    normalise: Literal["zscore", "minmax"] = "zscore"
    """Each channel, by what all training engines have in it: mean 0 and deviation 1, or from 0 to 1. A channel that
    never changes becomes 0."""
    target: Literal["classes", "value"] = "classes"
    """What models learn: a class of remaining useful life, or its value as a share of *cap* (regression)."""
    cap: Positive = 125.0
    """Cycles: a remaining useful life above it is set to it, for early wear cannot be seen. For target value."""
    bounds: Annotated[Several[Positive], MinLen(1)] = (50.0, 125.0)
    """Cycles at which the next class begins, ascending: (50, 125) makes three. With target value, groups are formed by
    these, as if they were classes; a life above *cap* is that of the cap."""

    @key_rule
    def _ascending(self) -> None:
        for key, names in (("subsets", self.subsets), ("test_subsets", self._tested)):
            if len(set(names)) < len(names):
                raise Misfit(f"{key}={list(names)}: each one must be named once", key)
        if any(later <= earlier for earlier, later in pairwise(self.bounds)):
            raise Misfit(f"bounds={list(self.bounds)} must ascend", "bounds")

    @property
    def _tested(self) -> tuple[str, ...]:
        return self.subsets if self.test_subsets is None else self.test_subsets

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (channels, window), owned by their engines.

        The last window of each test engine is a test sample; its remaining life is told by the RUL file.
        """
        folder = locate(self.path, what=WHAT)
        names = {"train": self.subsets, "test": self._tested, "RUL": self._tested}
        files = {part: [_file(folder, part, name) for name in some] for part, some in names.items()}
        options = self.model_dump(mode="json", include=OPTIONS)
        sources = [file for part in files.values() for file in part]
        return cached(self.name, VERSION, sources, options, lambda: self._read(files))

    def _read(self, files: dict[str, list[Path]]) -> RawDataset:
        training = [read_engines(file) for file in files["train"]]
        testing = [read_engines(file) for file in files["test"]]
        lives = [read_lives(file, engines.number) for file, engines in zip(files["RUL"], testing, strict=True)]
        lengths = [length for engines in training for length in engines.cycles]
        require_memory(lengths, self.window, self.stride, len(self._channels()))
        if max(lengths) < self.window:
            raise Misfit(
                f"window={self.window}: no training engine has so many cycles; {max(lengths)} is the most", "window"
            )
        normalised = self._normaliser(training)
        parts = [self._training_windows(engines, normalised(engines)) for engines in training]
        parts += [
            self._last_windows(engines, normalised(engines), life) for engines, life in zip(testing, lives, strict=True)
        ]
        first = np.cumsum([0, *(engines.number for engines in (*training, *testing))])
        owner = np.concatenate([part.engine + start for part, start in zip(parts, first[:-1], strict=True)])
        engines_of: list[tuple[str, str, Engines]] = []
        engines_of += [("train", *each) for each in zip(self.subsets, training, strict=True)]
        engines_of += [("test", *each) for each in zip(self._tested, testing, strict=True)]
        x = np.concatenate([part.x for part in parts])
        life = np.concatenate([part.life for part in parts])
        test = np.repeat([False] * len(training) + [True] * len(testing), [len(part.life) for part in parts])
        values = self.target == "value"
        bounds = np.array(self.bounds)
        y = np.minimum(life, self.cap) / self.cap if values else np.searchsorted(bounds, life, side="right")
        return RawDataset(
            x=x,
            y=y.astype(np.float32 if values else np.int64),
            classes=None if values else len(bounds) + 1,
            class_names=() if values else self._class_names(),
            target=Target(CYCLES, scale=self.cap) if values else None,
            levels=tuple(bound / self.cap for bound in self.bounds) if values else (),
            sample_bytes=float(x[0].size * FLOAT_BYTES + (FLOAT_BYTES if values else LABEL_BYTES)),
            owner=owner,
            owner_names=tuple(
                f"{name} {part} {engine + 1}" for part, name, engines in engines_of for engine in range(engines.number)
            ),
            fleets=tuple(name for _, name, engines in engines_of for _ in range(engines.number)),
            test=test,
            series=owner,
            overlap=(self.window - 1) // self.stride,
            whole_series=True,
            remarks=self._left_out([*training, *testing]),
        )

    def _channels(self) -> NDArray[np.int64]:
        """Rows of an engine's values: settings come first, then sensors."""
        if self.channels == "all":
            return np.arange(SETTINGS + 21)
        return np.array(INFORMATIVE) + SETTINGS - 1

    def _normaliser(self, training: Sequence[Engines]) -> Callable[[Engines], NDArray[np.float32]]:
        """What makes (channels, cycles) of engines comparable, by all that the *training* engines have."""
        chosen = self._channels()
        values = np.concatenate([engines.values[chosen] for engines in training], axis=1)
        minmax = self.normalise == "minmax"
        origin = values.min(axis=1) if minmax else values.mean(axis=1)
        spread = np.ptp(values, axis=1)
        unit = spread if minmax else values.std(axis=1)
        scale = np.where(spread > 0, 1.0 / np.where(spread > 0, unit, 1.0), 0.0)
        return lambda engines: ((engines.values[chosen] - origin[:, None]) * scale[:, None]).astype(np.float32)

    def _training_windows(self, engines: Engines, values: NDArray[np.float32]) -> _Windows:
        """All windows of engines that ran to failure: in their last cycle 0 are left."""
        xs, lives, owners = [], [], []
        for engine, record in enumerate(engines.split(values)):
            x = windows(record, self.window, self.stride)
            last = self.window + self.stride * np.arange(len(x))
            xs.append(x)
            lives.append((record.shape[1] - last).astype(np.float64))
            owners.append(np.full(len(x), engine))
        return _Windows(np.concatenate(xs), np.concatenate(lives), np.concatenate(owners))

    def _last_windows(self, engines: Engines, values: NDArray[np.float32], lives: NDArray[np.float64]) -> _Windows:
        """The last window of each engine that is long enough."""
        kept = [engine for engine, cycles in enumerate(engines.cycles) if cycles >= self.window]
        records = engines.split(values)
        x = np.empty((len(kept), len(values), self.window), np.float32)
        for place, engine in enumerate(kept):
            x[place] = records[engine][:, -self.window :]
        return _Windows(x, lives[kept], np.array(kept, np.int64))

    def _class_names(self) -> tuple[str, ...]:
        numbers = [f"{bound:g}" for bound in self.bounds]
        between = [f"{low} to {high} cycles" for low, high in pairwise(numbers)]
        return (f"below {numbers[0]} cycles", *between, f"{numbers[-1]} cycles or more")

    def _left_out(self, fleets: Sequence[Engines]) -> tuple[str, ...]:
        short = sum(int(cycles < self.window) for engines in fleets for cycles in engines.cycles)
        return (f"{short} engines have fewer than {self.window} cycles and were left out",) if short else ()


def _file(folder: Path, part: str, subset: str) -> Path:
    """The file of one *part* (train, test, RUL) of a *subset*, whatever follows its name, packed or not."""
    found = matching(folder, f"{part}_{subset}*.txt") + matching(folder, f"{part}_{subset}*.txt.gz")
    if len(found) == 1:
        return found[0]
    if not found:
        raise Missing(f"{shown(folder)}: has no file {part}_{subset}.txt or {part}_{subset}.txt.gz; {WHAT}")
    names = ", ".join(file.name for file in found)
    raise UserError(f"{shown(folder)}: has {len(found)} files for {part}_{subset} ({names}); keep one")
