"""Protocols with groups and with parts of a model, for the laws: each with all that makes it hard."""

from __future__ import annotations

from typing import Any

LABELLED: dict[str, Any] = {
    "data": {"name": "digits", "partition": {"name": "shards", "shards_per_client": 3}, "stream": {"samples": 10}},
    "model": {"name": "mlp", "hidden": [3]},
}
"""Classes to group by, and a model of two parts."""

GROWTH = {"name": "linear", "beta": 2, "alpha": 1.0}
IN_GROUPS: dict[str, Any] = {"sampling_rate": 0.7, "turn_s": 70.0, "deadline_s": 150.0}

GROUPED: dict[str, dict[str, Any]] = {
    "random groups": {"name": "stp", "grouping": {"name": "random", "once": False}, "growth": GROWTH, "interval": 2}
    | IN_GROUPS,
    "groups kept": {"name": "naive_gsp", "groups": 3, "leftover": "spread", "shuffle": "round", "interval": 2}
    | IN_GROUPS,
    "fedgsp": {"name": "fedgsp", "growth": GROWTH, "grouping_s": 0.1} | IN_GROUPS,
    "hfedms_d": {"name": "hfedms_d", "growth": GROWTH, "interval": 3, "scc": {"capacity": 15, "quota": "per_class"}}
    | IN_GROUPS,
    "abandoned": {"name": "stp", "growth": GROWTH, "interval": 2, "exchange": {"name": "lasp"}}
    | IN_GROUPS
    | {"on_loss": "abandon"},
    "lasp alone": {"name": "fedavg", "clients": 4, "interval": 3, "deadline_s": 60.0}
    | {"over_selection": 1.5, "busy": "abort", "exchange": {"name": "lasp", "scc": None}},
}
