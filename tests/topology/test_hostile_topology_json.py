"""Whatever stands where the JSON of a topology should be: one message with its place, and no traceback.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile_topologies import CUT, MANY, Refusal, damaged, drawn, read_in_both_ways
from hypothesis import example, given
from hypothesis import strategies as st

# Content of plant.json -> what is said after its name

ID = "must be the name of a node, a text or a whole number"
JSON: dict[str, tuple[str | bytes, str]] = {
    "a hundred thousand levels": (
        "[" * 100_000,
        ": this is not JSON of a graph: lists and objects are nested too deep",
    ),
    "a million values": (
        '{"nodes": [' + "0," * 1_000_000 + "0]}",
        ": there are more than 1,000,000 values, which is too many for a file",
    ),
    "a thousand attributes": (
        drawn("{" + ", ".join(f'"k{i}": 0' for i in range(1_000)) + ', "id": "x", "kind": "edge"}'),
        ": there are more than 1,000 different attributes; remove some",
    ),
    "an id that is a list": (drawn(id='["b", {"c": [1, 2, 3]}]'), f": nodes[1]: id=['b', {{'c': [1, 2, 3]}}] {ID}"),
    "a name of a megabyte": (
        drawn(id=f'"{MANY}"'),
        f": a node is called '{CUT}', which has 1,000,000 characters, and a name has at most 200; rename it",
    ),
    "an end that is an object": (drawn(links='{"source": {}, "target": "b"}'), f": links[1]: source={{}} {ID}"),
    "a direction in words": (
        drawn().replace('{"nodes"', '{"directed": "no", "nodes"'),
        ": directed='no' must be true or false",
    ),
    "a delay below zero": (
        drawn(links='{"source": "c", "target": "b", "delay_s": -1}'),
        ": topology.links[0].delay_s: -1 must be ... 0",
    ),
}


@pytest.mark.parametrize(("content", "message"), JSON.values(), ids=map("json {}".format, JSON))
def test_hostile_content_is_refused_in_one_message(content: str | bytes, message: str, refused: Refusal) -> None:
    refused.check_content("json", content, message)


@given(
    damaged(
        drawn(device='"a"', position_m="[0.5, 1e3]", links='{"source": "c", "target": "b", "rate_bps": 1e9}').encode()
    )
)
@example(drawn().encode())
def test_no_damage_to_json_ends_in_a_traceback(content: bytes) -> None:
    read_in_both_ways(Path("plant.json"), content.decode("utf-8", errors="ignore"))


WORDS = st.sampled_from(
    ["b", "c", "s", "kind", "edge", "cloud", "base_station", "sensor", "", "\ud800", "x\ny", "a" * 300]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(WORDS, inside, max_size=3),
    max_leaves=5,
)
NODES = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(["id", "kind", "device", "position_m", "x", "y"], VALUES))
)
LINKS = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(["source", "target", "key", "rate_bps", "delay_s"], VALUES))
    | VALUES,
    max_size=4,
)


def nearly_a_graph() -> st.SearchStrategy[Any]:
    """Valid node-link data in which some values are of any other type, or missing."""
    fine: Mapping[str, Any] = json.loads(drawn())
    nodes = st.just(fine["nodes"]) | NODES | VALUES
    links = st.just(fine["links"]) | LINKS | st.lists(st.lists(VALUES, max_size=2), max_size=3)
    some = {"links": links, "edges": links, "adjacency": links, "directed": VALUES, "multigraph": VALUES}
    return st.fixed_dictionaries({"nodes": nodes}, optional=some) | VALUES


@given(nearly_a_graph())
@example(json.loads(drawn()))
def test_no_value_of_another_type_in_json_ends_in_a_traceback(data: Any) -> None:
    read_in_both_ways(Path("plant.json"), json.dumps(data))
