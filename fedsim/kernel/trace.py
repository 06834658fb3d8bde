"""Only the trace remembers: what happened on the simulated clock, as columns that stay cheap at a million rows.

Rows are packed as they come, into blocks that numpy reads; metrics are computed from them afterwards. The trace
holds indices, never labels, so renaming a client changes nothing in it. It never holds anything learned.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["AT_DEADLINE", "NOBODY", "Outcome", "Pause", "Table", "Trace"]


class Outcome(IntEnum):
    """How a hop or a piece of work ended."""

    ARRIVED = 0
    """It came through (a hop) or was finished (work)."""
    LOST = 1
    """Every allowed attempt failed."""
    CANCELLED = 2
    """It was given up before its end, for example because its round was over."""
    IN_FLIGHT = 3
    """The simulation ended first. Never in a trace; only in the tables made from it."""


class Pause(IntEnum):
    """Why time passed at a server although no message that it waited for was on its way."""

    SERVER = 0
    """The server itself was at work: it aggregated, chose or grouped devices, or trained."""
    DEADLINE = 1
    """What was still missing had not come by the deadline: the time since the last journey that had ended."""
    SAMPLES = 2
    """Samples had not been measured yet."""
    OUTAGE = 3
    """Nobody could be reached."""


NOBODY = -1
"""What closed a round that waited for nothing, or whose protocol does not say what it waited for."""
AT_DEADLINE = -2
"""What closed a round that waited until its deadline."""

CODES = {"i8": "q", "i4": "i", "i1": "b", "f8": "d", "?": "?"}
"""The `struct` codes of numpy's types: rows are packed as numpy reads them, and cost no more memory than that."""


class Table:
    """Append-only rows of one kind, kept as blocks of a numpy structured array."""

    BLOCK_ROWS = 1 << 15

    def __init__(self, columns: list[tuple[str, str]]) -> None:
        self._dtype = np.dtype(columns)
        self._packed = struct.Struct("=" + "".join(CODES[kind] for _, kind in columns)).pack
        self._blocks: list[np.ndarray] = []
        self._buffer = bytearray()  # the rows since the last block
        self._block_bytes = self.BLOCK_ROWS * self._dtype.itemsize
        self._rows_in_blocks = 0

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The type of a row."""
        return self._dtype

    def append(self, row: tuple[float, ...]) -> None:
        """Add one row: a number for each column, a whole one where the column is."""
        self._buffer += self._packed(*row)
        if len(self._buffer) >= self._block_bytes:
            self._pack()

    def __len__(self) -> int:
        """How many rows have been appended so far."""
        return self._rows_in_blocks + len(self._buffer) // self._dtype.itemsize

    def array(self) -> npt.NDArray[np.void]:
        """All rows as one structured array, in the order in which they were appended."""
        self._pack()
        if len(self._blocks) != 1:
            self._blocks = [np.concatenate(self._blocks) if self._blocks else np.empty(0, self._dtype)]
        return self._blocks[0]

    def column(self, name: str) -> npt.NDArray[Any]:
        """One column of `array`, without the memory for the others."""
        self._pack()
        return np.concatenate([np.empty(0, self._dtype[name]), *(block[name] for block in self._blocks)])

    def blocks(self) -> Iterator[npt.NDArray[np.void]]:
        """The rows of `array`, in pieces."""
        self._pack()
        yield from self._blocks

    def _pack(self) -> None:
        if self._buffer:
            self._blocks.append(np.frombuffer(bytes(self._buffer), self._dtype))
            self._rows_in_blocks += len(self._blocks[-1])
            self._buffer = bytearray()


class Trace:
    """Everything that happened on one simulated clock."""

    def __init__(self) -> None:
        self.hops = Table(
            [
                ("transfer", "i8"),  # a message's way over all its hops
                ("client", "i4"),
                ("link", "i4"),
                ("uplink", "?"),  # towards the cloud
                ("access", "?"),  # the client's own hop, over the air or not
                ("start_s", "f8"),  # handed to the link
                ("end_s", "f8"),  # received at its far end, lost or given up
                ("queued_s", "f8"),  # of it, waiting for the link to be free
                ("airtime_s", "f8"),  # of it, being sent
                ("bytes", "f8"),  # put on the link: headers, every attempt
                ("retransmitted_bytes", "f8"),  # of them, sent again
                ("withdrawn_bytes", "f8"),  # handed to the link but given up before they were sent
                ("outcome", "i1"),
            ]
        )
        self.station_messages = Table(
            [
                ("transfer", "i8"),  # between the cloud and a base station
                ("site", "i4"),  # which one: the link of its cell
            ]
        )
        self.work = Table(
            [
                ("client", "i4"),
                ("asked_s", "f8"),  # the device was ready; from then on it waits for samples
                ("start_s", "f8"),
                ("end_s", "f8"),
                ("samples", "i8"),
                ("outcome", "i1"),
            ]
        )
        self.rounds = Table(
            [
                ("round", "i4"),
                ("start_s", "f8"),
                ("end_s", "f8"),
                ("selected", "i4"),
                ("participants", "i4"),  # whose update was used
                ("lost", "i4"),
                ("late", "i4"),
                ("hops", "i8"),  # rows of the table of hops when the round ended
                ("closed_by", "i4"),  # the client that the cloud waited for last, `AT_DEADLINE` or `NOBODY`
            ]
        )

        self.pauses = Table(
            [
                ("site", "i4"),  # where: the link of a base station's cell; -1: the cloud
                ("kind", "i1"),
                ("start_s", "f8"),
                ("end_s", "f8"),
            ]
        )
        self.groups = Table(
            [
                ("round", "i4"),  # in which they were drawn, formed anew or not
                ("group", "i4"),
                ("position", "i4"),  # in the order in which they train
                ("client", "i4"),
                ("selected", "?"),  # whether the group takes part
            ]
        )

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        return {
            "hops": self.hops,
            "station_messages": self.station_messages,
            "work": self.work,
            "rounds": self.rounds,
            "pauses": self.pauses,
            "groups": self.groups,
        }

    def digest(self) -> str:
        """A hash of every row of every table: equal traces, equal text."""
        digest = hashlib.blake2b(digest_size=16)
        for name, table in self.tables.items():
            digest.update(name.encode())
            for block in table.blocks():
                digest.update(block.tobytes())
        return digest.hexdigest()
