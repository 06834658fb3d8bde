"""A sweep's folder: its points and the store that they share. Points of earlier sweeps stay; only the table changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pandas as pd
from annotated_types import MinLen
from filelock import FileLock, Timeout
from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, ValidationError

from fedsim.errors import UserError
from fedsim.experiment.at_work import LOCK, why_busy
from fedsim.experiment.sweep.points import KEY, Point
from fedsim.experiment.sweep.variation import short_keys
from fedsim.files import read_text_file, shown, sweep_scratch, why_no_folder, why_not_own_file, write_atomically

__all__ = ["MANIFEST", "TABLE", "SweepFolder", "SweepManifest", "is_sweep", "read_sweep"]

MANIFEST, TABLE, POINTS, STORE = "sweep.json", "sweep.csv", "points", "store"
_MOST_MANIFEST_BYTES = 50_000_000


def _shown_as_it_is(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable")
    return text


def _checked_key(text: str) -> str:
    if not KEY.fullmatch(text):
        raise ValueError("is no key of a point")
    return text


Line = Annotated[str, AfterValidator(_shown_as_it_is)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class SweepPoint(_Part):
    """A point, and its value of each key."""

    key: Annotated[str, AfterValidator(_checked_key)]
    values: list[JsonValue]


class SweepManifest(_Part):
    """What ``sweep.json`` says: which runs belong to the sweep, and which values they have."""

    @property
    def short_keys(self) -> list[str]:
        """What tables and figures call the keys."""
        return short_keys(self.keys)

    format: Literal["fedsim-sweep-1"] = "fedsim-sweep-1"
    scenario: Line
    keys: Annotated[list[Line], MinLen(1)]
    points: Annotated[list[SweepPoint], MinLen(1)]
    status: Literal["running", "finished"]


def is_sweep(folder: Path) -> bool:
    """Whether there is a sweep in *folder*, of whatever state."""
    return (folder / MANIFEST).is_file()


def read_sweep(folder: Path) -> SweepManifest:
    """What the sweep in *folder* is. Raises `UserError` when there is none that this version reads."""
    path = folder / MANIFEST
    if not is_sweep(folder):
        raise UserError(f"{shown(folder)} is no folder of a sweep: it has no {MANIFEST}")
    text = read_text_file(path, what="the manifest of a sweep", most_bytes=_MOST_MANIFEST_BYTES)
    try:
        found = SweepManifest.model_validate_json(text)
        if any(len(point.values) != len(found.keys) for point in found.points):
            raise ValueError("a value for each key")
        for those in (found.keys, [point.key for point in found.points]):
            if len(set(those)) < len(those):
                raise ValueError("each once")
    except ValueError as error:
        key = error.errors(include_url=False)[0]["loc"] if isinstance(error, ValidationError) else ()
        where = f" (its key {'.'.join(map(str, key))!r})" if key else ""
        problem = f"is no manifest of a sweep{where}; start the sweep in another folder, with --out"
        raise UserError(f"{shown(path)} {problem}") from None
    return found


class SweepFolder:
    """The folder: a ``with`` block locks it and makes it a sweep's.

    Raises `UserError` when it is something else, or when nothing can be written there; nothing is written then.
    """

    manifest, table, kind = MANIFEST, TABLE, "sweep"
    """Its own files, and what it is called; a search over points has others."""

    def __init__(self, path: Path, store: Path | None = None) -> None:
        self.path = path
        self.store = path / STORE if store is None else store
        self._lock = FileLock(path / LOCK)
        if problem := why_no_folder(path):
            raise UserError(f"{problem}; choose another one with --out")
        if (path / self.manifest).is_file():
            self._check_manifest()
        elif path.exists() and (stranger := self._stranger()):
            problem = f"is not empty and is no {self.kind}'s (it has {stranger}); choose another with --out"
            raise UserError(f"{shown(path)} {problem}")
        for own in (self.manifest, self.table):
            if kind := why_not_own_file(path / own):
                raise UserError(f"{shown(path / own)}: is {kind}, and a {self.kind} keeps a file there; remove it")
        if (path / POINTS).is_symlink():
            raise UserError(f"{shown(path / POINTS)}: is a link, and a {self.kind} keeps a folder there; remove it")
        self._check_free()

    def run_folder(self, key: str) -> Path:
        """Where a point runs."""
        return self.path / POINTS / key

    def save(self, scenario: str, keys: Sequence[str], points: Sequence[Point], status: str) -> None:
        """Write down what the sweep is."""
        content: dict[str, Any] = {
            "format": SweepManifest.model_fields["format"].default,
            "scenario": scenario,
            "keys": list(keys),
            "points": [{"key": point.key, "values": list(point.values)} for point in points],
            "status": status,
        }
        write_atomically(self.path / self.manifest, (json.dumps(content, indent=1) + "\n").encode())

    def save_table(self, table: pd.DataFrame) -> None:
        """Write the table; equal tables, equal bytes."""
        write_atomically(self.path / self.table, table.to_csv(index=False, lineterminator="\n").encode())

    def remove_table(self) -> None:
        """No point of the sweep has ended, so whatever table is there is of another one."""
        (self.path / self.table).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        try:
            (self.path / POINTS).mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"another {self.kind} is at work in {shown(self.path)}; wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise UserError(
                f"{shown(self.path)} cannot be a {self.kind}'s folder ({error.strerror}); choose another --out"
            ) from None
        sweep_scratch(self.path, {self.manifest, self.table}.__contains__)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._lock.release()

    def _check_manifest(self) -> None:
        """Raise `UserError` when the file that is called as the manifest is somebody else's: it is not to be lost."""
        read_sweep(self.path)

    def _check_free(self) -> None:
        if busy := why_busy(self.path, self.kind):
            raise UserError(f"{busy}, or choose another folder with --out")

    def _stranger(self) -> str | None:
        """What a sweep has not left that was killed before it had a manifest."""
        for inside in self.path.iterdir():
            if inside.name not in (POINTS, STORE) and not inside.name.startswith("."):
                return shown(Path(inside.name))
        return None
