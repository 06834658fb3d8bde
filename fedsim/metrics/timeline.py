"""A finished simulation as a timeline for Perfetto (https://ui.perfetto.dev), in its protocol-buffer format.

Slices of one track must lie inside or beside each other. So each device has a track, on which its messages and
trainings follow each other, and a message holds its hops, and a hop its waiting. What devices share, the links, are
counters: messages that wait, messages that are being sent, and bits per second. Messages between servers may be on the
way together, and take as many tracks as there are at a time. The hops of a message are joined by a flow, whose number
is that of the transfer, from 1.

(Format: trace_packet.proto and track_event.proto of Perfetto, with interned names. Times are whole nanoseconds.)
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fedsim.errors import UserError
from fedsim.kernel.trace import AT_DEADLINE, Outcome, Trace
from fedsim.metrics.tables import unfinished_hops
from fedsim.metrics.timeline_packets import Packets
from fedsim.network.hop import Link
from fedsim.network.transfer import Transfer

__all__ = ["write_timeline"]

LONGEST_S = 9.2e9
"""Some 290 years: Perfetto counts nanoseconds in 63 bits."""
ENDINGS = {Outcome.ARRIVED: "", Outcome.LOST: " (lost)", Outcome.CANCELLED: " (given up)", Outcome.IN_FLIGHT: " (...)"}


class _Slice(NamedTuple):
    """A piece of a track, and what is inside of it."""

    start_s: float
    end_s: float
    name: str
    flow: int = 0
    """That it belongs to; 0: to none."""
    inside: tuple[Any, ...] = ()


def write_timeline(
    write: Callable[[bytes], object],
    trace: Trace,
    in_flight: Sequence[Transfer],
    links: Sequence[Link],
    clients: Sequence[str],
    *,
    title: str,
    end_s: float,
) -> None:
    """Hand the timeline of *trace* to *write*, piece by piece; what is still *in_flight* lasts until *end_s*.

    Raises `UserError` when it is too long, and when the library perfetto is not installed.
    """
    if end_s > LONGEST_S:
        raise UserError(
            f"{end_s:g} s of simulated time are too many: Perfetto shows {LONGEST_S:g} s (290 years) at most"
        )
    packets = Packets(write)
    top = packets.track(title)
    _write_slices(packets, packets.track("rounds", top), _rounds(trace, clients))
    unfinished = unfinished_hops(trace, in_flight)
    unfinished["end_s"] = end_s
    hops = np.concatenate([trace.hops.array(), unfinished])
    labels = [link.label for link in links]
    by_client: defaultdict[int, list[_Slice]] = defaultdict(list)
    for client, one in _messages(hops, labels):
        by_client[client].append(one)
    for row in trace.work.array():
        client = int(row["client"])
        name = f"training{ENDINGS[Outcome(row['outcome'])]}"
        by_client[client].append(_Slice(float(row["start_s"]), float(row["end_s"]), name))
    devices = packets.track("devices", top)
    for client in sorted(by_client):
        name = "between servers" if client < 0 else clients[client]
        for lane in _lanes(by_client.pop(client)):
            _write_slices(packets, packets.track(name, devices), lane)
    _write_links(packets, packets.track("links", top), hops, labels)
    packets.flush()


def _rounds(trace: Trace, clients: Sequence[str]) -> Iterator[_Slice]:
    for row in trace.rounds.array():
        by = int(row["closed_by"])
        waited = f", closed by {clients[by]}" if by >= 0 else ", closed by its deadline" if by == AT_DEADLINE else ""
        yield _Slice(float(row["start_s"]), float(row["end_s"]), f"round {row['round']}{waited}")


def _messages(hops: npt.NDArray[np.void], labels: Sequence[str]) -> Iterator[tuple[int, _Slice]]:
    """Each transfer with its client: a slice for all of it, with one for each hop inside."""
    ordered = hops[np.argsort(hops["transfer"], kind="stable")]
    columns = ("transfer", "client", "link", "uplink", "start_s", "end_s", "queued_s", "outcome")
    rows = zip(*(ordered[name].tolist() for name in columns), strict=True)
    for transfer, of_transfer in groupby(rows, key=itemgetter(0)):
        found = list(of_transfer)
        inside = []
        for _, _, link, _, start_s, end_s, queued_s, _ in found:
            waits = (_Slice(start_s, min(start_s + queued_s, end_s), "waits"),) if queued_s > 0 else ()
            inside.append(_Slice(start_s, end_s, labels[link], transfer + 1, waits))
        _, client, _, uplink, _, end_s, _, outcome = found[-1]
        name = f"{'up' if uplink else 'down'}{ENDINGS[Outcome(outcome)]}"
        yield client, _Slice(found[0][4], end_s, name, 0, tuple(inside))


def _lanes(slices: list[_Slice]) -> list[list[_Slice]]:
    """The *slices* on as few tracks as there are at a time; of a device that is one."""
    lanes: list[list[_Slice]] = []
    free: list[tuple[float, int]] = []
    for one in sorted(slices, key=lambda one: (one.start_s, one.end_s)):
        if free and free[0][0] <= one.start_s:
            _, lane = heapq.heappop(free)
        else:
            lane = len(lanes)
            lanes.append([])
        lanes[lane].append(one)
        heapq.heappush(free, (one.end_s, lane))
    return lanes


def _write_slices(packets: Packets, track: int, slices: Iterable[_Slice]) -> None:
    for one in slices:
        packets.begin(track, _ns(one.start_s), one.name, one.flow)
        _write_slices(packets, track, one.inside)
        packets.end(track, _ns(one.end_s))


def _write_links(packets: Packets, parent: int, hops: npt.NDArray[np.void], labels: Sequence[str]) -> None:
    """Three counters for each direction of each link that anything was on; each ends at zero."""
    ways = hops["link"] * 2 + ~hops["uplink"]
    order = np.argsort(ways, kind="stable")
    numbers, begins = np.unique(ways[order], return_index=True)
    for way, rows in zip(numbers.tolist(), np.split(hops[order], begins[1:]), strict=True):
        name = f"{labels[way // 2]}, {('up', 'down')[way % 2]}"
        start_ns, end_ns = (_all_ns(rows[column]) for column in ("start_s", "end_s"))
        begun_ns = np.minimum(_all_ns(rows["start_s"] + rows["queued_s"]), end_ns)
        one = np.ones(len(rows), np.int64)
        took_s = np.maximum((end_ns - begun_ns) / 1e9, 1e-9)
        bps = np.round(8 * rows["bytes"] / took_s).astype(np.int64)
        for what, unit, from_ns, until_ns, height in (
            ("waiting", "messages", start_ns, begun_ns, one),
            ("being sent", "messages", begun_ns, end_ns, one),
            ("rate", "bit/s", begun_ns, end_ns, bps),
        ):
            some = from_ns < until_ns
            if some.any():
                track = packets.track(f"{name}: {what}", parent, unit)
                for at_ns, value in _steps(from_ns[some], until_ns[some], height[some]):
                    packets.count(track, at_ns, value)


def _steps(
    from_ns: npt.NDArray[np.int64], until_ns: npt.NDArray[np.int64], height: npt.NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """When the sum of all *heights* that last then changes, and to what."""
    at_ns, place = np.unique(np.concatenate([from_ns, until_ns]), return_inverse=True)
    changes = np.zeros(len(at_ns), np.int64)
    np.add.at(changes, place, np.concatenate([height, -height]))
    changed = changes != 0
    yield from zip(at_ns[changed].tolist(), np.cumsum(changes)[changed].tolist(), strict=True)


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _all_ns(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.round(seconds * 1e9).astype(np.int64)
