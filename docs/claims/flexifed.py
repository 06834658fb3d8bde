"""FlexiFed's tables: rounds to what Clustered-FL reaches, and accuracy by device class beside the paper's Table 1."""

from __future__ import annotations

import pandas as pd
from judging import significant

from fedsim.metrics.intervals import half_width
from fedsim.paper.flexifed import STRATEGIES
from fedsim.paper.published import published

BASELINE = "clustered_fl"
FAMILY = "CIFAR-10 ResNet"
EQUAL = "iid"
"""The data set whose clients have equal shards, as in the paper's table."""


def speed_ups(rounds: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """In which round each strategy first has the best accuracy that Clustered-FL has in its run, on the same seed.

    The speed-up is Clustered-FL's own round over that one. Both are means over the seeds that get there.
    """
    rows = []
    for data, runs in rounds.items():
        best = {
            seed: run.loc[run["accuracy"].idxmax()] for seed, run in runs[runs["protocol"] == BASELINE].groupby("seed")
        }
        for protocol, table in runs.groupby("protocol", sort=False):
            firsts = {seed: _first(run, best[seed]["accuracy"]) for seed, run in table.groupby("seed") if seed in best}
            there = {seed: first for seed, first in firsts.items() if first is not None}
            ratios = [best[seed]["round"] / first for seed, first in there.items()]
            row = {"data": data, "protocol": protocol, "seeds": f"{len(there)} of {len(firsts)}"}
            row["rounds"] = significant(sum(there.values()) / len(there)) if there else ""
            rows.append(row | {"speed-up": f"{sum(ratios) / len(ratios):.2f}" if ratios else ""})
    return pd.DataFrame(rows)


def _first(run: pd.DataFrame, accuracy: float) -> int | None:
    there = run.loc[run["accuracy"] >= accuracy, "round"]
    return None if there.empty else int(there.iloc[0])


def by_model(classes: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy in per cent of each device class after the last round: means over seeds, by data set.

    With equal shards, what the paper prints stands in brackets: after 502 rounds, with larger images and more of them.
    """
    printed = published("flexifed_table1").set_index("system")["value"]
    rows = []
    for data, table in classes.items():
        last = table[table["round"] == table["round"].max()]
        for protocol, of_protocol in last.groupby("protocol", sort=False):
            row = {"data": data, "protocol": protocol, "seeds": of_protocol["seed"].nunique()}
            for kind, of_kind in of_protocol.groupby("device_class", sort=False):
                depth = str(kind).removeprefix("depth-")
                theirs = printed[f"{STRATEGIES[str(protocol)]}, {FAMILY}-{depth}"]
                accuracy = f"{100 * of_kind['accuracy'].mean():.1f}"
                row[f"ResNet-{depth}"] = f"{accuracy} ({theirs})" if data == EQUAL else accuracy
            row["all"] = f"{100 * of_protocol['accuracy'].mean():.1f}"
            rows.append(row)
    return pd.DataFrame(rows)


def by_study(studies: pd.DataFrame) -> pd.DataFrame:
    """Accuracy in per cent by what is studied, means over seeds with half the width of the 95 % interval."""
    rows = []
    for (study, number, protocol), runs in studies.groupby(["study", "number", "protocol"], sort=False):
        accuracies = runs["accuracy"].to_list()
        mean, half = sum(accuracies) / len(accuracies), half_width(accuracies)
        rows.append(
            {
                "study": study,
                "number": number,
                "protocol": protocol,
                "accuracy, %": f"{100 * mean:.1f} +/- {100 * half:.1f}",
            }
        )
    return pd.DataFrame(rows)
