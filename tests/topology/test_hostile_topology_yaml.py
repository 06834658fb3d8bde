"""Whatever stands where the YAML of a topology should be: one message with its place, and no traceback.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import pytest
from hostile_topologies import Refusal, written

# Content of plant.yaml -> what is said after its name

YAML: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", ":1:1: a topology is a mapping (key: value); this is empty"),
    "a node twice": (written() + "nodes: {}", ":7:1: the key 'nodes' stands twice: in line 2 and in line 7"),
    "no topology": ("name: plant", ":1: topology.name: no topology is called 'plant'... (known: ...)"),
    "a kind that is a list": (
        written(b="{kind: [edge]}"),
        ":4: topology.nodes.b.kind: ['edge'] is a list; ... is needed",
    ),
    "a position of NaN": (
        written(b="{kind: base_station, position_m: [.nan, 0]}"),
        ":4: topology.nodes.b.position_m[0]: .nan is not a number",
    ),
    "a billion sensors": (written(s="{kind: sensor, attach: b, count: 1000000000}"), ":5: topology.nodes.s.count: ..."),
    "a link to itself": (
        written().replace("[c, b]", "[b, b]"),
        ":...: topology.links...: 'b' is linked to itself, ...; remove it",
    ),
}


@pytest.mark.parametrize(("content", "message"), YAML.values(), ids=map("yaml {}".format, YAML))
def test_hostile_content_is_refused_in_one_message(content: str | bytes, message: str, refused: Refusal) -> None:
    refused.check_content("yaml", content, message)
