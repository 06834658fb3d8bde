"""The tidy tables of a run folder, from one trace: rounds, transfers, links, groups; and what was taken for what.

Cumulative bytes count every row of hops that the trace had when a round ended. What is not modelled is empty, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedsim.kernel.trace import AT_DEADLINE, Outcome, Trace
from fedsim.metrics.chosen import ChosenMetrics
from fedsim.network.hop import Direction, Link
from fedsim.network.transfer import Transfer

__all__ = [
    "CUMULATIVE",
    "confusion_table",
    "device_classes_table",
    "groups_table",
    "links_table",
    "rounds_table",
    "transfers_table",
    "unfinished_hops",
    "ways_of",
    "with_unfinished",
]

Evaluations = Mapping[int, Mapping[str, Mapping[str, Any]]]
"""Round -> test set -> metric -> value."""

NOTHING_CHOSEN = ChosenMetrics()
CUMULATIVE = (
    *("sim_time_s", "uplink_bytes", "downlink_bytes", "transfer_bytes", "backbone_bytes", "network_bytes"),
    "energy_j",
)
"""Columns of a table of rounds that add up over a run."""
SPREAD = ("std", "min", "max")
"""How the accuracies (or errors) of clients differ: of test sets that are many clients' own."""


def rounds_table(
    trace: Trace,
    evaluations: Evaluations,
    *,
    on: Sequence[str],
    chosen: ChosenMetrics = NOTHING_CHOSEN,
    clients: Sequence[str],
) -> pd.DataFrame:
    """A row for each round. Metrics of the first test set of *on* have plain names, others end in the set's name.

    ``closed_by`` is the name of the client that was waited for last, "deadline", or empty; as a client may have any
    name, ``closed_by_index`` tells them apart: its index, or a negative number as in the trace.
    """
    rounds, hops = trace.rounds.array(), trace.hops
    put_bytes, access, up = hops.column("bytes"), hops.column("access"), hops.column("uplink")
    uplink = _sum_until(rounds["hops"], put_bytes * (access & up))
    downlink = _sum_until(rounds["hops"], put_bytes * (access & ~up))
    table = pd.DataFrame(
        {
            "round": rounds["round"],
            "sim_time_s": rounds["end_s"],
            "uplink_bytes": uplink,
            "downlink_bytes": downlink,
            "transfer_bytes": uplink + downlink,
            "backbone_bytes": _sum_until(rounds["hops"], put_bytes * ~access),
            "network_bytes": _sum_until(rounds["hops"], put_bytes),
            "energy_j": np.full(len(rounds), np.nan),
            **{name: rounds[name] for name in ("participants", "selected", "lost", "late")},
            "closed_by": pd.Series([_closed_by(code, clients) for code in rounds["closed_by"].tolist()], dtype="str"),
            "closed_by_index": rounds["closed_by"],
        }
    )
    score = _score(evaluations)
    for position, test_set in enumerate(on):
        ending = f"_{test_set}" if position else ""
        how_spread = () if test_set == "global" else SPREAD if test_set != "own" else ("mean", *SPREAD)
        spread = (f"{score}_{how}" for how in how_spread)
        of_set = [evaluations.get(number, {}).get(test_set, {}) for number in rounds["round"]]
        columns = _metric_columns(of_set, ("accuracy", "loss", score, *spread), chosen)
        table = pd.concat([table, columns.add_suffix(ending)], axis="columns")
    return table


def _closed_by(code: int, clients: Sequence[str]) -> str:
    return clients[code] if code >= 0 else "deadline" if code == AT_DEADLINE else ""


def _metric_columns(
    evaluations: Sequence[Mapping[str, Any]], metrics: Sequence[str], chosen: ChosenMetrics
) -> pd.DataFrame:
    """A row for each of the *evaluations*, with these *metrics* and the *chosen* ones; empty ones of no evaluation."""
    plain = {metric: np.array([one.get(metric, np.nan) for one in evaluations], np.float64) for metric in metrics}
    return pd.concat(
        [pd.DataFrame(plain), pd.DataFrame([chosen.of(one) for one in evaluations], columns=chosen.columns)],
        axis="columns",
    ).astype(np.float64)


