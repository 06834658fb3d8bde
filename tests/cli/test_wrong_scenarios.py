"""A wrong scenario is one message that helps and exit status 2; nothing is written, nothing changed.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import pytest
from refusals import DATA, FEDAVG, FEDPROX, MODEL, PLANT, Refusals, calibrated, edited, lay_out

from fedsim.cli import main

RATES = "uplink_bps: 1.0e+6, downlink_bps: 2.0e+6"
LINK = "  link: {rate_bps: 1.0e+9, delay_s: 0.001}\n"
CLOUD = "  cloud: {compute: {name: flops, flops_per_s: 1.0e+12}}\n"
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


SCENARIOS: dict[str, tuple[dict[str, str], str]] = {
    # values: type, unit, range
    "a decimal comma": (
        {LINK: "  link:\n    rate_bps: 1.0e+9\n    delay_s: 0,5\n"},
        "plant.yaml:13: network.link.delay_s: '0,5' is text; a number is needed: write 0.5, with a point",
    ),
    "a decimal comma in braces": (
        {"learning_rate: 0.1": "learning_rate: 0,1"},
        "plant.yaml:18:29: a key is text; 1 is a number: put it into quotes (for a decimal comma write a point: 0.1)",
    ),
    "a share in percent": (
        {FEDAVG: "  - {name: fedavg, fraction: 30}\n"},
        "plant.yaml:20: protocols[0].fraction: 30 must be at most 1; did you mean 0.3?",
    ),
    "an accuracy in percent": (
        {STOP: "stop: {rounds: 2, target_accuracy: 90%}"},
        "plant.yaml:4: stop.target_accuracy: '90%' is text; a number is needed: write 0.9",
    ),
    "parameters in millions": (
        {MODEL: "model: {name: declared, parameters: 6.68}"},
        "plant.yaml:17: model.parameters: 6.68 must be a whole number; 6.68 million are 6.68e+6",
    ),
    "equal seeds": ({"seeds: [1, 2]": "seeds: [7, 7]"}, "plant.yaml:3: seeds: [7, 7] must differ from each other"),
    "a seed that no table can hold": (
        {"seeds: [1, 2]": "seeds: [20261231235959999999]"},
        "plant.yaml:3: seeds[0]: 20261231235959999999 must be less than 9223372036854775808",
    ),
    "a name that is no folder's": (
        {"name: plant": "name: plant 7/B"},
        "plant.yaml:2: name: 'plant 7/B' must be letters (A to Z), digits, ...: write plant-7-B",
    ),
    # keys and names
    "key in the singular": (
        {"seeds: [1, 2]": "seed: 1"},
        "plant.yaml:3: seed: unknown key; did you mean 'seeds'? (keys: name, ...)",
    ),
    "key in the wrong place": (
        {"seeds: [1, 2]": "rounds: 10"},
        "plant.yaml:3: rounds: unknown key; did you mean 'stop.rounds'? (keys: name, ...)",
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
    "a protocol of the field": (
        {FEDAVG: "  - {name: fedopt}\n"},
        "plant.yaml:20: protocols[0].name: no protocol is called 'fedopt'; it is a family: fedavgm, ... "
        "(docs/protocols/fedopt.md): write {name: fedadam, fraction: 0.5} (known: fedavg, ...)",
    ),
    "a technology for a radio": (
        {f"{{name: fixed, {RATES}}}": "{name: 5G}"},
        "plant.yaml:8: network.cell.radio.name: no radio is called '5G'; nominal rates are profiles of the radio "
        "fixed, and nr has rates from signal-to-noise ratios: write {name: fixed, profile: nr_100mhz_private} (known: "
        "fixed, lte, ...)",
    ),
    "a technology for a profile": (
        {RATES: "profile: lte"},
        "plant.yaml:8: network.cell.radio.profile: no radio profile is called 'lte'; write 'lte_cat4' (known: ...)",
    ),
    "a key by another word": (
        {"learning_rate: 0.1": "lr: 0.1", "batch_size: 8": "batch_size: 8, learning_rate: 0.1"},
        "plant.yaml:18: training.lr: unknown key; did you mean 'learning_rate'? (keys: ...)",
    ),
    "what a cell is, of a device": (
        {"flops_per_s: 1.0e+9}}": "flops_per_s: 1.0e+9}, duplex: shared}"},
        "plant.yaml:14: devices.classes.camera.duplex: 'shared' is not 'full' or 'half'",
    ),
    "time that is divided twice": (
        {RATES: "profile: nr_100mhz_private"},
        "plant.yaml:9: network.cell.duplex: shared (half, as it was called) makes the two directions take turns, and "
        "the radio's rates contain that already (TDD), so it would be counted twice; leave duplex out",
    ),
    "TDD in the wrong place": (
        {"duplex: shared": "duplex: tdd"},
        "plant.yaml:9: network.cell.duplex: 'tdd' is said by the radio: profiles of TDD have it in their rates, and "
        "radios with signal-to-noise ratios take a pattern (tdd: {slots: DDDSU, ...}); leave duplex out",
    ),
    "carriers that nobody waits for": (
        {"{name: serial}": "{name: dedicated}\n    carriers: 4"},
        "plant.yaml:11: network.cell.carriers: 4 make no difference where nobody waits for anybody (dedicated); leave "
        "carriers out, or write discipline: {name: fair}",
    ),
    "unknown profile": (
        {RATES: "profile: lte_m_m3"},
        "plant.yaml:8: network.cell.radio.profile: no radio profile is called 'lte_m_m3'; did you mean 'lte_m_m2'? ...",
    ),
    "unknown profile, and a discipline by it": (
        {RATES: "profile: lte_m_m3", "    discipline: {name: serial}\n": ""},
        "plant.yaml:8: network.cell.radio.profile: no radio profile is called 'lte_m_m3'; did you mean 'lte_m_m2'? ...",
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
    "other groups than a protocol's own": (
        {FEDAVG: "  - {name: fedgsp, grouping: {name: random}}\n"},
        "plant.yaml:20: protocols[0].grouping.name: 'random' is not 'icg', which this protocol always has; use stp "
        "for grouping: {name: random}",
    ),
    "groups by classes that nobody declared": (
        {**IN_PARTS, FEDAVG: "  - {name: hfedms_s}\n"},
        "plant.yaml:21: protocols[0].grouping: grouping 'icg' goes by the classes of samples, and data set 'declared' "
        "declares numbers only; choose another data set, or random groups",
    ),
    "a classifier that is the whole model": (
        {FEDAVG: calibrated()},
        "plant.yaml:20: protocols[0].exchange: exchange 'lasp' needs a model of an extractor and a classifier, "
        "and this one is not divided; choose another, such as hfedms_cnn, or declare model.classifier_parameters",
    ),
    "operations of parts that nobody declared": (
        {**IN_PARTS, FEDAVG: calibrated()},
        "plant.yaml:21: protocols[0]: compute time of a part needs its FLOPs, and model 'declared' states none for its "
        "parts; choose a model with layers, or devices whose compute time is 0",
    ),
    "a share for each class that nobody declared": (
        {**IN_PARTS, "flops_per_s: 1.0e+9": "flops_per_s: .inf", FEDAVG: calibrated("{quota: per_class}")},
        "plant.yaml:21: protocols[0].exchange.scc.quota: 'per_class' needs labels, and data set 'declared' "
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
    assert [main(["validate", "plant.yaml", "--set", f"seeds=[{seed}]"]) for seed in (4, 5)] == [0, 2]
    message = "plant.yaml:...: protocols[1]: centralised trains on everybody's samples, and 'sensor-...' is out of ..."
    refused.check("run", "plant.yaml", "--seeds", "4,5", message=message)
