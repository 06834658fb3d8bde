"""A run's folder: one scenario, one run at a time, nothing half-written, nothing of somebody else's overwritten."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pandas as pd
from filelock import FileLock, Timeout
from pydantic import ValidationError

from fedsim.errors import UserError
from fedsim.experiment.at_work import LOCK, why_busy
from fedsim.experiment.differences import first_difference
from fedsim.experiment.read_results import read_manifest
from fedsim.files import shown, sweep_scratch, why_no_folder, write_atomically
from fedsim.scenario.load import checked, written_out
from fedsim.scenario.scalars import printable
from fedsim.scenario.schema import Scenario
from fedsim.scenario.yaml_reader import read_yaml

__all__ = ["RunFolder"]

_OWN_FILES = re.compile(r"manifest\.json|scenario\.yaml|[a-z_]+\.(csv|parquet)")
"""What a run writes into its folder."""


class RunFolder:
    """The folder: what is in it is known at once, and a ``with`` block locks it and makes it the scenario's.

    Its ``manifest`` is on disk after each `save_manifest`. Raises `UserError` when there is something in it that is not
    to be lost; nothing is written then.
    """

    def __init__(self, path: Path, scenario: Scenario, *, resume: bool) -> None:
        self.path = path
        self.manifest: dict[str, Any] = {}
        self._scenario = scenario
        self._written = written_out(scenario).encode()
        self._resume = resume
        self._shown = shown(path)
        self._lock = FileLock(path / LOCK)
        try:
            self._look()
        except OSError as error:
            raise self._unusable(error) from None

    @property
    def finished(self) -> bool:
        """Whether the run in it is complete."""
        return self.manifest.get("status") == "finished"

    def store(self, asked: Path | None) -> Path:
        """Where the run keeps what it learns: where it has kept it so far, else *asked*, else inside the folder.

        Raises `UserError` when another store is asked for than the one that the run has begun with, and when a run that
        goes on has it outside of its folder and nobody asks for it: a manifest alone leads nowhere else.
        """
        if not self.manifest:
            return self.path / "store" if asked is None else asked
        begun = self.path / str(self.manifest.get("store", "store"))
        place = shown(begun)
        real = os.path.realpath(begun)
        inside = Path(real).is_relative_to(os.path.realpath(self.path))
        if asked is not None and os.path.realpath(asked) != real:
            way_out = "leave --store out, or give that one" if inside else "give that one with --store"
            raise UserError(f"the run in {self._shown} has its store in {place}; {way_out}")
        if asked is None and not inside and not self.finished:
            raise UserError(
                f"the run in {self._shown} has its store outside of its folder; if that is right, add "
                f"{shlex.join(['--store', str(begun)])}, or choose another folder with --out"
            )
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
        try:
            for part in (*reversed(self.path.parents), self.path):
                part.mkdir(exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise self._busy(f"another run is at work in {self._shown}; wait for it") from None
        except OSError as error:
            raise self._unusable(error) from None
        try:
            self._look()  # again, now that nobody else can change it
            sweep_scratch(self.path, _OWN_FILES.fullmatch)
            if not self.manifest:
                write_atomically(self.path / "scenario.yaml", self._written)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._lock.release()  # the file stays: unlinking it would let two others lock two different files

    def _look(self) -> None:
        """Read the manifest, if there is one. Raises `UserError` when this run is not to go on in this folder."""
        path = self.path
        if not os.path.lexists(path / "manifest.json"):
            self._check_free()
            if problem := why_no_folder(path):
                raise UserError(f"{problem}; choose another one with --out")
            if not path.exists():
                return
            if (stranger := self._stranger()) is not None:
                raise UserError(
                    f"{self._shown} is not empty and is no run folder (it has {stranger}); choose another with --out"
                )
            return
        if (difference := _difference(path / "scenario.yaml", self._scenario)) is not None:
            raise UserError(
                f"{self._shown} holds the run of a different scenario ({difference}); choose another folder with --out"
            )
        self.manifest = read_manifest(path / "manifest.json")
        if self.finished:
            return  # and only to be read, so it may be where nothing can be written
        self._check_free()
        if problem := why_no_folder(path):
            raise UserError(f"{problem}; the run in it cannot go on there: choose another one with --out")
        if not self._resume:
            raise UserError(
                f"the run in {self._shown} is not finished; go on with --resume, or choose another folder with --out"
            )

    def _check_free(self) -> None:
        """Raise `UserError` when somebody else is at work in the folder."""
        if not self._lock.is_locked and (busy := why_busy(self.path)):
            raise self._busy(busy)

    def _busy(self, problem: str) -> UserError:
        return UserError(f"{problem}, or choose another folder with --out")

    def _unusable(self, error: OSError) -> UserError:
        return UserError(f"{self._shown} cannot be a run folder ({error.strerror}); choose another one with --out")

    def _stranger(self) -> str | None:
        """What a run has not left that was killed before it had a manifest: anything but its scenario."""
        for inside in self.path.iterdir():
            own = inside.name == "scenario.yaml" and inside.is_file() and inside.read_bytes() == self._written
            if not own and not inside.name.startswith("."):
                return printable(inside.name)
        return None


def _difference(written: Path, scenario: Scenario) -> str | None:
    """The first key in which *scenario* differs from the one in a file, and its values; None when they are equal.

    Code that only the file names is not run to find that out.
    """
    here = scenario.model_dump(mode="json")
    try:
        document = read_yaml(written)
        code = dict(_code(here))
        for found, sha256 in _code(document.data):
            if found not in code or sha256 != code[found]:
                return f"{found} has been edited since" if found in code else f"it names the code {found}"
        there = checked(document).model_dump(mode="json")
    except (UserError, ValidationError):
        return "its scenario.yaml is not one that this version reads"
    return first_difference(there, here)


def _code(data: object) -> Iterator[tuple[str, object]]:
    """(import path, digest) of every class in plain *data* that does not come with fedsim."""
    if isinstance(data, dict):
        if isinstance(path := data.get("path"), str) and ":" in path and "name" not in data:
            yield path, data.get("sha256")
        data = list(data.values())
    for inside in data if isinstance(data, list) else []:
        yield from _code(inside)
