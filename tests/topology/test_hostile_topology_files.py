"""Whatever stands where a topology file should be: one message with its place; no traceback, no waiting, no flood.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.topology.explicit import Explicit
from fedsim.topology.files.formats import read_drawn
from fedsim.topology.files.graphml import YWORKS
from fedsim.topology.files.network import network
from fedsim.topology.imported import Imported
from fedsim.topology.readers import read_topology_data

PLANT = """\
name: plant
stop: {rounds: 1}
learn: false
topology: FILE
network:
  cell:
    radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}
  link: {rate_bps: 1.0e+9}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
data: {name: declared, samples_per_client: 100}
model: {name: declared, parameters: 1000, training_flops_per_sample: 1.0e+6}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 1.0}
"""
BOM = b"\xef\xbb\xbf"


def xml(body: str, keys: str = "", before: str = "") -> str:
    """Cloud c, base station b and sensor s in GraphML, and whatever *body* adds to them."""
    return (
        f'{before}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="k" for="node" attr.name="kind" attr.type="string"/>'
        f'<key id="r" for="edge" attr.name="rate_bps" attr.type="double"/>{keys}<graph edgedefault="undirected">'
        '<node id="c"><data key="k">cloud</data></node><node id="b"><data key="k">base_station</data></node>'
        f'<node id="s"><data key="k">sensor</data></node><edge source="b" target="s"/>\n{body}</graph></graphml>'
    )


AT_A_PORT = '<edge source="x" target="c" sourceport="p"/><edge source="x" target="b"/>'
RATED = '<edge source="c" target="b"><data key="r">1e9</data></edge>'
WIRE = '<edge source="c" target="b"/>'
FINE = xml(WIRE)


def rated(rate: str) -> str:
    return xml(f'<edge source="c" target="b"><data key="r">{rate}</data></edge>')


def drawn(*more_nodes: str, links: str = '{"source": "c", "target": "b"}', **changes: str) -> str:
    """The same network in node-link JSON, with *changes* to the values of single keys of its base station."""
    station = {"id": '"b"', "kind": '"base_station"', **changes}
    nodes = [
        '{"id": "c", "kind": "cloud"}',
        "{" + ", ".join(f'"{key}": {value}' for key, value in station.items()) + "}",
        '{"id": "s", "kind": "sensor"}',
        *more_nodes,
    ]
    return f'{{"nodes": [{", ".join(nodes)}], "links": [{{"source": "b", "target": "s"}}, {links}]}}'


def written(**nodes: str) -> str:
    """The same network in YAML; *nodes* replace its own, or are added."""
    own = {"c": "{kind: cloud}", "b": "{kind: base_station}", "s": "{kind: sensor, attach: b}", **nodes}
    lines = "\n".join(f"  {name}: {node}" for name, node in own.items())
    return f"name: explicit\nnodes:\n{lines}\nlinks: [{{between: [c, b]}}]\n"


def zipped(text: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plant", text * 100)
    return content.getvalue()


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
BOMB = f'<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY e0 "ha">{ENTITIES}]>\n{xml("&e9;")}'
OUTSIDE = '<!DOCTYPE graphml [<!ENTITY x SYSTEM "file:///etc/hostname">]>' + xml('<node id="&x;"/>')
PARAMETER = '<!DOCTYPE graphml [<!ENTITY % p SYSTEM "http://localhost/x.dtd"> %p;]>' + FINE
NO_DOCTYPE = "a GraphML file must not contain <!DOCTYPE; remove the document type declaration"
NULLS = ": the file holds null characters, and must be text in UTF-8; save it as UTF-8"
NO_UTF_8 = "is not UTF-8 text (byte 0xff); save the file as UTF-8"
MANY = "a" * 1_000_000
CUT = "a" * 57 + "..."

# Content of plant.graphml -> what is said after its name

GRAPHML: dict[str, tuple[str | bytes, str]] = {
    "an entity bomb": (BOMB, f":2: {NO_DOCTYPE}"),
    "an entity bomb behind a byte order mark": (BOM + BOMB.encode(), f":2: {NO_DOCTYPE}"),
    "an entity from another file": (OUTSIDE, f":1: {NO_DOCTYPE}"),
    "a parameter entity": (PARAMETER, f":1: {NO_DOCTYPE}"),
    "an external document type": (f'<!DOCTYPE graphml SYSTEM "file:///dev/zero">{FINE}', f":1: {NO_DOCTYPE}"),
    "a document type in pieces": (f"<!DOCTYPE\n\n graphml\n>{FINE}", f":...: {NO_DOCTYPE}"),
    "an entity bomb in UTF-16": (BOMB.encode("utf-16"), f":1: {NO_UTF_8}"),
    "an entity bomb in UTF-16 without a mark": (
        BOMB.encode("utf-16-le"),
        NULLS,
    ),
    "an entity bomb in UTF-32": (BOMB.encode("utf-32"), f":1: {NO_UTF_8}"),
    "an entity bomb in UTF-7": (
        BOMB.replace("<", "+ADw-"),
        ":1:1: this is not GraphML: not well-formed (invalid token)",
    ),
    "an entity bomb that says UTF-7": (
        f'<?xml version="1.0" encoding="utf-7"?>{BOMB.splitlines()[1].replace("<", "+ADw-")}',
        ":1:39: this is not GraphML: not well-formed (invalid token)",
    ),
    "an entity bomb that says UTF-16": (
        BOMB.replace('"1.0"', '"1.0" encoding="utf-16"'),
        f":2: {NO_DOCTYPE}",
    ),
    "an entity bomb in EBCDIC": (BOMB.encode("cp500"), ":1: is not UTF-8 text (byte ...); save the file as UTF-8"),
    "an encoding that it is not in": (
        xml('<node id="Köln"/>', before='<?xml version="1.0" encoding="ISO-8859-1"?>'),
        ":1: the file says encoding='ISO-8859-1', and must be in UTF-8; save it as UTF-8",
    ),
    "an undeclared entity": (xml("&e9;"), ":2:1: this is not GraphML: undefined entity"),
    "a million levels": (xml("<desc>" * 1_000_000), ":2: elements are nested more than 100 deep"),
    "a million levels of another language": (
        xml('<x xmlns="y">' + "<x>" * 1_000_000),
        ":2: elements are nested more than 100 deep",
    ),
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
    "a name of a megabyte": (
        xml(f'<node id="{MANY}"><data key="k">edge</data></node>'),
        f":2: a node is called '{CUT}', which has 1,000,000 characters, and a name has at most 200; rename it",
    ),
    "an end of a megabyte": (
        xml(f'<edge source="c" target="{MANY}"/>'),
        f":2: a node is called '{CUT}', which has 1,000,000 characters, and a name has at most 200; rename it",
    ),
    "an attribute of a megabyte": (
        xml('<node id="x"><data key="m">1</data></node>', f'<key id="m" attr.name="kind{MANY}"/>'),
        ":2: node 'x' has no kind, and must have one of sensor, base_station, edge, cloud; ...",
    ),
    "a kind of a megabyte": (
        xml(f'<node id="x"><data key="k">{MANY}</data></node>'),
        f":2: node 'x': kind='{CUT}' must be one of sensor, base_station, edge, cloud",
    ),
    "a device of a megabyte": (
        xml(
            f'<node id="x"><data key="k">sensor</data><data key="d">{MANY}</data></node>',
            '<key id="d" attr.name="device"/>',
        ),
        f":2: node 'x': device='{CUT}' has 1,000,000 characters, and a name has at most 200",
    ),
    "a newline in a name": (
        xml('<node id="x&#10;y"/>'),
        ":2: a node is called 'x\\ny', which is no text that can be printed; rename it",
    ),
    "an escape in a name": (
        xml('<node id="&#27;[31m"/>'),
        ":2:...: this is not GraphML: reference to invalid character ...",
    ),
    "a half character": (
        xml('<node id="&#xD800;"/>'),
        ":2:...: this is not GraphML: reference to invalid character ...",
    ),
    "a direction that turns the text": (
        xml('<node id="x\u202ey"/>'),
        ":2: a node is called 'x\\u202ey', which is no text that can be printed; rename it",
    ),
    "a null character": (FINE.replace('"s"', '"\0"'), NULLS),
    "half a file": (FINE[:-20], ":2:...: this is not GraphML: unclosed token"),
    "a file and a half": (FINE + FINE, ":2:...: this is not GraphML: junk after document element"),
    "nothing": ("", ":1:1: this is not GraphML: no element found"),
    "a byte order mark only": (BOM, ":1:1: this is not GraphML: no element found"),
    "white space": (" \r\n\t", ":2:...: this is not GraphML: no element found"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0", ":1: is not UTF-8 text (byte 0x89); save the file as UTF-8"),
    "a page of the web": (
        '<html xmlns="http://www.w3.org/1999/xhtml"/>',
        ":1: this is not GraphML: the file begins with <html>, and must begin with <graphml ...",
    ),
    "GraphML of another name": (
        '<graphml xmlns="http://example.org"/>',
        ":1: this is not GraphML: the file begins with <graphml>, and must begin with <graphml ...",
    ),
    "gzip": (gzip.compress(FINE.encode()), ": is compressed (gzip), and text is needed; unpack it"),
    "zip": (zipped(FINE), ": is compressed (zip), and text is needed; unpack it"),
    "a link to itself": (
        xml('<edge source="c" target="c"/>'),
        ": topology.links...: 'c' is linked to itself, ...; remove it",
    ),
    "a link twice": (
        xml(WIRE * 2),
        ": topology.links[1]: 'c' and 'b' are linked already, and a link goes both ways; keep one",
    ),
    "an end that is missing": (
        xml('<edge source="c" target="d"/>'),
        ":2: link 'c' - 'd': no node is called 'd'; add it to the nodes",
    ),
    "a hyperedge": (
        xml('<hyperedge><endpoint node="c"/></hyperedge>'),
        ":2: a <hyperedge> joins any number of nodes; replace it by a node with links",
    ),
    "a nested graph": (
        xml('<node id="hall"><graph edgedefault="undirected"/></node>'),
        ":2: node 'hall' contains a graph, and only flat ones are read; take its nodes out of it",
    ),
    "a rate too large": (rated("1e400"), ":2: link 'c' - 'b': rate_bps='1e400' must be a number"),
    "a rate of NaN": (rated("NaN"), ":2: link 'c' - 'b': rate_bps='NaN' must be a number"),
    "a rate below zero": (rated("-1"), ": topology.links[0].rate_bps: -1.0 must be greater than 0"),
    "a rate of minus infinity": (rated("-INF"), ":2: link 'c' - 'b': rate_bps='-INF' must be a number"),
    "a rate of a megabyte": (rated("1" * 1_000_000), f":2: link 'c' - 'b': rate_bps='{'1' * 57}...' must be a number"),
    "a key twice": (xml("", '<key id="k"/>'), ":1: two keys have the id 'k'; rename one"),
    "a value twice": (
        xml('<node id="x"><data key="k">edge</data><data key="k">cloud</data></node>'),
        ":2: the attribute 'kind' stands twice in one place; keep one",
    ),
}

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

HOSTILE = [
    pytest.param(suffix, content, message, id=f"{suffix} {name}")
    for suffix, rows in (("graphml", GRAPHML), ("json", JSON), ("yaml", YAML))
    for name, (content, message) in rows.items()
]


class Refusal:
    """``fedsim validate`` in a folder of its own."""

    def __init__(self, folder: Path, output: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._output = output

    def check(self, topology: str, message: str) -> None:
        """One message is said, of a scenario with this topology, and nothing is written."""
        scenario = self._folder / "scenario.yaml"
        scenario.write_text(PLANT.replace("FILE", topology), encoding="utf-8")
        before = sorted(self._folder.rglob("*"))
        status = main(["validate", "scenario.yaml"])
        said = self._output.readouterr()
        pattern = re.escape(message).replace(re.escape("..."), "[^\n]*")
        assert re.fullmatch(f"fedsim: {pattern}\n", said.err), f"{said.err}expected: {message}"
        assert (status, said.out) == (2, "")
        assert len(said.err) < 500
        assert said.err.strip().isprintable()
        assert sorted(self._folder.rglob("*")) == before


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    monkeypatch.chdir(tmp_path)
    return Refusal(tmp_path, capsys)


@pytest.mark.parametrize(("suffix", "content", "message"), HOSTILE)
def test_hostile_content_is_refused_in_one_message(
    suffix: str, content: str | bytes, message: str, refused: Refusal
) -> None:
    Path(f"plant.{suffix}").write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    found_later = message.startswith((": topology", ":...: topology")) or re.match(r":\d+: topology", message)
    where = "" if found_later else "scenario.yaml:4: topology: "
    refused.check(f"plant.{suffix}", f"{where}plant.{suffix}{message}")


# What is no file of text at all


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_folder(path: Path) -> None:
    path.mkdir()


def a_circle(path: Path) -> None:
    path.symlink_to("other")
    Path("other").symlink_to(path)


def a_dead_end(path: Path) -> None:
    path.symlink_to("elsewhere")


def a_memory(path: Path) -> None:
    path.symlink_to("/proc/self/mem")
    if not path.exists():
        pytest.skip("there is no such file but on Linux")


def a_terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**12)  # a hole


def nothing(path: Path) -> None:
    pass


SPECIAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (a_pipe, "is a pipe, and WHAT must be a regular file; save its content in one"),
    "a device": (a_device, "is a device, and WHAT must be a regular file; save its content in one"),
    "a folder": (a_folder, "is a folder; the path of WHAT is needed"),
    "a circle of links": (a_circle, "cannot be read (Too many levels of symbolic links)"),
    "a link to nothing": (a_dead_end, "there is no such file: the link leads to 'elsewhere', which is not there"),
    "nothing": (nothing, "there is no such file"),
    "a terabyte": (a_terabyte, "is too large: WHAT is at most ... MB"),
    "memory": (a_memory, "cannot be read (Input/output error)"),
}


@pytest.mark.parametrize("suffix", ["graphml", "json", "yaml"])
@pytest.mark.parametrize(("make", "message"), SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_file_of_text_is_neither_waited_for_nor_read(
    make: Callable[[Path], None], message: str, suffix: str, refused: Refusal
) -> None:
    path = Path(f"plant.{suffix}")
    make(path)
    what = "a YAML file" if suffix == "yaml" else "a topology file"
    refused.check(str(path), f"scenario.yaml:4: topology: {path}: {message.replace('WHAT', what)}")
    if suffix != "yaml":
        told = message.replace("WHAT", "a graph file")
        refused.check(f"{{name: imported, path: {path}}}", f"scenario.yaml:4: topology.path: {path}: {told}")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("no\nsuch.json", r"no\nsuch.json"),
        ("no\x1bsuch.json", r"no\x1bsuch.json"),
        ("x" * 1_000 + ".json", "x" * 197 + "..."),
    ],
    ids=["newline", "escape", "long"],
)
def test_a_strange_path_is_shown_on_one_short_line(name: str, shown: str, refused: Refusal) -> None:
    written = json.dumps(name)
    refused.check(written, f"scenario.yaml:4: topology: {shown}: ...")
    refused.check(f"{{name: imported, path: {written}}}", f"scenario.yaml:4: topology.path: {shown}: ...")


def test_so_is_the_path_of_a_file_with_wrong_content(refused: Refusal) -> None:
    for suffix, message in (("json", "this is not JSON: ..."), ("graphml", "this is not GraphML: ...")):
        Path(f"no\x1bsuch.{suffix}").touch()
        path = rf"no\x1bsuch.{suffix}"
        place = ":1:1" if suffix == "graphml" else ""
        refused.check(f'"{path}"', f"scenario.yaml:4: topology: {path}{place}: {message}")
        refused.check(
            f'{{name: imported, path: "{path}"}}', f"scenario.yaml:4: topology.path: {path}{place}: {message}"
        )


# What is unusual and means no harm


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plant.graphml", BOM + FINE.encode()),
        ("plant.graphml", FINE.replace("\n", "\r\n").encode()),
        ("plant.graphml", xml(f"<!-- {WIRE} -->{WIRE}", before='<?xml version="1.0" encoding="US-ASCII"?>').encode()),
        ("plant.graphml", xml(f'<node id="x"><data key="k">edge</data><port name="p"/></node>{AT_A_PORT}').encode()),
        ("plant.graphml", xml(f'<x xmlns="y"><node/>text</x>{WIRE}<desc>text</desc>').encode()),
        ("plant.graphml", rated("<![CDATA[1]]>e&#54;").encode()),
        ("plant.json", BOM + drawn().encode()),
        ("plant.json", drawn().replace(" ", "\r\n").encode()),
        ("plant.json", drawn(colour='[{"r": 1e4, "g": null}]', position_m="[1, 2.5]").encode()),
        ("plant.yaml", BOM + written().replace("\n", "\r\n").encode()),
    ],
    ids=[
        "a byte order mark",
        "Windows line ends",
        "a comment",
        "ports",
        "other vocabularies",
        "character data",
        "a byte order mark in JSON",
        "Windows line ends in JSON",
        "other attributes",
        "both in YAML",
    ],
)
def test_what_is_unusual_but_harmless_is_read(
    name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    Path("scenario.yaml").write_text(PLANT.replace("FILE", name), encoding="utf-8")
    status = main(["validate", "scenario.yaml"])
    said = capsys.readouterr()
    assert (status, said.err) == (0, "")
    assert said.out.startswith("scenario.yaml is fine: 1 client,")


# Memory


READ_ONE = """
import re, sys
from pathlib import Path
from fedsim.errors import UserError
from fedsim.topology.readers import read_topology_data
path = Path(sys.argv[1])
try:
    print(len(read_topology_data(path, path.read_text("utf-8"))["nodes"]), "nodes")
