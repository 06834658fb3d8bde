"""Where the time of finished runs went, in a few rows: parts of a round, clients that rounds wait for, busy links."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pandas as pd

from fedsim.experiment.compare import run_names
from fedsim.experiment.results import TIMES, Results
from fedsim.metrics.critical_path import PARTS

__all__ = ["busiest_links", "has_times", "lost_times", "parts_of_rounds", "worst_stragglers"]


def has_times(result: Results, name: str) -> bool:
    """Whether *result* has the table *name* of where the time went; a run of an older version has none of them."""
    return os.path.lexists(result.folder / name)


def lost_times(result: Results) -> list[str]:
    """The tables of where the time went that *result* has lost: those that are not there while others are."""
    there = [name for name in TIMES if has_times(result, name)]
    return [name for name in TIMES if name not in there] if there else []


def parts_of_rounds(results: Sequence[Results]) -> pd.DataFrame:
    """A row for each run and protocol: ``round_s``, the mean length of a round, and the share of each part of it.

    Shares are of all time that a run's rounds took, and each seed counts alike; they add up to 1. A run whose rounds
    took no time has none.
    """
    rows = []
    for name, result in zip(run_names(results), results, strict=True):
        for protocol, rounds in result.critical_path.groupby("protocol", sort=False):
            took = rounds["end_s"] - rounds["start_s"]
            parts = rounds[[f"{part}_s" for part in PARTS]]
            sums = parts.assign(round_s=took).groupby(rounds["seed"]).sum()
            shares = parts.groupby(rounds["seed"]).sum().div(sums["round_s"], axis="index").mean()
            lengths = took.groupby(rounds["seed"]).mean()
            row = {"run": name, "protocol": protocol, "round_s": lengths.mean()}
            rows.append(row | {part: shares[f"{part}_s"] for part in PARTS})
    return pd.DataFrame(rows, columns=["run", "protocol", "round_s", *PARTS])


def worst_stragglers(results: Sequence[Results], most: int) -> pd.DataFrame:
    """So many rows for each run and protocol, at *most*: the clients that closed most rounds, over all seeds.

    ``closed`` of so many ``rounds`` of all seeds have waited for it last; ``critical`` is the share of all time that
    its messages and trainings have on critical paths; ``lateness_s`` is how long it came after the median of a round's
    clients, the mean over the rounds in which something of it came.
    """
    rows = []
    for name, result in zip(run_names(results), results, strict=True):
        for protocol, clients in result.stragglers.groupby("protocol", sort=False):
            rounds = result.critical_path[result.critical_path["protocol"] == protocol]
            spent_s = float((rounds["end_s"] - rounds["start_s"]).sum())
            weighted = clients.assign(late_s=clients["lateness_mean_s"] * clients["rounds"])
            sums = weighted.groupby(["client_index", "client"], sort=False)
            table = sums[["closed", "critical_s", "late_s", "rounds"]].sum().reset_index()
            ranked = table.sort_values(["closed", "critical_s"], ascending=False, kind="stable").head(most)
            for row in ranked.to_dict("records"):
                came = row["rounds"]
                rows.append(
                    {
                        "run": name,
                        "protocol": protocol,
                        "client": row["client"],
                        "closed": row["closed"],
                        "rounds": len(rounds),
                        "critical": row["critical_s"] / spent_s if spent_s else 0.0,
                        "lateness_s": row["late_s"] / came if came else float("nan"),
                    }
                )
    columns = ["run", "protocol", "client", "closed", "rounds", "critical", "lateness_s"]
    return pd.DataFrame(rows, columns=columns)


def busiest_links(results: Sequence[Results], most: int) -> pd.DataFrame:
    """So many rows for each run and protocol, at *most*: links and directions of the highest utilisation.

    ``utilisation`` and ``mean_queue`` are means over the whole simulated time and over seeds; ``peak`` is the highest
    utilisation in any of the equal parts of the time that ``link_loads.csv`` has, of any seed, and may be above 1 there
    (`fedsim.metrics.link_loads`).
    """
    tables = []
    for name, result in zip(run_names(results), results, strict=True):
        way = ["protocol", "link", "direction"]
        means = result.links.groupby(way, sort=False)[["utilisation", "mean_queue"]].mean()
        peaks = result.link_loads.groupby(way, sort=False)["utilisation"].max().rename("peak")
        table = means.join(peaks).reset_index()
        for _, links in table.groupby("protocol", sort=False):
            busy = links[links["utilisation"] > 0]
            tables.append(busy.nlargest(most, ["utilisation", "mean_queue"]).assign(run=name))
    columns = ["run", "protocol", "link", "direction", "utilisation", "peak", "mean_queue"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
