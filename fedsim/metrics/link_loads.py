"""How busy links were when: utilisation and queue of the busiest ones, in equal parts of the simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedsim.kernel.trace import Trace
from fedsim.metrics.tables import unfinished_hops, ways_of, with_unfinished
from fedsim.network.hop import Link
from fedsim.network.transfer import Transfer

__all__ = ["BINS", "MOST_WAYS", "link_loads_table"]

BINS = 50
"""Equal parts of the simulated time."""
MOST_WAYS = 12
"""Links, each direction counted by itself, that the table has: those with the most airtime and waiting together."""


def link_loads_table(
    trace: Trace, in_flight: Sequence[Transfer], links: Sequence[Link], *, duration_s: float
) -> pd.DataFrame:
    """A row for each of the busiest links and directions and each part of the time, with its utilisation and queue.

    ``utilisation`` and ``mean_queue`` are those of `fedsim.metrics.tables.links_table` from ``start_s`` to ``end_s``,
    so their means over all parts are the numbers there. The airtime of a message is spread evenly over the time from
    when it is first given the channel until it is received, as a trace has no more than its sum: where it was really
    used earlier, another part of the time gets it, and may come to more than 1. There are no rows when nothing took
    time.
    """
    unfinished = unfinished_hops(trace, in_flight)

    def column(name: str) -> npt.NDArray[Any]:
        return with_unfinished(name, trace, unfinished)

    ways = ways_of(trace, unfinished)
    airtime_s, queued_s = column("airtime_s"), column("queued_s")
    carriers = np.repeat([link.medium.carriers for link in links], 2)
    load = np.bincount(ways, airtime_s, minlength=2 * len(links)) / carriers
    load += np.bincount(ways, queued_s, minlength=2 * len(links))
    busiest = np.argsort(-load, kind="stable")[:MOST_WAYS]
    edges_s = np.linspace(0.0, duration_s, BINS + 1)
    start_s, end_s = column("start_s"), column("end_s")
    tables = []
    for way in busiest[load[busiest] > 0].tolist() if duration_s > 0 else ():
        rows = np.flatnonzero(ways == way)
        begin_s = start_s[rows]
        begun_s = begin_s + queued_s[rows]
        until_s = np.where(np.isnan(end_s[rows]), duration_s, end_s[rows])
        width_s = duration_s / BINS
        tables.append(
            pd.DataFrame(
                {
                    "link": links[way // 2].label,
                    "direction": ("uplink", "downlink")[way % 2],
                    "start_s": edges_s[:-1],
                    "end_s": edges_s[1:],
                    "utilisation": _spread(begun_s, until_s, airtime_s[rows], edges_s) / width_s / carriers[way],
                    "mean_queue": _spread(begin_s, begun_s, queued_s[rows], edges_s) / width_s,
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)


_COLUMNS = ["link", "direction", "start_s", "end_s", "utilisation", "mean_queue"]


def _spread(
    begin_s: npt.NDArray[np.float64],
    end_s: npt.NDArray[np.float64],
    amount: npt.NDArray[np.float64],
    edges_s: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """What falls between each two edges of *amounts* that are spread evenly from *begin_s* to *end_s*.

    An amount that grows evenly to its end is the difference of two ramps; of all ramps that begin between two edges,
    only their slopes and begins matter, added up.
    """
    some = amount > 0
    begin_s, amount = begin_s[some], amount[some]
    end_s = np.maximum(end_s[some], begin_s)
    bins = len(edges_s) - 1
    first, last = (np.clip(np.searchsorted(edges_s, s, side="right") - 1, 0, bins - 1) for s in (begin_s, end_s))
    spread = np.zeros(bins)
    inside = first == last
    np.add.at(spread, first[inside], amount[inside])
    begin_s, end_s, amount = (seconds[~inside] for seconds in (begin_s, end_s, amount))
    first, last = first[~inside], last[~inside]
    slope = amount / (end_s - begin_s)
    np.add.at(spread, first, slope * (edges_s[first + 1] - begin_s))
    np.add.at(spread, last, slope * (end_s - edges_s[last]))
    steps = np.zeros(bins + 1)
    np.add.at(steps, first + 1, slope)
    np.add.at(steps, last, -slope)
    between = np.cumsum(steps)[:bins] * np.diff(edges_s)  # what lasts from one edge to the next
    spread += np.maximum(between, 0.0)  # where nothing does, the sum is not quite zero
    return spread