except UserError as error:
    print(error)
# Not `resource.getrusage`: Linux counts there what the process that began this one had at its most.
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
"""

BOMBS: dict[str, tuple[str, Callable[[], str], str]] = {
    "attributes": (
        "graphml",
        lambda: xml("<x " + " ".join(f"a{i:x}=''" for i in range(990_000)) + "/>"),
        "<x> is no element of GraphML",
    ),
    "tags": (
        "graphml",
        lambda: xml('<x xmlns="y">' + "".join(f"<y{i:x}/>" for i in range(1_990_000)) + "</x>"),
        "3 nodes",
    ),
    "defaults of every node": (
        "graphml",
        lambda: xml(
            "".join(f'<node id="{i}"/>' for i in range(250_000)),
            "".join(f'<key id="k{i}" for="node"><default>edge</default></key>' for i in range(997))
            + '<key id="all" for="node" attr.name="kind"><default>edge</default></key>',
        ),
        "250003 nodes",
    ),
    "nodes": (
        "graphml",
        lambda: xml("".join(f'<node id="{i}"/>' for i in range(600_000))),
        "there are more than 300,000 nodes",
    ),
    "entities": ("graphml", lambda: BOMB, "must not contain <!DOCTYPE"),
    "keys of one object": (
        "json",
        lambda: drawn("{" + ",".join(f'"k{i}":0' for i in range(990_000)) + ',"id":1}'),
        "there are more than 1,000 different attributes",
    ),
    "small objects": (
        "json",
        lambda: drawn(",".join(f'{{"id":{i},"kind":"edge"}}' for i in range(290_000))),
        "290003 nodes",
    ),
    "texts": ("json", lambda: drawn(",".join(['"0123456789abcdef"'] * 990_000)), "must be an object"),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in other units elsewhere")
@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [  # each takes seconds of a process
        pytest.param(*bomb, id=name, marks=() if name == "nodes" else pytest.mark.long) for name, bomb in BOMBS.items()
    ],
)
def test_no_file_below_the_limits_takes_half_a_gigabyte(
    suffix: str, content: Callable[[], str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / f"bomb.{suffix}"
    path.write_text(content(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", READ_ONE, path], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    said, peak_bytes = done.stdout.splitlines()
    assert message in said
    assert int(peak_bytes) < 500e6


# Whatever else somebody, or a broken disk, may do to a file that was fine


IMPORTED = {
    "kind_attribute": "kind",
    "rate_attribute": "rate_bps",
    "rate_bps": 1e9,
    "directed": "merge",
    "parallel": "sum",
}


def read_in_both_ways(path: Path, text: str) -> None:
    """As a file that says what nodes are, and as one whose words are explained. Only `UserError` may come out."""
    try:
        Explicit.model_validate(read_topology_data(path, text)).build()
    except UserError as error:
        assert str(path) in str(error)
        assert str(error).isprintable()
    except ValidationError as error:
        assert error.error_count() > 0
    try:
        network(read_drawn(path, text), Imported.model_construct(**IMPORTED))
    except UserError as error:
        assert str(error).isprintable()


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    """*whole* with some pieces lost, doubled, replaced or moved."""
    positions = st.integers(0, len(whole))
    pieces = st.tuples(positions, positions).map(lambda ends: slice(*sorted(ends)))
    signs = st.sampled_from([b"<", b">", b"&", b'"', b"'", b"/", b"=", b"{", b"}", b"[", b"]", b",", b":", b"\\", b"-"])
    strange = st.sampled_from(["\0", "\ufeff", "\u202e", "\U0001f3ed", "&#0;", "1e400", "NaN", "null"]).map(str.encode)

    def lose(content: bytes, piece: slice, _: bytes) -> bytes:
        return content[: piece.start] + content[piece.stop :]

    def double(content: bytes, piece: slice, _: bytes) -> bytes:
        return content[: piece.stop] + content[piece.start :]

    def insert(content: bytes, piece: slice, new: bytes) -> bytes:
        return content[: piece.start] + new + content[piece.start :]

    def replace(content: bytes, piece: slice, new: bytes) -> bytes:
        return content[: piece.start] + new + content[piece.start + len(new) :]

    def move(content: bytes, piece: slice, _: bytes) -> bytes:
        return lose(content, piece, b"") + content[piece]

    change = st.tuples(
        st.sampled_from([lose, double, insert, replace, move]), pieces, signs | strange | st.binary(max_size=3)
    )

    def apply(changes: list[Any]) -> bytes:
        content = whole
        for how, piece, new in changes:
            content = how(content, piece, new)
        return content

    return st.lists(change, min_size=1, max_size=4).map(apply)


@given(damaged(xml(f"{RATED}<desc>x</desc>", '<key id="d" attr.name="device"><default>a</default></key>').encode()))
@example(FINE.encode())
def test_no_damage_to_graphml_ends_in_a_traceback(content: bytes) -> None:
    read_in_both_ways(Path("plant.graphml"), content.decode("utf-8", errors="ignore"))


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
