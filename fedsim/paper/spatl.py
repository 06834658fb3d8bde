"""SPATL's Tables I and II: rounds and traffic of five systems, to 80 % accuracy and to convergence.

Yu et al., *SPATL: salient parameter aggregation and transfer learning for heterogeneous federated learning*, SC 2022.
Table III, accuracy before and after a transfer to new data, is in ``published.csv`` alone: no run has its two numbers.
"""

from __future__ import annotations

import math

import pandas as pd

from fedsim.experiment.results import Results
from fedsim.paper.published import COLUMNS, published
from fedsim.scenario.load import load

__all__ = ["SAMPLED", "spatl_table1", "spatl_table2"]

SAMPLED = {10: 10, 30: 12, 50: 35, 100: 40}
"""Clients -> how many of them the paper has in each round."""
_MODELS = {"resnet": "ResNet", "vgg": "VGG"}
_COST = "client_round_bytes"
_QUANTITIES = {
    "rounds_to_target": "rounds to target",
    "rounds": "rounds",
    _COST: "traffic per round and client",
    "bytes_to_target": "traffic to target",
    "transfer_bytes": "traffic",
    "final_accuracy": "accuracy",
}
_UNITS = {"": 1.0, "%": 0.01, "MiB": 2.0**20, "GiB": 2.0**30}
_ACCURACIES = ("final_accuracy_mean_own", "final_accuracy_mean", "final_accuracy")
"""Columns of a summary, the paper's own measure first: the mean over clients' own models, each counted once."""


def spatl_table1(results: Results) -> pd.DataFrame:
    """SPATL Table I: rounds and traffic to 80 % accuracy on CIFAR-10, with 10 clients that all take part.

    A row needs CIFAR-10, the row's model, as many clients, and a protocol called as the system is. A run has rounds and
    traffic to its own target, if it had one and reached it; several seeds count by their mean. The paper prints MB and
    GB; its totals are rounds x clients x MB / 1024, apart from seven of these.
    """
    return _beside(results, "spatl_table1")


def spatl_table2(results: Results) -> pd.DataFrame:
    """SPATL Table II: rounds, traffic and accuracy at convergence on CIFAR-10, with 30, 50 and 100 clients.

    Of them 40 %, 70 % and 40 % are in each round. Rows are found as for Table I. A run has what it came to at its end,
    converged or not; accuracy is the mean over clients' own models, where the run scored them.
    """
    return _beside(results, "spatl_table2")


def _beside(results: Results, table: str) -> pd.DataFrame:
    scenario = load(results.folder / "scenario.yaml")
    if scenario.data.name != "cifar10":
        return pd.DataFrame(columns=COLUMNS)
    clients = len(scenario.topology.build().sensors)
    setting = f"{_MODELS.get(scenario.model.name)}-{getattr(scenario.model, 'depth', '')}, {clients} clients"
    ours = _measured(results)
    titles = {str(title).casefold(): title for title in ours.index}
    numbers = published(table)
    found = []
    for system, rows in numbers.groupby("system", sort=False):
        name, _, about = str(system).partition(", ")
        if about != setting or name.casefold() not in titles:
            continue
        printed = rows.set_index("metric")["value"].astype(float)
        rounds = printed["rounds" if "rounds" in printed else "rounds_to_target"]
        total = rounds * SAMPLED[clients] * printed[_COST] / 1024
        for metric, unit in zip(rows["metric"], rows["unit"], strict=True):
            event = ours.loc[titles[name.casefold()], metric] / _UNITS[unit]
            formula = total if unit == "GiB" else math.nan
            found.append((system, _QUANTITIES[metric], unit, printed[metric], formula, event))
    return pd.DataFrame(found, columns=COLUMNS)


def _measured(results: Results) -> pd.DataFrame:
    """What each protocol came to, in the columns of `_QUANTITIES`."""
    runs = ["protocol", "seed"]
    summary = results.summary[results.summary["accounting"] == "event"].set_index(runs)
    counted = results.rounds.reindex(columns=[*runs, "participants"])  # a table may lack them
    participants = counted.groupby(runs)["participants"].sum()
    accuracy = next(column for column in _ACCURACIES if column in summary)
    table = summary.assign(
        **{
            _COST: summary["transfer_bytes"] / participants.where(participants > 0).reindex(summary.index),
            "final_accuracy": summary[accuracy],
        }
    )
    means: pd.DataFrame = table[[*_QUANTITIES]].groupby(level="protocol", sort=False).mean()
    return means
