"""Whatever stands where the JSON of a topology should be: one message with its place, and no traceback.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile_topologies import BOM, CUT, MANY, NO_UTF_8, Refusal, damaged, drawn, read_in_both_ways
from hypothesis import example, given
from hypothesis import strategies as st

# Content of plant.json -> what is said after its name

ID = "must be the name of a node, a text or a whole number"
JSON: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", ": this is not JSON: Expecting value: line 1 column 1 (char 0)"),
    "a byte order mark only": (BOM, ": this is not JSON: Expecting value: line 1 column 1 (char 0)"),
    "half a file": (drawn()[:-5], ": this is not JSON: Unterminated string ... line 1 column ..."),
    "a file and a half": (drawn() * 2, ": this is not JSON: Extra data: line 1 column ..."),
    "UTF-16": (drawn().encode("utf-16"), f":1: {NO_UTF_8}"),
    "gzip": (gzip.compress(drawn().encode()), ": is compressed (gzip), and text is needed; unpack it"),
    "a null character": (
        drawn().replace('"s"', '"\0"'),
        ": this is not JSON: Invalid control character at: line 1 ...",
    ),
    "a hundred thousand levels": (
        "[" * 100_000,
        ": this is not JSON of a graph: lists and objects are nested too deep",
    ),
    "a hundred thousand levels of objects": (
        '{"a":' * 100_000,
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
    "an id of 5,000 digits": (
        drawn(id="1" * 5_000),
        ": this is not JSON: Exceeds the limit (4300 digits) for integer ...",
    ),
    "an id of 1e400": (drawn(id="1e400"), ": the number 1e400 is too large; write Infinity for no limit"),
    "an id of 1e40": (drawn(id="1e40"), f": nodes[1]: id=1e+40 {ID}"),
    "an id of NaN": (drawn(id="NaN"), f": nodes[1]: id=nan {ID}"),
    "an id of null": (drawn(id="null"), f": nodes[1]: id=None {ID}"),
    "an id that is a truth": (drawn(id="true"), f": nodes[1]: id=True {ID}"),
    "an id that is a list": (drawn(id='["b", {"c": [1, 2, 3]}]'), f": nodes[1]: id=['b', {{'c': [1, 2, 3]}}] {ID}"),
    "an id that is empty": (
        drawn(id='""'),
        ": a node is called '', which is no text that can be printed; rename it",
    ),
    "two nodes of one name": (drawn('{"id": "b"}'), ": two nodes are called 'b', and names must differ; rename one"),
    "a key twice": (drawn('{"id": "x", "id": "y"}'), ": the key 'id' stands twice in one object; keep one"),
    "a half character": (
        drawn(id=r'"\ud800"'),
        ": a node is called '\\ud800', which is no text that can be printed; rename it",
    ),
    "a newline in a name": (
        drawn(id=r'"x\ny"'),
        ": a node is called 'x\\ny', which is no text that can be printed; rename it",
    ),
    "an escape in a name": (
        drawn(id=r'"\u001b[31m"'),
        ": a node is called '\\x1b[31m', which is no text that can be printed; rename it",
    ),
    "a name of a megabyte": (
        drawn(id=f'"{MANY}"'),
        f": a node is called '{CUT}', which has 1,000,000 characters, and a name has at most 200; rename it",
    ),
    "nodes by name": ('{"nodes": {"b": {}}, "links": []}', ": node-link JSON holds the lists 'nodes' and ...; ..."),
    "nodes that are a number": ('{"nodes": 3, "links": []}', ": node-link JSON holds the lists 'nodes' and ...; ..."),
    "a node that is a name": (drawn('"x"'), ": nodes[3]='x' must be an object with the key 'id'"),
    "a node that is a list": (
        drawn("[[[[[[[[1]]]]]]]]"),
        ": nodes[3]=[[[[[[[...]]]]]]] must be an object with the key 'id'",
    ),
    "links that are text": (
        '{"nodes": [], "links": "b"}',
        ": links='b' must be a list of objects with the keys 'source' and 'target'",
    ),
    "a link that is a pair": (
        drawn(links='["c", "b"]'),
        ": links[1]=['c', 'b'] must be an object with the key 'source'",
    ),
    "an end that is an object": (drawn(links='{"source": {}, "target": "b"}'), f": links[1]: source={{}} {ID}"),
    "an end that is missing": (
        drawn(links='{"source": "cc", "target": "b"}'),
        ": link 'cc' - 'b': no node is called 'cc'; did you mean 'c'?",
    ),
    "a direction in words": (
        drawn().replace('{"nodes"', '{"directed": "no", "nodes"'),
        ": directed='no' must be true or false",
    ),
    "a kind that is a list": (
        drawn(kind='["edge"]'),
        ": node 'b': kind=['edge'] must be one of sensor, base_station, edge, cloud",
    ),
    "a position in words": (
        drawn(position_m='"here"'),
        ": topology.nodes.b.position_m: 'here' is text; a list of 2 items is needed...",
    ),
    "a position in space": (
        drawn(position_m="[1, 2, 3]"),
        ": topology.nodes.b.position_m: [1, 2, 3] has 3 items, and 2 are needed",
    ),
    "a position at infinity": (drawn(x="Infinity", y="0"), ": topology.nodes.b.position_m[0]: .inf must be finite"),
    "a device that is a number": (drawn(device="3"), ": topology.nodes.b.device: 3 is a number; text is needed..."),
    "a rate of NaN": (
        drawn(links='{"source": "c", "target": "b", "rate_bps": NaN}'),
        ": topology.links[0].rate_bps: .nan is not a number",
    ),
    "a rate of 1e400": (
        drawn(links='{"source": "c", "target": "b", "rate_bps": 1e400}'),
        ": the number 1e400 is too large; write Infinity for no limit",
    ),
    "a rate that is a list": (
        drawn(links='{"source": "c", "target": "b", "rate_bps": [1]}'),
        ": topology.links[0].rate_bps: [1] is a list; a number is needed",
    ),
    "a delay below zero": (
        drawn(links='{"source": "c", "target": "b", "delay_s": -1}'),
        ": topology.links[0].delay_s: -1 must be ... 0",
    ),
    "Cytoscape's own form": (
        '{"elements": {"nodes": []}}',
        ": node-link JSON holds the lists 'nodes' and 'edges' (or ...",
    ),
    "positions for names": (
        '{"nodes": [{"name": "a"}], "links": [{"source": 0, "target": 0}]}',
        ": nodes[0]={'name': 'a'} needs the key 'id', the name of a node",
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
