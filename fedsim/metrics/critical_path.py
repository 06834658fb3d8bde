"""Where the time went: the chain of waits that a round was as long as.

A round ends because something came, and that began because something else had come before it: a message, a training,
the server's own work. Going back from the end of the round, from cause to cause, to its begin gives the round's
**critical path**: pieces of time that follow each other without a gap. Had one of them been shorter, and nothing else
changed, so would the round have been, unless another chain is as long.

All of it is in the trace. A cause ends in the very instant in which its consequence begins, and the clock has no two
numbers for one instant. Where several things end in that instant, the one that is taken is a cause by the rules of
`_Walk`, and as good as any other.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedsim.kernel.trace import Outcome, Pause, Table, Trace

__all__ = ["PARTS", "Part", "Piece", "critical_paths"]

SERVERS = -1
"""Whose hops are those between servers."""
NOWHERE = -1


class Part(IntEnum):
    """What a piece of a critical path is."""

    QUEUEING = 0
    """A message waits for its link: others are served, its device is busy the other way, or it is out of coverage."""
    AIRTIME = 1
    """A message is on the client's own hop: from when it is first given the channel until it is received."""
    BACKHAUL = 2
    """A message is on a wire behind the base station, likewise."""
    WORK = 3
    """Local training."""
    SAMPLES = 4
    """A device or a station waits for samples that have not been measured yet."""
    SERVER = 5
    """A server's own work: aggregation, grouping, selection of devices, training in the cloud."""
    DEADLINE = 6
    """All that came in time has come, and what has not is waited for until the deadline."""
    OUTAGE = 7
    """Nobody can be reached."""
    IDLE = 8
    """Nothing that the trace knows explains it."""


PARTS = tuple(part.name.lower() for part in Part)
"""The names of all parts, in order; with ``_s`` they are columns of `fedsim.metrics.where_time_goes`."""
_OF_PAUSE = {
    Pause.SERVER: Part.SERVER,
    Pause.DEADLINE: Part.DEADLINE,
    Pause.SAMPLES: Part.SAMPLES,
    Pause.OUTAGE: Part.OUTAGE,
}


class Piece(NamedTuple):
    """A piece of the critical path of one round."""

    round: int
    part: Part
    start_s: float
    end_s: float
    client: int
    """Whose message or training it is; -1: a server's, or nobody's."""
    link: int
    """On which link; -1: on none."""
    uplink: bool
    """Which way, on a link."""


def critical_paths(trace: Trace) -> list[Piece]:
    """The pieces of all rounds, in the order of time; those of a round begin and end where the round does.

    Pieces without length are left out, so a round that takes no time has none.
    """
    rounds, work, pauses = trace.rounds.array(), trace.work.array(), trace.pauses.array()
    messages = trace.station_messages.array()
    pieces: list[Piece] = []
    hops = _Reader(trace.hops)
    for row, of_work, of_pauses in zip(
        rounds, _pieces_of(work, rounds["end_s"]), _pieces_of(pauses, rounds["end_s"]), strict=True
    ):
        of_hops = hops.until(int(row["hops"]))
        pieces += _Walk(row, of_hops, _sites_of(of_hops, messages), of_work, of_pauses).back()
    return pieces


class _Reader:
    """Reads a table once, from its first row to its last, without ever having all of it in one piece."""

    def __init__(self, table: Table) -> None:
        self._blocks = list(table.blocks())
        self._row = 0

    def until(self, row: int) -> npt.NDArray[np.void]:
        """The rows from where it is up to *row*."""
        found, begin = [], 0
        for block in self._blocks:
            some = block[max(self._row - begin, 0) : max(row - begin, 0)]
            if len(some):
                found.append(some)
            begin += len(block)
        self._row = row
        return np.concatenate(found) if found else self._blocks[0][:0] if self._blocks else _NO_HOPS


_NO_HOPS = Trace().hops.array()


def _pieces_of(table: npt.NDArray[np.void], ends_s: npt.NDArray[np.float64]) -> list[npt.NDArray[np.void]]:
    """The rows of a *table*, which is in the order of ``end_s``, that end in each round."""
    ends = np.searchsorted(table["end_s"], ends_s, side="right").tolist()
    # What ends with the round before may be noted after it; it is shorter than nothing here, and does no harm there.
    return [table[begin:end] for begin, end in zip([0, *ends][:-1], ends, strict=True)]


