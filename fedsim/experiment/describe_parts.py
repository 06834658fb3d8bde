"""What one device's part in the simulated rounds consists of."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedsim.experiment.describe_spread import Spread, spread_of
from fedsim.kernel.trace import Outcome, Trace

__all__ = ["part_facts"]


def part_facts(trace: Trace) -> dict[str, Spread | None]:
    """What one device's part in a round consists of: what went through in the simulated rounds, over all devices.

    The way of a message leads over the air and the wires, with all waiting; ``airtime`` is of it what the message had
    the air for, and ``air_queue`` how long it waited for that.
    """
    hops = pd.DataFrame(trace.hops.array())
    work = pd.DataFrame(trace.work.array())
    hops = hops[(hops["outcome"] == Outcome.ARRIVED) & (hops["client"] >= 0)]
    work = work[work["outcome"] == Outcome.ARRIVED]
    parts: dict[str, Spread | None] = {
        "wait_for_samples_s": None,
        "compute_s": spread_of(work["end_s"] - work["start_s"]),
    }
    ways = {}
    for way, is_up in (("download", False), ("upload", True)):
        some = hops[hops["uplink"] == is_up]
        messages = some.groupby("transfer", sort=False).agg(
            client=("client", "first"), start_s=("start_s", "min"), end_s=("end_s", "max"), over_air=("access", "any")
        )
        ways[way] = messages[messages["over_air"]]
        air = some[some["access"]]
        parts[f"{way}_s"] = spread_of(ways[way]["end_s"] - ways[way]["start_s"])
        parts[f"{way}_airtime_s"] = spread_of(air["airtime_s"])
        parts[f"{way}_air_queue_s"] = spread_of(air["queued_s"])
    waits = _waits(work, ways["download"])
    parts["wait_for_samples_s"] = spread_of(waits) if waits.any() else None
    return parts


def _waits(work: pd.DataFrame, downloads: pd.DataFrame) -> np.ndarray:
    """Seconds between the model's arrival and the beginning of the work on it."""
    begun = work.sort_values("start_s", kind="stable").astype({"client": "int64"})
    there = downloads.sort_values("end_s", kind="stable").astype({"client": "int64"})
    matched = pd.merge_asof(
        begun[["client", "start_s"]],
        there[["client", "end_s"]].rename(columns={"end_s": "arrived_s"}),
        left_on="start_s",
        right_on="arrived_s",
        by="client",
    ).dropna()
    waits: np.ndarray = (matched["start_s"] - matched["arrived_s"]).to_numpy()
    return waits
