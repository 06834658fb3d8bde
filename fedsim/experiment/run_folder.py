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
from fedsim.files import write_atomically

__all__ = ["RunFolder"]


class RunFolder:
    """The folder, locked while it is open. Its ``manifest`` is on disk after each `save_manifest`."""

    def __init__(self, path: Path, scenario_text: str, *, resume: bool) -> None:
        self.path = path
        self.manifest: dict[str, Any] = {}
        self._check(scenario_text, resume)
        path.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"another run is at work in {path}; wait for it, or choose another folder with --out"
            ) from None
        self._check(scenario_text, resume)  # again, now that nobody else can change it
        if not self.manifest:
            write_atomically(path / "scenario.yaml", scenario_text.encode())

    @property
    def finished(self) -> bool:
        """Whether the run in it is complete."""
        return self.manifest.get("status") == "finished"

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
        self._lock.release()
        with suppress(OSError):
            (self.path / ".lock").unlink()

    def _check(self, scenario_text: str, resume: bool) -> None:
        path = self.path
        if not path.exists():
            return
        if not path.is_dir():
            raise UserError(f"{path} is not a folder; choose another one with --out")
        written = path / "scenario.yaml"
        if not written.exists():
            strangers = [inside.name for inside in path.iterdir() if not inside.name.startswith(".")]
            if strangers:
                raise UserError(
                    f"{path} is not empty and is no run folder (it has {strangers[0]}); choose another with --out"
                )
            return
        if written.read_text(encoding="utf-8") != scenario_text:
            raise UserError(
                f"{path} holds the run of a different scenario (see {written}); choose another folder with --out, "
                "or remove that one"
            )
        with suppress(FileNotFoundError):
            self.manifest = json.loads((path / "manifest.json").read_bytes())
        if not self.finished and not resume and self.manifest:
            raise UserError(
                f"the run in {path} is not finished; go on with --resume, or choose another folder with --out"
            )
