"""Who is on the air at time zero of a seed, and over which radio, whether or not a run would take part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from fedsim.errors import Misfit, nearest
from fedsim.kernel.streams import Streams
from fedsim.network.radio_paths import MANY, by_radio, paths_of, surroundings_of
from fedsim.network.settings import CellSettings
from fedsim.radio.settings import ANYWHERE, Place, RadioPath, RadioSettings
from fedsim.scenario.schema import Scenario
from fedsim.topology.graph import Topology

__all__ = ["Air", "some_by_radio"]


def some_by_radio(
    paths: Iterable[RadioPath], radio_of: Callable[[str], RadioSettings]
) -> Iterator[tuple[RadioSettings, list[RadioPath]]]:
    """Some of the *paths* at a time, of one radio each: no more than are quickly worked out are in memory."""
    coming = iter(paths)
    while some := list(islice(coming, MANY)):
        yield from by_radio(some, radio_of)


class Air:
    """The air of a scenario on one seed. Devices without coverage are on it too: nothing is refused for their sake."""

    def __init__(self, scenario: Scenario, topology: Topology, seed: int) -> None:
        self._scenario, self._topology, self._streams = scenario, topology, Streams(seed)
        self._around = surroundings_of(topology, self._streams, self._place_of, self.radio_of)
        stations = set(map(topology.cell_of, topology.sensors))
        with scenario.about("network"):
            for name in scenario.network.cells:
                if name not in stations:
                    near = nearest(name, stations)
                    raise Misfit(f"describes {name!r}, which is no base station with sensors{near}", "cells", name)

    def cell(self, sensor: str) -> CellSettings:
        """The settings of the sensor's cell."""
        network = self._scenario.network
        return network.cells.get(self._topology.cell_of(sensor), network.cell)

    def radio_of(self, sensor: str) -> RadioSettings:
        """The radio of its cell."""
        return self.cell(sensor).radio

    def paths(self, only: Iterable[int] | None = None) -> Iterator[RadioPath]:
        """Every sensor's way over the air, in their order; or *only* of those at these positions."""
        return paths_of(self._topology, self._streams, self._place_of, only, self._around)

    @contextmanager
    def about_radio_of(self, sensor: str) -> Iterator[None]:
        """What is found wrong inside is wrong with the radio of the sensor's cell, under its key in the scenario."""
        station = self._topology.cell_of(sensor)
        own = ("cells", station) if station in self._scenario.network.cells else ("cell",)
        with self._scenario.about("network", *own, "radio"):
            yield

    def _place_of(self, index: int) -> Place:
        """Where devices of its class stand; anywhere, if the scenario has no such class."""
        devices = self._scenario.devices
        named = self._topology.graph.nodes[self._topology.sensors[index]]["device"] or devices.default_class
        kind = devices.classes.get(named or "")
        return (kind and kind.place) or ANYWHERE
