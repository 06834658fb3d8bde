"""Whatever stands where a topology file should be: one message with its place; no traceback, no waiting, no flood.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_topologies import BOM, BOMB, FINE, PLANT, WIRE, Refusal, drawn, rated, written, xml

from fedsim.cli import main

AT_A_PORT = '<edge source="x" target="c" sourceport="p"/><edge source="x" target="b"/>'

# What is no file of text at all


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**12)  # a hole


def nothing(path: Path) -> None:
    pass


SPECIAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (os.mkfifo, "is a pipe, and WHAT must be a regular file; save its content in one"),
    "a device": (a_device, "is a device, and WHAT must be a regular file; save its content in one"),
    "nothing": (nothing, "there is no such file"),
    "a terabyte": (a_terabyte, "is too large: WHAT is at most ... MB"),
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
from fedsim.topology.imported import read_topology_data
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
