"""Whatever is written as YAML is read back as it was, and what would not be is refused before."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fedsim.errors import Misfit, UserError
from fedsim.scenario import composer, yaml_reader, yaml_writer
from fedsim.scenario.yaml_reader import parse_yaml, read_yaml
from fedsim.scenario.yaml_writer import OneLine, yaml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
WORDS = st.sampled_from(["", "on", "1e6", "~", "1:30", "2024-01-31", "0o7", "<<", "=", "- a", "a: b", "#", "9" * 400])
LONG = st.sampled_from(
    ["word " * 60, " x" * 100, "\t\n" * 70, "- \n" * 70, "é\u2028" * 90, "a\n\n b " * 50, "\x85\n " * 9]
)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | WORDS | LONG,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS | WORDS.filter(len), inner, max_size=4)
        | st.dictionaries(TEXTS, inner, max_size=4).map(OneLine)
    ),
    max_leaves=12,
)


def same(one: object, other: object) -> bool:
    """Equal, with the same order of keys; 1, 1.0 and true differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("dumper", ["CSafeDumper", "SafeDumper"])
@given(data=st.dictionaries(TEXTS | WORDS, PLAIN, max_size=4))
def test_what_is_written_is_read_back(dumper: str, data: dict[str, object]) -> None:
    if not hasattr(yaml, dumper):
        pytest.skip("PyYAML was built without libyaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_writer, "_DUMPER", getattr(yaml, dumper))
        text = yaml_text(data)
    assert same(data, parse_yaml(text, "").data)


@given(word=WORDS | st.sampled_from(["yes", "Off", "y", "null", ".inf", "1_000", "0b1", "012"]))
def test_text_is_text_for_readers_of_yaml_1_1_too(word: str) -> None:
    assert yaml.safe_load(yaml_text({"key": word})) == {"key": word}


@pytest.mark.parametrize("number", [1e-07, 1e300, -2.5e-9, math.inf, -math.inf, 0.1, -0.0, 10**20])
def test_a_number_is_a_number_for_readers_of_yaml_1_1_too(number: float) -> None:
    found = yaml.safe_load(yaml_text({"key": number}))["key"]
    assert same(found, number)


# -- what would not be read back --------------------------------------------------------------------------------------

TOO_MUCH: dict[str, tuple[str, int, dict[str, Any], tuple[str | int, ...], str]] = {  # limit, what is enough, ...
    "entries in a list": ("MAX_ENTRIES", 4, {"a": [[1, 2, 3], [4] * 4]}, ("a", 1), "has 4 entries, and at most 3"),
    "entries in a mapping": ("MAX_ENTRIES", 2, {"a": {"b": 1, "c": 2}}, ("a",), "has 2 entries, and at most 1"),
    "values": ("MAX_VALUES", 8, {"a": [1, 2], "b": {"c": [3, 4]}}, ("b",), "has too many values, as of all at most 7"),
    "a long text": ("MAX_TEXT", 5, {"a": ["1234", "12345"]}, ("a", 1), "'12345' has 5 characters, and at most 4"),
    "a long key": ("MAX_KEY", 5, {"a": {"12345": 1}}, ("a", "12345"), "'12345' has 5 characters, and at most 4"),
    "bytes": ("MAX_FILE_BYTES", 34, {"a": 1, "b": "x" * 20, "c": 1}, ("b",), "makes a file of 3.4e-05 MB, and at most"),
}  # fmt: skip


@pytest.mark.parametrize(("limit", "enough", "data", "key", "said"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_more_than_is_read_back_is_refused(
    limit: str,
    enough: int,
    data: dict[str, Any],
    key: tuple[str | int, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.yaml"
    set_limit(monkeypatch, limit, enough)
    path.write_text(yaml_text(data))
    assert read_yaml(path).data == data
    set_limit(monkeypatch, limit, enough - 1)
    with pytest.raises(UserError):
        read_yaml(path)
    with pytest.raises(Misfit) as refused:
        yaml_text(data)
    assert refused.value.key == key
    assert str(refused.value).startswith(said)


def set_limit(monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    """For those who write and those who read."""
    for module in (yaml_writer, yaml_reader if limit == "MAX_FILE_BYTES" else composer):
        monkeypatch.setattr(module, limit, most)


@pytest.mark.parametrize("character", ["\0", "\ud800", "\udcff"])
@pytest.mark.parametrize("data", [{"a": {"b": "x?"}}, {"a": {"x?": 1}}], ids=["value", "key"])
def test_what_is_no_text_is_refused(character: str, data: dict[str, Any]) -> None:
    [(key, value)] = data["a"].items()
    key, value = key.replace("?", character), value.replace("?", character) if isinstance(value, str) else value
    with pytest.raises(Misfit, match="holds a null character or half a character") as refused:
        yaml_text({"a": {key: value}})
    assert refused.value.key == ("a", key)