def _sites_of(hops: npt.NDArray[np.void], station_messages: npt.NDArray[np.void]) -> npt.NDArray[np.int32]:
    """The station of each hop: that of the cell, or whose message it is; `NOWHERE` for the other wires."""
    sites = np.where(hops["access"], hops["link"], NOWHERE)
    between = np.flatnonzero(hops["client"] == SERVERS)
    if len(between) and len(station_messages):
        transfers = hops["transfer"][between]
        row = np.searchsorted(station_messages["transfer"], transfers).clip(max=len(station_messages) - 1)
        known = station_messages["transfer"][row] == transfers
        sites[between[known]] = station_messages["site"][row[known]]
    return sites


class _Walk:
    """Goes through one round backwards. What it has used it never uses again, so it comes to an end."""

    def __init__(
        self,
        of_round: np.void,
        hops: npt.NDArray[np.void],
        sites: npt.NDArray[np.int32],
        work: npt.NDArray[np.void],
        pauses: npt.NDArray[np.void],
    ) -> None:
        self._number, self._start_s = int(of_round["round"]), float(of_round["start_s"])
        self._hops, self._sites, self._work, self._pauses = hops, sites, work, pauses
        self._hop_ends, self._transfers = hops["end_s"].copy(), hops["transfer"].copy()
        self._work_ends, self._pause_ends = work["end_s"].copy(), pauses["end_s"].copy()
        self._hops_left, self._work_left, self._pauses_left = len(hops), len(work), len(pauses)
        """Rows that have not been passed; what happens later has come after them."""
        self._now_s = float(of_round["end_s"])
        self._cell, self._client = NOWHERE, int(of_round["closed_by"])
        self._found: list[Piece] = []

    def back(self) -> list[Piece]:
        """From the round's end to its begin."""
        while self._now_s > self._start_s:
            self._from_server()
        return self._found[::-1]

    # -- why a server went on now --------------------------------------------------------------------------------------

    def _from_server(self) -> None:
        """A server began something now: it had paused until now, a journey has come home, or nothing is known."""
        pauses = self._pauses_now()
        own = pauses[self._pauses["site"][pauses] == self._cell]
        if len(own) and self._pauses["kind"][own[-1]] != Pause.OUTAGE:
            self._pass_pause(int(own[-1]))
            return
        home = self._journeys_home()
        if home is None and len(pauses):
            self._pass_pause(int(pauses[-1]))
        elif home is None:
            self._pass_nothing()
        elif home[0] == "hop":
            self._pass_transfer(home[1])
        else:
            self._pass_work(home[1])

    def _pauses_now(self) -> npt.NDArray[np.int64]:
        return self._ending_now(self._pause_ends, self._pauses_left)

    def _journeys_home(self) -> tuple[str, int] | None:
        """What may have told a server to go on: the row of a hop, or of a training, that ends now.

        First whatever the client does that was waited for; then what has come up in the same cell, or to the cloud, and
        a model that has come down to this station; what has come up anywhere, what has come down, a training that
        nobody reports, and last what was given up. Of several alike it is the one that ended last.
        """
        rows = self._ending_now(self._hop_ends, self._hops_left)
        hops = self._hops
        up, start_s = hops["uplink"][rows], hops["start_s"][rows]
        mine, given_up = hops["client"][rows] == self._client, hops["outcome"][rows] == Outcome.CANCELLED
        rows_of_work = self._ending_now(self._work_ends, self._work_left)
        my_work = rows_of_work[self._work["client"][rows_of_work] == self._client]
        took_time = start_s < self._now_s  # the server itself has just sent what comes down in no time
        wired = (hops["client"][rows] == SERVERS) & ~hops["access"][rows]
        here = np.where(wired & up, NOWHERE, self._sites[rows]) == self._cell
        pauses = self._pauses_now()
        if self._client >= 0 and len(found := rows[mine & (up | took_time) & ~given_up]):
            return "hop", int(found[-1])
        if self._client >= 0 and len(my_work):
            return "work", int(my_work[-1])
        for some in (up & here & ~given_up, wired & ~up & took_time & here & ~given_up, up & ~given_up):
            if len(found := rows[some]):
                return "hop", int(found[-1])
        if len(pauses):
            return None
        if len(found := rows[took_time & ~given_up]):
            return "hop", int(found[-1])
        if len(rows_of_work):
            return "work", int(rows_of_work[-1])
        return ("hop", int(rows[took_time][-1])) if took_time.any() else None

    # -- the pieces ----------------------------------------------------------------------------------------------------

    def _pass_pause(self, row: int) -> None:
        self._pauses_left = row
        pause = self._pauses[row]
        self._cell = int(pause["site"])
        self._add(_OF_PAUSE[Pause(pause["kind"])], float(pause["start_s"]))

    def _pass_nothing(self) -> None:
        """Back to the last thing that happened before."""
        before = self._start_s
        for ends_s, left in (
            (self._hop_ends, self._hops_left),
            (self._work_ends, self._work_left),
            (self._pause_ends, self._pauses_left),
        ):
            number = int(np.searchsorted(ends_s[:left], self._now_s, side="left"))
            before = max(before, float(ends_s[number - 1]) if number else before)
        self._add(Part.IDLE, before)

    def _pass_transfer(self, row: int) -> None:
        """A message, hop by hop, and the training before it where it comes from a client."""
        while True:
            hop = self._hops[row]
            self._hops_left = row
            self._pass_hop(hop)
            if self._now_s <= self._start_s:
                return
            rows = self._ending_now(self._hop_ends, row)
            before = rows[self._transfers[rows] == hop["transfer"]]
            if not len(before):
                break
            row = int(before[-1])
        if hop["client"] == SERVERS and hop["uplink"]:
            self._cell = int(self._sites[row])  # it is this station that had waited for the client, if anybody had
            return
        client = self._client = int(hop["client"])
        self._cell = int(hop["link"]) if hop["access"] else NOWHERE
        if hop["uplink"]:
            rows = self._ending_now(self._work_ends, self._work_left)
            mine = rows[self._work["client"][rows] == client]
            if len(mine):
                self._pass_work(int(mine[-1]))
        else:
            self._client = SERVERS

    def _pass_hop(self, hop: np.void) -> None:
        client, link, uplink = int(hop["client"]), int(hop["link"]), bool(hop["uplink"])
        begun_s = float(hop["start_s"] + hop["queued_s"])
        sending = Part.AIRTIME if hop["access"] else Part.BACKHAUL
        self._add(sending, min(begun_s, self._now_s), client, link, uplink)
        self._add(Part.QUEUEING, float(hop["start_s"]), client, link, uplink)

    def _pass_work(self, row: int) -> None:
        """A training, what its device waited for before it, and how what it needs has come down."""
        self._work_left = row
        client = self._client = int(self._work["client"][row])
        self._add(Part.WORK, float(self._work["start_s"][row]), client)
        self._add(Part.SAMPLES, float(self._work["asked_s"][row]), client)
        if self._now_s <= self._start_s:
            return
        rows = self._ending_now(self._hop_ends, self._hops_left)
        mine = rows[(self._hops["client"][rows] == client) & ~self._hops["uplink"][rows]]
        if len(mine):
            self._pass_transfer(int(mine[-1]))
        else:
            self._client = SERVERS  # nothing came down: a server told it to begin, which takes no time

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _ending_now(self, ends_s: npt.NDArray[np.float64], left: int) -> npt.NDArray[np.int64]:
        """The rows that end in this instant, of the first so many."""
        first, behind = np.searchsorted(ends_s[:left], [self._now_s, np.nextafter(self._now_s, np.inf)]).tolist()
        return np.arange(first, behind)

    def _add(
        self, part: Part, start_s: float, client: int = SERVERS, link: int = NOWHERE, uplink: bool = False
    ) -> None:
        """From *start_s* until now; what was before the round is left out."""
        start_s = max(min(start_s, self._now_s), self._start_s)
        if start_s < self._now_s:
            self._found.append(Piece(self._number, part, start_s, self._now_s, client, link, uplink))
        self._now_s = start_s
