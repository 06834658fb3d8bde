"""Broken and hostile text in the place of a value or key of a scenario: each is one message, and nothing else happens.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import pytest
from hostile import CHECK, Refusals, but

# name: what stands in the scenario, and what stands there instead; the message, after the name of the file
CHANGED: dict[str, tuple[str, str, str]] = {
    "a unit beyond all rates": ("uplink_bps: 1.0e+6", "uplink_bps: 9e307 Mbps",
        "9: network.cell.radio.uplink_bps: '9e307 Mbps' is text; a number is needed, in bit/s"),
    # bombs
    "an alias without an anchor": ("seeds: [1, 2]", "seeds: *seed", "3:8: there is no anchor &seed before this alias"),
    "a misspelt alias": ("name: plant", "name: &plant plant\ndescription: *palnt",
        "3:14: there is no anchor &palnt before this alias; did you mean 'plant'?"),
    "an anchor that stands twice": ("seeds: [1, 2]", "seeds: [&s 1, &s 2]",
        "3:15: the anchor &s stands twice: in line 3 and here"),
    "an anchor without use": ("learning_rate: 0.1", "learning_rate: &rate -1",
        "15: training.learning_rate: -1 must be greater than 0"),
    "too many entries": ("seeds: [1, 2]", f"seeds: [{'1, ' * 250_001}]",
        "3:750009: a list has more than 250000 entries here; put data into another file"),
    "too many protocols": ("protocols:\n", "protocols:\n" + "  - {name: fedavg, clients: 1}\n" * 1_001,
        "16: protocols: [{name: 'fedavg', ... must have a length of at most 1000"),
    "very many mistakes": ("seeds: [1, 2]", f"seeds: [{'-1, ' * 200_000}]", "3: seeds[0]: -1 must be at least 0"),
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
    "binary data": ("seeds: [1, 2]", "seeds: !!binary cGxhbnQ=", "3:8: the tag '!!binary' is not allowed; ..."),
    "a whole number by its tag": ("seeds: [1, 2]", 'seeds: !!int "3"', "3:8: the tag '!!int' is not allowed; ..."),
    "a private tag": ("seeds: [1, 2]", "seeds: !secret x", "3:8: the tag '!secret' is not allowed; ..."),
    "a tag by an unknown handle": ("seeds: [1, 2]", "seeds: !e!x 1", "3:8: found undefined tag handle"),
    # numbers
    "too large for a float": ("learning_rate: 0.1", "learning_rate: 1e400",
        "15:27: 1e400 is too large for a number; write .inf for unlimited"),
    "too small for a float": ("learning_rate: 0.1", "learning_rate: 1e-400",
        "15:27: 1e-400 is too small for a number; write 0 for nothing"),
    "the smallest float": ("learning_rate: 0.1", "learning_rate: 5e-324",
        "15: training.learning_rate: 5e-324 must be at least 1e-18"),
    "a huge learning rate": ("learning_rate: 0.1", "learning_rate: 1e300",
        "15: training.learning_rate: 1e+300 must be at most 1e+18"),
    "an infinite learning rate": ("learning_rate: 0.1", "learning_rate: .inf",
        "15: training.learning_rate: .inf must be finite"),
    "not a number": ("learning_rate: 0.1", "learning_rate: .NaN", "15: training.learning_rate: .nan is not a number"),
    "not a number for a rate": ("uplink_bps: 1.0e+6", "uplink_bps: .nan",
        "9: network.cell.radio.uplink_bps: .nan is not a number"),
    "minus zero": ("learning_rate: 0.1", "learning_rate: -0.0",
        "15: training.learning_rate: -0.0 must be greater than 0"),
    "a rate of next to nothing": ("uplink_bps: 1.0e+6", "uplink_bps: 1e-308",
        "9: network.cell.radio.uplink_bps: 1e-308 must be at least 1e-18"),
    "a mole of epochs": ("batch_size: 8", "batch_size: 8, epochs: 602214076000000000000000",
        "15: training.epochs: 602214076000000000000000 must be at most 1000000000"),
    "a share of a quark": ("fraction: 0.5}\n  - {name: fedprox", "fraction: 1e-300}\n  - {name: fedprox",
        "17: protocols[0].fraction: 1e-300 must be at least 1e-18"),
    "a chance of one": ("batch_size: 8", "batch_size: 8, momentum: 1.0",
        "15: training.momentum: 1.0 must be less than 1"),
    "a fast computer": ("flops_per_s: 1.0e+9", "flops_per_s: 1e300",
        "13: devices.classes.camera.compute.flops_per_s: 1e+300 must be at most 1e+18, or .inf for no limit"),
    "a model of all atoms": ("model: {name: softmax}", "model: {name: declared, parameters: 1e80}",
        "14: model.parameters: 1e+80 must be at most 1e+15"),
    "wide layers": ("model: {name: softmax}", "model: {name: mlp, hidden: [1000000000]}",
        "14: model.hidden[0]: 1000000000 must be at most 10000"),
    "a seed below nothing": ("seeds: [1, 2]", "seeds: [-1]", "3: seeds[0]: -1 must be at least 0"),
    "a seed in decimals": ("seeds: [1, 2]", "seeds: [1.0]",
        "3: seeds[0]: 1.0 is written with a point or an exponent; a whole number is needed: write 1"),
    "underscores": ("batch_size: 8", "batch_size: 1_000",
        "15: training.batch_size: '1_000' is text; a whole number is needed: write 1000"),
    "a sum": ("batch_size: 8", "batch_size: 4+4", "15: training.batch_size: '4+4' is text; a whole number is needed"),
    "digits of another script": ("batch_size: 8", "batch_size: \u0668",
        "15: training.batch_size: '\u0668' is text; a whole number is needed"),
    "a half": ("learning_rate: 0.1", "learning_rate: ½",
        "15: training.learning_rate: '½' is text; a number is needed"),
    "a hundred thousand digits": ("batch_size: 8", f"batch_size: {'9' * 100_000}",
        "15:44: 9... has 100000 digits; a whole number has at most 300"),
    "three hundred hexadecimal digits": ("learning_rate: 0.1", f"learning_rate: 0x{'f' * 298}",
        "15:27: 0xf... is too large for a number"),
    # characters
    "a null character": ("name: plant", "name: pl\x00ant",
        "2:9: the character U+0000 cannot stand in YAML; is this a text file?"),
    "an escaped null character": ("name: plant", 'name: "pl\\0ant"',
        "2:7: the text holds a null character or half a character (by \\0 or \\ud800)"),
    "an escaped half of a character": ("name: plant", 'name: "pl\\ud800ant"',
        "2:12: found invalid Unicode character escape code"),
    "a terminal escape": ("name: plant", "name: \x1b[2Jplant",
        "2:7: the character U+001B cannot stand in YAML; is this a text file?"),
    "an escaped terminal escape": ("name: plant", 'name: "\\e[2Jplant"',
        "2: name: '\\x1b[2Jplant' must be letters ...: write 2Jplant"),
    "text from right to left": ("name: plant", "name: \u202etnalp",
        "2: name: '\\u202etnalp' must be letters ...: write tnalp"),
    "a key with nothing in it": ("learn: true", "le\u200barn: true",
        '4: "le\\u200barn": unknown key; did you mean \'learn\'? (keys: ...)'),
    "a key that only looks right": ("learn: true", "l\u0435arn: true",
        "4: l\u0435arn: unknown key; did you mean 'learn'? ('\u0435' is U+0435) (keys: ...)"),
    "a line separator": ("name: plant", "name: plant\u2028seeds: [3]",
        "4:1: the key 'seeds' stands twice: in line 3 and in line 4"),
    # structure
    "a tab before a value": ("  cell:\n", "  cell:\n\t",
        "9:1: found character that cannot start any token; YAML indents with spaces, not with tabs"),
    "an open single quote": ("name: plant", "name: 'plant",
        "19:1: found unexpected end of stream (while scanning a quoted scalar that starts in line 2); ..."),
    "an open brace": ("rounds: 2}", "rounds: 2",
        "6:9: did not find expected ',' or '}' (while parsing a flow mapping that starts in line 5); ..."),
    "a bracket too many": ("[1, 2]", "[1, 2]]",
        "3:14: did not find expected key (while parsing a block mapping that starts in line 2)"),
    "a colon without a space": ("name: plant", "name:plant", "3:6: mapping values are not allowed ..."),
    "an odd indentation": ("  link:", "   link:",
        "10:4: did not find expected key (while parsing a block mapping that starts in line 8); ..."),
    "a reserved character": ("name: plant", "name: @plant", "2:7: found character that cannot start any token"),
    "a wrong escape": ("name: plant", 'name: "pl\\qant"', "2:10: found unknown escape character"),
    "a key that stands twice": ("seeds: [1, 2]", "seeds: [1]\nseeds: [2]",
        "4:1: the key 'seeds' stands twice: in line 3 and in line 4"),
    "a name of a megabyte": ("name: plant", "name: " + "x" * 1_000_000,
        "2:7: the text has 1000000 characters, and a text has at most 100000"),
    # names
    "a way up": ("name: plant", "name: ../../etc", "2: name: '../../etc' must be letters ...: write etc"),
    "a dot": ("name: plant", "name: .", "2: name: '.' must be letters ...: write plant"),
    "an empty name": ("name: plant", "name:", "2: name: null is empty; text is needed"),
    "a shell command": ("name: plant", "name: plant; touch hacked",
        "2: name: 'plant; touch hacked' must be letters ...: write plant-touch-hacked"),
    "a name of two lines": ("name: plant", 'name: "plant\\n"', "2: name: 'plant\\n' must be letters ...: write plant"),
    "a list of names": ("name: plant", "name: [plant]", "2: name: ['plant'] is a list; text is needed"),
    "a label of a terminal escape": ("mu: 0.1", 'mu: 0.1, label: "\\e[31mred"',
        "18: protocols[1].label: '\\x1b[31mred' must be text on one line, for tables and figures"),
    "a label of nothing": ("mu: 0.1", 'mu: 0.1, label: ""',
        "18: protocols[1].label: '' must have a length of at least 1"),
    "a long label": ("mu: 0.1", "mu: 0.1, label: " + "x" * 61,
        "18: protocols[1].label: 'x...' must have a length of at most 60"),
    "a class of Python for a protocol": ("name: fedavg", "name: fedsim.protocols.fedavg:FedAvg",
        "17: protocols[0].name: no protocol is called 'fedsim.protocols.fedavg:FedAvg' (known: ...)"),
    "a path for a protocol": ("name: fedavg", "name: ../fedavg",
        "17: protocols[0].name: no protocol is called '../fedavg'; did you mean 'fedavg'? (known: ...)"),
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
    "a topology in a folder": ("{name: star, devices: 4}", ".",
        "6: topology: .: is a folder; the path of a topology file is needed"),
    "a topology that is not there": ("{name: star, devices: 4}", "nowhere.json",
        "6: topology: nowhere.json: there is no such file"),
    "a topology with a terminal escape": ("{name: star, devices: 4}", '"\\e[2J.yaml"',
        "6: topology: \\x1b[2J.yaml: there is no such file"),
    "a topology of a number": ("{name: star, devices: 4}", "4",
        "6: topology: 4 is a number; a mapping is needed, such as {name: ...} (known: ...)"),
    "a topology of nothing": ("{name: star, devices: 4}", "",
        "6: topology: null is empty; a mapping is needed, such as {name: ...} (known: ...)"),
    "a topology without a name": ("{name: star, devices: 4}", "{devices: 4}",
        "6: topology: needs the key 'name' (known: ...)"),
    "a topology with a number for a name": ("{name: star, devices: 4}", "{name: 4}",
        "6: topology.name: 4 is a number; the topology's name is needed (known: ...)"),
    "a topology at home": ("{name: star, devices: 4}", "~/plant.yaml",
        "6: topology: ~/plant.yaml: there is no such file, and no folder '~' in ..."),
    "a topology of a long name": ("{name: star, devices: 4}", "x" * 90_000 + ".yaml",
        "6: topology: x...: cannot be read (File name too long)"),
}  # fmt: skip


LARGE = ("very many mistakes", "too many entries")
"""Which take seconds to read; "too many mistakes" is a smaller one of its sort."""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [pytest.param(*one, id=name, marks=pytest.mark.long if name in LARGE else ()) for name, one in CHANGED.items()],
)
def test_what_is_broken_or_hostile_is_one_message_and_nothing_else(
    old: str, new: str, message: str, refused: Refusals
) -> None:
    refused.check(but(old, new), CHECK, f"plant.yaml:{message}")
