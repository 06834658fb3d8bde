"""Tables of all competitors: learning rates from grids, and what each reached beside what its paper prints."""

from __future__ import annotations

import pandas as pd
from judging import reached

from fedsim.paper.published import published
from fedsim.scenario.schema import Scenario

__all__ = ["COMPETITORS", "FEDGS_COMPETITORS", "beside_all", "grids", "rates"]

COMPETITORS = {
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "fedmmd": "FedMMD",
    "fedfusion": "FedFusion",
    "ida": "IDA",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    "fedyogi": "FedYogi",
}
"""Of HFedMS's Table III and FedGSP's Table 1: protocol, or its label -> its name there."""
FEDGS_COMPETITORS = {
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "ida": "IDA",
    "ida_intrac": "IDA+INTRAC",
    "ida_fedavg": "IDA+FedAvg",
    "cgau": "CGAU",
    "fedmmd": "FedMMD",
    "fedfusion_conv": "FedFusion+Conv",
    "fedfusion_multi": "FedFusion+Multi",
    "fedfusion_single": "FedFusion+Single",
    "fedavgm": "FedAvgM",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    "fedyogi": "FedYogi",
}
"""Of FedGS's Table II."""


def rates(scenario: Scenario) -> dict[str, str]:
    """Protocol -> its learning rates, as the labels of the scenarios of rates have them."""
    found = {}
    for protocol in scenario.protocols:
        own = protocol.training or scenario.training
        server = getattr(getattr(protocol, "server", None), "learning_rate", None)
        mu = getattr(protocol, "mu", None)
        rate = f"{own.learning_rate:g}"
        if server is not None:
            rate = f"{server:g} and {rate}"
        found[protocol.title] = rate if mu is None else f"{rate}, mu {mu:g}"
    return found


def grids(tuning: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy in per cent at the end of each run of each grid, by data set."""
    ends = {
        data: runs.sort_values("round").groupby("protocol", sort=False)["accuracy"].last()
        for data, runs in tuning.items()
    }
    order = next(iter(tuning.values()))["protocol"].unique()
    table = pd.DataFrame(ends).reindex(order)
    shown = table.mul(100).round(1).map(lambda value: "diverged" if pd.isna(value) else f"{value:.1f}")
    return shown.add_suffix(", %").rename_axis("system and rates").reset_index()


def beside_all(
    table: str, systems: dict[str, str], runs: dict[str, pd.DataFrame], scenarios: dict[str, Scenario]
) -> pd.DataFrame:
    """A published table of final accuracies beside ours, with the learning rates of each row, by data set."""
    numbers = published(table)
    printed = numbers[numbers["metric"] == "final_accuracy"].set_index("system")["value"].map("{:g}".format)
    ours = {data: reached(rounds, "rounds").set_index("protocol") for data, rounds in runs.items()}
    chosen = {data: rates(scenario) for data, scenario in scenarios.items()}
    rows = []
    for protocol, title in systems.items():
        row = {"system": title, "paper, %": printed.get(title, "")}
        for data, found in ours.items():
            row[f"{data}: rates"] = chosen[data][protocol]
            for test in ("pooled", "unseen"):
                if f"{test}, %" in found:
                    mean, half = found.loc[protocol, [f"{test}, %", f"+/- {test}"]]
                    row[f"{data}: {test}, %"] = f"{mean} +/- {half}"
        rows.append(row)
    return pd.DataFrame(rows)
