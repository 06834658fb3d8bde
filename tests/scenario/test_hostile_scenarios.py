"""Broken and hostile scenarios, overrides and places: each is one message and exit status 2, and nothing else happens.

Nothing is written, and no more than a few seconds and a few hundred megabytes are taken. In expected messages three
dots stand for anything on that line.
"""

from __future__ import annotations

import gzip
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from limits import limited

from fedsim.cli import main

PLANT = """\
# what a plant engineer starts from
name: plant
seeds: [1, 2]
learn: true
stop: {rounds: 2}
topology: {name: star, devices: 4}
network:
  cell:
    radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}
  link: {rate_bps: 1.0e+9, delay_s: 0.001}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 0.5}
  - {name: fedprox, fraction: 0.5, mu: 0.1}
"""

LAUGHING_LISTS = "a0: &a0 [ha]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
LAUGHING_MAPPINGS = "a0: &a0 {x: ha}\n" + "".join(
    f"a{level}: &a{level} {{{', '.join(f'k{key}: *a{level - 1}' for key in range(10))}}}\n" for level in range(1, 12)
)


def but(old: str, new: str) -> str:
    assert PLANT.count(old) == 1, f"{old!r} stands {PLANT.count(old)} times in the scenario"
    return PLANT.replace(old, new)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def a_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


Content = str | bytes | Callable[[Path], None]

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
        "plant.yaml:4: evaluate.on[0]: [1, ... is a list; 'global', 'clients' or 'unseen' is needed"),
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
        'plant.yaml:19: "\\u202enrael": unknown key; ... (keys: ...)'),
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
        "plant.yaml:19:1: did not find expected key (while parsing a block mapping that starts in line 2)"),
    "a key without a colon": (PLANT + "accounting\n",
        "plant.yaml:20:1: could not find expected ':' (while scanning a simple key that starts in line 19)"),
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
        "plant.yaml:19:1000001: could not find expected ':'"),
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

