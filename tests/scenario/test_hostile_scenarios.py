"""Hostile scenarios, overrides and places of a command: each is one message, and nothing else happens.

What is only wrong is in `test_yaml_reader`, `test_messages` and `test_overrides`. In expected messages three dots stand
for anything on that line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hostile import CHECK, PLANT, Content, Refusals, but

from fedsim.cli import main

LAUGHING_LISTS = "a0: &a0 [ha]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)


def a_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


# name: what the scenario is, or what makes something else in its place; the message
WRITTEN: dict[str, tuple[Content, str]] = {
    "a billion laughs": (PLANT + LAUGHING_LISTS,
        "plant.yaml:25:30: more than 1000000 values (aliases written out); put data into another file"),
    "a long text repeated": (PLANT + f"a: &a {'x' * 90_000}\nb: [{'*a, ' * 20_000}1]\n",
        "plant.yaml:19: a: unknown key (keys: ...)\nplant.yaml:20: b: unknown key (keys: ...)"),
    "a list inside itself": (PLANT + "x: &x [*x]\n",
        "plant.yaml:19:8: the alias *x stands inside its own anchor (line 19)"),
    "a hundred thousand brackets": (PLANT + "x: " + "[" * 100_000,
        "plant.yaml:19:53: lists and mappings are nested more than 50 deep"),
    "a key of a terminal escape": (PLANT + r'"\e]0;hacked\a": 1' + "\n",
        'plant.yaml:19: "\\u001b]0;hacked\\u0007": unknown key (keys: ...)'),
    "lines that end as they did on a Macintosh": (PLANT.replace("\n", "\r").replace("seeds: [1, 2]", "seeds: [-1]"),
        "plant.yaml:3: seeds[0]: -1 must be at least 0"),
    "a pipe for a scenario": (os.mkfifo, "plant.yaml: is a pipe, and a YAML file must be a regular file; ..."),
    "a link to itself": (a_link_to("plant.yaml"), "plant.yaml: cannot be read (Too many levels of symbolic links)"),
    "a link to nothing": (a_link_to("nowhere.yaml"),
        "plant.yaml: there is no such file: the link leads to 'nowhere.yaml', which is not there"),
    "a link to zeros without end": (a_link_to("/dev/zero"),
        "plant.yaml: is a device, and a YAML file must be a regular file; ..."),
}  # fmt: skip

# name: what stands in the scenario, and what stands there instead; the message, after the name of the file
CHANGED: dict[str, tuple[str, str, str]] = {
    "too many protocols": ("protocols:\n", "protocols:\n" + "  - {name: fedavg, clients: 1}\n" * 1_001,
        "16: protocols: [{name: 'fedavg', ... must have a length of at most 1000"),
    "very many mistakes": ("seeds: [1, 2]", f"seeds: [{'-1, ' * 200_000}]", "3: seeds[0]: -1 must be at least 0"),
    "a Python object": ("seeds: [1, 2]", "seeds: !!python/object:os.system [ls]",
        "3:8: the tag '!!python/object:os.system' is not allowed; ..."),
    "a model of all atoms": ("model: {name: softmax}", "model: {name: declared, parameters: 1e80}",
        "14: model.parameters: 1e+80 must be at most 1e+15"),
    "wide layers": ("model: {name: softmax}", "model: {name: mlp, hidden: [1000000000]}",
        "14: model.hidden[0]: 1000000000 must be at most 10000"),
    "an escaped terminal escape": ("name: plant", 'name: "\\e[2Jplant"',
        "2: name: '\\x1b[2Jplant' must be letters ...: write 2Jplant"),
    "a way up": ("name: plant", "name: ../../etc", "2: name: '../../etc' must be letters ...: write etc"),
    "a dot": ("name: plant", "name: .", "2: name: '.' must be letters ...: write plant"),
    "a label of a terminal escape": ("mu: 0.1", 'mu: 0.1, label: "\\e[31mred"',
        "18: protocols[1].label: '\\x1b[31mred' must be text on one line, for tables and figures"),
    "a class of Python for a protocol": ("name: fedavg", "name: fedsim.protocols.fedavg:FedAvg",
        "17: protocols[0].name: no protocol is called 'fedsim.protocols.fedavg:FedAvg' (known: ...)"),
    "a topology that is its own scenario": ("{name: star, devices: 4}", "plant.yaml",
        "2: topology.name: no topology is called 'plant' (known: ...)"),
    "a topology of passwords": ("{name: star, devices: 4}", "/etc/passwd",
        "6: topology: /etc/passwd: a topology file must end in .yaml, .json or .graphml; rename or convert it"),
    "a topology with a terminal escape": ("{name: star, devices: 4}", '"\\e[2J.yaml"',
        "6: topology: \\x1b[2J.yaml: there is no such file"),
    "a topology of a long name": ("{name: star, devices: 4}", "x" * 90_000 + ".yaml",
        "6: topology: x...: cannot be read (File name too long)"),
}  # fmt: skip

# name: words of the command; the message
RUN: dict[str, tuple[list[str], str]] = {
    "a comment for a value": (["--set", "training.epochs=# 2"],
        "--set training.epochs=# 2: '# 2' is a comment in YAML, and would be left out; put quotes ..."),
    "a terminal escape for a value": (["--set", "name=\x1b[2J"],
        "--set ...: the value is not YAML: the character U+001B cannot stand in YAML; is this a text file?"),
    "a line break for a key": (["--set", "a\nb=1"], '--set ...: "a\\nb": unknown key (keys: ...)'),
    "a method": (["--set", "__class__.__init__=1"], "--set ...: __class__: unknown key (keys: ...)"),
    "a position beyond all": (["--set", "protocols.99999999999999999999.mu=1"],
        "--set ...: protocols has no item called '99999999999999999999' (known: ...)"),
    "nothing for a section": (["--set", "network=null"],
        "--set ...: network: null is empty; a mapping is needed"),
    "a device for a topology": (["--set", "topology=/dev/zero"],
        "--set ...: topology: /dev/zero: is a device, and a topology file must be a regular file; ..."),
    "only a terminal escape": (["--only", "\x1b[2J"],
        "--only: the scenario has no protocol '\\x1b[2J' (protocols: 'fedavg', 'fedprox')"),
    "results here": (["--out", "."],
        ". is not empty and is no run folder (it has plant.yaml); choose another with --out"),
    "results in a long name": (["--out", "x" * 300],
        "x... is no name of a folder (File name too long); choose another one with --out"),
}  # fmt: skip

LONG = ("very many mistakes",)
HOSTILE: dict[str, tuple[Content, Sequence[str], str]] = {
    **{name: (content, CHECK, said) for name, (content, said) in WRITTEN.items()},
    **{name: (but(old, new), CHECK, f"plant.yaml:{said}") for name, (old, new, said) in CHANGED.items()},
    **{name: (PLANT, ["run", "plant.yaml", "--no-training", *words], said) for name, (words, said) in RUN.items()},
}


def test_without_a_change_all_is_fine(refused: Refusals, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(HOSTILE) == len(WRITTEN) + len(CHANGED) + len(RUN), "no name stands twice"
    (refused.folder / "plant.yaml").write_text(PLANT)
    assert main(CHECK) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [pytest.param(*one, id=name, marks=pytest.mark.long if name in LONG else ()) for name, one in HOSTILE.items()],
)
def test_what_is_hostile_is_one_message_and_nothing_else(
    content: Content, words: Sequence[str], message: str, refused: Refusals
) -> None:
    refused.check(content, words, message)
