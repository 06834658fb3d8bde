"""A trace as time-stamped text that a human can follow: a line for whatever begins or ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedsim.kernel.trace import Outcome
from fedsim.metrics.tables import transfers_table
from fedsim.protocols.world import World

Line = tuple[tuple[float, ...], str]
"""What it is sorted by (its time, its round, and its place there), and what is said."""


def timeline(world: World) -> str:
    """Everything in the world's trace, in the order of time, numbers in full precision."""
    lines = sorted([*_rounds(world), *_journeys(world)], key=lambda line: line[0])
    times = [repr(order[0]) for order, _ in lines]
    width = max(map(len, times)) + 2
    return "".join(f"{at:<{width}}{what}\n" for at, (_, what) in zip(times, lines, strict=True))


def _rounds(world: World) -> Iterator[Line]:
    for row in world.trace.rounds.array():
        number = int(row["round"])
        counts = f"{row['selected']} selected, {row['participants']} used, {row['lost']} lost, {row['late']} late"
        yield (float(row["start_s"]), number, 0), f"round {number} begins"
        yield (float(row["end_s"]), number, 2), f"round {number} ends: {counts}"


def _journeys(world: World) -> Iterator[Line]:
    """What each client sends, receives and does, in the order in which it happens to the client."""
    starts_s = world.trace.rounds.array()["start_s"]
    for client in world.clients:
        pieces = sorted([*_hops(world, client.index), *_work(world, client.index)], key=lambda piece: piece[0])
        for place, ((start_s, _, stage, _), texts) in enumerate(pieces):
            # A download begins with its round; what else begins in that instant belongs to the round before.
            number = max(1, int(np.searchsorted(starts_s, start_s, side="left" if stage else "right")))
            for at_s, what in texts:
                yield (at_s, number, 1, client.index, place), f"{client.name}  {what}"


Piece = tuple[tuple[float, ...], list[tuple[float, str]]]


def _hops(world: World, client: int) -> Iterator[Piece]:
    names = [client.name for client in world.clients]
    table = transfers_table(world.trace, list(world.network.in_flight), world.network.links, names)
    for row in table[table["client_index"] == client].itertuples():
        where = f"{'up' if row.direction == 'uplink' else 'down'}, {row.link}:"
        sent = f"{row.bytes!r} B in {row.airtime_s!r} s"
        if row.retransmitted_bytes:
            sent += f", {row.retransmitted_bytes!r} B of them again"
        texts = [(row.start_s, f"{where} offered")]
        if row.queued_s and row.airtime_s:
            texts.append((row.start_s + row.queued_s, f"{where} has waited {row.queued_s!r} s"))
        if row.outcome == "in_flight":
            texts.append((world.env.now, f"{where} still under way after {sent}"))
        elif row.outcome == "cancelled":
            texts.append((row.end_s, f"{where} given up after {sent}, {row.withdrawn_bytes!r} B not sent"))
        else:
            texts.append((row.end_s, f"{where} {row.outcome}, {sent}"))
        stage = 2 if row.direction == "uplink" else 0
        yield (row.start_s, texts[-1][0], stage, row.Index), texts


def _work(world: World, client: int) -> Iterator[Piece]:
    for row in world.trace.work.array():
        if row["client"] == client:
            start_s, end_s = float(row["start_s"]), float(row["end_s"])
            how = "done" if row["outcome"] == Outcome.ARRIVED else "given up"
            yield (start_s, end_s, 1, 0), [(start_s, f"work on {row['samples']} samples"), (end_s, f"work {how}")]
