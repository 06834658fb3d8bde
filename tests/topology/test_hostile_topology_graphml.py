"""Whatever stands where the GraphML of a topology should be: one message with its place, and no traceback.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_topologies import (
    BOMB,
    CUT,
    FINE,
    MANY,
    RATED,
    Refusal,
    damaged,
    read_in_both_ways,
    xml,
)
from hypothesis import example, given
from hypothesis import strategies as st

from fedsim.topology.files.graphml import YWORKS

NO_DOCTYPE = "a GraphML file must not contain <!DOCTYPE; remove the document type declaration"
NULLS = ": the file holds null characters, and must be text in UTF-8; save it as UTF-8"

# Content of plant.graphml -> what is said after its name

GRAPHML: dict[str, tuple[str | bytes, str]] = {
    "a device of a megabyte": (
        xml(
            f'<node id="x"><data key="k">sensor</data><data key="d">{MANY}</data></node>',
            '<key id="d" attr.name="device"/>',
        ),
        f":2: node 'x': device='{CUT}' has 1,000,000 characters, and a name has at most 200",
    ),
    "an entity bomb": (BOMB, f":2: {NO_DOCTYPE}"),
    "an entity bomb in UTF-16 without a mark": (
        BOMB.encode("utf-16-le"),
        NULLS,
    ),
    "an encoding that it is not in": (
        xml('<node id="Köln"/>', before='<?xml version="1.0" encoding="ISO-8859-1"?>'),
        ":1: the file says encoding='ISO-8859-1', and must be in UTF-8; save it as UTF-8",
    ),
    "a million levels": (xml("<desc>" * 1_000_000), ":2: elements are nested more than 100 deep"),
    "a namespace that fills the memory": (
        xml(f'<x xmlns="{MANY}">' + "<x/>" * 1_000_000),
        ":2: a namespace has more than 1,000 characters; shorten it",
    ),
    "a million attributes": (
        xml("<x " + " ".join(f"a{i:x}='1'" for i in range(1_000_001)) + "/>"),
        ": there are more than 1,000,000 values, which is too many for a file",
    ),
    "two million tags": (
        xml("<x></x>" * 1_000_000),
        ": there are more than 2,000,000 tags, which is too many for a file",
    ),
    "a thousand attributes": (
        xml("", "".join(f'<key id="k{i}"/>' for i in range(1_000))),
        ":1: there are more than 1,000 keys; remove some",
    ),
    "a half character": (
        xml('<node id="&#xD800;"/>'),
        ":2:...: this is not GraphML: reference to invalid character ...",
    ),
}


@pytest.mark.parametrize(("content", "message"), GRAPHML.values(), ids=map("graphml {}".format, GRAPHML))
def test_hostile_content_is_refused_in_one_message(content: str | bytes, message: str, refused: Refusal) -> None:
    refused.check_content("graphml", content, message)


@given(damaged(xml(f"{RATED}<desc>x</desc>", '<key id="d" attr.name="device"><default>a</default></key>').encode()))
@example(FINE.encode())
def test_no_damage_to_graphml_ends_in_a_traceback(content: bytes) -> None:
    read_in_both_ways(Path("plant.graphml"), content.decode("utf-8", errors="ignore"))


ELEMENTS = st.sampled_from(
    [
        "graphml",
        "key",
        "default",
        "desc",
        "data",
        "graph",
        "node",
        "edge",
        "port",
        "hyperedge",
        "locator",
        "x",
        "y:NodeLabel",
    ]
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["id", "key", "for", "attr.name", "source", "target", "directed", "edgedefault", "xmlns"]),
    st.sampled_from(
        ["a", "b", "k", "node", "edge", "all", "kind", "rate_bps", "true", "false", "directed", "y", "", "&#9;"]
    ),
    max_size=3,
)
TREES = st.recursive(
    st.sampled_from(["", " ", "edge", "cloud", "1e9", "&lt;", "<![CDATA[x]]>", "<!-- x -->", "<?x y?>"]),
    lambda inside: st.builds(
        lambda tag, attributes, body: (
            f"<{tag} {' '.join(f'{key}={value!r}' for key, value in attributes.items())}>{''.join(body)}</{tag}>"
        ),
        ELEMENTS,
        ATTRIBUTES,
        st.lists(inside, max_size=4),
    ),
    max_leaves=12,
)


@given(TREES, TREES)
def test_no_order_of_elements_in_graphml_ends_in_a_traceback(keys: str, body: str) -> None:
    read_in_both_ways(Path("plant.graphml"), xml(body, keys).replace("<graphml ", f'<graphml xmlns:y="{YWORKS}" ', 1))
