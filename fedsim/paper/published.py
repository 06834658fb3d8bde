"""A published table beside a run: what was printed, what a formula gives, what came out of the simulation.

HFedMS: Zeng et al., *HFedMS: heterogeneous federated learning with memorable data semantics in industrial metaverse*,
IEEE Transactions on Cloud Computing 2023. FedGSP: Zeng et al., *Heterogeneous federated learning via grouped
sequential-to-parallel training*, DASFAA 2022. FedGS: Li et al., *Data heterogeneity-robust federated learning via group
client selection in industrial IoT*, IEEE Internet of Things Journal 2022.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from importlib.resources import files

import pandas as pd

from fedsim.experiment.compare import summary_at
from fedsim.experiment.results import Results
from fedsim.units import HOUR_S, TIB_BYTES

__all__ = [
    "COLUMNS",
    "fedgs_fig5",
    "fedgs_fig5_5_factories",
    "fedgs_fig5_20_factories",
    "fedgs_table2",
    "fedgsp_cost",
    "fedgsp_table1",
    "hfedms_table3",
    "hfedms_table4",
    "published",
]

_QUANTITIES = {
    "rounds": "rounds",
    "final_accuracy": "accuracy",
    "loss": "loss",
    "rounds_to_82": "rounds to 82 %",
    "communication_s": "communication",
    "computation_s": "computation",
    "sim_time_s": "time",
    "transfer_bytes": "traffic",
}
COLUMNS = ["system", "quantity", "unit", "published", "formula", "event"]
WORKED_OUT = "worked out"
"""What the column of published numbers is called in a table that prints none, but the formulas for them."""
_UNITS = {"": 1.0, "%": 0.01, "s": 1.0, "h": HOUR_S, "TiB": TIB_BYTES}


def published(table: str) -> pd.DataFrame:
    """The printed numbers of *table*: columns ``system, metric, value, unit``; a metric is a column of summaries."""
    with (files("fedsim.paper") / "published.csv").open(encoding="utf-8") as lines:
        numbers = pd.read_csv(lines, keep_default_na=False)
    return numbers[numbers["table"] == table].drop(columns="table").reset_index(drop=True)


def _beside_published(table: str, summary: pd.DataFrame) -> pd.DataFrame:
    """The printed numbers of *table* beside those of a run, by its *summary*, in the columns of `COLUMNS`.

    A system stands in it when the run has a protocol of its name, whatever the case and the punctuation:
    ``HFedMS-D T=5`` is the protocol ``hfedms_d_t5``. Several seeds count by their mean. What a run lacks is NaN.
    """
    titles = {_letters(title): title for title in summary["protocol"].unique()}
    rows = [
        {
            "system": row["system"],
            "quantity": _QUANTITIES[row["metric"]],
            "unit": row["unit"],
            "published": float(row["value"]),
            **{
                accounting: _measured(summary, titles[_letters(row["system"])], accounting, row["metric"])
                / _UNITS[row["unit"]]
                for accounting in ("formula", "event")
            },
        }
        for row in _records(published(table))
        if _letters(row["system"]) in titles
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _records(table: pd.DataFrame) -> Iterable[dict[str, str]]:
    for record in table.to_dict("records"):
        yield {str(key): str(value) for key, value in record.items()}


def _measured(summary: pd.DataFrame, protocol: str, accounting: str, metric: str) -> float:
    rows = summary[(summary["protocol"] == protocol) & (summary["accounting"] == accounting)]
    return float(rows[metric].mean()) if metric in rows else math.nan


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def hfedms_table3(results: Results) -> pd.DataFrame:
    """HFedMS Table III, its half for streams: accuracy and loss on streaming FEMNIST after 500 rounds.

    Its half for static data is FedGSP's Table 1. HFedMS-S is not in the half for streams.
    """
    return _beside_published("hfedms_table3", results.summary)


def hfedms_table4(results: Results) -> pd.DataFrame:
    """HFedMS Table IV: rounds, traffic and runtime to reach 70 % accuracy on streaming FEMNIST.

    The paper prints 2^40 bytes as "TB". Its numbers are its Eqs. 19 and 20 with kappa K = 110.4 clients in a round; an
    event has whole clients, some of whom find no place in groups of equal size, so that it comes out a little lower.
    """
    return _beside_published("hfedms_table4", results.summary)


def fedgsp_table1(results: Results) -> pd.DataFrame:
    """FedGSP Table 1, and HFedMS Table III on static data: accuracy and loss on FEMNIST after 500 rounds.

    The two papers print the same numbers; HFedMS calls FedGSP HFedMS-S.
    """
    return _beside_published("fedgsp_table1", results.summary)


def fedgsp_cost(results: Results) -> pd.DataFrame:
    """FedGSP Fig. 6: time and traffic to reach 80 % accuracy on FEMNIST, worked out from Eqs. 15 to 17.

    The paper prints bars without numbers; "worked out" is what its equations give with its own constants and its rounds
    (Table 1). A simulated run has one clock: it does not tell communication and computation apart.
    """
    return _beside_published("fedgsp_cost", results.summary).rename(columns={"published": WORKED_OUT})


def fedgs_table2(results: Results) -> pd.DataFrame:
    """FedGS Table II: accuracy and loss on FEMNIST after 500 rounds, and rounds to 82 % accuracy.

    Five of its systems do not reach that, and have no such number. Ours is that of the first evaluation that those
    after it confirm; the paper does not say which it counts.
    """
    reached = summary_at(results.rounds, target=0.82).rename(columns={"rounds_to_target": "rounds_to_82"})
    return _beside_published("fedgs_table2", reached)


def fedgs_fig5(results: Results) -> pd.DataFrame:
    """FedGS Fig. 5, with ten factories: accuracy by iterations T, batch size n and devices L.

    The figure has no numbers. These are typed in by hand in its authors' public code, ``metrics/visualize.py``.
    """
    return _beside_published("fedgs_fig5", results.summary)


def fedgs_fig5_5_factories(results: Results) -> pd.DataFrame:
    """FedGS Fig. 5b, with five factories: accuracy by devices L."""
    return _beside_published("fedgs_fig5_5_factories", results.summary)


def fedgs_fig5_20_factories(results: Results) -> pd.DataFrame:
    """FedGS Fig. 5b, with twenty factories: accuracy by devices L."""
    return _beside_published("fedgs_fig5_20_factories", results.summary)