# name: what stands in the scenario, and what stands there instead; the message, after the name of the file
CHANGED: dict[str, tuple[str, str, str]] = {
    # bombs
    "an alias without an anchor": ("seeds: [1, 2]", "seeds: *seed", "3:8: there is no anchor &seed before this alias"),
    "an alias before its anchor": ("seeds: [1, 2]", "seeds: *s\nevaluate: &s {every: 1}",
        "3:8: there is no anchor &s before this alias"),
    "a misspelt alias": ("name: plant", "name: &plant plant\ndescription: *palnt",
        "3:14: there is no anchor &palnt before this alias; did you mean 'plant'?"),
    "an anchor that stands twice": ("seeds: [1, 2]", "seeds: [&s 1, &s 2]",
        "3:15: the anchor &s stands twice: in line 3 and here"),
    "an anchor without use": ("learning_rate: 0.1", "learning_rate: &rate -1",
        "15: training.learning_rate: -1 must be greater than 0"),
    "an anchored alias": ("seeds: [1, 2]", "seeds: &a [1]\ndescription: &b *a",
        "4:17: did not find expected key (while parsing a block mapping that starts in line 2)"),
    "too many entries": ("seeds: [1, 2]", f"seeds: [{'1, ' * 250_001}]",
        "3:750009: a list has more than 250000 entries here; put data into another file"),
    "too many anchors": ("seeds: [1, 2]", "seeds:\n" + "".join(f"- &a{n} 1\n" for n in range(10_001)),
        "10004:3: there are more than 10000 anchors; put data into another file"),
    "too many seeds": ("seeds: [1, 2]", f"seeds: [{', '.join(map(str, range(10_001)))}]",
        "3: seeds: [0, 1, ... must have a length of at most 10000"),
    "too many protocols": ("protocols:\n", "protocols:\n" + "  - {name: fedavg, clients: 1}\n" * 1_001,
        "16: protocols: [{name: 'fedavg', ... must have a length of at most 1000"),
    "very many mistakes": ("seeds: [1, 2]", f"seeds: [{'-1, ' * 200_000}]", "3: seeds[0]: -1 must be at least 0"),
    "very many mistakes in a mapping": ("    camera: {",
        "".join(f"    c{n}: {{compute: {{name: x}}, y: 1}}\n" for n in range(20_000)) + "    camera: {",
        "13: devices.classes.c0.compute.name: no compute is called 'x' (known: ...)\n"
        "plant.yaml:13: devices.classes.c0.y: unknown key (keys: ...)"),
    "too many mistakes": ("seeds: [1, 2]", f"seeds: [{'-1, ' * 20_000}]",
        "3: seeds[0]: -1 must be at least 0\n"
        "plant.yaml:3: seeds[1]: -1 must be at least 0\n"
        "plant.yaml:3: seeds[2]: -1 must be at least 0\n"
        "plant.yaml:3: seeds[3]: -1 must be at least 0\n"
        "plant.yaml:3: seeds[4]: -1 must be at least 0\n"
        "(and 19995 more)"),
    # tags
    "a Python object": ("seeds: [1, 2]", "seeds: !!python/object:os.system [ls]",
        "3:8: the tag '!!python/object:os.system' is not allowed; ..."),
    "a call": ("seeds: [1, 2]", 'seeds: !!python/object/apply:os.system ["touch hacked"]',
        "3:8: the tag '!!python/object/apply:os.system' is not allowed; ..."),
    "a new object": ("seeds: [1, 2]", 'seeds: !!python/object/new:subprocess.Popen [["touch", "hacked"]]',
        "3:8: the tag '!!python/object/new:subprocess.Popen' is not allowed; ..."),
    "a Python name": ("seeds: [1, 2]", "seeds: !!python/name:os.system",
        "3:8: the tag '!!python/name:os.system' is not allowed; ..."),
    "a Python module": ("seeds: [1, 2]", "seeds: !!python/module:hacked",
        "3:8: the tag '!!python/module:hacked' is not allowed; ..."),
    "a Python tuple": ("seeds: [1, 2]", "seeds: !!python/tuple [1, 2]",
        "3:8: the tag '!!python/tuple' is not allowed; ..."),
    "binary data": ("seeds: [1, 2]", "seeds: !!binary cGxhbnQ=", "3:8: the tag '!!binary' is not allowed; ..."),
    "a set": ("seeds: [1, 2]", "seeds: !!set {1, 2}", "3:8: the tag '!!set' is not allowed; ..."),
    "an ordered mapping": ("seeds: [1, 2]", "seeds: !!omap [a: 1]", "3:8: the tag '!!omap' is not allowed; ..."),
    "a timestamp": ("seeds: [1, 2]", "seeds: !!timestamp 2024-01-31",
        "3:8: the tag '!!timestamp' is not allowed; ..."),
    "a whole number by its tag": ("seeds: [1, 2]", 'seeds: !!int "3"', "3:8: the tag '!!int' is not allowed; ..."),
    "text by its tag": ("seeds: [1, 2]", "seeds: !!str 3", "3:8: the tag '!!str' is not allowed; ..."),
    "null by its tag": ("seeds: [1, 2]", 'seeds: !!null ""', "3:8: the tag '!!null' is not allowed; ..."),
    "a private tag": ("seeds: [1, 2]", "seeds: !secret x", "3:8: the tag '!secret' is not allowed; ..."),
    "a tag of no name": ("seeds: [1, 2]", "seeds: ! 3", "3:8: the tag '!' is not allowed; ..."),
    "a tag in full": ("seeds: [1, 2]", "seeds: !<tag:yaml.org,2002:python/name:os.system> x",
        "3:8: the tag '!!python/name:os.system' is not allowed; ..."),
    "a long tag": ("seeds: [1, 2]", f"seeds: !{'x' * 100_000} 1", "3:8: the tag '!x...' is not allowed; ..."),
    "a tag by an unknown handle": ("seeds: [1, 2]", "seeds: !e!x 1", "3:8: found undefined tag handle"),
    # numbers
    "too large for a float": ("learning_rate: 0.1", "learning_rate: 1e400",
        "15:27: 1e400 is too large for a number; write .inf for unlimited"),
    "too small for a float": ("learning_rate: 0.1", "learning_rate: 1e-400",
        "15:27: 1e-400 is too small for a number; write 0 for nothing"),
    "the smallest float": ("learning_rate: 0.1", "learning_rate: 5e-324",
        "15: training.learning_rate: 5e-324 must be at least 1e-18"),
    "an endless exponent": ("learning_rate: 0.1", "learning_rate: 1e99999999999999999999",
        "15:27: 1e99999999999999999999 is too large for a number; write .inf for unlimited"),
    "a huge learning rate": ("learning_rate: 0.1", "learning_rate: 1e300",
        "15: training.learning_rate: 1e+300 must be at most 1e+18"),
    "an infinite learning rate": ("learning_rate: 0.1", "learning_rate: .inf",
        "15: training.learning_rate: .inf must be finite"),
    "minus infinity": ("learning_rate: 0.1", "learning_rate: -.inf",
        "15: training.learning_rate: -.inf must be finite"),
    "not a number": ("learning_rate: 0.1", "learning_rate: .NaN", "15: training.learning_rate: .nan is not a number"),
    "not a number for a rate": ("uplink_bps: 1.0e+6", "uplink_bps: .nan",
        "9: network.cell.radio.uplink_bps: .nan is not a number"),
    "minus zero": ("learning_rate: 0.1", "learning_rate: -0.0",
        "15: training.learning_rate: -0.0 must be greater than 0"),
    "a rate of next to nothing": ("uplink_bps: 1.0e+6", "uplink_bps: 1e-308",
        "9: network.cell.radio.uplink_bps: 1e-308 must be at least 1e-18"),
    "a rate of nearly infinity": ("uplink_bps: 1.0e+6", "uplink_bps: 1e308",
        "9: network.cell.radio.uplink_bps: 1e+308 must be at most 1e+18, or .inf for no limit"),
    "a rate below nothing": ("uplink_bps: 1.0e+6", "uplink_bps: -.inf",
        "9: network.cell.radio.uplink_bps: -.inf must be greater than 0"),
    "an endless delay": ("delay_s: 0.001", "delay_s: .inf", "10: network.link.delay_s: .inf must be finite"),
    "a delay beyond the universe": ("delay_s: 0.001", "delay_s: 1e300",
        "10: network.link.delay_s: 1e+300 must be at most 1e+18"),
    "a mole of epochs": ("batch_size: 8", "batch_size: 8, epochs: 602214076000000000000000",
        "15: training.epochs: 602214076000000000000000 must be at most 1000000000"),
    "more rounds than a table holds": ("rounds: 2", "rounds: 1000000000000000000000000000000",
        "5: stop.rounds: 1000000000000000000000000000000 must be at most 1000000000"),
    "as many devices as grains of sand": ("devices: 4", "devices: 1000000000000",
        "6: topology.devices: 1000000000000 must be at most 1000000"),
    "a share of a quark": ("fraction: 0.5}\n  - {name: fedprox", "fraction: 1e-300}\n  - {name: fedprox",
        "17: protocols[0].fraction: 1e-300 must be at least 1e-18"),
    "asking everybody for ever": ("mu: 0.1", "mu: 0.1, over_selection: 1e308",
        "18: protocols[1].over_selection: 1e+308 must be at most 1e+18"),
    "a spring of steel": ("mu: 0.1", "mu: 1e300", "18: protocols[1].mu: 1e+300 must be at most 1e+18"),
    "a chance of one": ("batch_size: 8", "batch_size: 8, momentum: 1.0",
        "15: training.momentum: 1.0 must be less than 1"),
    "a chance below nothing": ("batch_size: 8", "batch_size: 8, momentum: -1e-300",
        "15: training.momentum: -1e-300 must be at least 0"),
    "a fast computer": ("flops_per_s: 1.0e+9", "flops_per_s: 1e300",
        "13: devices.classes.camera.compute.flops_per_s: 1e+300 must be at most 1e+18, or .inf for no limit"),
    "a model of all atoms": ("model: {name: softmax}", "model: {name: declared, parameters: 1e80}",
        "14: model.parameters: 1e+80 must be at most 1e+15"),
    "wide layers": ("model: {name: softmax}", "model: {name: mlp, hidden: [1000000000]}",
        "14: model.hidden[0]: 1000000000 must be at most 10000"),
    "a seed of 64 bits": ("seeds: [1, 2]", "seeds: [9223372036854775808]",
        "3: seeds[0]: 9223372036854775808 must be less than 9223372036854775808"),
    "a seed below nothing": ("seeds: [1, 2]", "seeds: [-1]", "3: seeds[0]: -1 must be at least 0"),
    "a seed in decimals": ("seeds: [1, 2]", "seeds: [1.0]",
        "3: seeds[0]: 1.0 is written with a point or an exponent; a whole number is needed: write 1"),
    "a seed in the exponent": ("seeds: [1, 2]", "seeds: [1e3]",
        "3: seeds[0]: 1000.0 is written with a point or an exponent; a whole number is needed: write 1000"),
    "underscores": ("batch_size: 8", "batch_size: 1_000",
        "15: training.batch_size: '1_000' is text; a whole number is needed: write 1000"),
    "base 60": ("batch_size: 8", "batch_size: 1:30",
        "15: training.batch_size: '1:30' is text; a whole number is needed"),
    "base 2": ("batch_size: 8", "batch_size: 0b11",
        "15: training.batch_size: '0b11' is text; a whole number is needed"),
    "no octal digit": ("batch_size: 8", "batch_size: 0o9",
        "15: training.batch_size: '0o9' is text; a whole number is needed"),
    "a sum": ("batch_size: 8", "batch_size: 4+4", "15: training.batch_size: '4+4' is text; a whole number is needed"),
    "two signs": ("batch_size: 8", "batch_size: +-8",
        "15: training.batch_size: '+-8' is text; a whole number is needed"),
    "digits of another script": ("batch_size: 8", "batch_size: \u0668",
        "15: training.batch_size: '\u0668' is text; a whole number is needed"),
    "wide digits": ("batch_size: 8", "batch_size: \uff18",
        "15: training.batch_size: '\uff18' is text; a whole number is needed"),
    "a half": ("learning_rate: 0.1", "learning_rate: ½",
        "15: training.learning_rate: '½' is text; a number is needed"),
    "a product": ("uplink_bps: 1.0e+6", "uplink_bps: 1×10⁶",
        "9: network.cell.radio.uplink_bps: '1×10⁶' is text; a number is needed, in bit/s"),
    "a unit beyond all rates": ("uplink_bps: 1.0e+6", "uplink_bps: 9e307 Mbps",
        "9: network.cell.radio.uplink_bps: '9e307 Mbps' is text; a number is needed, in bit/s"),
    "a hundred thousand digits": ("batch_size: 8", f"batch_size: {'9' * 100_000}",
        "15:44: 9... has 100000 digits; a whole number has at most 300"),
    "three hundred digits": ("batch_size: 8", f"batch_size: {'9' * 300}",
        "15: training.batch_size: 9... must be at most 1000000000"),
    "a hundred thousand hexadecimal digits": ("batch_size: 8", f"batch_size: 0x{'f' * 100_000}",
        "15:44: the text has 100002 characters, and a text has at most 100000"),
    "three hundred hexadecimal digits": ("learning_rate: 0.1", f"learning_rate: 0x{'f' * 298}",
        "15:27: 0xf... is too large for a number"),
    "a hundred thousand decimals": ("learning_rate: 0.1", f"learning_rate: -0.{'9' * 100_000}",
        "15:27: the text has 100003 characters, and a text has at most 100000"),
    # characters
    "a null character": ("name: plant", "name: pl\x00ant",
        "2:9: the character U+0000 cannot stand in YAML; is this a text file?"),
    "an escaped null character": ("name: plant", 'name: "pl\\0ant"',
        "2:7: the text holds a null character or half a character (by \\0 or \\ud800)"),
    "an escaped half of a character": ("name: plant", 'name: "pl\\ud800ant"',
        "2:12: found invalid Unicode character escape code"),
    "an escape beyond all characters": ("name: plant", 'name: "\\UFFFFFFFF"',
        "2:10: found invalid Unicode character escape code"),
    "a terminal escape": ("name: plant", "name: \x1b[2Jplant",
        "2:7: the character U+001B cannot stand in YAML; is this a text file?"),
    "an escaped terminal escape": ("name: plant", 'name: "\\e[2Jplant"',
        "2: name: '\\x1b[2Jplant' must be letters ...: write 2Jplant"),
    "a control character of C1": ("name: plant", "name: pl\x9bant",
        "2:9: the character U+009B cannot stand in YAML; is this a text file?"),
    "a deleted character": ("name: plant", "name: pl\x7fant",
        "2:9: the character U+007F cannot stand in YAML; is this a text file?"),
    "a mark in the middle": ("name: plant", "name: pl\ufeffant",
        "2: name: 'pl\\ufeffant' must be letters ...: write pl-ant"),
    "text from right to left": ("name: plant", "name: \u202etnalp",
        "2: name: '\\u202etnalp' must be letters ...: write tnalp"),
    "a key with nothing in it": ("learn: true", "le\u200barn: true",
        '4: "le\\u200barn": unknown key; did you mean \'learn\'? (keys: ...)'),
    "a key that only looks right": ("learn: true", "l\u0435arn: true",
        "4: l\u0435arn: unknown key; did you mean 'learn'? ('\u0435' is U+0435) (keys: ...)"),
    "a key with a combined letter": ("learn: true", "learn\u0301: true",
        '4: "learn\u0301": unknown key; did you mean \'learn\'? (\'\u0301\' is U+0301) (keys: ...)'),
    "a key with a hard space": ("learn: true", "learn\xa0: true",
        '4: "learn\\xa0": unknown key; did you mean \'learn\'? (keys: ...)'),
    "a name in bold": ("name: plant", "name: \U0001d429\U0001d425\U0001d41a\U0001d427\U0001d42d",
        "2: name: '\U0001d429\U0001d425\U0001d41a\U0001d427\U0001d42d' must be letters ...: write plant"),
    "a line separator": ("name: plant", "name: plant\u2028seeds: [3]",
        "4:1: the key 'seeds' stands twice: in line 3 and in line 4"),
    "curly quotes": ("name: plant", "name: “plant”", "2: name: '“plant”' must be letters ...: write plant"),
    # structure
    "a tab before a value": ("  cell:\n", "  cell:\n\t",
        "9:1: found character that cannot start any token; YAML indents with spaces, not with tabs"),
    "an open single quote": ("name: plant", "name: 'plant",
        "19:1: found unexpected end of stream (while scanning a quoted scalar that starts in line 2)"),
    "an open double quote": ("name: plant", 'name: "plant',
        "19:1: found unexpected end of stream (while scanning a quoted scalar that starts in line 2)"),
    "an open brace": ("rounds: 2}", "rounds: 2",
        "6:9: did not find expected ',' or '}' (while parsing a flow mapping that starts in line 5)"),
    "a bracket too many": ("[1, 2]", "[1, 2]]",
        "3:14: did not find expected key (while parsing a block mapping that starts in line 2)"),
    "a bracket closed by a brace": ("[1, 2]", "[1, 2}", "3:13: did not find expected ',' or ']'"),
    "a colon without a space": ("name: plant", "name:plant", "3:6: mapping values are not allowed in this context"),
    "two colons": ("name: plant", "name: plant: b", "2:12: mapping values are not allowed in this context"),
    "an odd indentation": ("  link:", "   link:",
        "10:4: did not find expected key (while parsing a block mapping that starts in line 8)"),
    "a reserved character": ("name: plant", "name: @plant", "2:7: found character that cannot start any token"),
    "a backtick": ("name: plant", "name: `plant`", "2:7: found character that cannot start any token"),
    "a percent sign": ("name: plant", "name: %plant", "2:7: found character that cannot start any token"),
    "a wrong escape": ("name: plant", 'name: "pl\\qant"', "2:10: found unknown escape character"),
    "a block of no indentation": ("name: plant", "name: |0\n  plant",
        "2:8: found an indentation indicator equal to 0"),
    "a key that stands twice": ("seeds: [1, 2]", "seeds: [1]\nseeds: [2]",
        "4:1: the key 'seeds' stands twice: in line 3 and in line 4"),
    "a key that stands twice in braces": ("{rounds: 2}", '{rounds: 2, "rounds": 3}',
        "5:19: the key 'rounds' stands twice: in line 5 and in line 5"),
    "a name of a megabyte": ("name: plant", "name: " + "x" * 1_000_000,
        "2:7: the text has 1000000 characters, and a text has at most 100000"),
    "a name of ten thousand letters": ("name: plant", "name: " + "x" * 10_000,
        "2: name: 'x...' must be letters ...: write x..."),
    "a number of a megabyte of text": ("batch_size: 8", 'batch_size: "' + '8' * 90_000 + '"',
        "15: training.batch_size: '8...' is text; a whole number is needed"),
    # names
    "a way up": ("name: plant", "name: ../../etc", "2: name: '../../etc' must be letters ...: write etc"),
    "an absolute path": ("name: plant", "name: /etc/passwd",
        "2: name: '/etc/passwd' must be letters ...: write etc-passwd"),
    "a folder": ("name: plant", "name: a/b", "2: name: 'a/b' must be letters ...: write a-b"),
    "another folder": ("name: plant", "name: a\\b", "2: name: 'a\\\\b' must be letters ...: write a-b"),
    "a dot": ("name: plant", "name: .", "2: name: '.' must be letters ...: write plant"),
    "two dots": ("name: plant", "name: ..", "2: name: '..' must be letters ...: write plant"),
    "a hidden name": ("name: plant", "name: .plant", "2: name: '.plant' must be letters ...: write plant"),
    "an option": ("name: plant", "name: -rf", "2: name: '-rf' must be letters ...: write rf"),
    "a home": ("name: plant", "name: ~root", "2: name: '~root' must be letters ...: write root"),
    "no name": ("name: plant", 'name: ""', "2: name: '' must be letters ...: write plant"),
    "an empty name": ("name: plant", "name:", "2: name: null is empty; text is needed"),
    "a shell command": ("name: plant", "name: plant; touch hacked",
        "2: name: 'plant; touch hacked' must be letters ...: write plant-touch-hacked"),
    "a command in a command": ("name: plant", "name: $(touch hacked)",
        "2: name: '$(touch hacked)' must be letters ...: write touch-hacked"),
    "a name of two lines": ("name: plant", 'name: "plant\\n"', "2: name: 'plant\\n' must be letters ...: write plant"),
    "a name with a digit of another script": ("name: plant", "name: plant\u0663",
        "2: name: 'plant\u0663' must be letters ...: write plant"),
    "a null name": ("name: plant", "name: null", "2: name: null is empty; text is needed"),
    "a list of names": ("name: plant", "name: [plant]", "2: name: ['plant'] is a list; text is needed"),
    "a name of 81 letters": ("name: plant", "name: " + "x" * 81, "2: name: 'x...' must be letters ...: write x..."),
    "a label of a terminal escape": ("mu: 0.1", 'mu: 0.1, label: "\\e[31mred"',
        "18: protocols[1].label: '\\x1b[31mred' must be text on one line, for tables and figures"),
    "a label from right to left": ("mu: 0.1", 'mu: 0.1, label: "\\u202exorp"',
        "18: protocols[1].label: '\\u202exorp' must be text on one line, for tables and figures"),
    "a label of nothing": ("mu: 0.1", 'mu: 0.1, label: ""',
        "18: protocols[1].label: '' must have a length of at least 1"),
    "a label that is not seen": ("mu: 0.1", 'mu: 0.1, label: "\\u200b"',
        "18: protocols[1].label: '\\u200b' must be text on one line, for tables and figures"),
    "a long label": ("mu: 0.1", "mu: 0.1, label: " + "x" * 61,
        "18: protocols[1].label: 'x...' must have a length of at most 60"),
    "a class of Python for a protocol": ("name: fedavg", "name: fedsim.protocols.fedavg:FedAvg",
        "17: protocols[0].name: no protocol is called 'fedsim.protocols.fedavg:FedAvg' (known: ...)"),
    "a method for a protocol": ("name: fedavg", "name: __init__",
        "17: protocols[0].name: no protocol is called '__init__' (known: ...)"),
    "a path for a protocol": ("name: fedavg", "name: ../fedavg",
        "17: protocols[0].name: no protocol is called '../fedavg'; did you mean 'fedavg'? (known: ...)"),
    "a path for a profile": ("uplink_bps: 1.0e+6, downlink_bps: 2.0e+6", "profile: ../../etc/passwd",
        "9: network.cell.radio.profile: no radio profile is called '../../etc/passwd' (known: ...)"),
    "a table for a template": ("learn: true", 'learn: true\npaper_table: "{0.__class__}"',
        "5: paper_table: no table is called '{0.__class__}' (known: ...)"),
    "a device class of nobody": ("camera: {", '"": {',
        '13: devices.classes."": the key \'\' must have a length of at least 1'),
    "a device class of a long name": ("camera: {", "x" * 201 + ": {",
        '13: devices.classes."x...": the key \'x...\' must have a length of at most 200'),
    # files
    "a topology that is its own scenario": ("{name: star, devices: 4}", "plant.yaml",
        "2: topology.name: no topology is called 'plant' (known: ...)"),
    "a topology without end": ("{name: star, devices: 4}", "/dev/zero",
        "6: topology: /dev/zero: is a device, and a topology file must be a regular file; ..."),
    "a topology of passwords": ("{name: star, devices: 4}", "/etc/passwd",
        "6: topology: /etc/passwd: a topology file must end in .yaml, .json or .graphml; rename or convert it"),
    "a topology of zeros": ("{name: star, devices: 4}", "/dev/zero/x.yaml",
        "6: topology: /dev/zero/x.yaml: cannot be read (Not a directory)"),
    "a topology in a folder": ("{name: star, devices: 4}", ".",
        "6: topology: .: is a folder; the path of a topology file is needed"),
    "a topology that is not there": ("{name: star, devices: 4}", "nowhere.json",
        "6: topology: nowhere.json: there is no such file"),
    "a topology by its name": ("{name: star, devices: 4}", "star",
        "6: topology: star: there is no such file; for the topology of this name write {name: star}"),
    "a topology of no name": ("{name: star, devices: 4}", '""',
        "6: topology: .: is a folder; the path of a topology file is needed"),
    "a topology with a null character": ("{name: star, devices: 4}", '"a\\0b"',
        "6:11: the text holds a null character or half a character (by \\0 or \\ud800)"),
    "a topology with a terminal escape": ("{name: star, devices: 4}", '"\\e[2J.yaml"',
        "6: topology: \\x1b[2J.yaml: there is no such file"),
    "a topology of two lines": ("{name: star, devices: 4}", '"a\\nb.yaml"',
        "6: topology: a\\nb.yaml: there is no such file; did you mean 'plant.yaml'?"),
    "a topology of a number": ("{name: star, devices: 4}", "4",
        "6: topology: 4 is a number; a mapping is needed, such as {name: ...} (known: ...)"),
    "a topology of nothing": ("{name: star, devices: 4}", "",
        "6: topology: null is empty; a mapping is needed, such as {name: ...} (known: ...)"),
    "a topology of a list": ("{name: star, devices: 4}", "[star]",
        "6: topology: ['star'] is a list; a mapping is needed, such as {name: ...} (known: ...)"),
    "a topology without a name": ("{name: star, devices: 4}", "{devices: 4}",
        "6: topology: needs the key 'name' (known: ...)"),
    "a topology with a number for a name": ("{name: star, devices: 4}", "{name: 4}",
        "6: topology.name: 4 is a number; the topology's name is needed (known: ...)"),
    "a topology far away": ("{name: star, devices: 4}", "https://example.org/plant.yaml",
        "6: topology: https:/example.org/plant.yaml: there is no such file, and no folder 'https:/example.org'"),
    "a topology at home": ("{name: star, devices: 4}", "~/plant.yaml",
        "6: topology: ~/plant.yaml: there is no such file, and no folder '~'"),
    "a topology in a variable": ("{name: star, devices: 4}", "$HOME/plant.yaml",
        "6: topology: $HOME/plant.yaml: there is no such file, and no folder '$HOME'"),
    "a topology of a long name": ("{name: star, devices: 4}", "x" * 90_000 + ".yaml",
        "6: topology: x...: cannot be read (File name too long)"),
}  # fmt: skip

