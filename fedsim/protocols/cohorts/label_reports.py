"""What clients tell of their data: how many samples of each class the next training would see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsim.data.captures import Capture, classes_seen
from fedsim.errors import Misfit
from fedsim.kernel.trip import Trip
from fedsim.network.attachment import Backbone
from fedsim.network.bundle import bundled, may_be_bundled
from fedsim.network.hop import Hop
from fedsim.protocols.site import Site
from fedsim.protocols.world import SERVERS, Client, World

__all__ = [
    "BYTES_PER_COUNT",
    "Counts",
    "check_that_there_are_classes",
    "next_capture",
    "next_counts",
    "report_to_cloud",
    "reports_to_station",
]

BYTES_PER_COUNT = 4

Counts = npt.NDArray[np.int64]
"""(classes,) samples of each class, or level of numbers."""


def check_that_there_are_classes(world: World, what: str, way: str, *key: str) -> None:
    """Raise `Misfit` under *key*, with a *way* out, where *what* goes by classes, and there are none, and no levels."""
    if world.dataset.counted_classes is None:
        numbers = "has numbers to predict, without levels (docs/grouping.md)"
        why = numbers if world.dataset.regression else "declares numbers only"
        goes = f"{what} goes by the classes of samples, and data set {world.dataset.name!r} {why}"
        raise Misfit(f"{goes}; {way}", *key)


def next_capture(world: World, client: Client, round_number: int) -> Capture | None:
    """What *client* would train on now; None: all of its own samples."""
    return None if client.stream is None else client.stream.capture(world.env.now, round_number)


def next_counts(world: World, client: Client, round_number: int) -> Counts:
    """The class counts of `next_capture`."""
    return classes_seen(world.dataset, client.index, next_capture(world, client, round_number), world.streams)


def report_to_cloud(world: World, client: Client, counts: Counts) -> Generator[Any, Any, tuple[int, Counts]]:
    """*counts* go up to the cloud; returns the client's index with them."""
    yield world.network.send(client.index, client.uplink, float(BYTES_PER_COUNT * len(counts)))
    return client.index, counts


def reports_to_station(site: Site, clients: Sequence[Client], size_bytes: float, *, together: bool) -> list[Trip]:
    """The reports of *clients* on their way to their station; each trip's value are those whose report has arrived.

    *together*: those of one cell are one message, where nothing can be lost on the way.
    """
    world, cells = site.world, defaultdict[Backbone, list[Client]](list)
    for client in clients:
        cells[client.attachment.backbone].append(client)
    trips: list[Trip] = []
    for some in cells.values():
        _, up = site.way(some[0])
        assert up is not None
        wires, hops = up[1:], [client.attachment.air_uplink for client in some]
        if together and may_be_bundled((*hops, *wires)):
            trips.append(Trip(world.env, _sent(world, some, SERVERS, (bundled(hops), *wires), size_bytes), of=some))
            continue
        for client, hop in zip(some, hops, strict=True):
            trips.append(world.start(client, _sent(world, [client], client.index, (hop, *wires), size_bytes)))
    return trips


def _sent(
    world: World, clients: Sequence[Client], sender: int, way: Sequence[Hop], size_bytes: float
) -> Generator[Any, Any, Sequence[Client]]:
    yield world.network.send(sender, way, size_bytes, messages=len(clients))
    return clients
