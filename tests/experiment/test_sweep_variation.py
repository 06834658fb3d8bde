"""What ``--vary`` and the section ``sweep`` mean, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedsim.errors import UserError
from fedsim.experiment.sweep.variation import from_mapping, from_options, from_settings
from fedsim.experiment.varied_keys import short_keys
from fedsim.scenario.sweep_settings import SweepSettings


def test_the_points_of_options_are_all_combinations_and_the_last_key_changes_fastest() -> None:
    found = from_options(["training.epochs=1,2", "network.cell.radio.profile=nb_iot_nb1,lte_m_m1"])
    assert found.keys == ("training.epochs", "network.cell.radio.profile")
    assert found.rows == ((1, "nb_iot_nb1"), (1, "lte_m_m1"), (2, "nb_iot_nb1"), (2, "lte_m_m1"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=0.1, 1e-3,.inf", (0.1, 1e-3, float("inf"))),
        ("a='x, y',z", ("x, y", "z")),
        ("a='x #y',z#1", ("x #y", "z#1")),
        ("a=[1, 2],[3]", ([1, 2], [3])),
        (
            "a={name: shannon},{name: fixed, profile: lte_m_m1}",
            ({"name": "shannon"}, {"name": "fixed", "profile": "lte_m_m1"}),
        ),
        ("a=null,true", (None, True)),
        (" a =1", (1,)),
    ],
)
def test_values_are_written_as_in_the_file(text: str, values: tuple[object, ...]) -> None:
    assert from_options([text]).rows == tuple((value,) for value in values)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["epochs"], "--vary epochs: is not of the form key.path=value,value, for example training.epochs=1,2"),
        (["=1,2"], "--vary =1,2: is not of the form"),
        (["a..b=1"], "--vary a..b=1: is not of the form"),
        (["a="], "--vary a=: has no value; write null for none"),
        (["a= "], "--vary a= : has no value"),
        (["a=1,,2"], "--vary a=1,,2: a value is missing before or after a comma"),
        (["a=,"], "--vary a=,: a value is missing before or after a comma"),
        (["a=x #y,z"], "--vary a=x #y,z: '#y,z' is a comment in YAML, and would be left out; put quotes around a text"),
        (["a=x,#y"], "'#y' is a comment in YAML"),
        (["a=#y"], "'#y' is a comment in YAML"),
        (["a=1,]"], "--vary a=1,]: the values are not YAML"),
        (["a=1", "a=2"], "--vary a=2: its key stands twice; write all of its values in one --vary"),
        (["a.0=1", "a[0]=2"], "--vary a[0]: stands twice; vary each value by one key"),
        (["a=1", "a.b=2"], "--vary a.b: lies in a; vary each value by one key"),
        (["a=1,2,1"], "--vary: the point a=1 stands twice"),
        (["a=1,1.0,1"], "--vary: the point a=1 stands twice"),
        ([f"a={','.join(map(str, range(101)))}", f"b={','.join(map(str, range(100)))}"], "10,100 points are more"),
        ([], "varies nothing"),
    ],
)
def test_what_is_wrong_with_options_is_said(options: list[str], said: str) -> None:
    with pytest.raises(UserError) as error:
        from_options(options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_hostile_option_is_quoted_on_one_line() -> None:
    with pytest.raises(UserError) as error:
        from_options(["a\x1b[2J\nb=1,]"])
    assert str(error.value).isprintable()


def test_a_mapping_from_python_is_a_grid() -> None:
    assert from_mapping({"a": [1, 2], "b": ("x",)}).rows == ((1, "x"), (2, "x"))


def test_an_array_is_a_list_and_its_numbers_are_numbers() -> None:
    vary: dict[str, Any] = {"a": np.array([0.5, 2.0]), "b": [np.int64(3), np.array([4])], "c": pd.Series([True])}
    assert from_mapping(vary).rows == ((0.5, 3, True), (0.5, [4], True), (2.0, 3, True), (2.0, [4], True))


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({"a": "text"}, "vary: a: 'text' is no list of values"),
        ({"a": []}, "vary: a: the list of values is empty; give at least one"),
        ({"a": np.array([])}, "vary: a: the list of values is empty"),
        ({"a": np.array(1)}, "vary: a: 1 is no list of values"),
        ({"a": {1, 2}}, "is no list of values"),
        ({"zip": {"a": [1]}}, "vary: zip: is a part of the section sweep and no key"),
        ("a=1", "vary: 'a=1' is no mapping, as {'training.epochs': [1, 2]} is"),
        ([{"a": 1}], "is no mapping"),
        ({"a": {"b": 1}}, "is no list of values"),
        ({"": [1]}, "'' is no path of a key"),
        ({3: [1]}, "3 is no path of a key"),
        ({"a": [object()]}, "has no values of a scenario: object is neither text, number, list nor mapping"),
        ({}, "varies nothing"),
    ],
)
def test_what_is_wrong_with_a_mapping_is_said(vary: dict[str, list[object]], said: str) -> None:
    with pytest.raises(UserError) as error:
        from_mapping(vary)
    assert said in str(error.value)


def settings(**blocks: object) -> SweepSettings:
    return SweepSettings.model_validate(blocks)


def test_a_section_is_the_product_of_its_grid_its_zip_and_its_list() -> None:
    found = from_settings(
        settings(grid={"a": [1, 2]}, zip={"b": ["x", "y"], "c": [10, 20]}, list=[{"d": True}, {"d": False}])
    )
    assert found.keys == ("a", "b", "c", "d")
    assert found.rows[:4] == ((1, "x", 10, True), (1, "x", 10, False), (1, "y", 20, True), (1, "y", 20, False))
    assert len(found.rows) == 8


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ({"zip": {"a": [1, 2], "b": [1]}}, "needs equally many values of each key (a has 2, b has 1)"),
        ({"zips": {"a": [1]}}, "zips"),
        ({"grid": {"a": []}}, "at least 1"),
        ({"zip": {"a": []}}, "at least 1"),
        ({"list": [{}]}, "at least 1"),
        ({"list": [{"a": 1}, {"b": 1}]}, "has the keys ['b'] and list[0] ['a']"),
        ({"grid": {"a": [1]}, "list": [{"a": 1}]}, "has the key 'a' in two of grid, zip and list"),
    ],
)
def test_what_is_wrong_with_a_section_is_said(blocks: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError) as error:
        settings(**blocks)
    assert said in str(error.value)


def test_a_point_that_stands_twice_in_a_section_is_told_where() -> None:
    with pytest.raises(UserError, match=r"^sweep: the point a=1 stands twice$"):
        from_settings(settings(grid={"a": [1, 1]}))


def test_a_section_that_varies_nothing_is_no_sweep() -> None:
    with pytest.raises(UserError, match="varies nothing"):
        from_settings(settings())


def test_each_value_of_each_key_is_in_the_sample() -> None:
    found = from_options(["a=1,2,3", "b=x,y,z"])
    assert found.sample == [(1, "x"), (1, "y"), (1, "z"), (2, "x"), (3, "x")]


def test_short_keys_are_as_long_as_tells_them_apart() -> None:
    keys = ("protocols.a.mu", "protocols.b.mu", "mu", "training.epochs")
    assert short_keys(keys) == ["a.mu", "b.mu", "mu", "training.epochs"]
