"""Broken and hostile files in the place of a scenario: each is one message, and nothing else happens.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import CHECK, PLANT, Content, Refusals, but

from fedsim.cli import main

LAUGHING_LISTS = "a0: &a0 [ha]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
LAUGHING_MAPPINGS = "a0: &a0 {x: ha}\n" + "".join(
    f"a{level}: &a{level} {{{', '.join(f'k{key}: *a{level - 1}' for key in range(10))}}}\n" for level in range(1, 12)
)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def a_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


# name: what the scenario is, or what makes something else in its place; the message
WRITTEN: dict[str, tuple[Content, str]] = {
    # bombs
    "a billion laughs": (PLANT + LAUGHING_LISTS,
        "plant.yaml:25:30: more than 1000000 values (aliases written out); put data into another file"),
    "a billion laughs in mappings": (PLANT + LAUGHING_MAPPINGS,
        "plant.yaml:25:46: more than 1000000 values (aliases written out); put data into another file"),
    "a quadratic blow-up": (PLANT + f"a: &a [{'1, ' * 9_999}1]\nb: [{'*a, ' * 150}1]\n",
        "plant.yaml:20:401: more than 1000000 values (aliases written out); put data into another file"),
    "a long text repeated": (PLANT + f"a: &a {'x' * 90_000}\nb: [{'*a, ' * 20_000}1]\n",
        "plant.yaml:19: a: unknown key (keys: ...)\nplant.yaml:20: b: unknown key (keys: ...)"),
    "a bomb in a list of the scenario": (
        but("seeds: [1, 2]", f"seeds: &a [{'1, ' * 999}1]\nevaluate: {{on: [{'*a, ' * 900}1]}}"),
        "plant.yaml:4: evaluate.on[0]: [1, ... is a list; 'global', 'clients', 'unseen' or 'own' is needed"),
    "a bomb of merge keys": (PLANT + "a: &a {b: 1}\nc: {<<: *a}\n",
        "plant.yaml:20:5: merge keys (<<) are not part of YAML 1.2; write the keys out"),
    "merge keys in a list": (PLANT + "a: &a {b: 1}\nc:\n  <<: [*a, *a]\n",
        "plant.yaml:21:3: merge keys (<<) are not part of YAML 1.2; write the keys out"),
    "a list inside itself": (PLANT + "x: &x [*x]\n",
        "plant.yaml:19:8: the alias *x stands inside its own anchor (line 19)"),
    "a mapping inside itself": (PLANT + "x: &x {y: {z: *x}}\n",
        "plant.yaml:19:15: the alias *x stands inside its own anchor (line 19)"),
    "the whole inside itself": ("&x\nname: plant\nstop: *x\n",
        "plant.yaml:3:7: the alias *x stands inside its own anchor (line 1)"),
    "an alias for a key": (PLANT + "? &k x\n: 1\n*k : 2\n",
        "plant.yaml:21:1: the alias *k cannot be a key; write the key out"),
    "too large a file": (PLANT + "# " * 10_000_000, "plant.yaml: is too large: a YAML file is at most 20 MB"),
    # tags
    "a tag on a key": (PLANT + "!!str x: 1\n", "plant.yaml:19:1: the tag '!!str' is not allowed; ..."),
    "a tag on the whole": ("!!python/object:fedsim.scenario.schema.Scenario\n" + PLANT,
        "plant.yaml:1:1: the tag '!!python/object:fedsim.scenario.schema.Scenario' is not allowed; ..."),
    "a tag by a directive": ("%TAG ! tag:yaml.org,2002:python/\n---\nseeds: !name:os.system x\n",
        "plant.yaml:3:8: the tag '!!python/name:os.system' is not allowed; ..."),
    "a directive that nobody knows": ("%INCLUDE /etc/passwd\n---\n" + PLANT,
        "plant.yaml:1:9: found unknown directive name"),
    "another version of YAML": ("%YAML 2.0\n---\n" + PLANT, "plant.yaml:1:1: found incompatible YAML document"),
    "a directive in the middle": (PLANT + "%YAML 1.2\n", "plant.yaml:20:1: did not find expected <document start>"),
    # documents and nesting
    "two scenarios": (f"{PLANT}---\n{PLANT}", "plant.yaml:19:1: a second document starts here; a file holds one"),
    "nothing and then a scenario": (f"---\n---\n{PLANT}",
        "plant.yaml:2:1: a second document starts here; a file holds one"),
    "text after the end": (PLANT + "...\nname: x\n", "plant.yaml:20:1: did not find expected <document start>"),
    "a hundred thousand brackets": (PLANT + "x: " + "[" * 100_000,
        "plant.yaml:19:53: lists and mappings are nested more than 50 deep"),
    "a hundred thousand braces": (PLANT + "x: " + "{a: " * 100_000,
        "plant.yaml:19:200: lists and mappings are nested more than 50 deep"),
    "a hundred thousand dashes": (PLANT + "x:\n  " + "- " * 100_000,
        "plant.yaml:20:101: lists and mappings are nested more than 50 deep"),
    "a hundred thousand question marks": (PLANT + "? " * 100_000,
        "plant.yaml:19:3: a key is text; this is a mapping (put text with brackets into quotes)"),
    "a mapping three thousand levels deep": ("".join(f"{' ' * n}a:\n" for n in range(3_000)),
        "plant.yaml:51:51: lists and mappings are nested more than 50 deep"),
    "a depth made of aliases": (PLANT + "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60)),
        "plant.yaml:68:12: lists and mappings are nested more than 50 deep"),
    # characters
    "UTF-16": (PLANT.encode("utf-16"), "plant.yaml:1: is not UTF-8 text (byte 0xff); save the file as UTF-8"),
    "UTF-16 without its mark": (PLANT.encode("utf-16-le"),
        "plant.yaml:1:2: the character U+0000 cannot stand in YAML; is this a text file?"),
    "UTF-16 the other way round": (PLANT.encode("utf-16-be"),
        "plant.yaml:1:1: the character U+0000 cannot stand in YAML; is this a text file?"),
    "UTF-32": (PLANT.encode("utf-32"), "plant.yaml:1: is not UTF-8 text (byte 0xff); save the file as UTF-8"),
    "Latin-1": (but("plant engineer", "Werksträger").encode("latin-1"),
        "plant.yaml:1: is not UTF-8 text (byte 0xe4); save the file as UTF-8"),
    "half a character": (PLANT.encode() + b"# \xe2\x82",
        "plant.yaml:19: is not UTF-8 text (byte 0xe2); save the file as UTF-8"),
    "a lone surrogate": (PLANT.encode() + b"# \xed\xa0\x80",
        "plant.yaml:19: is not UTF-8 text (byte 0xed); save the file as UTF-8"),
    "an overlong zero": (PLANT.encode() + b"# \xc0\x80",
        "plant.yaml:19: is not UTF-8 text (byte 0xc0); save the file as UTF-8"),
    "a packed scenario": (gzip.compress(PLANT.encode()),
        "plant.yaml: is compressed (gzip), and text is needed; unpack it"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "plant.yaml:1: is not UTF-8 text (byte 0x89); save the file as UTF-8"),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(100),
        "plant.yaml:1:1: the character U+007F cannot stand in YAML; is this a text file?"),
    "zeros": (bytes(1000), "plant.yaml:1:1: the character U+0000 cannot stand in YAML; is this a text file?"),
    "a key from right to left": (PLANT + "\u202enrael: false\n",
        'plant.yaml:19: "\\u202enrael": unknown key (keys: ...)'),
    "a key of a terminal escape": (PLANT + r'"\e]0;hacked\a": 1' + "\n",
        'plant.yaml:19: "\\u001b]0;hacked\\u0007": unknown key (keys: ...)'),
    "a key of two lines": (PLANT + r'"a\nb": 1' + "\n", 'plant.yaml:19: "a\\nb": unknown key (keys: ...)'),
    "a key with quotes": (PLANT + '\'a"b.c[0]\': 1\n', 'plant.yaml:19: "a\\"b.c[0]": unknown key (keys: ...)'),
    # structure
    "an empty file": ("", "plant.yaml:1:1: a scenario is a mapping (key: value); this is empty"),
    "only a mark": (b"\xef\xbb\xbf", "plant.yaml:1:1: a scenario is a mapping (key: value); this is empty"),
    "only comments": ("# name: plant\n# seeds: [1]\n",
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is empty"),
    "only white space": (" \n\n  \n", "plant.yaml:1:1: a scenario is a mapping (key: value); this is empty"),
    "only the start of a document": ("---\n", "plant.yaml:2:1: a scenario is a mapping (key: value); this is empty"),
    "a list": ("- name: plant\n- seeds: [1]\n",
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is a list"),
    "a text": ("name = plant", "plant.yaml:1:1: a scenario is a mapping (key: value); this is text"),
    "a number": ("42", "plant.yaml:1:1: a scenario is a mapping (key: value); this is a number"),
    "JSON of a list": ("[{\"name\": \"plant\"}]",
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is a list"),
    "INI": ("[plant]\nseeds = 1\n", "plant.yaml:2:1: did not find expected <document start>"),
    "Python": ("name = 'plant'\nseeds = [1, 2]\n",
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is text"),
    "tabs": (PLANT.replace("  ", "\t"),
        "plant.yaml:8:1: found character that cannot start any token; YAML indents with spaces, not with tabs"),
    "a colon alone": (PLANT + ": x\n",
        "plant.yaml:19:1: did not find expected key (while parsing a block mapping that starts in line 2)..."),
    "a key without a colon": (PLANT + "accounting\n",
        "plant.yaml:20:1: could not find expected ':' (while scanning a simple key that starts in line 19); ..."),
    "lines that end as they did on a Macintosh": (PLANT.replace("\n", "\r").replace("seeds: [1, 2]", "seeds: [-1]"),
        "plant.yaml:3: seeds[0]: -1 must be at least 0"),
    "lines that end as on Windows": (PLANT.replace("\n", "\r\n").replace("seeds: [1, 2]", "seeds: [-1]"),
        "plant.yaml:3: seeds[0]: -1 must be at least 0"),
    "a null key": (PLANT + "~: 1\n", "plant.yaml:19:1: a key is text; ~ is empty: put it into quotes"),
    "an empty key": (PLANT + '"": 1\n', 'plant.yaml:19: "": unknown key (keys: ...)'),
    "a truth value for a key": (PLANT + "true: 1\n",
        "plant.yaml:19:1: a key is text; true is a truth value: put it into quotes"),
    "a number for a key": (PLANT + "2024: 1\n",
        "plant.yaml:19:1: a key is text; 2024 is a number: put it into quotes"),
    "a fraction for a key": (PLANT + "1.5: 1\n",
        "plant.yaml:19:1: a key is text; 1.5 is a number: put it into quotes"),
    "infinity for a key": (PLANT + ".inf: 1\n",
        "plant.yaml:19:1: a key is text; .inf is a number: put it into quotes"),
    "a huge number for a key": (PLANT + "9" * 1_000 + ": 1\n",
        "plant.yaml:19:1: a key is text; 9... is a number: put it into quotes"),
    "a date for a key": (PLANT + "2024-01-31: 1\n", "plant.yaml:19: 2024-01-31: unknown key (keys: ...)"),
    "a list for a key": (PLANT + "[a, b]: 1\n",
        "plant.yaml:19:1: a key is text; this is a list (put text with brackets into quotes)"),
    "a mapping for a key": (PLANT + "{a: b}: 1\n",
        "plant.yaml:19:1: a key is text; this is a mapping (put text with brackets into quotes)"),
    "a block of text for a key": (PLANT + "? |\n  a\n  b\n: 1\n",
        'plant.yaml:19: "a\\nb\\n": unknown key (keys: ...)'),
    "a key of a megabyte": (PLANT + "? " + "x" * 1_000_000 + "\n: 1\n",
        "plant.yaml:19:3: the key 'x...' has 1000000 characters, and a key has at most 1024"),
    "a key of a megabyte without a question mark": (PLANT + "x" * 1_000_000 + ": 1\n",
        "plant.yaml:19:1000001: could not find expected ':'; ..."),
    "a key of a kilobyte": (PLANT + "x" * 1_000 + ": 1\n", 'plant.yaml:19: "x...": unknown key (keys: ...)'),
    # files
    "a folder for a scenario": (a_folder, "plant.yaml: is a folder; the path of a YAML file is needed"),
    "a pipe for a scenario": (a_pipe, "plant.yaml: is a pipe, and a YAML file must be a regular file; ..."),
    "a link to itself": (a_link_to("plant.yaml"), "plant.yaml: cannot be read (Too many levels of symbolic links)"),
    "a link to nothing": (a_link_to("nowhere.yaml"),
        "plant.yaml: there is no such file: the link leads to 'nowhere.yaml', which is not there"),
    "a link to zeros without end": (a_link_to("/dev/zero"),
        "plant.yaml: is a device, and a YAML file must be a regular file; ..."),
    "a link to nothing at all": (a_link_to("/dev/null"),
        "plant.yaml: is a device, and a YAML file must be a regular file; ..."),
    "a link to a folder": (a_link_to("/"), "plant.yaml: is a folder; the path of a YAML file is needed"),
    "a socket for a scenario": (a_socket, "plant.yaml: is a socket, and a YAML file must be a regular file; ..."),
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
