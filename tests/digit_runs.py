"""Scenarios that really train, on scikit-learn's digits, over a network that takes no time; and what they leave."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from fedsim.experiment.results import Results
from fedsim.scenario.schema import Scenario

INSTANT = {"compute": {"name": "flops", "flops_per_s": math.inf}}

BASE: dict[str, Any] = {
    "name": "digits",
    "stop": {"rounds": 3},
    "topology": {"name": "star", "devices": 20},
    "network": {
        "cell": {
            "radio": {"name": "fixed", "uplink_bps": math.inf, "downlink_bps": math.inf},
            "discipline": {"name": "dedicated"},
        },
        "link": {"rate_bps": math.inf},
    },
    "devices": {"classes": {"sensor": INSTANT}, "cloud": INSTANT},
    "data": {"name": "digits", "partition": {"name": "quantity_skew", "alpha": 2.0}},
    "model": {"name": "mlp", "hidden": [16]},
    "training": {"learning_rate": 0.1, "batch_size": 16},
    "protocols": [{"name": "fedavg", "clients": 8}],
}


def data(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The base scenario as plain data, with other values for some keys, named by their dotted paths."""
    content = copy.deepcopy(BASE)
    for path, value in (changes or {}).items():
        *way, last = path.split(".")
        place = content
        for key in way:
            place = place.setdefault(key, {})
        place[last] = copy.deepcopy(value)
    return content


def scenario(changes: Mapping[str, Any] | None = None) -> Scenario:
    """The base scenario with other values for some keys."""
    return Scenario.model_validate(data(changes))


def weights(results: Results, protocol: str, seed: int = 1) -> dict[str, torch.Tensor]:
    """The final model of a run: ``part.name`` -> tensor."""
    files = results.final_weights(protocol, seed)
    return {f"{part}.{name}": tensor for part, path in files.items() for name, tensor in load_file(path).items()}


def outcome(folder: Path) -> dict[str, bytes]:
    """All that must not depend on how a run came about, byte for byte: rounds, what was counted, and final models."""
    results = Results(folder)
    names = ("rounds.csv", "confusion.csv")
    content = {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
    for row in results.manifest["runs"]:
        content[f"{row['protocol']}/{row['seed']} trace"] = row["trace_hash"].encode()
        for part, path in results.final_weights(row["protocol"], row["seed"]).items():
            content[f"{row['protocol']}/{row['seed']} {part}"] = path.read_bytes()
    return content


def ledger(store: Path) -> list[dict[str, Any]]:
    """What a store with one run says was computed, loaded and checkpointed, in this order; whole lines only."""
    (path,) = (store / "ledger").glob("*.jsonl")
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