# name: what is set; the message, after what was set
SET: dict[str, tuple[str, str]] = {
    # overrides
    "no assignment": ("training", "is not of the form key.path=value, ..."),
    "nothing": ("", "is not of the form key.path=value, ..."),
    "only a sign": ("=", "is not of the form key.path=value, ..."),
    "no key": ("=1", "is not of the form key.path=value, ..."),
    "a key of points": ("...=1", "is not of the form key.path=value, ..."),
    "an empty step": ("training..epochs=1", "is not of the form key.path=value, ..."),
    "a point at the end": ("training.epochs.=1", "is not of the form key.path=value, ..."),
    "no value": ("training.epochs=", "has no value; write null for none"),
    "a value of blanks": ("training.epochs=  ", "has no value; write null for none"),
    "a comment for a value": ("training.epochs=# 2",
        "training.epochs: null is empty; a whole number is needed (leave the key out for its default)"),
    "half a bracket": ("seeds=[1",
        "the value is not YAML: did not find expected ',' or ']' (while parsing a flow sequence that starts in line "
        "1)"),
    "half a quote": ('name="plant', "the value is not YAML: found unexpected end of stream"),
    "a tag for a value": ("seeds=!!python/object/apply:os.system [ls]",
        "the value is not YAML: the tag '!!python/object/apply:os.system' is not allowed; ..."),
    "an alias for a value": ("seeds=*a", "the value is not YAML: there is no anchor &a before this alias"),
    "a value inside itself": ("seeds=&a [*a]",
        "the value is not YAML: the alias *a stands inside its own anchor (line 1)"),
    "a key twice in a value": ("stop={rounds: 1, rounds: 2}",
        "the value is not YAML: the key 'rounds' stands twice: in line 1 and in line 1"),
    "two documents for a value": ("name=a\n---\nb",
        "the value is not YAML: a second document starts here; a file holds one"),
    "a directive for a value": ("name=%YAML 1.2", "the value is not YAML: did not find expected <document start>"),
    "a number too large": ("training.learning_rate=1e400",
        "the value is not YAML: 1e400 is too large for a number; write .inf for unlimited"),
    "a rate too large": ("network.link.rate_bps=1e300",
        "network.link.rate_bps: 1e+300 must be at most 1e+18, or .inf for no limit"),
    "a value on two lines": ("name=a\nseeds: [3]",
        "the value is not YAML: mapping values are not allowed in this context"),
    "a tab for a value": ("name=\t", "has no value; write null for none"),
    "an escape for a value": ('name="\\e[2J"', "name: '\\x1b[2J' must be letters ...: write 2J"),
    "a null character for a value": ('name="\\0"',
        "the value is not YAML: the text holds a null character or half a character (by \\0 or \\ud800)"),
    "a terminal escape for a value": ("name=\x1b[2J",
        "the value is not YAML: the character U+001B cannot stand in YAML; is this a text file?"),
    "half a character for a value": ("name=\udcff",
        "the value is not YAML: the character U+DCFF cannot stand in YAML; is this a text file?"),
    "half a character for a key": ("na\udcffme=1", "the key is no text: it holds half a character"),
    "a terminal escape for a key": ("\x1b[2J=1", '"\\u001b[2J": unknown key (keys: ...)'),
    "a line break for a key": ("a\nb=1", '"a\\nb": unknown key (keys: ...)'),
    "a method": ("__class__.__init__=1", "__class__: unknown key (keys: ...)"),
    "a private attribute": ("_written=1", "_written: unknown key (keys: ...)"),
    "a position below nothing": ("protocols.-1.mu=1", "protocols has positions 0 to 1, and none at -1"),
    "a position beyond all": ("protocols.99999999999999999999.mu=1",
        "protocols has no item called '99999999999999999999' (known: ...)"),
    "a position in brackets": ("protocols[7].mu=1", "protocols has positions 0 to 1, and none at 7"),
    "half a bracket in a path": ("protocols[0.mu=1",
        '"protocols[0": unknown key; did you mean \'protocols\'? (keys: ...)'),
    "a position in decimals": ("protocols.1e3.mu=1", "protocols has no item called '1e3' (known: ...)"),
    "a position in nothing": ("evaluate.on.0=clients",
        "evaluate.on is empty or missing and has no item 0; write all of it"),
    "a key of a number": ("training.epochs.x=1", "training.epochs: {x: 1} is a mapping; a whole number is needed"),
    "a key of a text": ("name.x=1", "name is text ('plant') and has no keys"),
    "a key of a list": ("seeds.x=1", "seeds has no item called 'x' (known: ...)"),
    "a whole section for a number": ("seeds.0={a: 1}", "seeds[0]: {a: 1} is a mapping; a whole number is needed"),
    "nothing for a section": ("network=null", "network: null is empty; a mapping is needed"),
    "a device for a topology": ("topology=/dev/zero",
        "topology: /dev/zero: is a device, and a topology file must be a regular file; ..."),
    "a folder for a topology": ("topology=/", "topology: /: is a folder; the path of a topology file is needed"),
    "a password for a topology": ("topology=/etc/passwd",
        "topology: /etc/passwd: a topology file must end in .yaml, .json or .graphml; rename or convert it"),
    "a wrong key in a new section": ("evaluate.evry=2",
        "evaluate.evry: unknown key; did you mean 'every'? (keys: ...)"),
    "a long path": (f"{'a.' * 60}a=1", "the path has 61 keys, and lists and mappings are at most 50 deep"),
    "a long key": (f"{'a' * 100_000}=1", '"a...": unknown key (keys: ...)'),
    "a long value": (f"name={'a' * 100_000}", "name: 'a...' must be letters ...: write a..."),
    "a deep value": (f"seeds={'[' * 100_000}",
        "the value is not YAML: lists and mappings are nested more than 50 deep"),
    "a long number": (f"seeds=[{'9' * 100_000}]",
        "the value is not YAML: 9... has 100000 digits; a whole number has at most 300"),
}  # fmt: skip

