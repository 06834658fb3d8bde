"""What a sweep's folder says of its points: which runs they are, and the values of each, by which people call it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import MinLen
from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, ValidationError

from fedsim.errors import UserError
from fedsim.experiment.at_work import why_busy
from fedsim.experiment.read_results import AGAIN, Line
from fedsim.experiment.results import NoRun, Results, load_results
from fedsim.experiment.varied_keys import short_keys
from fedsim.files import read_text_file, shown
from fedsim.scenario.scalars import show, show_text

__all__ = [
    "MANIFEST",
    "POINTS",
    "SweepManifest",
    "finished_sweep",
    "is_sweep",
    "load_points",
    "names_of_points",
    "read_sweep",
]

MANIFEST, POINTS = "sweep.json", "points"
_KEY = re.compile("[0-9a-f]{12}")
_MOST_MANIFEST_BYTES = 50_000_000


def _checked_key(text: str) -> str:
    if not _KEY.fullmatch(text):
        raise ValueError("is no key of a point")
    return text


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
        raise UserError(f"{shown(path)} is no manifest of a sweep{where}") from None
    return found


def finished_sweep(folder: Path) -> SweepManifest:
    """What the finished sweep in *folder* is. Raises `UserError` when there is none: `NoRun`, if it is not finished."""
    manifest = read_sweep(folder)
    if manifest.status != "finished":
        busy = why_busy(folder, "sweep")
        raise NoRun(busy or f"the sweep in {shown(folder)} is not finished; start it again to go on")
    return manifest


def load_points(folder: Path, manifest: SweepManifest) -> list[Results]:
    """The results of each point of the sweep in *folder*. Raises `UserError` where one is lost."""
    return [_results_in(folder / POINTS / point.key) for point in manifest.points]


def _results_in(folder: Path) -> Results:
    try:
        results = load_results(folder)
        _ = results.summary  # what every table of the sweep is made of
    except UserError as error:
        remedy = f"delete {shown(folder)} and start the sweep again: only this point is run"
        problem = str(error).removesuffix(f"; {AGAIN}")
        raise UserError(f"a point of the sweep is lost: {problem}; {remedy}") from None
    return results


def names_of_points(folders: Sequence[Path]) -> list[str | None]:
    """What people call the runs in *folders*: by their values of the varied keys; None for what is no sweep's point.

    A point that the last sweep in its folder has left out, and one whose sweep cannot be read, is a run like others.
    """
    known: dict[Path, dict[str, str]] = {}
    places = [Path(os.path.realpath(folder)) for folder in folders]
    for sweep in {place.parent.parent for place in places if place.parent.name == POINTS}:
        try:
            known[sweep] = _names(read_sweep(sweep))
        except UserError:
            continue
    return [known.get(place.parent.parent, {}).get(place.name) for place in places]


def _names(manifest: SweepManifest) -> dict[str, str]:
    keys = manifest.short_keys
    return {
        point.key: ", ".join(f"{key}={_plain(value)}" for key, value in zip(keys, point.values, strict=True))
        for point in manifest.points
    }


def _plain(value: JsonValue) -> str:
    return show_text(value) if isinstance(value, str) else show(value)
