"""Device classes side by side: what a device of each class sends, receives and reaches, by protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from fedsim.experiment.compare import Budget, attainable, run_names, summary_at
from fedsim.experiment.means_over_seeds import means_over_seeds
from fedsim.experiment.results import Results
from fedsim.experiment.several_results import load_several
from fedsim.metrics.summary import event_row

__all__ = ["compare_device_classes", "device_rounds"]


def compare_device_classes(
    results: Sequence[Results | Path | str], *, at: Budget | None = None, target: float | None = None
) -> pd.DataFrame:
    """A row for each run, protocol and device class, in this order, with the columns of `fedsim.compare`.

    Accuracies are those of the clients' own models on their own test samples, all of a class together. Bytes are means
    over its devices, and time is that of the run. *at* and *target* are as there: the budget is the run's, and a class
    reaches the target by itself. Runs whose clients' own models were not scored, or whose devices are all of one class,
    have no rows: then it may be empty.

    Raises `UserError` as `fedsim.compare` does.
    """
    opened = load_several(results)
    summaries = [
        (name, kind, seeds)
        for name, result in zip(run_names(opened), opened, strict=True)
        for kind, seeds in _summaries(result, at, target)
    ]
    rows = means_over_seeds((name, seeds) for name, _, seeds in summaries)  # one for each: of one protocol
    return pd.DataFrame(
        {"run": row.pop("run"), "protocol": row.pop("protocol"), "device_class": kind, **row}
        for row, (_, kind, _) in zip(rows, summaries, strict=True)
    )


def device_rounds(results: Results) -> pd.DataFrame:
    """A row for each protocol, seed, round and device class, like those of `Results.rounds`, for the mean device.

    It has no rows where clients' own models were not scored, or where all devices are of one class.
    """
    if not (results.folder / "device_classes.csv").exists():
        return pd.DataFrame()
    table = results.device_classes
    scores = table[[name for name in ("accuracy", "rmse") if name in table]]
    if not scores.notna().any(axis=None):
        return pd.DataFrame()
    for name in ("uplink_bytes", "downlink_bytes"):
        table = table.assign(**{name: table[name] / table["clients"]})
    return table.assign(transfer_bytes=table["uplink_bytes"] + table["downlink_bytes"])


def _summaries(results: Results, at: Budget | None, target: float | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """For each protocol and device class: the class, and a row for each seed."""
    table = device_rounds(results)
    if table.empty:
        return
    ends = summary_at(results.rounds, at, target).set_index(["protocol", "seed"])["rounds"]
    target = attainable(table, target)
    for protocol, of_protocol in table.groupby("protocol", sort=False):
        for kind, of_kind in of_protocol.groupby("device_class", sort=False):
            rows = [
                {"protocol": protocol, "seed": seed, **event_row(run[run["round"] <= ends[protocol, seed]], target)}
                for seed, run in of_kind.groupby("seed", sort=False)
            ]
            yield str(kind), pd.DataFrame(rows)
