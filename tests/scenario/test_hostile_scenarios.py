"""Broken and hostile files in the place of a scenario: each is one message, and nothing else happens.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import CHECK, PLANT, Content, Refusals, but

from fedsim.cli import main

LAUGHING_LISTS = "a0: &a0 [ha]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


# name: what the scenario is, or what makes something else in its place; the message
WRITTEN: dict[str, tuple[Content, str]] = {
    "a huge number for a key": (PLANT + "9" * 1_000 + ": 1\n",
        "plant.yaml:19:1: a key is text; 9... is a number: put it into quotes"),
    # bombs
    "a billion laughs": (PLANT + LAUGHING_LISTS,
        "plant.yaml:25:30: more than 1000000 values (aliases written out); put data into another file"),
    "a quadratic blow-up": (PLANT + f"a: &a [{'1, ' * 9_999}1]\nb: [{'*a, ' * 150}1]\n",
        "plant.yaml:20:401: more than 1000000 values (aliases written out); put data into another file"),
    "a long text repeated": (PLANT + f"a: &a {'x' * 90_000}\nb: [{'*a, ' * 20_000}1]\n",
        "plant.yaml:19: a: unknown key (keys: ...)\nplant.yaml:20: b: unknown key (keys: ...)"),
    "a bomb of merge keys": (PLANT + "a: &a {b: 1}\nc: {<<: *a}\n",
        "plant.yaml:20:5: merge keys (<<) are not part of YAML 1.2; write the keys out"),
    "a list inside itself": (PLANT + "x: &x [*x]\n",
        "plant.yaml:19:8: the alias *x stands inside its own anchor (line 19)"),
    "the whole inside itself": ("&x\nname: plant\nstop: *x\n",
        "plant.yaml:3:7: the alias *x stands inside its own anchor (line 1)"),
    "an alias for a key": (PLANT + "? &k x\n: 1\n*k : 2\n",
        "plant.yaml:21:1: the alias *k cannot be a key; write the key out"),
    "too large a file": (PLANT + "# " * 10_000_000, "plant.yaml: is too large: a YAML file is at most 20 MB"),
    # tags
    "a tag on a key": (PLANT + "!!str x: 1\n", "plant.yaml:19:1: the tag '!!str' is not allowed; ..."),
    "a directive that nobody knows": ("%INCLUDE /etc/passwd\n---\n" + PLANT,
        "plant.yaml:1:9: found unknown directive name"),
    # documents and nesting
    "two scenarios": (f"{PLANT}---\n{PLANT}", "plant.yaml:19:1: a second document starts here; a file holds one"),
    "text after the end": (PLANT + "...\nname: x\n", "plant.yaml:20:1: did not find expected <document start>"),
    "a hundred thousand brackets": (PLANT + "x: " + "[" * 100_000,
        "plant.yaml:19:53: lists and mappings are nested more than 50 deep"),
    "a depth made of aliases": (PLANT + "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60)),
        "plant.yaml:68:12: lists and mappings are nested more than 50 deep"),
    # characters
    "UTF-16": (PLANT.encode("utf-16"), "plant.yaml:1: is not UTF-8 text (byte 0xff); save the file as UTF-8"),
    "Latin-1": (but("plant engineer", "Werksträger").encode("latin-1"),
        "plant.yaml:1: is not UTF-8 text (byte 0xe4); save the file as UTF-8"),
    "half a character": (PLANT.encode() + b"# \xe2\x82",
        "plant.yaml:19: is not UTF-8 text (byte 0xe2); save the file as UTF-8"),
    "a packed scenario": (gzip.compress(PLANT.encode()),
        "plant.yaml: is compressed (gzip), and text is needed; unpack it"),
    "a key of a terminal escape": (PLANT + r'"\e]0;hacked\a": 1' + "\n",
        'plant.yaml:19: "\\u001b]0;hacked\\u0007": unknown key (keys: ...)'),
    # structure
    "an empty file": ("", "plant.yaml:1:1: a scenario is a mapping (key: value); this is empty"),
    "only comments": ("# name: plant\n# seeds: [1]\n",
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is empty"),
    "a list": ("- name: plant\n- seeds: [1]\n",
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is a list"),
    "JSON of a list": ("[{\"name\": \"plant\"}]",
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is a list"),
    "INI": ("[plant]\nseeds = 1\n", "plant.yaml:2:1: did not find expected <document start>"),
    "tabs": (PLANT.replace("  ", "\t"),
        "plant.yaml:8:1: found character that cannot start any token; YAML indents with spaces, not with tabs"),
    "a colon alone": (PLANT + ": x\n",
        "plant.yaml:19:1: did not find expected key (while parsing a block mapping that starts in line 2)..."),
    "lines that end as they did on a Macintosh": (PLANT.replace("\n", "\r").replace("seeds: [1, 2]", "seeds: [-1]"),
        "plant.yaml:3: seeds[0]: -1 must be at least 0"),
    "lines that end as on Windows": (PLANT.replace("\n", "\r\n").replace("seeds: [1, 2]", "seeds: [-1]"),
        "plant.yaml:3: seeds[0]: -1 must be at least 0"),
    "a null key": (PLANT + "~: 1\n", "plant.yaml:19:1: a key is text; ~ is empty: put it into quotes"),
    "a truth value for a key": (PLANT + "true: 1\n",
        "plant.yaml:19:1: a key is text; true is a truth value: put it into quotes"),
    "a number for a key": (PLANT + "2024: 1\n",
        "plant.yaml:19:1: a key is text; 2024 is a number: put it into quotes"),
    "a list for a key": (PLANT + "[a, b]: 1\n",
        "plant.yaml:19:1: a key is text; this is a list (put text with brackets into quotes)"),
    "a key of a megabyte": (PLANT + "? " + "x" * 1_000_000 + "\n: 1\n",
        "plant.yaml:19:3: the key 'x...' has 1000000 characters, and a key has at most 1024"),
    # files
    "a folder for a scenario": (a_folder, "plant.yaml: is a folder; the path of a YAML file is needed"),
    "a pipe for a scenario": (a_pipe, "plant.yaml: is a pipe, and a YAML file must be a regular file; ..."),
    "a link to itself": (a_link_to("plant.yaml"), "plant.yaml: cannot be read (Too many levels of symbolic links)"),
    "a link to nothing": (a_link_to("nowhere.yaml"),
        "plant.yaml: there is no such file: the link leads to 'nowhere.yaml', which is not there"),
    "a link to zeros without end": (a_link_to("/dev/zero"),
        "plant.yaml: is a device, and a YAML file must be a regular file; ..."),
}  # fmt: skip


def test_without_a_change_all_is_fine(refused: Refusals, capsys: pytest.CaptureFixture[str]) -> None:
    (refused.folder / "plant.yaml").write_text(PLANT)
    assert main(CHECK) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("content", "message"), WRITTEN.values(), ids=WRITTEN)
def test_what_is_broken_or_hostile_is_one_message_and_nothing_else(
    content: Content, message: str, refused: Refusals
) -> None:
    refused.check(content, CHECK, message)
