"""A finished run as exporters see it: apart by protocol and seed, with settings as plain values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import pandas as pd

from fedsim.errors import UserError
from fedsim.experiment.compare import run_names
from fedsim.experiment.explain import lost_times
from fedsim.experiment.read_results import AGAIN, has_lost, read_scenario
from fedsim.experiment.results import Results
from fedsim.files import shown

__all__ = ["ExportedRun", "OneSeed", "Settings", "exported_runs", "numbers_of"]

Settings: TypeAlias = Mapping[str, bool | int | float | str]
"""Values by the dotted paths of their keys."""
MOST_INSIDE = 30
"""Of what a mapping or a list holds; with more, only their number is told: the scenario's file has them."""
LONGEST_TEXT = 500
_PLAIN = re.compile(r"[\w-]+")
_NO_SETTINGS = ("name", "description", "seeds", "protocols")
_LABELS = ("protocol", "seed", "round", "accounting")


@dataclass(frozen=True)
class OneSeed:
    """One protocol on one seed."""

    run: str
    protocol: str
    seed: int
    settings: Settings
    """The scenario's keys, and below ``protocol`` those of the protocol."""
    facts: Mapping[str, Any]
    """What the manifest says of it."""
    tables: Mapping[str, pd.DataFrame]
    """Its rows of each table that the run has, but for transfers: ``rounds``, ``summary``, ..."""


@dataclass(frozen=True)
class ExportedRun:
    """A finished run, and the *name* that it has among those that are exported with it."""

    name: str
    results: Results

    @cached_property
    def scenario_text(self) -> str:
        """The scenario as it ran, in YAML. Raises `UserError` when the file is lost or damaged."""
        return self._scenario[0]

    @cached_property
    def _scenario(self) -> tuple[str, Mapping[str, object]]:
        return read_scenario(self.results.folder)

    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the run by name, but for transfers and pieces of critical paths, which are many.

        Raises `UserError` for a damaged one.
        """
        found = {"rounds": self.results.rounds, "summary": self.results.summary}
        for name, file in _MORE_TABLES.items():
            if (self.results.folder / file).exists():
                found[name] = getattr(self.results, name)
        return found

    def seeds(self) -> Iterator[OneSeed]:
        """Each protocol on each seed, in the order of the summary. Raises `UserError` for a damaged run."""
        tables = self.tables()
        if tables["rounds"]["sim_time_s"].isna().any():
            path = self.results.folder / "rounds.parquet"
            raise UserError(f"{shown(path)} is no table of a run (a round has no sim_time_s); {AGAIN}")
        facts = {(row["protocol"], row["seed"]): row for row in self.results.manifest["runs"]}
        for protocol, seed in tables["summary"][["protocol", "seed"]].drop_duplicates().itertuples(index=False):
            rows = {
                name: table[(table["protocol"] == protocol) & (table["seed"] == seed)] for name, table in tables.items()
            }
            own = facts.get((protocol, int(seed)), {})
            yield OneSeed(self.name, protocol, int(seed), self._settings(protocol), own, rows)

    def _settings(self, title: str) -> Settings:
        scenario = {key: value for key, value in self._scenario[1].items() if key not in _NO_SETTINGS}
        return dict(_flat(scenario | {"protocol": self._protocol(title)}))

    def _protocol(self, title: str) -> Mapping[str, object]:
        """The keys of the protocol that results call *title*."""
        written = self._scenario[1].get("protocols")
        for protocol in written if isinstance(written, list) else []:
            if isinstance(protocol, dict) and title in (protocol.get("label"), protocol.get("name")):
                return protocol
        return {}


_MORE_TABLES = {
    "links": "links.csv",
    "critical_path": "critical_path.csv",
    "stragglers": "stragglers.csv",
    "link_loads": "link_loads.csv",
    "groups": "groups.parquet",
    "device_classes": "device_classes.csv",
    "confusion": "confusion.csv",
}


def exported_runs(results: Sequence[Results]) -> list[ExportedRun]:
    """The runs with the names that `fedsim.compare` has for them.

    Raises `UserError` when one has lost a table of where its time went.
    """
    for result in results:
        if lost := lost_times(result):
            raise UserError(has_lost(result.folder / lost[0]))
    return [ExportedRun(name, result) for name, result in zip(run_names(results), results, strict=True)]


def numbers_of(row: Mapping[Any, Any]) -> Iterator[tuple[str, float]]:
    """The columns of a row that are known numbers: what is not known is empty in tables, and left out here.

    >>> list(numbers_of({"protocol": "fedavg", "seed": 1, "round": 2, "accuracy": 0.5, "energy_j": math.nan}))
    [('accuracy', 0.5)]
    """
    for column, value in row.items():
        if column not in _LABELS and isinstance(value, Real) and not math.isnan(value):
            yield column, float(value)


def _flat(value: object, path: str = "") -> Iterator[tuple[str, bool | int | float | str]]:
    """Values by their paths; a list is one text, and what is empty is left out."""
    if isinstance(value, dict | list) and len(value) > MOST_INSIDE:
        yield path, f"{len(value)} entries"
    elif isinstance(value, dict):
        for key, inside in value.items():
            step = str(key) if _PLAIN.fullmatch(str(key)) else json.dumps(key, ensure_ascii=False)
            yield from _flat(inside, f"{path}.{step}" if path else step)
    elif isinstance(value, list) and value:
        yield from _flat(json.dumps(value, ensure_ascii=False), path)
    elif isinstance(value, str) and len(value) > LONGEST_TEXT:
        yield path, f"{len(value)} characters"
    elif isinstance(value, bool | int | float | str) and value != "":
        yield path, value
