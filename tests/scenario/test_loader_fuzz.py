"""Whatever is in a scenario's file or set on the command line: it is loaded, or refused with a message, and no more.

Scenarios that are right are changed at random, in their structure and byte by byte. The examples are the same in every
run; `make test` draws some of them.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from limits import limited
from tiers import FULL

from fedsim.errors import UserError
from fedsim.scenario.document import KeyPath
from fedsim.scenario.load import load, written_out
from fedsim.scenario.yaml_reader import parse_yaml, read_yaml

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted(path for path in (ROOT / "scenarios").rglob("*.yaml"))
TOPOLOGIES = sorted(path for path in (ROOT / "topologies").iterdir() if path.is_file())
BYTES = [path.read_bytes() for path in (*SCENARIOS, *TOPOLOGIES)]
RIGHT = [read_yaml(path).data for path in SCENARIOS]

SOME = settings(
    max_examples=6_000 if FULL else 60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# -- what may be wrong -----------------------------------------------------------------------------------------------

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 10**6, 10**9, 10**12, 2**63, 10**300, 0.0, -0.0, 0.5, 1.0, 1e-300, 1e18, 1e300),
    *(math.inf, -math.inf, math.nan, "", " ", "0", "1e6", "1_000", "10 Mbps", "30 %", "auto", "fedavg", "star", "<<"),
    *("../x", "/dev/zero", ".", "x.yaml", "a\nb", "\x1b[2J", "\u202e", "\u200b", "é", "\U0001f3ed", "x" * 300, "name"),
    *([], [[]], [None], [1, 1], ["x"], {}, {"name": None}, {"name": "fedavg"}, {"name": "star"}, {"": 0}, {"x": {}}),
]
TEXT = st.text(max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
ANYTHING = st.recursive(
    SCALARS, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXT, inside, max_size=3), max_leaves=6
)
TOKENS = [
    *(b"&a ", b"*a", b"<<: ", b"!!str ", b"!x ", b"[", b"]", b"{", b"}", b": ", b"- ", b"? ", b",", b"\n", b"\n  "),
    *(b"'", b'"', b"|\n", b">-\n", b"%", b"#", b"---\n", b"...\n", b"\0", b"\xff", b"\xe2\x80\xae", b"\xef\xbb\xbf"),
    *(b"1e999", b".nan", b".inf", b"~", b"0x", b"\\", b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"name: ", b"9" * 400),
]


def paths(value: object, path: KeyPath = ()) -> list[KeyPath]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for step, item in steps for inner in paths(item, (*path, step)))]


def at(value: Any, path: KeyPath) -> Any:
    for step in path:
        value = value[step]
    return value


PARTS = [(path[-1], at(whole, path)) for whole in RIGHT for path in paths(whole)[1:]]


def values(draw: st.DrawFn, step: str | int) -> Any:
    """Something to put at a key: what a scenario has at such a key, or anywhere; or something odd or random."""
    kind = draw(st.sampled_from(["like", "like", "like", "part", "odd", "anything"]))
    if kind in ("like", "part"):
        alike = [part for key, part in PARTS if key == step] if kind == "like" else []
        return draw(st.sampled_from(alike or [part for _, part in PARTS]))
    return draw(st.sampled_from(ODD) if kind == "odd" else ANYTHING)


def change(draw: st.DrawFn, whole: dict[str, Any]) -> None:
    """Change one thing inside *whole*."""
    path = draw(st.sampled_from(paths(whole)[1:] or [()]))
    if not path:
        return
    parent, step = at(whole, path[:-1]), path[-1]
    what = draw(st.sampled_from(["put", "put", "put", "put", "put", "remove", "rename", "wrap", "add"]))
    if what == "put":
        parent[step] = copied(values(draw, step))
    elif what == "remove":
        del parent[step]
    elif what == "rename" and isinstance(parent, dict):
        word = str(step)
        parent[draw(st.sampled_from([word + word[-1:], word[:-1], word.upper(), f"{word}_s", f" {word}"]) | TEXT)] = (
            parent.pop(step)
        )
    elif what == "wrap":
        parent[step] = draw(st.sampled_from([[parent[step]], {"name": parent[step]}, [parent[step]] * 2]))
    elif isinstance(parent, dict):
        key, part = draw(st.sampled_from(PARTS))
        parent[str(key)] = copied(part)


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


@st.composite
def changed_scenarios(draw: st.DrawFn) -> bytes:
    whole = copied(draw(st.sampled_from(RIGHT)))
    for _ in range(draw(st.integers(0, 4))):
        change(draw, whole)
    if draw(st.booleans()):
        text = json.dumps(whole, ensure_ascii=False).replace("Infinity", ".inf").replace("NaN", ".nan")
    else:
        text = yaml.dump(whole, Dumper=yaml.SafeDumper, allow_unicode=draw(st.booleans()), sort_keys=False)
    return text.encode("utf-8", "surrogatepass")


@st.composite
def changed_bytes(draw: st.DrawFn) -> bytes:
    content = draw(st.sampled_from(BYTES))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 40))
        piece = content[start : start + length]
        digits = st.text("0123456789eE+-._", max_size=4).map(str.encode)
        new = draw(st.sampled_from([b"", piece * 2, piece[::-1], *TOKENS]) | digits | st.binary(max_size=1))
        content = content[:start] + new + content[start + (length if draw(st.booleans()) else 0) :]
    return content


@st.composite
def assignments(draw: st.DrawFn) -> str:
    whole = draw(st.sampled_from(RIGHT))
    path = list(draw(st.sampled_from(paths(whole)[1:])))
    if draw(st.integers(0, 4)) == 0:
        path.insert(draw(st.integers(0, len(path))), draw(TEXT | st.integers(-1, 5)))
    value = values(draw, path[-1])
    text = value if isinstance(value, str) else json.dumps(value).replace("Infinity", ".inf").replace("NaN", ".nan")
    return f"{'.'.join(map(str, path))}={text}" if draw(st.integers(0, 9)) else draw(st.text(max_size=20))


# -- what must hold --------------------------------------------------------------------------------------------------


def everything_in(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def assert_loaded_or_refused(path: Path, overrides: Sequence[str] = ()) -> None:
    before = everything_in(path.parents[2])
    try:
        with limited():
            scenario = load(path, overrides=overrides)
    except UserError as error:
        lines = str(error).split("\n")
        assert lines[0].startswith((str(path.parents[2]), "--set ")) and len(lines) <= 6
        assert all(line.isprintable() and 0 < len(line) < 4_000 for line in lines)
    else:
        again = path.with_name("again.yaml")
        again.write_text(written_out(scenario), "utf-8")
        assert load(again) == scenario
        again.unlink()
        parse_yaml(written_out(scenario), "")
        return
    assert everything_in(path.parents[2]) == before


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the scenario is written to; the topologies that the scenarios name are where these expect them."""
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("topologies", "a/topologies"):
        shutil.copytree(ROOT / "topologies", folder / name)
    (folder / "a/scenarios").mkdir()
    return folder / "a/scenarios/plant.yaml"


@pytest.mark.drawn
@SOME
@given(content=changed_scenarios() | changed_bytes())
def test_a_scenario_with_something_else_in_it(content: bytes, plant: Path) -> None:
    plant.write_bytes(content)
    assert_loaded_or_refused(plant)


@pytest.mark.drawn
@SOME
@given(scenario=st.sampled_from(SCENARIOS), overrides=st.lists(assignments(), min_size=1, max_size=3))
def test_a_scenario_with_something_else_set(scenario: Path, overrides: list[str], plant: Path) -> None:
    plant.write_bytes(scenario.read_bytes())
    assert_loaded_or_refused(plant, overrides)