def device_classes_table(
    trace: Trace, evaluations: Evaluations, classes: Sequence[str], *, chosen: ChosenMetrics = NOTHING_CHOSEN
) -> pd.DataFrame:
    """A row for each round and device class, of clients whose *classes* these are.

    Bytes are those on the clients' own hops, ``uplinks`` the messages that have left them upwards and ``uplink_s`` the
    seconds that these took, with waiting (``downlinks`` and ``downlink_s``: downwards). ``compute_s`` is the sum of
    their devices' seconds of local work, and ``trainings`` how often they worked. All of these add up over the run.
    Metrics are of the clients' own models on their own tests: *evaluations* has them by round and class.
    """
    rounds, hops, work = trace.rounds.array(), trace.hops, trace.work.array()
    kinds = list(dict.fromkeys(classes))
    code = np.array([kinds.index(kind) for kind in classes])
    client = hops.column("client")
    mine = hops.column("access") & (client >= 0)
    of_hop, up, put_bytes = code[np.where(mine, client, 0)], hops.column("uplink"), hops.column("bytes")
    took_s = hops.column("end_s") - hops.column("start_s")
    until = np.searchsorted(np.sort(work["end_s"]), rounds["end_s"], side="right")
    order = np.argsort(work["end_s"], kind="stable")
    seconds, of_work = (work["end_s"] - work["start_s"])[order], code[work["client"][order]]
    tables = []
    for number, kind in enumerate(kinds):
        here = mine & (of_hop == number)
        table = pd.DataFrame({"round": rounds["round"], "device_class": kind, "clients": int((code == number).sum())})
        table["sim_time_s"] = rounds["end_s"]
        table["uplink_bytes"] = _sum_until(rounds["hops"], put_bytes * (here & up))
        table["downlink_bytes"] = _sum_until(rounds["hops"], put_bytes * (here & ~up))
        for name, ours in (("uplink", here & up), ("downlink", here & ~up)):
            table[f"{name}s"] = _sum_until(rounds["hops"], ours).astype(np.int64)
            table[f"{name}_s"] = _sum_until(rounds["hops"], took_s * ours)
        table["compute_s"] = _sum_until(until, seconds * (of_work == number))
        table["trainings"] = _sum_until(until, of_work == number).astype(np.int64)
        scores = [evaluations.get(one, {}).get(kind, {}) for one in rounds["round"].tolist()]
        score = "rmse" if any("rmse" in one for one in scores) else "accuracy"
        metrics = ("accuracy", "loss", score, f"{score}_mean", f"{score}_min", f"{score}_max")
        tables.append(pd.concat([table, _metric_columns(scores, metrics, chosen)], axis="columns"))
    return pd.concat(tables, ignore_index=True).sort_values("round", kind="stable", ignore_index=True)


def _score(evaluations: Evaluations) -> str:
    """What models are told apart by: the error where they predict numbers, else the accuracy."""
    regression = any("rmse" in metrics for sets in evaluations.values() for metrics in sets.values())
    return "rmse" if regression else "accuracy"


def transfers_table(
    trace: Trace, in_flight: Sequence[Transfer], links: Sequence[Link], clients: Sequence[str]
) -> pd.DataFrame:
    """A row for each hop of each transfer, those last that were still in flight when the simulation ended."""
    unfinished = unfinished_hops(trace, in_flight)
    table = {name: with_unfinished(name, trace, unfinished) for name in trace.hops.dtype.names or ()}
    return pd.DataFrame(
        {
            "transfer": table["transfer"],
            "client": _labels(table["client"], clients),
            "client_index": table["client"],
            "link": _labels(table["link"], [link.label for link in links]),
            "direction": _labels(np.where(table["uplink"], 0, 1), ["uplink", "downlink"]),
            **{
                name: table[name]
                for name in (
                    *("access", "start_s", "end_s", "queued_s", "airtime_s"),
                    *("bytes", "retransmitted_bytes", "withdrawn_bytes"),
                )
            },
            "outcome": _labels(table["outcome"], [outcome.name.lower() for outcome in Outcome]),
        }
    )


