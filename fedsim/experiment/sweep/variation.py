"""What a sweep varies: keys, and for each point one value of every key."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedsim.errors import UserError
from fedsim.experiment.varied_keys import short_keys
from fedsim.scenario.load import Varied
from fedsim.scenario.overrides import refused_comment, segments_of
from fedsim.scenario.scalars import message_line, show, show_text
from fedsim.scenario.sweep_settings import MOST_POINTS, SweepSettings
from fedsim.scenario.yaml_reader import YamlError, comment_in, parse_value

__all__ = ["Row", "Variation", "from_mapping", "from_options", "from_settings"]

Row = tuple[object, ...]


@dataclass(frozen=True)
class Variation:
    """The points of a sweep, in the order in which the table has them: the last key changes fastest."""

    keys: tuple[str, ...]
    """Paths, spelt as in ``--set``."""
    rows: tuple[Row, ...]
    """Of each point, a value for each key."""
    option: str
    """Where they come from, for messages: ``--vary``."""

    def __post_init__(self) -> None:
        """Raises `UserError` for points that are two times the same, and for keys that would lie in each other."""
        if not self.keys:
            raise UserError("the sweep varies nothing; give --vary key.path=value,value, or keys in the section sweep")
        spelt = [tuple(segments_of(key)) for key in self.keys]
        for one, other in product(range(len(spelt)), repeat=2):
            if one != other and spelt[other][: len(spelt[one])] == spelt[one]:
                problem = "stands twice" if spelt[one] == spelt[other] else f"lies in {show_text(self.keys[one])}"
                raise UserError(
                    message_line(f"{self.option} {self.keys[other]}: {problem}; vary each value by one key")
                )
            if spelt[one][0] == "sweep":
                raise UserError(message_line(f"{self.option} {self.keys[one]}: the section sweep cannot be varied"))
        seen: set[str] = set()
        for row in self.rows:
            if (text := _text(row)) in seen:
                raise UserError(message_line(f"{_told(self.option)} the point {self.said(row)} stands twice"))
            seen.add(text)

    def said(self, row: Row) -> str:
        """A point, for people."""
        return ", ".join(f"{key}={show(value)}" for key, value in zip(short_keys(self.keys), row, strict=True))

    @property
    def sample(self) -> list[Row]:
        """Points in which each value of each key is at least once, as few as are found when they are tried in order."""
        seen: set[str] = set()
        found = []
        for row in self.rows:
            named = {_text((key, value)) for key, value in zip(self.keys, row, strict=True)}
            if named - seen:
                seen |= named
                found.append(row)
        return found

    def point(self, row: Row) -> list[Varied]:
        """The values of one point."""
        return [
            Varied(key, value, f"{self.option} {show_text(key)}={show(value)}")
            for key, value in zip(self.keys, row, strict=True)
        ]


def from_options(options: Sequence[str]) -> Variation:
    """All combinations of what ``--vary key.path=value,value`` gives, once for each key.

    Values are written as in the file, with commas between them; quotes, lists and mappings are kept together.
    Raises `UserError` for what has another form.

    >>> found = from_options(["training.epochs=1,2", "model.hidden=[16],[32, 32]"])
    >>> found.rows
    ((1, [16]), (1, [32, 32]), (2, [16]), (2, [32, 32]))
    """
    grid: dict[str, list[object]] = {}
    for option in options:

        def refusal(problem: str, option: str = option) -> UserError:
            return UserError(message_line(f"--vary {show_text(option)}: {problem}"))

        key, equals, text = option.partition("=")
        if not equals or not all(segments_of(key)):
            raise refusal("is not of the form key.path=value,value, for example training.epochs=1,2")
        if key.strip() in grid:
            raise refusal("its key stands twice; write all of its values in one --vary")
        try:
            values, _ = parse_value(f"[{text}\n]")
        except YamlError as error:
            if re.search(r"(^|,)\s*(,|$)", text) and text.strip():
                raise refusal("a value is missing before or after a comma") from error
            raise refusal(f"the values are not YAML: {error.problem}") from error
        if (comment := comment_in(text, items=True)) is not None:
            raise refusal(refused_comment(comment))
        if not isinstance(values, list) or not values or not text.strip():
            raise refusal("has no value; write null for none")
        grid[key.strip()] = values
    return _grid(grid, "--vary")


def from_mapping(vary: Mapping[str, Sequence[object]]) -> Variation:
    """All combinations of the values of each key, given from Python; an array is a list.

    Raises `UserError` for what no scenario could hold, and where a key's values are no list.
    """
    if not isinstance(vary, Mapping):
        raise UserError(message_line(f"vary: {show(vary)} is no mapping, as {{'training.epochs': [1, 2]}} is"))
    grid: dict[str, list[object]] = {}
    for key, values in vary.items():
        if not isinstance(key, str) or not all(segments_of(key)):
            raise UserError(f"vary: {show(key)} is no path of a key, as training.epochs is")
        if key in SweepSettings.model_fields:
            problem = "is a part of the section sweep and no key, and vary has keys alone, which are a grid"
            raise UserError(f"vary: {key}: {problem}; in place of it give overrides=['sweep={{{key}: ...}}']")
        listed = values.tolist() if hasattr(values, "tolist") else values
        if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Sequence):
            raise UserError(message_line(f"vary: {key}: {show(values)} is no list of values"))
        if not listed:
            raise UserError(message_line(f"vary: {key}: the list of values is empty; give at least one"))
        try:
            grid[key] = json.loads(json.dumps(list(listed), default=_plain))
        except (TypeError, ValueError) as error:
            raise UserError(message_line(f"vary: {key}: {show(values)} has no values of a scenario: {error}")) from None
    return _grid(grid, "vary")


def from_settings(settings: SweepSettings) -> Variation:
    """What the section ``sweep`` of a scenario says: the product of its grid, its zip and its list."""
    blocks: list[tuple[tuple[str, ...], list[Row]]] = [
        ((key,), [(v,) for v in values]) for key, values in settings.grid.items()
    ]
    if settings.zip:
        blocks.append((tuple(settings.zip), list(zip(*settings.zip.values(), strict=True))))
    if settings.list:
        keys = tuple(settings.list[0])
        blocks.append((keys, [tuple(row[key] for key in keys) for row in settings.list]))
    return _product(blocks, "sweep:")


def _grid(grid: Mapping[str, Sequence[object]], option: str) -> Variation:
    return _product([((key,), [(value,) for value in values]) for key, values in grid.items()], option)


def _product(blocks: Sequence[tuple[tuple[str, ...], Sequence[Row]]], option: str) -> Variation:
    count = math.prod(len(rows) for _, rows in blocks)
    if count > MOST_POINTS:
        raise UserError(
            f"{_told(option)} {count:,} points are more than a sweep may have ({MOST_POINTS:,}); vary fewer values"
        )
    keys = tuple(key for block, _ in blocks for key in block)
    rows = (tuple(value for part in parts for value in part) for parts in product(*(rows for _, rows in blocks)))
    return Variation(keys, tuple(rows) if keys else (), option)


def _told(option: str) -> str:
    """As a message begins."""
    return f"{option.removesuffix(':')}:"


def _plain(value: Any) -> object:
    """The value of a number of an array, or its values."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} is neither text, number, list nor mapping")
    return value.tolist()


def _text(row: Sequence[object]) -> str:
    return json.dumps(list(row), sort_keys=True)
