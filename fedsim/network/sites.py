"""Where sensors stand, as radios may know it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice

from fedsim.errors import UserError
from fedsim.kernel.streams import Streams
from fedsim.radio.settings import RadioSettings, Rates, SensorSite
from fedsim.topology.checks import NodeKind
from fedsim.topology.graph import Topology

__all__ = ["MANY", "by_radio", "first_rates", "sites_of"]

MANY = 4_096
"""Sites that are worked out at once: enough for one call to be quick for each, and few in memory."""


def sites_of(topology: Topology, streams: Streams, only: Iterable[int] | None = None) -> Iterator[SensorSite]:
    """Every sensor's site, in their order; or *only* those at these positions, in the order that is given."""
    nodes = topology.graph.nodes
    relays = topology.infrastructure.nodes(data=True)
    names = (name for name, node in relays if node["kind"] is NodeKind.BASE_STATION)
    stations = {name: position for position, name in enumerate(names)}
    for index in range(len(topology.sensors)) if only is None else only:
        sensor = topology.sensors[index]
        station = topology.cell_of(sensor)
        one, other = nodes[sensor]["position_m"], nodes[station]["position_m"]
        distance_m = None if one is None or other is None else math.dist(one, other)
        yield SensorSite(sensor, index, stations[station], distance_m, streams)


def by_radio(
    sites: Iterable[SensorSite], radio_of: Callable[[str], RadioSettings]
) -> list[tuple[RadioSettings, list[SensorSite]]]:
    """The different radios in the order of their first sensors, each with its sites; *radio_of* a sensor's name."""
    found: dict[int, tuple[RadioSettings, list[SensorSite]]] = {}
    for site in sites:
        radio = radio_of(site.sensor)
        if id(radio) not in found:
            found[id(radio)] = radio, []
        found[id(radio)][1].append(site)
    return list(found.values())


def first_rates(
    sites: Iterable[SensorSite], radio_of: Callable[[str], RadioSettings]
) -> Iterator[tuple[SensorSite, Rates | None]]:
    """Each of the *sites*, in their order, with its rates at time zero, asked for many of a radio at once.

    None where they cannot be known: whoever asks for one of these alone is told why.
    """
    coming = iter(sites)
    while some := list(islice(coming, MANY)):
        found: dict[int, Rates] = {}
        for radio, own in by_radio(some, radio_of):
            with suppress(UserError):
                for site, rates in zip(own, radio.rates_of(own), strict=True):
                    found[site.index] = rates
        for site in some:
            yield site, found.get(site.index)