def groups_table(trace: Trace, clients: Sequence[str]) -> pd.DataFrame:
    """A row for each member of each group, each time that groups were drawn; none for a protocol without groups."""
    table = trace.groups.array()
    return pd.DataFrame(
        {
            "round": table["round"],
            "group": table["group"],
            "position": table["position"],
            "client": _labels(table["client"], clients),
            "client_index": table["client"],
            "selected": table["selected"],
        }
    )


def links_table(
    trace: Trace, in_flight: Sequence[Transfer], links: Sequence[Link], *, duration_s: float
) -> pd.DataFrame:
    """A row for each link and direction: traffic, ``utilisation`` and ``mean_queue``.

    ``utilisation`` is the mean share of the channel's carriers that was used (on a dedicated channel, the mean number
    of transfers being sent) and ``mean_queue`` the mean number waiting to be sent, both over the whole simulation.
    Empty when it took no time.
    """
    unfinished = unfinished_hops(trace, in_flight)
    ways = ways_of(trace, unfinished)

    def total(name: str) -> npt.NDArray[np.float64]:
        sums = np.bincount(ways, with_unfinished(name, trace, unfinished), minlength=2 * len(links))
        return np.asarray(sums, dtype=np.float64)

    duration = duration_s if duration_s > 0 else np.nan
    return pd.DataFrame(
        {
            "link": _labels(np.repeat(np.arange(len(links)), 2), [link.label for link in links]),
            "direction": _labels(np.tile([0, 1], len(links)), ["uplink", "downlink"]),
            "access": np.repeat([link.access for link in links], 2).astype(bool),
            "transfers": np.bincount(ways, minlength=2 * len(links)),
            **{name: total(name) for name in ("bytes", "retransmitted_bytes", "withdrawn_bytes")},
            "utilisation": total("airtime_s") / duration / np.repeat([link.medium.carriers for link in links], 2),
            "mean_queue": total("queued_s") / duration,
        }
    )


def unfinished_hops(trace: Trace, in_flight: Sequence[Transfer]) -> npt.NDArray[np.void]:
    """Rows like those of the trace for what is still under way."""
    rows = [
        (
            *(transfer.number, transfer.client, transfer.hop.link.index),
            *(transfer.hop.direction is Direction.UPLINK, transfer.hop.link.access),
            *(transfer.start_s, np.nan, transfer.queued_s, transfer.airtime_s, transfer.bytes),
            *(transfer.retransmitted_bytes, transfer.handed_bytes - transfer.bytes, Outcome.IN_FLIGHT),
        )
        for transfer in in_flight
    ]
    return np.array(rows, dtype=trace.hops.dtype)


def ways_of(trace: Trace, unfinished: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Of each hop, also the *unfinished* ones, twice its link, and one more where it leads down."""
    links, up = (with_unfinished(name, trace, unfinished) for name in ("link", "uplink"))
    ways: npt.NDArray[np.int64] = links * 2 + ~up
    return ways


def with_unfinished(name: str, trace: Trace, unfinished: npt.NDArray[np.void]) -> npt.NDArray[Any]:
    """A column of the trace's hops, and then of the *unfinished* ones."""
    return np.concatenate([trace.hops.column(name), unfinished[name]])


def _sum_until(counts: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums of the first ``counts[i]`` values."""
    sums: npt.NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(values)])[counts]
    return sums


def _labels(codes: npt.NDArray[np.integer], labels: Sequence[str]) -> pd.Series:
    """Indices as the labels that they stand for, at the cost of the indices."""
    return pd.Series(pd.Categorical.from_codes(codes.astype(np.int64), pd.Index(labels)))


def confusion_table(evaluations: Mapping[str, Mapping[str, Any]], class_names: Sequence[str]) -> pd.DataFrame:
    """A row for each pair of a true and a predicted class that occurs, in order of classes, for each test set.

    *evaluations* are those of one model, by test set; of one that has diverged there, or of no classes, no rows.
    """
    triples = {on: np.array(one.get("confusion") or (), np.int64).reshape(-1, 3).T for on, one in evaluations.items()}
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "test_set": on,
                    "true": [class_names[label] for label in true],
                    "predicted": [class_names[label] for label in predicted],
                    "true_index": true,
                    "predicted_index": predicted,
                    "count": samples,
                }
            )
            for on, (true, predicted, samples) in triples.items()
        ],
        ignore_index=True,
    )
