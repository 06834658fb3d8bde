"""The way over the air between each sensor and its base station, as radios may know it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice

from fedsim.errors import UserError
from fedsim.kernel.streams import Streams
from fedsim.radio.settings import ANYWHERE, Around, Place, RadioPath, RadioSettings, Rates
from fedsim.radio.surroundings import Surroundings
from fedsim.topology.checks import NodeKind
from fedsim.topology.graph import Topology

__all__ = ["MANY", "by_radio", "first_rates", "paths_of", "surroundings_of"]

MANY = 4_096
"""Paths that are worked out at once: enough for one call to be quick for each, and few in memory."""


def paths_of(
    topology: Topology,
    streams: Streams,
    place_of: Callable[[int], Place] = lambda _: ANYWHERE,
    only: Iterable[int] | None = None,
    around: Around | None = None,
) -> Iterator[RadioPath]:
    """Every sensor's path, in their order; or *only* those at these positions, in the order that is given.

    *place_of* tells how high and how deep the n-th sensor stands; *around* is what radios with interference ask.
    """
    nodes, sensors = topology.graph.nodes, topology.sensors
    for index in range(len(sensors)) if only is None else only:
        sensor, number = sensors[index], topology.station_of[index]
        one, other = nodes[sensor]["position_m"], nodes[topology.cell_of(sensor)]["position_m"]
        distance_m = None if one is None or other is None else math.dist(one, other)
        mast = topology.mast_of[number]
        yield RadioPath(sensor, index, number, mast, distance_m, streams, one, place_of(index), around)


def surroundings_of(
    topology: Topology,
    streams: Streams,
    place_of: Callable[[int], Place],
    radio_of: Callable[[str], RadioSettings],
) -> Around:
    """What knows the whole network, for radios with interference: *radio_of* tells a sensor's by its name."""

    def positions_m() -> list[tuple[float, float] | None]:
        relays = topology.infrastructure.nodes(data=True)
        return [node["position_m"] for _, node in relays if node["kind"] is NodeKind.BASE_STATION]

    return Surroundings(lambda: paths_of(topology, streams, place_of), radio_of, positions_m).margins_db


def by_radio(
    paths: Iterable[RadioPath], radio_of: Callable[[str], RadioSettings]
) -> list[tuple[RadioSettings, list[RadioPath]]]:
    """The different radios in the order of their first sensors, each with its paths; *radio_of* a sensor's name."""
    found: dict[int, tuple[RadioSettings, list[RadioPath]]] = {}
    for path in paths:
        radio = radio_of(path.sensor)
        if id(radio) not in found:
            found[id(radio)] = radio, []
        found[id(radio)][1].append(path)
    return list(found.values())


def first_rates(
    paths: Iterable[RadioPath], radio_of: Callable[[str], RadioSettings]
) -> Iterator[tuple[RadioPath, Rates | None]]:
    """Each of the *paths*, in their order, with its rates at time zero, asked for many of a radio at once.

    None where they cannot be known: whoever asks for one of these alone is told why.
    """
    coming = iter(paths)
    while some := list(islice(coming, MANY)):
        found: dict[int, Rates] = {}
        for radio, own in by_radio(some, radio_of):
            with suppress(UserError):
                for path, rates in zip(own, radio.rates_of(own), strict=True):
                    found[path.index] = rates
        for path in some:
            yield path, found.get(path.index)
