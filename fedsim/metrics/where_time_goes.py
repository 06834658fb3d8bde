"""Tables of where the time went: what each round was made of, who was late, and how busy links were when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedsim.kernel.trace import Outcome, Trace
from fedsim.metrics.critical_path import PARTS, Part, Piece
from fedsim.network.hop import Link

__all__ = ["MOST_STRAGGLERS", "critical_path_table", "pieces_table", "stragglers_table"]

MOST_STRAGGLERS = 1_000
"""Clients in a table of stragglers: the first ones."""


def critical_path_table(trace: Trace, pieces: Sequence[Piece]) -> pd.DataFrame:
    """A row for each round: ``round, start_s, end_s``, and the seconds of each part, which add up to its length."""
    rounds = trace.rounds.array()
    parts = np.array([piece.part for piece in pieces], np.int64)
    seconds = np.array([piece.end_s - piece.start_s for piece in pieces], np.float64)
    place = np.searchsorted(rounds["round"], np.array([piece.round for piece in pieces], np.int64))
    cells = np.bincount(place * len(Part) + parts, seconds, minlength=len(rounds) * len(Part))
    table = cells.reshape(len(rounds), len(Part))
    return pd.DataFrame(
        {
            **{name: rounds[name] for name in ("round", "start_s", "end_s")},
            **{f"{name}_s": table[:, number] for number, name in enumerate(PARTS)},
        }
    )


def pieces_table(pieces: Sequence[Piece], links: Sequence[Link], clients: Sequence[str]) -> pd.DataFrame:
    """A row for each piece of each round: ``round, part, start_s, end_s, client, client_index, link, direction``.

    Clients, links and directions are labels, and empty where a piece has none; ``client_index`` is -1 then.
    """
    columns = list(zip(*pieces, strict=True)) or [()] * len(Piece._fields)
    number, part, start_s, end_s, client, link, uplink = columns
    ways = [-1 if where < 0 else 0 if up else 1 for where, up in zip(link, uplink, strict=True)]
    return pd.DataFrame(
        {
            "round": np.array(number, np.int32),
            "part": _labels(part, PARTS),
            "start_s": np.array(start_s, np.float64),
            "end_s": np.array(end_s, np.float64),
            "client": _labels(client, clients),
            "client_index": np.array(client, np.int32),
            "link": _labels(link, [one.label for one in links]),
            "direction": _labels(ways, ("uplink", "downlink")),
        }
    )


def stragglers_table(trace: Trace, pieces: Sequence[Piece], clients: Sequence[str]) -> pd.DataFrame:
    """A row for each client that has sent something in some round, the worst first, `MOST_STRAGGLERS` at most.

    ``rounds``: in so many of them something of it has come up; ``closed``: so many have waited for it last;
    ``critical_s``: seconds of all critical paths that are its messages' and trainings'; ``lateness_mean_s`` and
    ``lateness_median_s``: how long after the median of all clients of the round its last message had come up, over its
    rounds; below 0 where it was before.
    """
    rounds, number = trace.rounds.array(), len(clients)
    closed = np.bincount(rounds["closed_by"][rounds["closed_by"] >= 0], minlength=number)
    of_pieces = np.array([piece.client for piece in pieces], np.int64)
    seconds = np.array([piece.end_s - piece.start_s for piece in pieces], np.float64)
    critical_s = np.bincount(of_pieces[of_pieces >= 0], seconds[of_pieces >= 0], minlength=number)
    who, late_s = _lateness(trace)
    times = pd.Series(late_s).groupby(who)
    table = pd.DataFrame({"rounds": times.size(), "lateness_mean_s": times.mean(), "lateness_median_s": times.median()})
    table = table.reindex(np.flatnonzero(closed + (critical_s > 0) + np.bincount(who, minlength=number)))
    index: list[int] = table.index.tolist()
    table = pd.DataFrame(
        {
            "client": pd.Series([clients[client] for client in index], dtype="str"),
            "client_index": index,
            "rounds": table["rounds"].fillna(0).to_numpy(np.int64),
            "closed": closed[index],
            "critical_s": critical_s[index],
            "lateness_mean_s": table["lateness_mean_s"].to_numpy(),
            "lateness_median_s": table["lateness_median_s"].to_numpy(),
        }
    )
    worst = ["closed", "critical_s", "lateness_mean_s", "client_index"]
    ranked = table.sort_values(worst, ascending=[False, False, False, True], ignore_index=True)
    return ranked.head(MOST_STRAGGLERS)


def _lateness(trace: Trace) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Of each client in each round: its index, and how long after the median its last message had come up."""
    hops = trace.hops
    client, up = hops.column("client"), hops.column("uplink")
    up &= (hops.column("outcome") == Outcome.ARRIVED) & (client >= 0)
    end_s = hops.column("end_s")
    whos, lates, begin = [np.empty(0, np.int64)], [np.empty(0)], 0
    for end in trace.rounds.array()["hops"].tolist():
        rows = begin + np.flatnonzero(up[begin:end])
        who, last = np.unique(client[rows][::-1], return_index=True)  # from the last row on
        if len(who):
            came_s = end_s[rows][::-1][last]
            whos.append(who.astype(np.int64))
            lates.append(came_s - np.median(came_s))
        begin = end
    return np.concatenate(whos), np.concatenate(lates)


def _labels(codes: Sequence[int], labels: Sequence[str]) -> pd.Series:
    """Indices as the labels that they stand for; empty where an index is -1."""
    return pd.Series(pd.Categorical.from_codes(np.array(codes, np.int64), pd.Index(labels)).remove_unused_categories())
