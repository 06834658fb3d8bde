"""A run's folder: one scenario, one run at a time, nothing half-written, nothing of somebody else's overwritten."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd
from filelock import FileLock, Timeout

from fedsim.errors import UserError
from fedsim.files import why_no_folder, write_atomically
from fedsim.scenario.document import KeyPath, dotted
from fedsim.scenario.load import load, written_out
from fedsim.scenario.scalars import show
from fedsim.scenario.schema import Scenario
from fedsim.scenario.yaml_reader import parse_yaml, read_yaml

__all__ = ["RunFolder"]


class RunFolder:
    """The folder, locked while it is open. Its ``manifest`` is on disk after each `save_manifest`."""

    def __init__(self, path: Path, scenario: Scenario, *, resume: bool) -> None:
        self.path = path
        self.manifest: dict[str, Any] = {}
        self._lock = FileLock(path / ".lock")
        try:
            self._check(scenario, resume)
            path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"another run is at work in {path}; wait for it, or choose another folder with --out"
            ) from None
        except OSError as error:
            raise UserError(
                f"{path} cannot be a run folder ({error.strerror}); choose another one with --out"
            ) from None
        self._check(scenario, resume)  # again, now that nobody else can change it
        if not self.manifest:
            write_atomically(path / "scenario.yaml", written_out(scenario).encode())

    @property
    def finished(self) -> bool:
        """Whether the run in it is complete."""
        return self.manifest.get("status") == "finished"

    def store(self, asked: Path | None) -> Path:
        """Where the run keeps what it learns: where it has kept it so far, else *asked*, else inside the folder.

        Raises `UserError` when another store is asked for than the one that the run has begun with.
        """
        if not self.manifest:
            return self.path / "store" if asked is None else asked
        begun = self.path / str(self.manifest["store"])
        if asked is not None and asked.resolve() != begun.resolve():
            raise UserError(f"the run in {self.path} has its store in {begun}; leave --store out, or give that one")
        return begun

    def save_manifest(self) -> None:
        """Put ``manifest`` on disk."""
        write_atomically(self.path / "manifest.json", (json.dumps(self.manifest, indent=2) + "\n").encode())

    def save_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table as CSV (``.csv``) or Parquet (``.parquet``); equal tables, equal CSV bytes."""
        path = self.path / name
        if path.suffix == ".csv":
            write_atomically(path, table.to_csv(index=False, lineterminator="\n").encode())
        else:
            write_atomically(path, table.to_parquet(index=False))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()  # the file stays: unlinking it would let two others lock two different files

    def _check(self, scenario: Scenario, resume: bool) -> None:
        path = self.path
        if problem := why_no_folder(path):
            raise UserError(f"{problem}; choose another one with --out")
        if not path.exists():
            return
        written = path / "scenario.yaml"
        if not written.exists():
            strangers = [inside.name for inside in path.iterdir() if not inside.name.startswith(".")]
            if strangers:
                raise UserError(
                    f"{path} is not empty and is no run folder (it has {strangers[0]}); choose another with --out"
                )
            return
        if (difference := _difference(written, scenario)) is not None:
            raise UserError(
                f"{path} holds the run of a different scenario ({difference}); "
                "choose another folder with --out, or remove that one"
            )
        try:
            with suppress(FileNotFoundError):
                self.manifest = dict(json.loads((path / "manifest.json").read_bytes()))
        except (ValueError, TypeError):
            raise UserError(f"{path / 'manifest.json'} is not readable as a manifest; remove {path}") from None
        if not self.finished and not resume and self.manifest:
            raise UserError(
                f"the run in {path} is not finished; go on with --resume, or choose another folder with --out"
            )


def _difference(written: Path, scenario: Scenario) -> str | None:
    """The first key in which *scenario* differs from the one in a file, and its values; None when they are equal."""
    try:
        if load(written) == scenario:
            return None
    except UserError:
        return "its scenario.yaml is not one that this version reads"
    there, here = read_yaml(written).data, parse_yaml(written_out(scenario), "").data
    path, old, new = _first_difference((), there, here)
    return f"{dotted(path)} is {_shown(old)} there and {_shown(new)} here"


def _shown(value: object) -> str:
    is_long = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    return f"a list of {len(value)}" if is_long and isinstance(value, list) else show(value)


def _first_difference(path: KeyPath, there: object, here: object) -> tuple[KeyPath, object, object]:
    pairs: dict[str | int, tuple[object, object]] = {}
    if isinstance(there, dict) and isinstance(here, dict):
        pairs = {key: (there.get(key), here.get(key)) for key in {**here, **there}}
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = dict(enumerate(zip(there, here, strict=True)))
    for step, (old, new) in pairs.items():
        if old != new:
            return _first_difference((*path, step), old, new)
    return path, there, here
