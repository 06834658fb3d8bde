"""Every server rule with every cohort and every exchange: it runs, or it is refused for the reason in this table."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from small_worlds import NO_TIME, simulated
from tiers import mostly_long

from fedsim import registry
from fedsim.errors import UserError
from fedsim.experiment.run import run

ROUNDS, INTERVAL = 4, 3
"""A block and the full round of another."""
COHORTS: dict[str, dict[str, Any]] = {
    "random": {"name": "random", "fraction": 1.0},
    "grouped": {"name": "grouped", "sampling_rate": 1.0, "growth": {"name": "constant", "beta": 2}},
    "at stations": {"name": "random", "fraction": 1.0},
    "super_nodes": {"name": "super_nodes", "devices": 6},
    "super nodes that train": {"name": "super_nodes", "devices": 6},
}
SCHEDULES: dict[str, dict[str, Any]] = {
    "random": {"name": "rounds", "interval": INTERVAL},
    "grouped": {"name": "rounds", "interval": INTERVAL},
    "at stations": {"name": "edge_rounds", "edge_rounds": 2},
    "super_nodes": {"name": "compound_steps", "iterations": 2, "fused": False},
    "super nodes that train": {"name": "edge_rounds", "edge_rounds": 2},
}
EXCHANGES: dict[str, dict[str, Any]] = {
    "extractor": {"name": "extractor"},
    "salient_filters": {"name": "salient_filters", "selection": {"name": "uniform", "keep": 0.5}},
    "salient_filters, shared": {"name": "salient_filters", "classifier": "shared"},
    "common_layers": {"name": "common_layers"},
    "whole": {"name": "whole"},
    "lasp": {"name": "lasp"},
    "lasp, untrained": {"name": "lasp", "scc": {"without_history": "skip"}},
}
RULES: dict[str, tuple[dict[str, Any], str]] = {
    "mean": ({"name": "mean"}, "plain"),
    "momentum": ({"name": "momentum"}, "plain"),
    "adagrad": ({"name": "adagrad"}, "plain"),
    "adam": ({"name": "adam"}, "plain"),
    "yogi": ({"name": "yogi"}, "plain"),
    "fednova": ({"name": "fednova"}, "plain"),
    "fednova, as papers count": ({"name": "fednova", "accounting": "paper"}, "plain"),
    "scaffold": ({"name": "scaffold"}, "control_variates"),
    "salient_mean": ({"name": "salient_mean"}, "extractor_control"),
    "salient_mean, without control": ({"name": "salient_mean", "denominator": "count"}, "plain"),
    "inverse_distance": ({"name": "inverse_distance"}, "plain"),
    "inverse_distance, INTRAC": ({"name": "inverse_distance", "accuracy": True}, "tells_accuracy"),
    "gate_average": ({"name": "gate_average"}, "plain"),
}
"""Each rule, and the objective that it needs."""


def sequence(objective: str, sent: str) -> str:
    return (
        f"protocols[0].objective: objective '{objective}' sends '{sent}' beside the model, and in a group that trains "
        "in sequence only the last client's would arrive; choose cohort: {name: random}"
    )


def station(objective: str, sent: str) -> str:
    return (
        f"protocols[0].objective: objective '{objective}' sends '{sent}' beside the model, and a base station reports "
        "its model alone; choose schedule: {name: rounds}"
    )


def in_part(exchange: str) -> str:
    return (
        f"protocols[0].exchange: exchange '{exchange}' leaves a part of the model with each client, and stations "
        "report all of it; choose exchange: {name: whole}"
    )


IN_SEQUENCE = (
    "protocols[0].exchange: with exchange 'common_layers' each client trains its own model, and in a group one model "
    "is trained in sequence; choose cohort: {name: random}"
)
WHOLE_MODELS = (
    "protocols[0].server: server rule 'inverse_distance' compares whole models, and clients have some layers in common "
    "only; choose server: {name: mean}"
)
BESIDE = (
    "protocols[0].server: server rule 'fednova' sends something beside a whole model, and here layers are sent; choose "
    "server: {name: mean}"
)


def partly(exchange: str, objective: str = "control_variates", about: str = "whole model") -> str:
    return (
        f"protocols[0].exchange: objective '{objective}' goes by the gradients of the {about}, and with "
        f"exchange '{exchange}' not all of it is trained and sent in each round; choose exchange: {{name: whole}}"
    )


UNTRAINED = (
    "protocols[0].exchange: objective 'tells_accuracy' tells 'accuracy' of each training, and with these keys of "
    "exchange 'lasp' some clients send without training; choose scc: {without_history: calibrate}, or exchange: "
    "{name: whole}"
)
CHOSEN = (
    "protocols[0].exchange: filters are chosen from what one client has trained, and in a group several train; choose "
    "cohort: {name: random}"
)
COUNTED = (
    "protocols[0].server: server rule 'salient_mean' looks at 'kept' of each client, and a base station reports its "
    "model alone; choose denominator: clients"
)
OF_GROUPS = {("grouped", exchange) for exchange in EXCHANGES}
STATIONS = ("at stations", "super_nodes", "super nodes that train")
OF_STATIONS = set(product(STATIONS, EXCHANGES))
REFUSED: dict[str, dict[tuple[str, str], str]] = {
    rule: {
        (cohort, name): in_part(name)
        for cohort in STATIONS
        for name in ("extractor", "common_layers", "salient_filters")
    }
    | {("grouped", "common_layers"): IN_SEQUENCE, ("grouped", "salient_filters"): CHOSEN}
    for rule in RULES
}
REFUSED["fednova, as papers count"]["random", "common_layers"] = BESIDE
REFUSED["inverse_distance"]["random", "common_layers"] = WHOLE_MODELS
REFUSED["salient_mean, without control"] |= dict.fromkeys(OF_STATIONS, COUNTED)
REFUSED |= {
    "scaffold": {
        ("random", exchange): partly(keys["name"])
        for exchange, keys in EXCHANGES.items()
        if exchange not in ("whole", "salient_filters, shared")
    }
    | dict.fromkeys(OF_GROUPS, sequence("control_variates", "control_change"))
    | dict.fromkeys(OF_STATIONS, station("control_variates", "control_change")),
    "salient_mean": {
        ("random", exchange): partly(EXCHANGES[exchange]["name"], "extractor_control", "extractor")
        for exchange in ("common_layers", "lasp", "lasp, untrained")
    }
    | dict.fromkeys(OF_GROUPS, sequence("extractor_control", "control_change"))
    | dict.fromkeys(OF_STATIONS, station("extractor_control", "control_change")),
    "inverse_distance, INTRAC": {("random", "lasp, untrained"): UNTRAINED, ("random", "common_layers"): WHOLE_MODELS}
    | dict.fromkeys(OF_GROUPS, sequence("tells_accuracy", "accuracy"))
    | dict.fromkeys(OF_STATIONS, station("tells_accuracy", "accuracy")),
}
"""Rule -> cohort and exchange -> why not; what is not here runs."""


FEW = ("mean", "adam", "scaffold", "salient_mean, without control", "inverse_distance, INTRAC")
"""Rules that are tried with stations in each run of the tests; a station does the same with the others."""


def composed(rule: str, cohort: str, exchange: str) -> dict[str, Any]:
    server, objective = RULES[rule]
    return {
        "name": "composed",
        "cohort": COHORTS[cohort],
        "schedule": SCHEDULES[cohort],
        "exchange": EXCHANGES[exchange],
        "objective": {"name": objective},
        "server": server,
    }


def test_no_rule_cohort_or_exchange_is_missing_here() -> None:
    assert {settings["name"] for settings, _ in RULES.values()} == set(registry.names("rules"))
    assert {settings["name"] for settings in COHORTS.values()} == set(registry.names("cohorts"))
    assert {settings["name"] for settings in SCHEDULES.values()} == set(registry.names("schedules"))
    assert {settings["name"] for settings in EXCHANGES.values()} == set(registry.names("exchanges"))


@pytest.mark.parametrize(
    ("rule", "cohort", "exchange"),
    mostly_long(
        product(RULES, COHORTS, EXCHANGES),
        now=[those for those in product(RULES, COHORTS, EXCHANGES) if those[1] not in STATIONS or those[0] in FEW],
    ),
)
def test_a_combination_runs_or_is_refused_for_a_reason(rule: str, cohort: str, exchange: str) -> None:
    changes = {key: value for key, value in NO_TIME.items() if not key.startswith("model")} | {
        "data": {"name": "digits", "partition": {"name": "iid"}},
        "topology.devices": 4,
        "model": {"name": "small_cnn"} if exchange == "salient_filters" else {"name": "mlp", "hidden": [3]},
        "protocols": [composed(rule, cohort, exchange)],
        "stop.rounds": ROUNDS,
    }
    reason = REFUSED.get(rule, {}).get((cohort, exchange))
    if reason is None:
        world = simulated(changes)
        assert world.trace.rounds.column("participants").tolist() == [4] * ROUNDS
    else:
        with pytest.raises(UserError) as refusal:
            simulated(changes)
        assert str(refusal.value) == reason


@pytest.mark.long
@pytest.mark.parametrize("executor", ["serial", "batched"])
def test_what_runs_learns_too(executor: str, tmp_path: Path) -> None:
    """With streams, as some exchanges train on what comes anew."""
    those = [those for those in product(RULES, COHORTS, EXCHANGES) if those[1:] not in REFUSED.get(those[0], {})]
    protocols = [composed(*combination) | {"label": f"number {n}"} for n, combination in enumerate(those)]
    changes = {"protocols": protocols, "stop.rounds": ROUNDS, "topology.devices": 6, "data.stream": {"samples": 20}}
    changes |= {"model": {"name": "small_cnn"}}
    rounds = run(digit_runs.scenario(changes), out=tmp_path, executor=executor, workers=1).rounds
    assert len(rounds) == ROUNDS * len(those)
    assert (rounds["participants"] == 6).all()
    assert all(map(math.isfinite, rounds["loss"]))
