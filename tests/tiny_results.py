"""Run folders written by hand: what readers of results are tested with, without a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import nan
from pathlib import Path

import pandas as pd

from fedsim.experiment.results import Results, load_results

COSTS = (
    "sim_time_s",
    "uplink_bytes",
    "downlink_bytes",
    "transfer_bytes",
    "backbone_bytes",
    "network_bytes",
    "energy_j",
)


def rounds_of(
    protocol: str, seed: int, accuracies: Sequence[float], *, round_s: float = 10.0, round_bytes: float = 1e6
) -> pd.DataFrame:
    """Rounds of equal length and traffic, two thirds of it uplink; NaN is a round that was not evaluated."""
    number = pd.Series(range(1, len(accuracies) + 1))
    scores = pd.Series(accuracies, dtype=float)
    return pd.DataFrame(
        {
            "protocol": protocol,
            "seed": seed,
            "round": number,
            "sim_time_s": number * round_s,
            "uplink_bytes": number * round_bytes * 2 / 3,
            "downlink_bytes": number * round_bytes / 3,
            "transfer_bytes": number * round_bytes,
            "backbone_bytes": number * round_bytes * 2,
            "network_bytes": number * round_bytes * 3,
            "energy_j": nan,
            "accuracy": scores,
            "loss": 1 - scores,
        }
    )


def summary_of(rounds: pd.DataFrame, /, **changed: object) -> dict[str, object]:
    """The summary's row for these rounds, with some values *changed*."""
    last = rounds.iloc[-1]
    scored = rounds.dropna(subset=["accuracy"])
    return {
        "protocol": last["protocol"],
        "seed": last["seed"],
        "accounting": "event",
        "rounds": len(rounds),
        **{name: last[name] for name in COSTS},
        "final_accuracy": scored["accuracy"].iloc[-1] if len(scored) else nan,
        "best_accuracy": scored["accuracy"].max(),
        "loss": scored["loss"].iloc[-1] if len(scored) else nan,
        "time_to_target_s": nan,
        "bytes_to_target": nan,
        "rounds_to_target": nan,
        **changed,
    }


def counted(
    protocol: str,
    seed: int,
    counts: Sequence[Sequence[int]],
    names: Sequence[str] = "abcdefgh",
    test_set: str = "global",
) -> pd.DataFrame:
    """Rows of ``confusion.csv``: how many samples of each true class (row) were taken for each class (column)."""
    return pd.DataFrame(
        {
            **{"protocol": protocol, "seed": seed, "test_set": test_set},
            **{"true": names[true], "predicted": names[predicted]},
            **{"true_index": true, "predicted_index": predicted, "count": samples},
        }
        for true, row in enumerate(counts)
        for predicted, samples in enumerate(row)
        if samples
    )


def write_results(
    folder: Path,
    runs: Iterable[pd.DataFrame],
    *,
    summary: Iterable[Mapping[str, object]] | None = None,
    name: str = "tiny",
    classes: int | None = None,
    confusion: pd.DataFrame | None = None,
) -> Results:
    """A finished run's folder with these rounds, and the summary that follows from them unless another is given."""
    runs = list(runs)
    folder.mkdir(parents=True)
    rounds = pd.concat(runs, ignore_index=True)
    rounds.to_parquet(folder / "rounds.parquet", index=False)
    rows = [summary_of(run) for run in runs] if summary is None else list(summary)
    manifest = {"scenario": name, "status": "finished", "classes": classes, "runs": []}
    pd.DataFrame(rows).to_csv(folder / "summary.csv", index=False)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    if confusion is not None:
        confusion.to_csv(folder / "confusion.csv", index=False)
    return load_results(folder)


def write_sweep(folder: Path, keys: Sequence[str], rows: Sequence[Sequence[object]], *, name: str = "tiny") -> Path:
    """A finished sweep's folder, with a point for each of the *rows* of values; keys of points count from 0."""
    points = [{"key": f"{number:012x}", "values": list(row)} for number, row in enumerate(rows)]
    for number, point in enumerate(points):
        write_results(folder / "points" / str(point["key"]), [rounds_of("fedavg", 1, [0.5 + number / 100])], name=name)
    about = {"format": "fedsim-sweep-1", "scenario": name, "keys": list(keys), "points": points, "status": "finished"}
    (folder / "sweep.json").write_text(json.dumps(about))
    return folder
