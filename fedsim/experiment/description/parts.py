"""What one device's part in the simulated rounds consists of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.experiment.description.spread import Spread, spread_of
from fedsim.kernel.trace import Outcome, Trace

__all__ = ["part_facts"]

Columns = dict[str, NDArray[Any]]


def part_facts(trace: Trace) -> dict[str, Spread | None]:
    """What one device's part in a round consists of: what went through in the simulated rounds, over all devices.

    The way of a message leads over the air and the wires, with all waiting; ``airtime`` is of it what the message had
    the air for, and ``air_queue`` how long it waited for that.
    """
    work = trace.work.array()
    work = work[work["outcome"] == Outcome.ARRIVED]
    hops = {name: trace.hops.column(name) for name in ("client", "outcome", "uplink")}
    arrived = (hops["outcome"] == Outcome.ARRIVED) & (hops["client"] >= 0)
    parts: dict[str, Spread | None] = {
        "wait_for_samples_s": None,
        "compute_s": spread_of(work["end_s"] - work["start_s"]),
    }
    messages: dict[str, Columns] = {}
    for way, is_up in (("download", False), ("upload", True)):
        rows = np.flatnonzero(arrived & (hops["uplink"] == is_up))
        messages[way] = _over_air(trace, rows)
        parts[f"{way}_s"] = spread_of(messages[way]["end_s"] - messages[way]["start_s"])
        air = rows[trace.hops.column("access")[rows]]
        parts[f"{way}_airtime_s"] = spread_of(trace.hops.column("airtime_s")[air])
        parts[f"{way}_air_queue_s"] = spread_of(trace.hops.column("queued_s")[air])
    waits = _waits(work, messages["download"])
    parts["wait_for_samples_s"] = spread_of(waits) if waits.any() else None
    return parts


def _over_air(trace: Trace, rows: NDArray[np.int64]) -> Columns:
    """Of the messages whose hops are *rows*, those that went over the air: whose they are, their beginning and end."""
    transfer = trace.hops.column("transfer")[rows]
    order = np.argsort(transfer, kind="stable")
    rows, transfer = rows[order], transfer[order]
    firsts = np.flatnonzero(np.diff(transfer, prepend=-1))
    if not len(firsts):
        return {name: np.empty(0) for name in ("client", "start_s", "end_s")}
    over_air = np.logical_or.reduceat(trace.hops.column("access")[rows], firsts)
    return {
        "client": trace.hops.column("client")[rows[firsts]][over_air],
        "start_s": np.minimum.reduceat(trace.hops.column("start_s")[rows], firsts)[over_air],
        "end_s": np.maximum.reduceat(trace.hops.column("end_s")[rows], firsts)[over_air],
    }


def _waits(work: NDArray[np.void], downloads: Columns) -> NDArray[np.float64]:
    """Seconds between the model's arrival and the beginning of the work on it; not of work without a model."""
    arrivals = len(downloads["client"])
    clients = np.concatenate([downloads["client"], work["client"]])
    times = np.concatenate([downloads["end_s"], work["start_s"]])
    is_work = np.arange(len(times)) >= arrivals
    order = np.lexsort((is_work, times, clients))  # what arrives in the instant in which work begins was there
    places = np.arange(len(order))
    latest = order[np.maximum.accumulate(np.where(is_work[order], 0, places))]
    matched = is_work[order] & (latest < arrivals) & (clients[latest] == clients[order])
    waits: NDArray[np.float64] = times[order[matched]] - times[latest[matched]]
    return waits
