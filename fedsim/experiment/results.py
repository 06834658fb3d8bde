"""What a finished run left in its folder, as tidy tables."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fedsim.errors import UserError, nearest

__all__ = ["Results", "load_results"]


@dataclass(frozen=True)
class Results:
    """A finished run. Tables are read when they are first asked for."""

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Versions, seeds, platform, trace hashes, real seconds, peak memory."""
        manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_bytes())
        return manifest

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """A row for each protocol, seed and round; time, bytes and energy are cumulative."""
        return pd.read_parquet(self.folder / "rounds.parquet")

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row for each protocol, seed and accounting."""
        return _read_csv(self.folder / "summary.csv")

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """A row for each hop of each transfer. Raises `UserError` when the scenario did not save them."""
        path = self.folder / "transfers.parquet"
        if not path.exists():
            raise UserError(f"{path} was not written; run the scenario with save_transfers: true")
        return pd.read_parquet(path)

    @cached_property
    def links(self) -> pd.DataFrame:
        """A row for each protocol, seed, link and direction: bytes, utilisation, mean queue."""
        return _read_csv(self.folder / "links.csv")

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.manifest["scenario"])

    def final_weights(self, protocol: str, seed: int) -> dict[str, Path]:
        """Part -> safetensors file of the model at the end of a run; empty when nothing was learned.

        Raises `UserError` when there was no such run.
        """
        for row in self.manifest["runs"]:
            if row["protocol"] == protocol and row["seed"] == seed:
                store = (self.folder / self.manifest["store"]).resolve()
                return {part: store / name for part, name in row["final_weights"].items()}
        known = ", ".join(f"{row['protocol']} on seed {row['seed']}" for row in self.manifest["runs"])
        raise UserError(f"{self.folder} has no run of {protocol!r} on seed {seed} (runs: {known})")


def load_results(folder: Path | str) -> Results:
    """The results in a run folder.

    Raises `UserError` when there is no finished run in it.
    """
    folder = Path(folder)
    path = folder / "manifest.json"
    if not os.path.exists(folder):  # unlike Path.exists, False also for what is no name of a file
        others = map(str, folder.parent.iterdir()) if folder.parent.is_dir() else ()
        raise UserError(f"there is no run folder {folder}{nearest(str(folder), others)}")
    if not path.is_file():
        raise UserError(f"{folder} is no run folder: it has no manifest.json")
    results = Results(folder)
    try:
        status = results.manifest["status"]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is not readable as a manifest") from None
    if status != "finished":
        command = shlex.join(["fedsim", "run", str(folder / "scenario.yaml"), "--out", str(folder), "--resume"])
        raise UserError(f"the run in {folder} is not finished; go on with: {command}")
    for name in ("rounds.parquet", "summary.csv"):
        if not (folder / name).is_file():
            raise UserError(f"{folder} has lost its {name}; run the scenario again, into another folder")
    return results


def _read_csv(path: Path) -> pd.DataFrame:
    """A table whose names stay text, also when a protocol is called 1 or NA; an empty cell is not known."""
    return pd.read_csv(path, dtype={"protocol": str, "link": str}, keep_default_na=False, na_values=[""])
