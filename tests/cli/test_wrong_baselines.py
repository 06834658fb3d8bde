"""Rules, objectives and exchanges that do not fit each other are one message with its line, and exit status 2."""

from __future__ import annotations

import pytest
from refusals import DATA, FEDAVG, FEDPROX, MODEL, PLANT, Refusals, edited, lay_out

CSV = "a,b,y\n" + "".join(f"{number},{number % 3},{number / 7}\n" for number in range(40))
NUMBERS = {
    DATA: "data: {name: csv, path: pump.csv, target: y, task: regression, partition: {name: iid}}",
    MODEL: "model: {name: mlp}",
}
PARTED = {MODEL: "model: {name: mlp, hidden: [5]}"}
AT = "plant.yaml:20: protocols[0]"
NOT_WHOLE = (
    "objective 'control_variates' goes by the gradients of the whole model, and with exchange 'lasp' not all of it is "
    "trained and sent in each round; choose exchange: {name: whole}"
)
PARALLEL = "use a protocol whose clients train in parallel, such as fedavg"
IN_SEQUENCE = (
    "sends '...' beside the model, and in a group that trains in sequence only the last client's would arrive; "
    f"{PARALLEL}"
)
OF_CLASSES = "accuracy is of classes, and data set 'csv' has numbers to predict; choose another objective or protocol"
SCENARIOS: dict[str, tuple[dict[str, str], str, str]] = {
    "a rule that needs controls of a plain objective": (
        {},
        "{name: fedavg, fraction: 0.5, server: {name: scaffold}}",
        ".server: server rule 'scaffold' needs 'control_change' of each client, and objective 'plain' sends none; "
        "choose objective: {name: control_variates}",
    ),
    "an objective that receives what the rule does not have": (
        {},
        "{name: fedavg, fraction: 0.5, objective: {name: control_variates}}",
        ".server: objective 'control_variates' receives 'control', and server rule 'mean' has none; choose server: "
        "{name: scaffold}",
    ),
    "the same, in a preset that has its own rule": (
        {},
        "{name: fedadam, fraction: 0.5, objective: {name: control_variates}}",
        ".server: objective 'control_variates' receives 'control', and server rule 'adam' has none; use fedavg or "
        "composed, with server: {name: scaffold}",
    ),
    "a rule that needs controls, in a preset that has its own objective": (
        {},
        "{name: fedprox, fraction: 0.5, mu: 0.1, server: {name: scaffold}}",
        ".server: server rule 'scaffold' needs 'control_change' of each client, and objective 'proximal' sends none; "
        "use fedavg or composed, with objective: {name: control_variates}",
    ),
    "a rule that needs controls, in groups": (
        {},
        "{name: stp, server: {name: scaffold}}",
        ".server: server rule 'scaffold' needs 'control_change' of each client, and in a group that trains in sequence "
        f"only the last client's would arrive; {PARALLEL}",
    ),
    "an objective that receives controls, in groups": (
        {},
        "{name: stp, objective: {name: control_variates}}",
        f".objective: objective 'control_variates' {IN_SEQUENCE}",
    ),
    "controls in a group, composed": (
        {},
        "{name: composed, cohort: {name: grouped}, server: {name: scaffold}, objective: {name: control_variates}}",
        ".objective: objective 'control_variates' sends 'control_change' beside the model, and in a group that trains "
        "in sequence only the last client's would arrive; choose cohort: {name: random}",
    ),
    "controls of an extractor": (
        PARTED,
        "{name: fedper, fraction: 0.5, server: {name: scaffold}, objective: {name: control_variates}}",
        ": objective 'control_variates' goes by the gradients of the whole model, and with exchange 'extractor' not "
        "all of it is trained and sent in each round; use fedavg or composed, with exchange: {name: whole}",
    ),
    "controls of a part": (
        PARTED,
        "{name: scaffold, fraction: 0.5, interval: 5, exchange: {name: lasp}}",
        f".exchange: {NOT_WHOLE}",
    ),
    "accuracies of who has not trained": (
        PARTED,
        "{name: ida_intrac, fraction: 0.5, interval: 5, exchange: {name: lasp, scc: {without_history: skip}}}",
        ".exchange: objective 'tells_accuracy' tells 'accuracy' of each training, and with these keys of exchange "
        "'lasp' some clients send without training; choose scc: {without_history: calibrate}, or exchange: {name: "
        "whole}",
    ),
    "accuracies of numbers": (
        NUMBERS,
        "{name: fedavg, fraction: 0.5, objective: {name: tells_accuracy}}",
        f".objective: {OF_CLASSES}",
    ),
    "accuracies of numbers, by the preset": (NUMBERS, "{name: ida_intrac, fraction: 0.5}", f": {OF_CLASSES}"),
    "another objective in a preset that has its own": (
        {},
        "{name: scaffold, fraction: 0.5, objective: {name: plain}}",
        ".objective: unknown key; 'fedavg', 'fedavgm', 'fedadagrad' and ... more have it (keys: ...)",
    ),
    "another rule in a preset that has its own": (
        {},
        "{name: fedadam, fraction: 0.5, server: {name: yogi}}",
        ".server.name: 'yogi' is not 'adam', which this protocol always has; use fedavg for server: {name: yogi}",
    ),
    "a key of another rule": (
        {},
        "{name: fedadagrad, fraction: 0.5, server: {beta2: 0.9}}",
        ".server.beta2: unknown key; 'adam', 'yogi' have it (keys: name, learning_rate, beta1, tau, v0)",
    ),
    "a key of another rule, as a variant of it has other keys": (
        {},
        "{name: ida_intrac, fraction: 0.5, server: {beta: 0.9}}",
        ".server.beta: unknown key; 'momentum' has it (keys: ...)",
    ),
    "a key of another protocol": (
        {},
        "{name: fedavg, fraction: 0.5, mu: 0.1}",
        ".mu: unknown key; 'fedprox' has it (keys: ...)",
    ),
    "some of its own training": (
        {},
        "{name: fedavg, fraction: 0.5, training: {learning_rate: 0.03}}",
        ".training: needs the key 'batch_size'; a protocol's training replaces the scenario's: write all its keys",
    ),
    "an accuracy that the preset does not go without": (
        {},
        "{name: ida_intrac, fraction: 0.5, server: {accuracy: false}}",
        ".server.accuracy: false is a truth value; true is needed",
    ),
    "a memory of everything": (
        {},
        "{name: fedavgm, fraction: 0.5, server: {beta: 1.5}}",
        ".server.beta: 1.5 must be less than 1",
    ),
    "no adaptivity": ({}, "{name: fedyogi, fraction: 0.5, server: {tau: 0}}", ".server.tau: 0 must be greater than 0"),
    "a distance of no norm": (
        {},
        "{name: ida, fraction: 0.5, server: {norm: 3}}",
        ".server.norm: 3 is a number; 'l1' or 'l2' is needed",
    ),
    "an account of nobody": (
        {},
        "{name: fednova, fraction: 0.5, server: {accounting: papr}}",
        ".server.accounting: 'papr' is not 'sent' or 'paper'; did you mean 'paper'?",
    ),
}


@pytest.mark.parametrize(("changes", "protocol", "message"), SCENARIOS.values(), ids=SCENARIOS)
def test_what_does_not_fit_is_refused(changes: dict[str, str], protocol: str, message: str, refused: Refusals) -> None:
    plant = edited(PLANT, changes | {FEDAVG: f"  - {protocol}\n", FEDPROX: ""})
    lay_out({"plant.yaml": plant, "pump.csv": CSV}, refused.folder)
    refused.check("run", "plant.yaml", message=AT + message)
