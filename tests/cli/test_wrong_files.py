"""A wrong file, topology or drawing is one message that helps and exit status 2; nothing is written, nothing changed.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import json

import pytest
from refusals import DATA, FEDAVG, MODEL, PLANT, Files, Refusals, calibrated, edited, lay_out

from fedsim.cli import main

PARK = """\
name: explicit
nodes:
  cloud: {kind: cloud}
  hall: {kind: edge}
  mast: {kind: base_station}
  cam: {kind: sensor, count: 4, attach: mast}
links:
  - {between: [cloud, hall], rate_bps: 1.0e+9}
  - {between: [hall, mast], rate_bps: 1.0e+9}
"""

DRAWN = {
    "nodes": [
        {"id": "cloud", "kind": "cloud"},
        {"id": "hall", "kind": "edge"},
        {"id": "mast", "kind": "base_station"},
        {"id": "cam", "kind": "sensor"},
    ],
    "links": [
        {"source": "cloud", "target": "hall", "rate_bps": 1e9},
        {"source": "hall", "target": "mast", "rate_bps": 1e9},
        {"source": "mast", "target": "cam"},
    ],
}

STAR = "topology: {name: star, devices: 4}"
IN_A_FILE = PLANT.replace(STAR, "topology: park.yaml")


def test_without_a_change_all_is_fine(refused: Refusals, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = IN_A_FILE.replace("park.yaml", "park.json")
    files = {"plant.yaml": PLANT, "file.yaml": IN_A_FILE, "park.yaml": PARK, "drawn.yaml": drawn}
    lay_out({**files, "park.json": json.dumps(DRAWN)}, refused.folder)
    assert [main(["validate", name]) for name in ("plant.yaml", "file.yaml", "drawn.yaml")] == [0, 0, 0]
    assert capsys.readouterr().err == ""


CSV = "a,b,y\n" + "".join(f"{number},{number % 3},{number / 7}\n" for number in range(40))
NET = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.extractor, self.one, self.other = nn.Linear(64, 8), nn.Linear(8, 10), nn.Linear(8, 10)

    def forward(self, x):
        z = self.extractor(x.flatten(1)).relu()
        return self.one(z) + self.other(z)
"""
OWN = {MODEL: "model: {name: torch_module, path: 'net.py:Net', classifier: [one, other]}", FEDAVG: calibrated()}
NUMBERS = {
    DATA: "data: {name: csv, path: pump.csv, target: y, task: regression, partition: {name: iid}}",
    MODEL: "model: {name: mlp}",
    FEDAVG: calibrated(),
}

FILES: dict[str, tuple[Files, list[str], str]] = {  # files, words of the command, message
    "no such file": (
        {"plant.yaml": PLANT},
        ["run", "plnat.yaml"],
        "plnat.yaml: there is no such file; did you mean 'plant.yaml'?",
    ),
    "a run folder instead of its scenario": (
        {"runs/plant/scenario.yaml": PLANT},
        ["run", "runs/plant"],
        "runs/plant: is a folder; the path of a YAML file is needed; did you mean 'runs/plant/scenario.yaml'?",
    ),
    "a tab": (
        {"plant.yaml": edited(PLANT, {"  cell:\n": "\tcell:\n"})},
        ["run", "plant.yaml"],
        "plant.yaml:7:1: found character that cannot start any token; YAML indents with spaces, not with tabs",
    ),
    "a key one column too far left": (
        {"plant.yaml": edited(PLANT, {"    duplex: shared": "   duplex: shared"})},
        ["run", "plant.yaml"],
        "plant.yaml:9:4: did not find expected key (while parsing ... in line 7); keys of one mapping begin in "
        "the same column",
    ),
    "an open brace": (
        {"plant.yaml": edited(PLANT, {"devices: 4}": "devices: 4"})},
        ["run", "plant.yaml"],
        "plant.yaml:6:8: did not find expected ',' or '}' ...; close the brace with }, and put commas between its keys",
    ),
    "open quotes": (
        {"plant.yaml": edited(PLANT, {"name: plant": 'name: "plant'})},
        ["run", "plant.yaml"],
        "plant.yaml:22:1: found unexpected end of stream (...); close the quotes",
    ),
    "no space after a dash": (
        {"plant.yaml": edited(PLANT, {"- {name: fedavg": "-{name: fedavg"})},
        ["run", "plant.yaml"],
        "plant.yaml:20:27: mapping values are not allowed in this context; ..., '- ' has a space behind it, and keys "
        "of one mapping begin in the same column",
    ),
    "an open bracket": (
        {"plant.yaml": edited(PLANT, {"seeds: [1, 2]": "seeds: [1, 2"})},
        ["run", "plant.yaml"],
        "plant.yaml:4:5: did not find expected ',' or ']' (while parsing a flow sequence that starts in line 3); ...",
    ),
    "no space after a colon": (
        {"plant.yaml": edited(PLANT, {"duplex: shared": "duplex:shared"})},
        ["run", "plant.yaml"],
        "plant.yaml:10:5: could not find expected ':' (while scanning a simple key that starts in line 9); "
        "write key: value, with a space after the colon",
    ),
    "no such topology file": (
        {"plant.yaml": IN_A_FILE, "prak.yaml": PARK},
        ["run", "plant.yaml"],
        "plant.yaml:5: topology: park.yaml: there is no such file; did you mean 'prak.yaml'?",
    ),
    "a topology's name for a file": (
        {"plant.yaml": IN_A_FILE.replace("park.yaml", "star")},
        ["run", "plant.yaml"],
        "plant.yaml:5: topology: star: there is no such file; for the topology of this name write {name: star}",
    ),
    "a topology as it is seen from here": (
        {"plants/plant.yaml": PLANT, "parks/park.yaml": PARK},
        ["run", "plants/plant.yaml", "--set", "topology=parks/park.yaml"],
        "--set topology=parks/park.yaml: topology: plants/parks/park.yaml: there is no such file, and no folder "
        "'plants/parks' in ...; a path is relative to the scenario: write ../parks/park.yaml",
    ),
    "a topology of another suffix": (
        {"plant.yaml": IN_A_FILE.replace("park.yaml", "park.csv"), "park.csv": "sensor,station\n"},
        ["run", "plant.yaml"],
        "plant.yaml:5: topology: park.csv: a topology file must end in .yaml, .json or .graphml; rename or convert it",
    ),
    "memories of classes where there are none": (
        {"plant.yaml": edited(PLANT, NUMBERS), "pump.csv": CSV},
        ["run", "plant.yaml"],
        "plant.yaml:20: protocols[0].exchange.scc: scc remembers by classes, and data set 'csv' has numbers to "
        "predict; set scc to null",
    ),
    "a line of a data set, which is looked up from the scenario and told from here": (
        {
            "plants/plant.yaml": edited(PLANT, {DATA: NUMBERS[DATA], MODEL: NUMBERS[MODEL]}),
            "plants/pump.csv": CSV + "1\n",
        },
        ["run", "plants/plant.yaml"],
        "plants/plant.yaml:16: data: plants/pump.csv:42: ...",
    ),
    "groups by classes where there are none": (
        {"plant.yaml": edited(PLANT, {**NUMBERS, FEDAVG: "  - {name: stp}\n"}), "pump.csv": CSV},
        ["run", "plant.yaml"],
        "plant.yaml:20: protocols[0].grouping: grouping 'icg' goes by the classes of samples, and data set 'csv' has "
        "numbers to predict, without levels (docs/grouping.md); choose another data set, or random groups",
    ),
    "a classifier in two pieces": (
        {"plant.yaml": edited(PLANT, OWN), "net.py": NET},
        ["run", "plant.yaml"],
        "plant.yaml:20: protocols[0]: the classifier of ... cannot be trained apart: it must be one of the module's "
        "children, called once and last, with one tensor; name it in model.classifier",
    ),
    "half a GraphML file": (
        {"plant.yaml": IN_A_FILE.replace("park.yaml", "park.graphml"), "park.graphml": "<graphml"},
        ["run", "plant.yaml"],
        "plant.yaml:5: topology: park.graphml:1:1: this is not GraphML: unclosed token",
    ),
}


