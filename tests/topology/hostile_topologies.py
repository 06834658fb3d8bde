"""Topology files that are fine, bombs, damage, and what must become of a wrong one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import ValidationError
from said import assert_said

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.topology.explicit import Explicit
from fedsim.topology.files.network import network
from fedsim.topology.imported import Imported, read_drawn, read_topology_data

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


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
BOMB = f'<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY e0 "ha">{ENTITIES}]>\n{xml("&e9;")}'
MANY = "a" * 1_000_000
CUT = "a" * 57 + "..."


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
        assert_said(f"fedsim: {message}\n", said.err)
        assert (status, said.out) == (2, "")
        assert len(said.err) < 500
        assert said.err.strip().isprintable()
        assert sorted(self._folder.rglob("*")) == before

    def check_content(self, suffix: str, content: str | bytes, message: str) -> None:
        """One message is said, of a topology file with this content; *message* comes after its name."""
        Path(f"plant.{suffix}").write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        found_later = message.startswith((": topology", ":...: topology")) or re.match(r":\d+: topology", message)
        where = "" if found_later else "scenario.yaml:4: topology: "
        self.check(f"plant.{suffix}", f"{where}plant.{suffix}{message}")


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
