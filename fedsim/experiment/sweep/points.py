"""The points of a sweep: each is a scenario, and a key that says which one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedsim.errors import UserError
from fedsim.experiment.host import HostOptions
from fedsim.experiment.sweep.variation import Row, Variation
from fedsim.scenario.load import Varied, load_varied
from fedsim.scenario.scalars import message_line
from fedsim.scenario.schema import Scenario

if TYPE_CHECKING:
    from fedsim.experiment.compare import Budget

__all__ = ["Point", "PointTask", "key_of", "points_of", "scenario_of", "scenarios_of", "without_sweep"]


@dataclass(frozen=True)
class Point:
    """One run of a sweep."""

    key: str
    """A hash of its whole scenario, and the name of its run folder: it is the same in each sweep with this point."""
    values: Row
    said: str
    """Its values, for people."""


@dataclass(frozen=True)
class PointTask:
    """All that a process needs to run a point, wherever it is: plain values and paths."""

    key: str
    scenario: str
    """The path of the file."""
    overrides: tuple[str, ...]
    values: tuple[Varied, ...]
    folder: str
    store: str
    options: HostOptions
    patient: bool
    """Whether it waits where other points train all that is left of it, or is put off."""
    pause: tuple[Budget, ...] = ()
    """It pauses after the first round that has spent one of these, and goes on when it is started without them."""


def points_of(path: Path, overrides: Sequence[str], variation: Variation) -> list[Point]:
    """The points of a sweep over the scenario in *path*.

    Raises `UserError` when one of them is no scenario, or two are the same one.
    """
    scenarios = scenarios_of(path, overrides, variation, variation.rows)
    points: dict[str, Point] = {}
    for row, scenario in zip(variation.rows, scenarios, strict=True):
        point = Point(key_of(scenario), row, variation.said(row))
        if (other := points.setdefault(point.key, point)) is not point:
            problem = f"{other.said} and {point.said} are the same scenario; leave one out"
            raise UserError(message_line(f"{variation.option} {problem}"))
    return list(points.values())


def scenarios_of(path: Path, overrides: Sequence[str], variation: Variation, rows: Iterable[Row]) -> Iterator[Scenario]:
    """The scenario of each of the *rows*, as it runs."""
    return map(without_sweep, load_varied(path, map(variation.point, rows), overrides=overrides))


def scenario_of(task: PointTask) -> Scenario:
    """The scenario of a point. Raises `UserError` when the file, or one that it names, is another by now."""
    (scenario,) = map(without_sweep, load_varied(task.scenario, [task.values], overrides=task.overrides))
    if key_of(scenario) != task.key:
        raise UserError(f"{task.scenario}: has changed since the sweep began; start it again")
    return scenario


def without_sweep(scenario: Scenario) -> Scenario:
    """The same without what is varied, which no point depends on."""
    return scenario.model_copy(update={"sweep": None})


def key_of(scenario: Scenario) -> str:
    """A hash of all of it."""
    text = json.dumps(scenario.model_dump(mode="json"), separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
