"""Run folders that are exported: tiny ones, with the scenario's file that exporters read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import pandas as pd
from tiny_results import rounds_of, write_results

from fedsim.experiment.results import Results

HOSTILE = [
    "../x",
    "<script>alert(1)</script>",
    "..",
    "a/b",
    "a~b",
    "FedAvg",
    "fedavg",
    "50 % = half",
    "été",
    "l" * 300,
    "l" * 299 + "m",
]
"""Labels of protocols: text on one line is all that they have to be."""


def runs_of(protocols: Sequence[str], seeds: Sequence[int] = (1, 2)) -> list[pd.DataFrame]:
    """Three rounds each, one without an evaluation and one that has diverged."""
    runs = []
    for number, (protocol, seed) in enumerate((protocol, seed) for protocol in protocols for seed in seeds):
        rounds = rounds_of(protocol, seed, [0.1, nan, 0.3 + number / 100], round_s=1 / 3, round_bytes=1e9 / 7)
        rounds.loc[2, "loss"] = inf
        runs.append(rounds)
    return runs


def finished_run(folder: Path, protocols: Sequence[str] = ("fedavg", "fedprox"), *, name: str = "tiny") -> Results:
    """A finished run of these protocols on two seeds."""
    runs = runs_of(protocols)
    results = write_results(folder, runs, name=name)
    (folder / "scenario.yaml").write_text(scenario_text(protocols, name), "utf-8")
    facts = [
        {"protocol": protocol, "seed": seed, "trace_hash": f"{seed:032x}"} for protocol in protocols for seed in (1, 2)
    ]
    more = {"run": "0123456789abcdef" * 2, "fedsim": "9.8.7", "numeric_family": "serial-1/float32", "runs": facts}
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **more}))
    return Results(results.folder)


def scenario_text(protocols: Sequence[str], name: str = "tiny") -> str:
    """Keys of all kinds: numbers, words, empty ones, lists, too many for a setting; names of the user's."""
    scenario: dict[str, Any] = {
        "name": name,
        "seeds": [1, 2],
        "evaluate": {"on": ["global", "own"], "metrics": None},
        "training": {"learning_rate": 0.1, "batch_size": 8},
        "network": {"rate_bps": ".inf", "late": True},
        "devices": {"classes": {"a.b <i>": {"flops_per_s": 1e9}}},
        "topology": {"nodes": {f"n{number}": {"kind": "sensor"} for number in range(40)}},
        "protocols": [{"name": "fedavg", "label": label, "mu": number / 10} for number, label in enumerate(protocols)],
    }
    return json.dumps(scenario, ensure_ascii=False).replace('".inf"', ".inf")


def all_files(folder: Path) -> dict[str, bytes]:
    """The content of each file in *folder*, by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
