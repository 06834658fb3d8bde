"""A sweep's folder: its points and the store that they share. Points of earlier sweeps stay; only the table changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd
from filelock import FileLock, Timeout

from fedsim.errors import UserError
from fedsim.experiment.at_work import LOCK, why_busy
from fedsim.experiment.sweep.points import Point
from fedsim.experiment.sweep_manifest import MANIFEST, POINTS, SweepManifest, read_sweep
from fedsim.files import shown, sweep_scratch, why_no_folder, why_not_own_file, write_atomically

__all__ = ["TABLE", "SweepFolder"]

TABLE, STORE = "sweep.csv", "store"


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
        try:
            read_sweep(self.path)
        except UserError as error:
            kept = self.path / STORE
            again = f" and --store {shown(kept)}: what is in this store is not trained again" if kept.is_dir() else ""
            raise UserError(f"{error}; choose another folder with --out{again}") from None

    def _check_free(self) -> None:
        if busy := why_busy(self.path, self.kind):
            raise UserError(f"{busy}, or choose another folder with --out")

    def _stranger(self) -> str | None:
        """What a sweep has not left that was killed before it had a manifest."""
        for inside in self.path.iterdir():
            if inside.name not in (POINTS, STORE) and not inside.name.startswith("."):
                return shown(Path(inside.name))
        return None
