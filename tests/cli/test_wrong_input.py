"""Whatever a user gets wrong is one message that helps and exit status 2; nothing is written, nothing changed.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from tiny_results import rounds_of, write_results

from fedsim.cli import main

PLANT = """\
# what a plant engineer starts from
name: plant
seeds: [1, 2]
stop: {rounds: 2}
topology: {name: star, devices: 4}
network:
  cell:
    radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}
    duplex: half
    discipline: {name: serial}
  link: {rate_bps: 1.0e+9, delay_s: 0.001}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
  cloud: {compute: {name: flops, flops_per_s: 1.0e+12}}
data: {name: digits, partition: {name: iid}}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 0.5}
  - {name: fedprox, fraction: 0.5, mu: 0.1}
"""

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

Files = Mapping[str, str | bytes | None]
"""Path -> content; None makes a folder."""

STAR = "topology: {name: star, devices: 4}"
IN_A_FILE = PLANT.replace(STAR, "topology: park.yaml")
FEDAVG, FEDPROX = "  - {name: fedavg, fraction: 0.5}\n", "  - {name: fedprox, fraction: 0.5, mu: 0.1}\n"
RATES = "uplink_bps: 1.0e+6, downlink_bps: 2.0e+6"
LINK = "  link: {rate_bps: 1.0e+9, delay_s: 0.001}\n"
CLOUD = "  cloud: {compute: {name: flops, flops_per_s: 1.0e+12}}\n"
DATA, MODEL = "data: {name: digits, partition: {name: iid}}", "model: {name: softmax}"
DECLARED = {
    DATA: "data: {name: declared, samples_per_client: 10}",
    MODEL: "model: {name: declared, parameters: 1.0e+6}",
}
STOP = "stop: {rounds: 2}"
IN_PARTS = {
    DATA: DECLARED[DATA],
    MODEL: "model: {name: declared, parameters: 2.0e+5, classifier_parameters: 1.0e+3, training_flops_per_sample: 1}",
    STOP: STOP + "\nlearn: false",
}
"""Declared data, and a declared model of two parts."""


def calibrated(scc: str = "{}") -> str:
    return f"  - {{name: fedavg, fraction: 0.5, synchronise: {{name: lasp, scc: {scc}}}}}\n"


def edited(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the text"
        text = text.replace(old, new)
    return text


def lay_out(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def everything_in(folder: Path) -> dict[str, bytes | None]:
    return {str(path): None if path.is_dir() else path.read_bytes() for path in sorted(folder.rglob("*"))}


def assert_said(message: str, said: str) -> None:
    pattern = re.escape(message).replace(re.escape("..."), "[^\n]*")
    assert re.fullmatch(pattern, said), f"said:     {said}expected: {message}"


class Refusals:
    """Commands that must be refused, executed in a folder of their own."""

    def __init__(self, folder: Path, output: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._output = output

    def check(self, *words: str, message: str, begins: str = "fedsim: ") -> None:
        """The command is refused with this message, and leaves the folder as it was."""
        before = everything_in(self.folder)
        self._output.readouterr()
        status = main(words)
        said = self._output.readouterr()
        assert_said(f"{begins}{message}\n", said.err)
        assert (status, said.out) == (2, "")
        assert everything_in(self.folder) == before


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusals:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "10000")  # argparse folds its usage otherwise
    return Refusals(tmp_path, capsys)


def test_without_a_change_all_is_fine(refused: Refusals, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = IN_A_FILE.replace("park.yaml", "park.json")
    files = {"plant.yaml": PLANT, "file.yaml": IN_A_FILE, "park.yaml": PARK, "drawn.yaml": drawn}
    lay_out({**files, "park.json": json.dumps(DRAWN)}, refused.folder)
    assert [main(["validate", name]) for name in ("plant.yaml", "file.yaml", "drawn.yaml")] == [0, 0, 0]
    assert capsys.readouterr().err == ""


SCENARIOS: dict[str, tuple[dict[str, str], str]] = {
    # values: type, unit, range
    "text for a number": (
        {"batch_size: 8": "batch_size: eight"},
        "plant.yaml:18: training.batch_size: 'eight' is text; a whole number is needed",
    ),
    "half a sample": (
        {"batch_size: 8": "batch_size: 8.5"},
        "plant.yaml:18: training.batch_size: 8.5 is not whole; a whole number is needed",
    ),
    "number in quotes": (
        {"batch_size: 8": "batch_size: '8'"},
        "plant.yaml:18: training.batch_size: '8' is text; a whole number is needed (remove the quotes)",
    ),
    "one value for a list": (
        {"seeds: [1, 2]": "seeds: 3"},
        "plant.yaml:3: seeds: 3 is a number; a list is needed: write [3]",
    ),
    "a section without its list": (
        {FEDAVG: "", FEDPROX: ""},
        "plant.yaml:19: protocols: null is empty; a list is needed",
    ),
    "a name for a section": (
        {MODEL: "model: softmax"},
        "plant.yaml:17: model: 'softmax' is text; a mapping is needed: write {name: softmax}",
    ),
    "no for false": (
        {STOP: STOP + "\nlearn: no"},
        "plant.yaml:5: learn: 'no' is text; true or false is needed: write false",
    ),
    "a unit behind the number": (
        {"uplink_bps: 1.0e+6": "uplink_bps: 4 Mbps"},
        "plant.yaml:8: network.cell.radio.uplink_bps: '4 Mbps' is text; write the number in bit/s: 4000000.0",
    ),
    "another unit in the key": (
        {"uplink_bps: 1.0e+6": "uplink_mbps: 4"},
        "plant.yaml:8: network.cell.radio.uplink_mbps: unknown key; did you mean 'uplink_bps'? (keys: name, ...)",
    ),
    "a decimal comma": (
        {LINK: "  link:\n    rate_bps: 1.0e+9\n    delay_s: 0,5\n"},
        "plant.yaml:13: network.link.delay_s: '0,5' is text; a number is needed: write 0.5, with a point",
    ),
    "a decimal comma in braces": (
        {"learning_rate: 0.1": "learning_rate: 0,1"},
        "plant.yaml:18:29: a key is text; 1 is a number: put it into quotes (for a decimal comma write a point: 0.1)",
    ),
    "thousands set apart": (
        {LINK: "  link:\n    rate_bps: 1,000,000\n    delay_s: 1,000\n"},
        "plant.yaml:12: network.link.rate_bps: '1,000,000' is text; a number is needed: write 1000000\n"
        "plant.yaml:13: network.link.delay_s: '1,000' is text; a number is needed: "
        "write 1000, or 1.000 if the comma is a decimal one",
    ),
    "negative": (
        {"learning_rate: 0.1": "learning_rate: -0.1"},
        "plant.yaml:18: training.learning_rate: -0.1 must be greater than 0",
    ),
    "not a number": (
        {"learning_rate: 0.1": "learning_rate: .nan"},
        "plant.yaml:18: training.learning_rate: .nan is not a number",
    ),
    "infinite": ({"mu: 0.1": "mu: .inf"}, "plant.yaml:21: protocols[1].mu: .inf must be finite"),
    "momentum 1": (
        {"batch_size: 8": "batch_size: 8, momentum: 1"},
        "plant.yaml:18: training.momentum: 1 must be less than 1",
    ),
    "a share in percent": (
        {FEDAVG: "  - {name: fedavg, fraction: 30}\n"},
        "plant.yaml:20: protocols[0].fraction: 30 must be at most 1",
    ),
    "an accuracy in percent": (
        {STOP: "stop: {rounds: 2, target_accuracy: 90%}"},
        "plant.yaml:4: stop.target_accuracy: '90%' is text; a number is needed: write 0.9",
    ),
    "over-selection below 1": (
        {FEDAVG: "  - {name: fedavg, fraction: 0.5, over_selection: 0.3}\n"},
        "plant.yaml:20: protocols[0].over_selection: 0.3 must be at least 1",
    ),
    "deadline 0": (
        {FEDAVG: "  - {name: fedavg, fraction: 0.5, deadline_s: 0}\n"},
        "plant.yaml:20: protocols[0].deadline_s: 0 must be greater than 0",
    ),
    "parameters in millions": (
        {MODEL: "model: {name: declared, parameters: 6.68}"},
        "plant.yaml:17: model.parameters: 6.68 must be a whole number; 6.68 million are 6.68e+6",
    ),
    "no seeds": ({"seeds: [1, 2]": "seeds: []"}, "plant.yaml:3: seeds: [] must have a length of at least 1"),
    "negative seed": ({"seeds: [1, 2]": "seeds: [1, -2]"}, "plant.yaml:3: seeds[1]: -2 must be at least 0"),
    "equal seeds": ({"seeds: [1, 2]": "seeds: [7, 7]"}, "plant.yaml:3: seeds: [7, 7] must differ from each other"),
    "a seed that no table can hold": (
        {"seeds: [1, 2]": "seeds: [20261231235959999999]"},
        "plant.yaml:3: seeds[0]: 20261231235959999999 must be less than 9223372036854775808",
    ),
    "a name that is no folder's": (
        {"name: plant": "name: plant 7/B"},
        "plant.yaml:2: name: 'plant 7/B' must be letters (A to Z), digits, ...: write plant-7-B",
    ),
    "a label of two lines": (
        {"mu: 0.1": 'mu: 0.1, label: "a\\nb"'},
        "plant.yaml:21: protocols[1].label: 'a\\nb' must be text on one line, for tables and figures",
    ),
    # keys and names
    "misspelt key": (
        {"learning_rate: 0.1": "learnig_rate: 0.1", "batch_size: 8": "batch_size: 8, learning_rate: 0.1"},
        "plant.yaml:18: training.learnig_rate: unknown key; did you mean 'learning_rate'? (keys: learning_rate, ...)",
    ),
    "key in the singular": (
        {"seeds: [1, 2]": "seed: 1"},
        "plant.yaml:3: seed: unknown key; did you mean 'seeds'? (keys: name, ...)",
    ),
    "key in the wrong place": (
        {"seeds: [1, 2]": "rounds: 10"},
        "plant.yaml:3: rounds: unknown key (keys: name, ...)",
    ),
    "key that stands twice": (
        {"seeds: [1, 2]": "seeds: [1, 2]\nname: plant"},
        "plant.yaml:4:1: the key 'name' stands twice: in line 2 and in line 4",
    ),
    "keys that are missing": (
        {MODEL + "\n": "", "learning_rate: 0.1, ": ""},
        "plant.yaml:2: needs the key 'model'\nplant.yaml:17: training: needs the key 'learning_rate'",
    ),
    "sections that are missing, and a mistake": (
        {STOP: "stopp: {rounds: 2}", MODEL: "modell: {name: softmax}", "learning_rate: 0.1": "learning_rate: -1"},
        "plant.yaml:4: stopp: unknown key; did you mean 'stop'? (keys: ...)\n"
        "plant.yaml:17: modell: unknown key; did you mean 'model'? (keys: ...)\n"
        "plant.yaml:18: training.learning_rate: -1 must be greater than 0\n"
        "plant.yaml:2: needs the keys stop, model",
    ),
    "misspelt protocol": (
        {FEDAVG: "  - {name: fedvag, fraction: 0.5}\n"},
        "plant.yaml:20: protocols[0].name: no protocol is called 'fedvag'; did you mean 'fedavg'? (known: fedavg, ...)",
    ),
    "misspelt discipline": (
        {"name: serial": "name: serail"},
        "plant.yaml:10: network.cell.discipline.name: no discipline is called 'serail'; did you mean 'serial'? ...",
    ),
    "misspelt choice": (
        {"half": "hlaf"},
        "plant.yaml:9: network.cell.duplex: 'hlaf' is not 'full' or 'half'; did you mean 'half'?",
    ),
    "unknown profile": (
        {RATES: "profile: lte_m_m3"},
        "plant.yaml:8: network.cell.radio.profile: no radio profile is called 'lte_m_m3'; did you mean 'lte_m_m2'? ...",
    ),
    "misspelt test set": (
        {STOP: STOP + "\nevaluate: {on: [globl]}"},
        "plant.yaml:5: evaluate.on[0]: 'globl' is not 'global', 'clients' or 'unseen'; did you mean 'global'?",
    ),
    "misspelt published table": (
        {STOP: STOP + "\npaper_table: hfedms_table5"},
        "plant.yaml:5: paper_table: no table is called 'hfedms_table5'; did you mean 'hfedms_table4'? (known: ...)",
    ),
    # keys that go together
    "fraction and clients": (
        {FEDAVG: "  - {name: fedavg, fraction: 0.5, clients: 2}\n"},
        "plant.yaml:20: protocols[0]: give either fraction or clients, one of them and not both; "
        "fraction=0.5 and clients=2 is given",
    ),
    "neither fraction nor clients": (
        {FEDAVG: "  - {name: fedavg}\n"},
        "plant.yaml:20: protocols[0]: give either fraction or clients, one of them and not both; nothing is given",
    ),
    "uplink only": (
        {RATES: "uplink_bps: 1.0e+6"},
        "plant.yaml:8: network.cell.radio: a fixed radio needs both uplink_bps and downlink_bps, or a profile",
    ),
    "profile and rate": (
        {RATES: "profile: lte_m_m2, uplink_bps: 1.0e+6"},
        "plant.yaml:8: network.cell.radio: a fixed radio takes a profile or rates, not both; leave one out",
    ),
    "nothing that ends a run": (
        {STOP: "stop: {}"},
        "plant.yaml:4: stop: a run must end: give rounds, target_accuracy, sim_time_s or transfer_bytes",
    ),
    "a target that nothing can reach": (
        {STOP: "stop: {target_accuracy: 0.9}\nlearn: false"},
        "plant.yaml:4: stop: with learn: false (--no-training) a run cannot end at a target_accuracy; give rounds, ...",
    ),
    "formula without accounting": (
        {STOP: STOP + "\nformula: {name: hfedms}"},
        "plant.yaml:5: formula: needs 'formula' in the key accounting: write accounting: [event, formula]",
    ),
    "accounting without formula": (
        {STOP: STOP + "\naccounting: [event, formula]"},
        "plant.yaml:5: accounting: 'formula' needs the key formula, which says which one "
        "(known: hfedms, fedgsp, fedgs)",
    ),
    "formula of a protocol that has none": (
        {
            STOP: STOP + "\naccounting: [event, formula]\nformula: {name: hfedms}",
            FEDPROX: "  - {name: centralised}\n",
        },
        "plant.yaml:23: protocols[1]: no closed form is known for protocol 'centralised'; leave it or formula out",
    ),
    "two protocols of one title": (
        {FEDPROX: "  - {name: fedavg, fraction: 0.25}\n"},
        "plant.yaml:21: protocols[1]: is called 'fedavg' in results, as protocols[0] is; give it a label",
    ),
    # parts that do not fit each other
    "device class that does not exist": (
        {"devices: 4": "devices: 4, device: camrea"},
        "plant.yaml:5: topology: sensor 'sensor-1' is of device class 'camrea', which devices.classes does not have; "
        "did you mean 'camera'? (classes: camera)",
    ),
    "default class that does not exist": (
        {CLOUD: CLOUD + "  default: camra\n"},
        "plant.yaml:16: devices.default: 'camra' is no device class; did you mean 'camera'? (classes: camera)",
    ),
    "several classes and no default": (
        {"    camera:": "    plc: {compute: {name: per_sample, seconds_per_sample: 0.1}}\n    camera:"},
        "plant.yaml:12: devices.default: sensor 'sensor-1' has no device class; name one in the topology, or set "
        "devices.default to one of: plc, camera",
    ),
    "model that does not fit the data": (
        {MODEL: "model: {name: hfedms_cnn}"},
        "plant.yaml:17: model: model 'hfedms_cnn' needs samples of shape (1, 28, 28), the data set has (1, 8, 8); "
        "set data.pixels to 28, or choose another data set or model",
    ),
    "more sensors than samples": (
        {"devices: 4": "devices: 1500"},
        "plant.yaml:16: data.partition: 1500 training samples are needed, but there are only 1438: "
        "each of 1500 clients needs one; use fewer clients or more data",
    ),
    "a cohort larger than the fleet": (
        {FEDPROX: "  - {name: fedprox, clients: 5, mu: 0.1}\n"},
        "plant.yaml:21: protocols[1].clients: 5 must be at most 4, as there are no more sensors",
    ),
    "tests that no client has": (
        {STOP: STOP + "\nevaluate: {on: [global, clients]}"},
        "plant.yaml:5: evaluate.on: 'clients' is named, but no client holds test samples; "
        "set data.client_test_fraction",
    ),
    "training on declared data": (
        DECLARED,
        "plant.yaml:16: data: only sizes are declared, so there is nothing to train; use --no-training ...",
    ),
    "training of a declared model": (
        {MODEL: DECLARED[MODEL]},
        "plant.yaml:17: model: only sizes are declared, so there is nothing to train; use --no-training ...",
    ),
    "operations that nobody declared": (
        {**DECLARED, STOP: STOP + "\nlearn: false"},
        "plant.yaml:21: protocols[0]: compute time from FLOPs needs the model's FLOPs, but model 'declared' does not "
        "state them; set model.training_flops_per_sample, or give the devices' compute time in seconds per sample",
    ),
    "training in a cloud without a computer": (
        {CLOUD: "", FEDPROX: "  - {name: centralised}\n"},
        "plant.yaml:20: protocols[1]: this protocol trains in the cloud: say how fast it computes in "
        "devices.cloud.compute",
    ),
    "raw samples of unknown size": (
        {
            **DECLARED,
            MODEL: "model: {name: declared, parameters: 1.0e+6, training_flops_per_sample: 1.0e+6}",
            STOP: STOP + "\nlearn: false",
            FEDPROX: "  - {name: centralised}\n",
        },
        "plant.yaml:22: protocols[1]: centralised sends raw samples: say how large one is in data.sample_bytes",
    ),
    "a wire without a rate": (
        {LINK: ""},
        "plant.yaml:6: network.link: the wire cloud -- station has no rate; give it rate_bps in the topology, or set "
        "network.link.rate_bps",
    ),
    # groups, and parts of a model
    "a share of the groups in percent": (
        {FEDAVG: "  - {name: stp, sampling_rate: 30}\n"},
        "plant.yaml:20: protocols[0].sampling_rate: 30 must be at most 1",
    ),
    "misspelt growth": (
        {FEDAVG: "  - {name: stp, growth: {name: logaritmic}}\n"},
        "plant.yaml:20: protocols[0].growth.name: no growth is called 'logaritmic'; did you mean 'logarithmic'? ...",
    ),
    "a growth without its pace": (
        {FEDAVG: "  - {name: stp, growth: {name: linear}}\n"},
        "plant.yaml:20: protocols[0].growth: needs the key 'alpha'",
    ),
    "misspelt part": (
        {FEDAVG: "  - {name: fedavg, fraction: 0.5, synchronise: {name: lapse}}\n"},
        "plant.yaml:20: protocols[0].synchronise.name: no synchronised part is called 'lapse'; did you mean 'lasp'? "
        "(known: whole, lasp)",
    ),
    "other groups than a protocol's own": (
        {FEDAVG: "  - {name: fedgsp, grouping: {name: random}}\n"},
        "plant.yaml:20: protocols[0].grouping.name: 'random' is not 'icg'",
    ),
    "neither skipped nor abandoned": (
        {FEDAVG: "  - {name: naive_gsp, on_loss: retry}\n"},
        "plant.yaml:20: protocols[0].on_loss: 'retry' is not 'skip' or 'abandon'",
    ),
    "groups by classes that nobody declared": (
        {**IN_PARTS, FEDAVG: "  - {name: hfedms_s}\n"},
        "plant.yaml:21: protocols[0].grouping: grouping 'icg' goes by the classes of samples, and data set 'declared' "
        "declares numbers only; choose another data set, or random groups",
    ),
    "a classifier that is the whole model": (
        {FEDAVG: calibrated()},
        "plant.yaml:20: protocols[0].synchronise: lasp sends the classifier alone, and this model has one part only; "
        "choose a model with an extractor, such as hfedms_cnn, or declare model.classifier_parameters",
    ),
    "a classifier of HFedMS that is the whole model": (
        {FEDAVG: "  - {name: hfedms_d}\n"},
        "plant.yaml:20: protocols[0]: lasp sends the classifier alone, and this model has one part only; choose ...",
    ),
    "operations of parts that nobody declared": (
        {**IN_PARTS, FEDAVG: calibrated()},
        "plant.yaml:21: protocols[0]: compute time of a part needs its FLOPs, and model 'declared' states none for its "
        "parts; choose a model with layers, or devices whose compute time is 0",
    ),
    "a share for each class that nobody declared": (
        {**IN_PARTS, "flops_per_s: 1.0e+9": "flops_per_s: .inf", FEDAVG: calibrated("{quota: per_class}")},
        "plant.yaml:21: protocols[0].synchronise.scc.quota: 'per_class' needs labels, and data set 'declared' "
        "declares numbers only; choose another data set, or leave quota out",
    ),
    "a cell of no station": (
        {LINK: LINK + "  cells: {statoin: {radio: {name: fixed, profile: lte_m_m1}}}\n"},
        "plant.yaml:12: network.cells.statoin: describes 'statoin', which is no base station with sensors; "
        "did you mean 'station'?",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), SCENARIOS.values(), ids=SCENARIOS)
def test_a_wrong_scenario(changes: dict[str, str], message: str, refused: Refusals) -> None:
    lay_out({"plant.yaml": edited(PLANT, changes)}, refused.folder)
    refused.check("run", "plant.yaml", message=message)


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
    "no such folder": (
        {"plant.yaml": PLANT},
        ["validate", "nowhere/plant.yaml"],
        "nowhere/plant.yaml: there is no such file, and no folder 'nowhere'",
    ),
    "a folder instead of a file": (
        {"plant": None},
        ["run", "plant"],
        "plant: is a folder; the path of a YAML file is needed",
    ),
    "a run folder instead of its scenario": (
        {"runs/plant/scenario.yaml": PLANT},
        ["run", "runs/plant"],
        "runs/plant: is a folder; the path of a YAML file is needed; did you mean 'runs/plant/scenario.yaml'?",
    ),
    "an empty file": (
        {"plant.yaml": ""},
        ["run", "plant.yaml"],
        "plant.yaml:1:1: a scenario is a mapping (key: value); this is empty",
    ),
    "prose": (
        {"plant.yaml": "# Plant\nHello\n"},
        ["run", "plant.yaml"],
        "plant.yaml:2:1: a scenario is a mapping (key: value); this is text",
    ),
    "another encoding": (
        {"plant.yaml": PLANT.replace("starts", "f\xe4ngt").encode("latin-1")},
        ["run", "plant.yaml"],
        "plant.yaml:1: is not UTF-8 text (byte 0xe4); save the file as UTF-8",
    ),
    "two bytes for a character": (
        {"plant.yaml": PLANT.encode("utf-16")},
        ["run", "plant.yaml"],
        "plant.yaml:1: is not UTF-8 text (byte 0xff); save the file as UTF-8",
    ),
    "a tab": (
        {"plant.yaml": edited(PLANT, {"  cell:\n": "\tcell:\n"})},
        ["run", "plant.yaml"],
        "plant.yaml:7:1: found character that cannot start any token; YAML indents with spaces, not with tabs",
    ),
    "an open bracket": (
        {"plant.yaml": edited(PLANT, {"seeds: [1, 2]": "seeds: [1, 2"})},
        ["run", "plant.yaml"],
        "plant.yaml:4:5: did not find expected ',' or ']' (while parsing a flow sequence that starts in line 3)",
    ),
    "no space after a colon": (
        {"plant.yaml": edited(PLANT, {"duplex: half": "duplex:half"})},
        ["run", "plant.yaml"],
        "plant.yaml:10:5: could not find expected ':' (while scanning a simple key that starts in line 9)",
    ),
    "two scenarios": (
        {"plant.yaml": f"{PLANT}---\n{PLANT}"},
        ["run", "plant.yaml"],
        "plant.yaml:22:1: a second document starts here; a file holds one",
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
    "a topology of another suffix": (
        {"plant.yaml": IN_A_FILE.replace("park.yaml", "park.csv"), "park.csv": "sensor,station\n"},
        ["run", "plant.yaml"],
        "plant.yaml:5: topology: park.csv: a topology file must end in .yaml, .json or .graphml; rename or convert it",
    ),
    "memories of classes where there are none": (
        {"plant.yaml": edited(PLANT, NUMBERS), "pump.csv": CSV},
        ["run", "plant.yaml"],
        "plant.yaml:20: protocols[0].synchronise.scc: scc remembers by classes, and data set 'csv' has numbers to "
        "predict; set scc to null",
    ),
    "groups by classes where there are none": (
        {"plant.yaml": edited(PLANT, {**NUMBERS, FEDAVG: "  - {name: stp}\n"}), "pump.csv": CSV},
        ["run", "plant.yaml"],
        "plant.yaml:20: protocols[0].grouping: grouping 'icg' goes by the classes of samples, and data set 'csv' has "
        "numbers to predict; choose another data set, or random groups",
    ),
    "a classifier in two pieces": (
        {"plant.yaml": edited(PLANT, OWN), "net.py": NET},
        ["run", "plant.yaml"],
        "plant.yaml:20: protocols[0]: the classifier of ... cannot be trained apart: it must be one of the module's "
        "children, called once and last, with one tensor; name it in model.classifier",
    ),
    "an empty topology file": (
        {"plant.yaml": IN_A_FILE, "park.yaml": ""},
        ["run", "plant.yaml"],
        "plant.yaml:5: topology: park.yaml:1:1: a topology is a mapping (key: value); this is empty",
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
    "no cloud": (
        {"{kind: cloud}": "{kind: edge}"},
        "park.yaml:1: topology: no node is of kind 'cloud', and at least one must be: ...",
    ),
    "no sensors": (
        {"  cam: {kind: sensor, count: 4, attach: mast}\n": ""},
        "park.yaml:1: topology: no node is of kind 'sensor', and at least one must be: sensors hold the data; add one",
    ),
    "a sensor that nothing reaches": (
        {"  - {between: [hall, mast], rate_bps: 1.0e+9}\n": ""},
        "park.yaml:6: topology.nodes.cam: sensor 'cam-1' (and 4 more) has no way to the cloud 'cloud', and must have "
        "one; link 'mast' to a node that has",
    ),
    "a sensor without a station": (
        {", attach: mast": ""},
        "park.yaml:6: topology.nodes.cam: sensor 'cam-1' is linked to nothing and must be to one base station; ...",
    ),
    "a sensor at an edge server": (
        {"attach: mast": "attach: hall"},
        "park.yaml:6: topology.nodes.cam: sensor 'cam-1' is linked to 'hall', which is of kind edge, ...",
    ),
    "a misspelt station": (
        {"attach: mast": "attach: msat"},
        "park.yaml:6: topology.nodes.cam.attach: no node is called 'msat'; did you mean 'mast'?",
    ),
    "a misspelt kind": (
        {"{kind: edge}": "{kind: egde}"},
        "park.yaml:4: topology.nodes.hall.kind: 'egde' is not 'sensor', 'base_station', 'edge' or 'cloud'; "
        "did you mean 'edge'?",
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
    "a link that stands twice": (
        {"links:\n": "links:\n  - {between: [hall, cloud]}\n"},
        "park.yaml:9: topology.links[1]: 'cloud' and 'hall' are linked already, and a link goes both ways; keep one",
    ),
    "a rate in another unit": (
        {"[hall, mast], rate_bps: 1.0e+9": "[hall, mast], rate_mbps: 1000"},
        "park.yaml:9: topology.links[1].rate_mbps: unknown key; did you mean 'rate_bps'? (keys: between, ...)",
    ),
    "a rate of 0": (
        {"[hall, mast], rate_bps: 1.0e+9": "[hall, mast], rate_bps: 0"},
        "park.yaml:9: topology.links[1].rate_bps: 0 must be greater than 0",
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
    "a rate by another name": (
        {'"mast", "rate_bps"': '"mast", "bandwidth"'},
        "plant.yaml:5: topology: park.json: link 'hall' - 'mast': 'bandwidth' is not read; did you mean 'rate_bps'?...",
    ),
    "a rate with its unit": (
        {'"mast", "rate_bps": 1000000000.0': '"mast", "rate_bps": "1 Gbps"'},
        "park.json: topology.links[1].rate_bps: '1 Gbps' is text; write the number in bit/s: 1000000000.0",
    ),
    "no JSON": (
        {'{"nodes"': "{nodes"},
        "plant.yaml:5: topology: park.json: this is not JSON: ... line 1 ...",
    ),
}


@pytest.mark.parametrize(("changes", "message"), DRAWINGS.values(), ids=DRAWINGS)
def test_a_wrong_drawing(changes: dict[str, str], message: str, refused: Refusals) -> None:
    plant = IN_A_FILE.replace("park.yaml", "park.json")
    lay_out({"plant.yaml": plant, "park.json": edited(json.dumps(DRAWN), changes)}, refused.folder)
    refused.check("run", "plant.yaml", message=message)


OPTIONS: dict[str, tuple[list[str], str]] = {
    "--set without a value": (
        ["--set", "training.epochs"],
        "--set training.epochs: is not of the form key.path=value, for example training.epochs=2",
    ),
    "--set of no section": (
        ["--set", "trainig.epochs=2"],
        "--set trainig.epochs=2: trainig: unknown key; did you mean 'training'? (keys: ...)",
    ),
    "--set of no key": (
        ["--set", "training.epoch=2"],
        "--set training.epoch=2: training.epoch: unknown key; did you mean 'epochs'? (keys: ...)",
    ),
    "--set of no position": (
        ["--set", "protocols.7.fraction=0.2"],
        "--set protocols.7.fraction=0.2: protocols has positions 0 to 1, and none at 7",
    ),
    "--set of no item": (
        ["--set", "protocols.fedvag.fraction=0.2"],
        "--set protocols.fedvag.fraction=0.2: protocols has no item called 'fedvag'; did you mean 'fedavg'? (...)",
    ),
    "--set of two protocols": (
        ["--set", "protocols.1.label=fedavg", "--set", "protocols.fedavg.fraction=0.2"],
        "--set protocols.fedavg.fraction=0.2: protocols has 2 items with the title 'fedavg'; "
        "write protocols.0 or protocols.1",
    ),
    "--set of a wrong value in a section that is not there": (
        ["--set", "evaluate.every=0"],
        "--set evaluate.every=0: evaluate.every: 0 must be at least 1",
    ),
    "--set to a wrong value": (
        ["--set", "training.epochs=two"],
        "--set training.epochs=two: training.epochs: 'two' is text; a whole number is needed",
    ),
    "--set to half a list": (
        ["--set", "seeds=[1, 2"],
        "--set seeds=[1, 2: the value is not YAML: did not find expected ',' or ']' ...",
    ),
    "--set to what does not fit": (
        ["--set", "model={name: hfedms_cnn}"],
        "--set model={name: hfedms_cnn}: model: model 'hfedms_cnn' needs samples of shape (1, 28, 28), ...",
    ),
    "--only of no protocol": (
        ["--only", "fedprx"],
        "--only: the scenario has no protocol 'fedprx'; did you mean 'fedprox'? (protocols: ...)",
    ),
    "--only what does not fit": (
        ["--only", "fedprox", "--set", "devices.classes.plc={compute: {name: per_sample, seconds_per_sample: 1}}"],
        "plant.yaml:12: devices.default: sensor 'sensor-1' has no device class; ...",
    ),
    "--seeds that are equal": (["--seeds", "1,1"], "--set seeds=[1, 1]: seeds: [1, 1] must differ from each other"),
    "--seeds below 0": (["--seeds=-1"], "--set seeds=[-1]: seeds[0]: -1 must be at least 0"),
    "--executor of no name": (
        ["--executor", "seriel"],
        "--executor: no executor is called 'seriel'; did you mean 'serial'? (known: auto, serial, ...)",
    ),
    "--executor of no name, for nothing": (
        ["--executor", "seriel", "--no-training"],
        "--executor: no executor is called 'seriel'; did you mean 'serial'? (known: auto, serial, ...)",
    ),
    "--workers of one process": (
        ["--executor", "serial", "--workers", "2"],
        "--workers 2: executor 'serial' trains in one process; leave --workers out, or choose --executor processes, "
        "which comes to the same numbers",
    ),
    "--precision that an executor does not have": (
        ["--executor", "serial", "--precision", "bfloat16"],
        "--precision bfloat16: executor 'serial' does not compute in it, only in: float32, float64",
    ),
    "--store in a file": (["--store", "notes.txt"], "notes.txt is not a folder; choose another store with --store"),
    "--store below a file": (
        ["--store", "notes.txt/store"],
        "notes.txt is not a folder; choose another store with --store",
    ),
    "--out in a file": (["--out", "notes.txt"], "notes.txt is not a folder; choose another one with --out"),
    "--out below a file": (["--out", "notes.txt/run"], "notes.txt is not a folder; choose another one with --out"),
    "--out in a stranger's folder": (
        ["--out", "letters"],
        "letters is not empty and is no run folder (it has letter.txt); choose another with --out",
    ),
    "--out with too long a name": (["--out", "x" * 300], "... (File name too long); choose another one with --out"),
    "no such option": (["--onyl", "fedavg"], "`fedsim run` takes no '--onyl'; did you mean '--only'?"),
    "two scenarios": (["letters/letter.txt"], "`fedsim run` takes no 'letters/letter.txt'"),
}


@pytest.mark.parametrize(("options", "message"), OPTIONS.values(), ids=OPTIONS)
def test_a_wrong_option(options: list[str], message: str, refused: Refusals) -> None:
    lay_out({"plant.yaml": PLANT, "notes.txt": "notes", "letters/letter.txt": "letter"}, refused.folder)
    refused.check("run", "plant.yaml", *options, message=message)


WORDS: dict[str, tuple[list[str], str]] = {
    "a misspelt command": (["rnu", "plant.yaml"], "there is no command 'rnu'; did you mean 'run'? (commands: ...)"),
    "comparing nothing": (["compare", "runs/plnat"], "there is no run folder runs/plnat; did you mean 'runs/plant'?"),
    "comparing a file": (["compare", "plant.yaml"], "plant.yaml is no run folder: it has no manifest.json"),
    "comparing any folder": (["compare", "runs"], "runs is no run folder: it has no manifest.json"),
    "plotting any folder": (["plot", "runs"], "runs is no run folder: it has no manifest.json"),
    "numbers in a folder": (
        ["compare", "runs/fine", "--csv", "runs"],
        "--csv: cannot write runs: it is a folder",
    ),
    "numbers nowhere": (
        ["compare", "runs/fine", "--csv", "nowhere/numbers.csv"],
        "--csv: cannot write nowhere/numbers.csv: there is no such folder",
    ),
    "numbers in a file": (
        ["compare", "runs/fine", "--csv", "plant.yaml/numbers.csv"],
        "--csv: cannot write plant.yaml/numbers.csv: plant.yaml is not a folder",
    ),
    "figures in a file": (
        ["plot", "runs/fine", "--out", "plant.yaml"],
        "plant.yaml is not a folder; choose another folder with --out",
    ),
    "a manifest that is none": (
        ["compare", "runs/list"],
        "runs/list/manifest.json is not readable as a manifest; run the scenario again, into another folder",
    ),
    "half a manifest": (
        ["plot", "runs/half"],
        "runs/half/manifest.json is not readable as a manifest; run the scenario again, into another folder",
    ),
    "a run without its tables": (
        ["plot", "runs/plant"],
        "runs/plant has lost its rounds.parquet; run the scenario again, into another folder",
    ),
    "a misspelt kind": (
        ["list", "protcols"],
        "nothing is registered under 'protcols'; did you mean 'protocols'? (kinds: ...)",
    ),
}


@pytest.mark.parametrize(("words", "message"), WORDS.values(), ids=WORDS)
def test_a_wrong_command(words: list[str], message: str, refused: Refusals) -> None:
    manifests = {"list": "[]", "half": "{", "plant": '{"status": "finished", "scenario": "plant", "runs": []}'}
    files = {f"runs/{name}/manifest.json": manifest for name, manifest in manifests.items()}
    lay_out({"plant.yaml": PLANT, **files}, refused.folder)
    write_results(refused.folder / "runs/fine", [rounds_of("fedavg", 1, [0.2, 0.8])])
    refused.check(*words, message=message)


ARGUMENTS: dict[str, tuple[list[str], str]] = {
    "no scenario": (["run"], "the following arguments are required: SCENARIO"),
    "seeds that are text": (
        ["run", "plant.yaml", "--seeds", "one"],
        "argument --seeds: 'one' must be whole numbers with commas between them, as in 1,2,3",
    ),
    "an unknown torch device": (
        ["run", "plant.yaml", "--torch-device", "tpu"],
        "argument --torch-device: invalid choice: 'tpu' (choose from ...cpu..., ...cuda...)",
    ),
    "no workers": (
        ["run", "plant.yaml", "--workers", "0"],
        "argument --workers: '0' must be a whole number of at least 1, as in 2",
    ),
    "workers in words": (
        ["run", "plant.yaml", "--workers", "two"],
        "argument --workers: 'two' must be a whole number of at least 1, as in 2",
    ),
    "an unknown precision": (
        ["run", "plant.yaml", "--precision", "float16"],
        "argument --precision: invalid choice: 'float16' (choose from ...float32..., ...float64..., ...bfloat16...)",
    ),
    "no time between checkpoints": (
        ["run", "plant.yaml", "--checkpoint-interval-s", "0"],
        "argument --checkpoint-interval-s: '0' must be a number of seconds above 0, as in 30",
    ),
    "an unknown figure format": (
        ["plot", "runs/plant", "--format", "jpg"],
        "argument --format: invalid choice: 'jpg' (choose from ...png..., ...svg...)",
    ),
}


@pytest.mark.parametrize(("words", "message"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_wrong_arguments_have_their_usage_before_the_message(words: list[str], message: str, refused: Refusals) -> None:
    lay_out({"plant.yaml": PLANT}, refused.folder)
    command = words[0]
    refused.check(*words, begins=f"usage: fedsim {command} ...\nfedsim {command}: error: ", message=message)


@pytest.mark.parametrize("executor", ["auto", "serial", "batched"])
def test_a_torch_device_that_is_not_here(refused: Refusals, monkeypatch: pytest.MonkeyPatch, executor: str) -> None:
    lay_out({"plant.yaml": PLANT}, refused.folder)
    words = ["run", "plant.yaml", "--torch-device", "cuda", "--executor", executor]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    way_out = "leave the option out to compute on the CPU"
    for cuda, why in (
        (None, f"this torch ({torch.__version__}) is built without CUDA"),
        ("12.6", f"torch {torch.__version__} finds no CUDA device here"),
    ):
        monkeypatch.setattr(torch.version, "cuda", cuda)
        refused.check(*words, message=f"--torch-device cuda: {why}; {way_out}")


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_torch_device_that_an_executor_does_not_compute_on(
    refused: Refusals, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    lay_out({"plant.yaml": PLANT}, refused.folder)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    message = (
        f"--torch-device cuda: executor {executor!r} does not compute there, only on: cpu; "
        "leave --executor out, or --torch-device"
    )
    refused.check("run", "plant.yaml", "--torch-device", "cuda", "--executor", executor, message=message)


def test_a_store_with_something_else_in_its_place(refused: Refusals) -> None:
    lay_out({"plant.yaml": PLANT, "store/metrics": "no folder"}, refused.folder)
    message = "store is not empty and is no store (it has metrics); choose another store with --store, or another ..."
    refused.check("run", "plant.yaml", "--store", "store", message=message)


def test_a_partition_that_only_some_seeds_allow(refused: Refusals) -> None:
    # One draw in about a thousand gives everybody 310 of 1438 samples, and a thousand are tried: seed 3 finds one.
    partition = {"{name: iid}": "{name: quantity_skew, minimum_samples: 310}"}
    lay_out({"plant.yaml": edited(PLANT, partition)}, refused.folder)
    assert main(["validate", "plant.yaml", "--set", "seeds=[3]"]) == 0
    message = "plant.yaml:16: data.partition: quantity_skew with alpha=0.5 left some of 4 clients with fewer than ..."
    refused.check("run", "plant.yaml", "--seeds", "3,1", message=message)


FAR = {
    "devices: 4}": "devices: 4, radius_m: 300.0}",
    "{name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}": """
      name: shannon
      profile: nr_38803
      bandwidth_hz: 20.0e+6
      out_of_coverage: exclude
      snr:
        name: link_budget
        carrier_hz: 3.7e+9
        device_power_dbm: 23.0
        station_power_dbm: 30.0
        device_noise_figure_db: 9.0
        station_noise_figure_db: 5.0
        path_loss: {name: log_distance, exponent: 3.0}
        shadowing: {sigma_db: 12.0}""",
    FEDPROX: "  - {name: centralised}\n",
}


def test_coverage_that_the_last_protocol_lacks_on_the_last_seed_only(refused: Refusals) -> None:
    lay_out({"plant.yaml": edited(PLANT, FAR)}, refused.folder)
    assert [main(["validate", "plant.yaml", "--set", f"seeds=[{seed}]"]) for seed in (4, 3)] == [0, 2]
    message = "plant.yaml:...: protocols[1]: centralised trains on everybody's samples, and 'sensor-...' is out of ..."
    refused.check("run", "plant.yaml", "--seeds", "4,3", message=message)


# -- run folders that are not what the command is about --------------------------------------------------------------


@pytest.fixture(scope="module")
def a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    lay_out({"plant.yaml": PLANT}, folder)
    out = folder / "plant"
    assert main(["run", str(folder / "plant.yaml"), "--no-training", "--quiet", "--out", str(out)]) == 0
    return out


@pytest.fixture
def finished(refused: Refusals, a_run: Path) -> Refusals:
    """There is a finished run, without training, in runs/plant."""
    lay_out({"plant.yaml": PLANT}, refused.folder)
    shutil.copytree(a_run, "runs/plant")
    return refused


def test_a_folder_with_another_scenarios_run(finished: Refusals) -> None:
    other = "runs/plant holds the run of a different scenario ({}); choose another folder with --out"
    finished.check("run", "plant.yaml", message=other.format("learn is false there and true here"))
    words = ["run", "plant.yaml", "--no-training", "--set", "training.epochs=2"]
    finished.check(*words, message=other.format("training.epochs is 1 there and 2 here"))
    words = ["run", "plant.yaml", "--no-training", "--only", "fedavg"]
    finished.check(*words, message=other.format("protocols is a list of 2 there and a list of 1 here"))


def test_a_folder_with_an_unfinished_run(finished: Refusals) -> None:
    path = finished.folder / "runs/plant/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "status": "running"}), "utf-8")
    message = "the run in runs/plant is not finished; go on with --resume, or choose another folder with --out"
    finished.check("run", "plant.yaml", "--no-training", message=message)
    command = "fedsim run runs/plant/scenario.yaml --out runs/plant --resume"
    for word in ("compare", "plot"):
        finished.check(word, "runs/plant", message=f"the run in runs/plant is not finished; go on with: {command}")


def test_a_folder_with_half_a_manifest(finished: Refusals) -> None:
    (finished.folder / "runs/plant/manifest.json").write_text("{", "utf-8")
    message = "runs/plant/manifest.json is not readable as a manifest; run the scenario again, into another folder"
    finished.check("run", "plant.yaml", "--no-training", message=message)


def test_a_folder_in_which_another_run_is_at_work(finished: Refusals) -> None:
    path = finished.folder / "runs/plant/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "status": "running"}), "utf-8")
    with FileLock("runs/plant/.lock"):
        message = "another run is at work in runs/plant; wait for it, or choose another folder with --out"
        finished.check("run", "plant.yaml", "--no-training", "--resume", message=message)


# -- the command as a process ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "plant.yaml", "--set", "protocols.0.name=fedvag"], "... no protocol is called 'fedvag'; ..."),
        pytest.param(
            ["validate", "plant.yaml", "--set", "topology.devices=1500"],
            "plant.yaml:16: data.partition: 1500 training ...",
            marks=pytest.mark.long,
        ),
        pytest.param(
            ["run", "plant.yaml", "--store", "plant.yaml"], "plant.yaml is not a folder; ...", marks=pytest.mark.long
        ),
        pytest.param(
            ["validate", "plnat.yaml"],
            "plnat.yaml: there is no such file; did you mean 'plant.yaml'?",
            marks=pytest.mark.long,
        ),
        (["rnu", "plant.yaml"], "there is no command 'rnu'; ..."),
    ],
    ids=["misspelt", "misfit", "no store", "missing", "no command"],
)
def test_the_process_ends_with_status_2_and_no_traceback(words: list[str], message: str, tmp_path: Path) -> None:
    lay_out({"plant.yaml": PLANT}, tmp_path)
    done = subprocess.run([sys.executable, "-m", "fedsim", *words], cwd=tmp_path, capture_output=True, text=True)
    assert_said(f"fedsim: {message}\n", done.stderr)
    assert (done.returncode, done.stdout) == (2, "")
    assert list(everything_in(tmp_path)) == [str(tmp_path / "plant.yaml")]
