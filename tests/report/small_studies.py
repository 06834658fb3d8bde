"""Run folders of a small study, written by hand: two protocols, two seeds, and all that a report can show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tiny_results import counted, rounds_of, write_results

import fedsim
from fedsim.experiment.results import Results, load_results
from fedsim.metrics.critical_path import PARTS
from fedsim.scenario.load import load, written_out

__all__ = ["HOSTILE", "PROTOCOLS", "hostile_study", "small_study"]

PROTOCOLS = ("fedavg", "prox, strong")
SCENARIO = """name: small
description: Two cells of a plant
seeds: [1, 2]
stop: {rounds: 4}
topology:
  name: explicit
  nodes:
    cloud: {kind: cloud}
    bs-1: {kind: base_station}
    bs-2: {kind: base_station}
    a: {kind: sensor}
    b: {kind: sensor}
  links: [{between: [cloud, bs-1]}, {between: [cloud, bs-2]}, {between: [bs-1, a]}, {between: [bs-2, b]}]
network: {cell: {radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 1.0e+6}}, link: {rate_bps: 1.0e+9}}
devices: {classes: {sensor: {compute: {name: per_sample, seconds_per_sample: 0.001}}}}
data: {name: digits}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 50}
protocols: [{name: fedavg, clients: 1}, {name: fedprox, clients: 1, mu: 0.1, label: "prox, strong"}]
"""
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "javascript:alert(4)",
    "\"'`${alert(5)}{{7*7}}{% raw %}",
    "datum['a.b'] || alert(6)",
    "]]> --> <!-- \\u003c &lt; &amp;lt;",
    "a.b[0]\\.c, " + "long " * 30,
)
"""Names that would do something, were they taken for anything but text."""
_LINKS = ("cell bs-1", "cell bs-2", "cloud -- bs-1", "cloud -- bs-2")


def small_study(
    folder: Path,
    protocols: Sequence[str] = PROTOCOLS,
    *,
    name: str = "small",
    classes: Sequence[str] = ("ok", "worn", "broken"),
    kinds: Sequence[str] = ("camera", "press"),
    clients: Sequence[str] = ("a", "b"),
    remarks: Sequence[str] = ("the second cell is hardly used",),
    scenario: str = SCENARIO,
    seeds: int = 2,
    rounds: int = 4,
) -> Results:
    """A finished run; names are as given."""
    of_protocols = [
        rounds_of(
            protocol,
            seed,
            [min(0.99, 0.3 + 0.5 * round_ / rounds + 0.02 * seed + 0.05 * number) for round_ in range(rounds)],
            round_s=90.0 + 60.0 * number,
            round_bytes=2e6 / (1 + number),
        )
        for seed in range(1, seeds + 1)
        for number, protocol in enumerate(protocols)
    ]
    counts = [[8, 1, 0], [2, 6, 1], [0, 0, 9]]
    confused = pd.concat([counted(protocol, 1, counts, list(classes)) for protocol in protocols])
    write_results(folder, of_protocols, name=name, classes=len(classes), confusion=confused)
    (folder / "scenario.yaml").write_text(scenario, encoding="utf-8")
    (folder / "scenario.yaml").write_text(written_out(load(folder / "scenario.yaml")), encoding="utf-8")
    _links(protocols, seeds).to_csv(folder / "links.csv", index=False)
    _classes(of_protocols, kinds).to_csv(folder / "device_classes.csv", index=False)
    _critical_path(of_protocols).to_csv(folder / "critical_path.csv", index=False)
    _groups(protocols, clients).to_parquet(folder / "groups.parquet", index=False)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= _origin(protocols, seeds, rounds, remarks)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return load_results(folder)


def hostile_study(folder: Path) -> Results:
    """A study in which all that can be named is called so."""
    return small_study(
        folder,
        HOSTILE,
        name=HOSTILE[0],
        classes=HOSTILE[:3],
        kinds=HOSTILE[3:5],
        clients=HOSTILE[5:7],
        remarks=HOSTILE,
        scenario=SCENARIO.replace("description: Two cells of a plant", f"description: {json.dumps(HOSTILE[1])}"),
    )


def _links(protocols: Sequence[str], seeds: int) -> pd.DataFrame:
    rows = [
        {
            **{"protocol": protocol, "seed": seed, "link": link, "direction": direction, "access": link[0:4] == "cell"},
            "bytes": 1e6 * (1 + at + 2 * number) * (2 if direction == "uplink" else 1),
            "utilisation": 0.01 * (1 + at + number + seed) * (2 if direction == "uplink" else 1),
            "mean_queue": 0.0,
        }
        for number, protocol in enumerate(protocols)
        for seed in range(1, seeds + 1)
        for at, link in enumerate(_LINKS)
        for direction in ("uplink", "downlink")
    ]
    return pd.DataFrame(rows)


def _classes(of_protocols: Sequence[pd.DataFrame], kinds: Sequence[str]) -> pd.DataFrame:
    rows = [
        {
            **{name: row[name] for name in ("protocol", "seed", "round", "sim_time_s", "accuracy", "loss")},
            **{"device_class": kind, "clients": 1 + at},
            **{name: row[name] * (1 + at) / 3 for name in ("uplink_bytes", "downlink_bytes")},
            **{"compute_s": row["sim_time_s"] / (4 + at), "trainings": row["round"]},
            **{"uplink_s": 1.0, "uplinks": row["round"], "downlink_s": 2.0, "downlinks": row["round"]},
        }
        for rounds in of_protocols
        for row in rounds.to_dict("records")
        for at, kind in enumerate(kinds)
    ]
    return pd.DataFrame(rows)


def _critical_path(of_protocols: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rounds of 90 s and 150 s: a tenth waits, and the rest is on the air and at work."""
    tables = []
    for rounds in of_protocols:
        end = rounds["sim_time_s"]
        length = end.diff().fillna(end)
        parts = {f"{part}_s": 0.0 for part in PARTS}
        parts |= {"queueing_s": length / 10, "airtime_s": length / 2, "work_s": 2 * length / 5}
        tables.append(rounds[["protocol", "seed", "round"]].assign(start_s=end - length, end_s=end, **parts))
    return pd.concat(tables, ignore_index=True)


def _groups(protocols: Sequence[str], clients: Sequence[str]) -> pd.DataFrame:
    rows = [
        {"protocol": protocols[-1], "seed": 1, "round": drawn, "group": group, "position": 0, "client": client}
        for drawn, groups in ((1, 1), (3, 2))
        for group, client in zip(range(groups), clients, strict=False)
    ]
    return pd.DataFrame(rows)


def _origin(protocols: Sequence[str], seeds: int, rounds: int, remarks: Sequence[str]) -> dict[str, Any]:
    run = {"rounds": rounds, "sim_time_s": 360.0, "real_seconds": 2.5, "trace_hash": "0123456789abcdef" * 2}
    return {
        "seeds": list(range(1, seeds + 1)),
        "clients": 2,
        "sample_shape": [1, 8, 8],
        "model": {"parameters": 650, "bytes": 2600.0},
        "fedsim": fedsim.__version__,
        "python": "3.12.0",
        "platform": "Linux-6.1-x86_64",
        "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
        "numeric_family": "serial-1/float32/torch2.13.0/cpu",
        "real_seconds": 12.5,
        "peak_memory_bytes": 300_000_000,
        "remarks": list(remarks),
        "runs": [{"protocol": one, "seed": seed, **run} for seed in range(1, seeds + 1) for one in protocols],
    }