# name: words of the command; the message
RUN: dict[str, tuple[list[str], str]] = {
    # words
    "seeds in words": (["--seeds", "one"],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: 'one' must be whole numbers with commas between them, as in 1,2,3"),
    "no seeds": (["--seeds", ""],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: '' must be whole numbers with commas between them, as in 1,2,3"),
    "commas for seeds": (["--seeds", ","],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: ',' must be whole numbers with commas between them, as in 1,2,3"),
    "a gap in the seeds": (["--seeds", "1,,2"],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: '1,,2' must be whole numbers with commas between them, as in 1,2,3"),
    "decimals for seeds": (["--seeds", "1.5"],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: '1.5' must be whole numbers with commas between them, as in 1,2,3"),
    "exponents for seeds": (["--seeds", "1e3"],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: '1e3' must be whole numbers with commas between them, as in 1,2,3"),
    "brackets for seeds": (["--seeds", "[1, 2]"],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: '[1, 2]' must be whole numbers with commas between them, as in 1,2,3"),
    "an override for seeds": (["--seeds", "1]\nname: x #"],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: '1]\\nname: x #' must be whole numbers with commas between them, as "
        "in 1,2,3"),
    "seeds below nothing": (["--seeds=-1"], "--set seeds=[-1]: seeds[0]: -1 must be at least 0"),
    "seeds that are equal": (["--seeds", "1,01"], "--set seeds=[1, 1]: seeds: [1, 1] must differ from each other"),
    "seeds beyond 64 bits": (["--seeds", "9223372036854775808"],
        "--set seeds=[9223372036854775808]: seeds[0]: 9223372036854775808 must be less than 9223372036854775808"),
    "only nobody": (["--only", ""], "--only: the scenario has no protocol '' (protocols: 'fedavg', 'fedprox')"),
    "only a comma": (["--only", "fedavg,"],
        "--only: the scenario has no protocol '' (protocols: 'fedavg', 'fedprox')"),
    "only a terminal escape": (["--only", "\x1b[2J"],
        "--only: the scenario has no protocol '\\x1b[2J' (protocols: 'fedavg', 'fedprox')"),
    # places
    "results in the process table": (["--out", "/proc/fedsim"],
        "/proc... cannot be written to (...); choose another one with --out"),
    "results in a process": (["--out", "/proc/self/fd/x"],
        "/proc... cannot be written to (...); choose another one with --out"),
    "results in a device": (["--out", "/dev/null"], "/dev/null is not a folder; choose another one with --out"),
    "results below a device": (["--out", "/dev/null/x"], "/dev/null is not a folder; choose another one with --out"),
    "results in the scenario": (["--out", "plant.yaml"], "plant.yaml is not a folder; choose another one with --out"),
    "results below the scenario": (["--out", "plant.yaml/x"],
        "plant.yaml is not a folder; choose another one with --out"),
    "results here": (["--out", ""],
        ". is not empty and is no run folder (it has plant.yaml); choose another with --out"),
    "a store in the process table": (["--store", "/proc/fedsim"],
        "/proc... cannot be written to (...); choose another store with --store"),
    "a store in a device": (["--store", "/dev/null"], "/dev/null is not a folder; choose another store with --store"),
    "a store below the scenario": (["--store", "plant.yaml/x"],
        "plant.yaml is not a folder; choose another store with --store"),
    "results in a long name": (["--out", "x" * 300],
        "x... is no name of a folder (File name too long); choose another one with --out"),
    "results in a path of a megabyte": (["--out", "x/" * 500_000],
        "x/...x... is no name of a folder (File name too long); choose another one with --out"),
    "a store in a long name": (["--store", "x" * 300],
        "x... is no name of a folder (File name too long); choose another store with --store"),
}  # fmt: skip

CHECK = ["validate", "plant.yaml"]
HOSTILE: dict[str, tuple[Content, list[str], str]] = {
    **{name: (content, CHECK, said) for name, (content, said) in WRITTEN.items()},
    **{name: (but(old, new), CHECK, f"plant.yaml:{said}") for name, (old, new, said) in CHANGED.items()},
    **{name: (PLANT, [*CHECK, "--set", assigned], f"--set ...: {said}") for name, (assigned, said) in SET.items()},
    **{name: (PLANT, ["run", "plant.yaml", "--no-training", *words], said) for name, (words, said) in RUN.items()},
}


def everything_in(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {str(path): path.lstat() for path in sorted(folder.rglob("*"))}
    return {path: (status.st_mode, status.st_size, status.st_mtime_ns) for path, status in found.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "10000")  # argparse folds its usage otherwise
    return tmp_path


def test_no_name_stands_twice() -> None:
    assert len(HOSTILE) == len(WRITTEN) + len(CHANGED) + len(SET) + len(RUN)


def test_without_a_change_all_is_fine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "plant.yaml").write_text(PLANT)
    assert main(CHECK) == 0
    assert capsys.readouterr().err == ""


LARGE = ("very many mistakes", "very many mistakes in a mapping", "too many entries")
"""Which take seconds to read; "too many mistakes" and "too many anchors" are smaller ones of their sort."""


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [pytest.param(*one, id=name, marks=pytest.mark.long if name in LARGE else ()) for name, one in HOSTILE.items()],
)
def test_what_is_broken_or_hostile_is_one_message_and_nothing_else(
    content: Content, words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "plant.yaml"
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    before = everything_in(folder)
    with limited():
        status = main(words)
    said = capsys.readouterr()
    begins = "" if message.startswith("usage: ") else "fedsim: "  # argparse says the former
    pattern = re.escape(f"{begins}{message}\n").replace(re.escape("..."), "[^\n]*")
    assert re.fullmatch(pattern, said.err), f"said:     {said.err}expected: {message}"
    assert len(said.err) < 8_000 and said.err.replace("\n", "").isprintable()
    assert (status, said.out) == (2, "")
    assert everything_in(folder) == before
