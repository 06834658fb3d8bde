"""What one round costs a plant, by device class: seconds and bytes of one device, and how busy its cells are.

The answer to a planner's question, for which nothing needs to be trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fedsim.experiment.compare import run_names
from fedsim.experiment.results import Results

__all__ = ["planned_costs"]


def planned_costs(results: Sequence[Results]) -> pd.DataFrame:
    """A row for each run, protocol and device class, of the first seed; empty unless nothing was learned.

    Columns: ``run``, ``protocol``, ``device_class``, ``devices``, ``round_s`` (simulated seconds of a round, on
    average), ``down_s``, ``work_s`` and ``up_s`` (seconds of one download over the air, with waiting; of local work for
    one update; of one upload), ``message_bytes`` (of one download and one upload, on average), ``busy_up``
    and ``busy_down`` (the share of the air that is used in the cell where it is most, from 0 to 1).
    """
    rows = []
    for name, result in zip(run_names(results), results, strict=True):
        if not (result.folder / "device_classes.csv").exists() or result.rounds["accuracy"].notna().any():
            continue
        classes = result.device_classes
        seed = int(classes["seed"].iloc[0]) if len(classes) else 0
        last = classes[classes["seed"] == seed].groupby(["protocol", "device_class"], sort=False).tail(1)
        for row in last.to_dict("records"):
            rows.append(
                {
                    "run": name,
                    "protocol": row["protocol"],
                    "device_class": row["device_class"],
                    "devices": int(row["clients"]),
                    "round_s": row["sim_time_s"] / row["round"],
                    "down_s": _each(row["downlink_s"], row["downlinks"]),
                    "work_s": _each(row["compute_s"], row["trainings"]),
                    "up_s": _each(row["uplink_s"], row["uplinks"]),
                    "message_bytes": _each(row["uplink_bytes"], row["uplinks"])
                    + _each(row["downlink_bytes"], row["downlinks"]),
                    **_busiest(result, row["protocol"], seed),
                }
            )
    return pd.DataFrame(rows)


def _each(total: float, number: float) -> float:
    return total / number if number else float("nan")


def _busiest(result: Results, protocol: str, seed: int) -> dict[str, float]:
    links = result.links
    own = links[(links["protocol"] == protocol) & (links["seed"] == seed) & links["access"]]
    most = own.groupby("direction")["utilisation"].max()
    return {"busy_up": most.get("uplink", float("nan")), "busy_down": most.get("downlink", float("nan"))}