@pytest.mark.parametrize(("files", "words", "message"), FILES.values(), ids=FILES)
def test_a_wrong_file(files: Files, words: list[str], message: str, refused: Refusals) -> None:
    lay_out(files, refused.folder)
    refused.check(*words, message=message)


TOPOLOGIES: dict[str, tuple[dict[str, str], str]] = {
    "a sensor that nothing reaches": (
        {"  - {between: [hall, mast], rate_bps: 1.0e+9}\n": ""},
        "park.yaml:6: topology.nodes.cam: sensor 'cam-1' (and 4 more) has no way to the cloud 'cloud', and must have "
        "one; link 'mast' to a node that has",
    ),
    "a misspelt station": (
        {"attach: mast": "attach: msat"},
        "park.yaml:6: topology.nodes.cam.attach: no node is called 'msat'; did you mean 'mast'?",
    ),
    "a misspelt device class": (
        {"attach: mast": "attach: mast, device: camrea"},
        "park.yaml:6: topology.nodes.cam: sensor 'cam-1' is of device class 'camrea', which devices.classes does not "
        "have; did you mean 'camera'? (classes: camera)",
    ),
    "a link to itself": (
        {"[hall, mast]": "[mast, mast]"},
        "park.yaml:9: topology.links[1]: 'mast' is linked to itself, and a link must join two nodes; remove it",
    ),
    "a rate in another unit": (
        {"[hall, mast], rate_bps: 1.0e+9": "[hall, mast], rate_mbps: 1000"},
        "park.yaml:9: topology.links[1].rate_mbps: unknown key; did you mean 'rate_bps'? (keys: between, ...)",
    ),
    "a node that stands twice": (
        {"  mast: {kind: base_station}\n": "  mast: {kind: base_station}\n" * 2},
        "plant.yaml:5: topology: park.yaml:6:3: the key 'mast' stands twice: in line 5 and in line 6",
    ),
}


@pytest.mark.parametrize(("changes", "message"), TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_a_wrong_topology(changes: dict[str, str], message: str, refused: Refusals) -> None:
    lay_out({"plant.yaml": IN_A_FILE, "park.yaml": edited(PARK, changes)}, refused.folder)
    refused.check("run", "plant.yaml", message=message)


DRAWINGS: dict[str, tuple[dict[str, str], str]] = {
    "a rate in another unit": (
        {'"mast", "rate_bps"': '"mast", "rate_mbps"'},
        "plant.yaml:5: topology: park.json: link 'hall' - 'mast': 'rate_mbps' is not read; did you mean 'rate_bps'?...",
    ),
    "a rate with its unit": (
        {'"mast", "rate_bps": 1000000000.0': '"mast", "rate_bps": "1 Gbps"'},
        "park.json: topology.links[1].rate_bps: '1 Gbps' is text; write the number in bit/s: 1000000000.0",
    ),
}


@pytest.mark.parametrize(("changes", "message"), DRAWINGS.values(), ids=DRAWINGS)
def test_a_wrong_drawing(changes: dict[str, str], message: str, refused: Refusals) -> None:
    plant = IN_A_FILE.replace("park.yaml", "park.json")
    lay_out({"plant.yaml": plant, "park.json": edited(json.dumps(DRAWN), changes)}, refused.folder)
    refused.check("run", "plant.yaml", message=message)
