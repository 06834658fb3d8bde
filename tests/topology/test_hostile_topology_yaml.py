"""Whatever stands where the YAML of a topology should be: one message with its place, and no traceback.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import gzip

import pytest
from hostile_topologies import MANY, Refusal, written

# Content of plant.yaml -> what is said after its name

YAML: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", ":1:1: a topology is a mapping (key: value); this is empty"),
    "a list": ("- a", ":1:1: a topology is a mapping (key: value); this is a list"),
    "a picture": (b"\x89PNG\r\n\x1a\n", ":1: is not UTF-8 text (byte 0x89); save the file as UTF-8"),
    "a null character": ("a: \0", ":1:4: the character U+0000 cannot stand in YAML; is this a text file?"),
    "gzip": (gzip.compress(b"name: star"), ": is compressed (gzip), and text is needed; unpack it"),
    "a hundred thousand levels": ("[" * 100_000, ":1:51: lists and mappings are nested more than 50 deep"),
    "an alias bomb": (
        "\n".join(["a0: &a0 [x, x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10))]),
        ":7:...: more than ... values (aliases written out); put data into another file",
    ),
    "a tag that runs code": ("name: !!python/object/apply:os.system [ls]", ":1:7: the tag ... is not allowed; ..."),
    "a node twice": (written() + "nodes: {}", ":7:1: the key 'nodes' stands twice: in line 2 and in line 7"),
    "no topology": ("name: plant", ":1: topology.name: no topology is called 'plant'... (known: ...)"),
    "a newline in a name": (
        written(**{'"x\\ny"': "{kind: edge}"}),
        ":1: topology: a node is called 'x\\ny', and a name must be ...",
    ),
    "a name of a megabyte": (
        written(**{f'? "{MANY}"\n ': "{kind: edge}"}),
        ":6:5: the key '...' has ... characters, and a key has at most ...",
    ),
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
