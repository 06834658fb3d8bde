"""Whatever stands at whatever key of a scenario: what is wrong there is said of that key, in one line."""

from __future__ import annotations

import difflib
import types
from typing import Any, Union, get_args, get_origin

import pytest
from every_key import RIGHT, Spot, kinds, said_of, spots
from tiers import FULL

from fedsim.scenario.document import dotted
from fedsim.scenario.locate import keys_of
from fedsim.scenario.scalars import show
from fedsim.settings import Settings

SPOTS = list(spots())
SECTIONS = list(dict.fromkeys(spot.path[0] for spot in SPOTS))
WRONG: dict[str, list[Any]] = {
    "text": ["no such words", "", "12 parsecs", "\u202e\x1b[2J"],
    "number": [-7, 3.25, 10**40, 1e-300],
    "truth": [True, False],
    "null": [None],
    "list": [[], [[]], [None], ["x", {"y": 1}]],
    "mapping": [{}, {"zzz": 1}, {"name": "no such name"}],
}


def assert_blamed(spot: Spot, value: Any, *, path: tuple[str | int, ...] | None = None, text: str) -> None:
    lines, order = said_of(spot.around(value))
    path = spot.path if path is None else path
    assert len(lines) == 1, f"{value!r} at {spot.owner}: {lines}"
    place = f"s.yaml:{order.index(path[0]) + 1}: {dotted(path)}: "
    assert lines[0].startswith(place + text), f"{value!r} at {spot.owner}: {lines[0]}, not {place}{text}"


def test_the_scenario_around_the_keys_is_right() -> None:
    assert said_of(RIGHT) == ([], list(RIGHT))


def test_all_sections_and_more_than_a_hundred_keys_are_there() -> None:
    assert set(RIGHT) <= set(SECTIONS)
    assert len(SPOTS) > 100


@pytest.mark.drawn
@pytest.mark.parametrize("section", SECTIONS)
def test_a_value_of_the_wrong_kind_is_blamed_on_its_key(section: str) -> None:
    for number, spot in enumerate(spot for spot in SPOTS if spot.path[0] == section):
        right = kinds(spot)
        for kind, values in WRONG.items():
            one = number % len(values)
            for value in (values if FULL else values[one : one + 1]) if kind not in right else []:
                assert_blamed(spot, value, text=show(value))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_number_without_bounds_is_blamed_on_its_key(section: str) -> None:
    for spot in (spot for spot in SPOTS if spot.path[0] == section):
        members = get_args(spot.what) if get_origin(spot.what) in (Union, types.UnionType) else [spot.what]
        if int in members or float in members:
            for value in (10**30, -(10**30)) if int in members else (1e30, -1e30, float("nan")):
                assert_blamed(spot, value, text=show(value))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_misspelt_key_gets_the_right_one(section: str) -> None:
    for spot in (spot for spot in SPOTS if spot.path[0] == section):
        if not (isinstance(spot.what, type) and issubclass(spot.what, Settings)) or spot.kind is not None:
            continue
        known = list(keys_of(spot.what))
        for key in known:
            wrong = f"{key}{key[-1]}"
            [near] = difflib.get_close_matches(wrong, known, n=1)
            text = f"unknown key; did you mean {near!r}? (keys: "
            assert_blamed(spot, sample_of(spot) | {wrong: 1}, path=(*spot.path, wrong), text=text)


def sample_of(spot: Spot) -> dict[str, Any]:
    from every_key import sample

    found = sample(spot.what)
    assert isinstance(found, dict)
    return found
