"""Broken and hostile overrides, words and places of a command: each is one message, and nothing else happens.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import pytest
from hostile import CHECK, PLANT, Refusals

# name: what is set; the message, after what was set
SET: dict[str, tuple[str, str]] = {
    # overrides
    "no assignment": ("training", "is not of the form key.path=value, ..."),
    "no key": ("=1", "is not of the form key.path=value, ..."),
    "no value": ("training.epochs=", "has no value; write null for none"),
    "a comment for a value": ("training.epochs=# 2",
        "training.epochs: null is empty; a whole number is needed (leave the key out for its default)"),
    "half a bracket": ("seeds=[1",
        "the value is not YAML: did not find expected ',' or ']' (while parsing a flow sequence that starts in line "
        "1); close the bracket with ], and put commas between its items"),
    "a tag for a value": ("seeds=!!python/object/apply:os.system [ls]",
        "the value is not YAML: the tag '!!python/object/apply:os.system' is not allowed; ..."),
    "an alias for a value": ("seeds=*a", "the value is not YAML: there is no anchor &a before this alias"),
    "a value inside itself": ("seeds=&a [*a]",
        "the value is not YAML: the alias *a stands inside its own anchor (line 1)"),
    "a number too large": ("training.learning_rate=1e400",
        "the value is not YAML: 1e400 is too large for a number; write .inf for unlimited"),
    "a value on two lines": ("name=a\nseeds: [3]",
        "the value is not YAML: mapping values are not allowed in this context; ..."),
    "a terminal escape for a value": ("name=\x1b[2J",
        "the value is not YAML: the character U+001B cannot stand in YAML; is this a text file?"),
    "a line break for a key": ("a\nb=1", '"a\\nb": unknown key (keys: ...)'),
    "a method": ("__class__.__init__=1", "__class__: unknown key (keys: ...)"),
    "a position beyond all": ("protocols.99999999999999999999.mu=1",
        "protocols has no item called '99999999999999999999' (known: ...)"),
    "a position in brackets": ("protocols[7].mu=1", "protocols has positions 0 to 1, and none at 7"),
    "a position in nothing": ("evaluate.on.0=clients",
        "evaluate.on is empty or missing and has no item 0; write all of it"),
    "a key of a number": ("training.epochs.x=1", "training.epochs: {x: 1} is a mapping; a whole number is needed"),
    "a key of a text": ("name.x=1", "name is text ('plant') and has no keys"),
    "a whole section for a number": ("seeds.0={a: 1}", "seeds[0]: {a: 1} is a mapping; a whole number is needed"),
    "nothing for a section": ("network=null", "network: null is empty; a mapping is needed"),
    "a device for a topology": ("topology=/dev/zero",
        "topology: /dev/zero: is a device, and a topology file must be a regular file; ..."),
    "a wrong key in a new section": ("evaluate.evry=2",
        "evaluate.evry: unknown key; did you mean 'every'? (keys: ...)"),
    "a long key": (f"{'a' * 100_000}=1", '"a...": unknown key (keys: ...)'),
    "a deep value": (f"seeds={'[' * 100_000}",
        "the value is not YAML: lists and mappings are nested more than 50 deep"),
}  # fmt: skip

# name: words of the command; the message
RUN: dict[str, tuple[list[str], str]] = {
    # words
    "a gap in the seeds": (["--seeds", "1,,2"],
        "usage: ...\n"
        "fedsim run: error: argument --seeds: '1,,2' must be whole numbers with commas between them, as in 1,2,3"),
    "seeds that are equal": (["--seeds", "1,01"], "--set seeds=[1, 1]: seeds: [1, 1] must differ from each other"),
    "only nobody": (["--only", ""], "--only: the scenario has no protocol '' (protocols: 'fedavg', 'fedprox')"),
    "only a terminal escape": (["--only", "\x1b[2J"],
        "--only: the scenario has no protocol '\\x1b[2J' (protocols: 'fedavg', 'fedprox')"),
    # places
    "results in the process table": (["--out", "/proc/fedsim"],
        "/proc/fedsim cannot be a run folder (...); choose another one with --out"),
    "results in a device": (["--out", "/dev/null"], "/dev/null is not a folder; choose another one with --out"),
    "results below the scenario": (["--out", "plant.yaml/x"],
        "plant.yaml is not a folder; choose another one with --out"),
    "results here": (["--out", ""],
        ". is not empty and is no run folder (it has plant.yaml); choose another with --out"),
    "a store below the scenario": (["--store", "plant.yaml/x"],
        "plant.yaml is not a folder; choose another store with --store"),
    "results in a long name": (["--out", "x" * 300],
        "x... is no name of a folder (File name too long); choose another one with --out"),
    "a store in a long name": (["--store", "x" * 300],
        "x... is no name of a folder (File name too long); choose another store with --store"),
}  # fmt: skip
HOSTILE: dict[str, tuple[list[str], str]] = {
    **{name: ([*CHECK, "--set", assigned], f"--set ...: {said}") for name, (assigned, said) in SET.items()},
    **{name: (["run", "plant.yaml", "--no-training", *words], said) for name, (words, said) in RUN.items()},
}


def test_no_name_stands_twice() -> None:
    assert len(HOSTILE) == len(SET) + len(RUN)


@pytest.mark.parametrize(("words", "message"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_broken_or_hostile_is_one_message_and_nothing_else(
    words: list[str], message: str, refused: Refusals
) -> None:
    refused.check(PLANT, words, message)
