"""How loaded a network was: what a run's table of links says about each channel, as means over seeds.

A wire has a channel in each direction. A cell has two as well, or one that both share. A channel's load is its
utilisation, as `fedsim.metrics.tables` defines it. Where each sender has a channel of its own (`dedicated`), nothing is
shared that could be full: there is no utilisation, and when no cell has one, or no time passed, all loads are bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

import networkx as nx
import pandas as pd

from fedsim.errors import UserError
from fedsim.network.disciplines.dedicated import Dedicated
from fedsim.network.settings import NetworkSettings
from fedsim.viz.human import number, size
from fedsim.viz.names import shortened
from fedsim.viz.topology_map.places import Net

__all__ = ["Load", "Loads", "Measured", "measured"]

Where = TypeVar("Where")

Load = float | None
"""Utilisation (1 is all the time) or bytes; NaN where there is no utilisation; None where nothing was sent."""


@dataclass(frozen=True)
class Loads:
    """One protocol's loads."""

    air: dict[str, tuple[Load, ...]]
    """By base station: of uplink and downlink, or one for both where they share a channel."""
    wires: dict[tuple[str, str], Load]
    """By sender and receiver."""

    def cells(self) -> list[tuple[str, Load]]:
        """The channels of the air, each with its base station."""
        return [(station, load) for station, channels in self.air.items() for load in channels]


@dataclass(frozen=True)
class Measured:
    """The loads of all protocols of a run, on one scale."""

    quantity: Literal["utilisation", "bytes"]
    by_protocol: dict[str, Loads]

    def every(self) -> list[Load]:
        """The loads of all channels."""
        return [
            load
            for loads in self.by_protocol.values()
            for load in (*(load for _, load in loads.cells()), *loads.wires.values())
        ]

    def has_unshared(self) -> bool:
        """Whether some channel has no utilisation."""
        return any(load is not None and math.isnan(load) for load in self.every())

    def ceiling(self) -> float:
        """Where a scale for all these loads ends: 1, 2 or 5 times a power of ten."""
        largest = max((load for load in self.every() if load is not None and load > 0), default=1.0)
        power = 10.0 ** math.floor(math.log10(largest))
        return next((step * power for step in (1, 2, 5) if largest <= step * power), 10 * power)

    def text(self, load: float) -> str:
        """A load in words.

        >>> Measured("utilisation", {}).text(0.4861), Measured("bytes", {}).text(2.5e6)
        ('48.6 %', '2.50 MB')
        """
        return f"{number(100 * load)} %" if self.quantity == "utilisation" else size(load)

    def busiest(self, protocol: str, longest_name: int) -> str:
        """A line about the busiest cell of *protocol* and one about the busiest wire, with names of so many letters."""
        loads = self.by_protocol[protocol]
        lines = []
        if (cell := _largest(loads.cells())) is not None:
            lines.append(f"busiest cell: {shortened(cell[0], longest_name)}, {self.text(cell[1])}")
        if (wire := _largest(loads.wires.items())) is not None:
            sender, receiver = (shortened(name, longest_name) for name in wire[0])
            lines.append(f"busiest wire: {sender} to {receiver}, {self.text(wire[1])}")
        return "\n".join(lines)


def measured(links: pd.DataFrame, net: Net, network: NetworkSettings, server: str) -> Measured:
    """What the table *links* of a run on *net*, under the settings *network*, says about every protocol.

    *server* holds the global model: uplink is the direction towards it. Raises `UserError` when the links are not those
    of *net*.
    """
    known = set(links["link"])
    wires = {_label(a, b): (a, b) if _label(a, b) in known else (b, a) for a, b in net.wires.edges}
    wires = {_label(*ends): ends for ends in wires.values()}
    _refuse_another_network(known, {_cell(station) for station in net.cells} | set(wires))
    settings = {station: network.cells.get(station, network.cell) for station in net.cells}
    own_air = {_cell(station) for station, cell in settings.items() if isinstance(cell.discipline, Dedicated)}
    own_wires = set(wires) if network.link is not None and isinstance(network.link.discipline, Dedicated) else set()
    means = links.groupby(["protocol", "link", "direction"], sort=False)[["utilisation", "bytes"]].mean()
    in_bytes = len(own_air) == len(settings) or bool(means["utilisation"].isna().any())
    put_bytes, loads = means["bytes"].to_dict(), means["bytes" if in_bytes else "utilisation"].to_dict()

    def load(protocol: str, link: str, *directions: str) -> Load:
        channel = [(protocol, link, direction) for direction in directions]
        if sum(put_bytes[part] for part in channel) == 0:
            return None
        if not in_bytes and link in own_air | own_wires:
            return math.nan
        return float(sum(loads[part] for part in channel))

    hops = nx.single_source_shortest_path_length(net.wires, server)
    by_protocol = {}
    for protocol in map(str, links["protocol"].unique()):
        air: dict[str, tuple[Load, ...]] = {}
        for station, cell in settings.items():
            channels = [("uplink", "downlink")] if cell.duplex == "shared" else [("uplink",), ("downlink",)]
            air[station] = tuple(load(protocol, _cell(station), *channel) for channel in channels)
        sent: dict[tuple[str, str], Load] = {}
        for link, (a, b) in wires.items():
            far, near = (a, b) if hops[b] <= hops[a] else (b, a)
            sent[far, near], sent[near, far] = load(protocol, link, "uplink"), load(protocol, link, "downlink")
        by_protocol[protocol] = Loads(air, sent)
    return Measured("bytes" if in_bytes else "utilisation", by_protocol)


def _cell(station: str) -> str:
    return f"cell {station}"


def _label(a: str, b: str) -> str:
    return f"{a} -- {b}"


def _refuse_another_network(known: set[str], expected: set[str]) -> None:
    if strange := known - expected:
        raise UserError(f"the run used {min(strange)!r}, which this topology does not have")
    if missing := expected - known:
        raise UserError(f"the run did not have {min(missing)!r}, which is in this topology")


def _largest(loads: Iterable[tuple[Where, Load]]) -> tuple[Where, float] | None:
    """The first of the largest loads that are known."""
    known = [(where, load) for where, load in loads if load is not None and not math.isnan(load)]
    return max(known, key=lambda entry: entry[1], default=None)
