"""How loaded a network was: what a run's table of links says about each channel, as means over seeds, and its colours.

A wire has a channel in each direction. A cell has two as well, or one that both share. A channel's load is its
utilisation, as `fedsim.metrics.tables` defines it. Where each sender has a channel of its own (`dedicated`), nothing is
shared that could be full: there is no utilisation, and when no cell has one, or no time passed, all loads are bytes.
A darker channel is a fuller one, for the colour-blind and in grey: magma, by N. Smith and S. van der Walt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_rgba
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from fedsim.errors import UserError
from fedsim.network.disciplines.dedicated import Dedicated
from fedsim.network.settings import NetworkSettings
from fedsim.viz.human import number, size
from fedsim.viz.names import shortened
from fedsim.viz.topology_map.hues import Colour
from fedsim.viz.topology_map.places import Net

__all__ = ["IDLE", "UNSHARED", "Load", "Loads", "Measured", "measured"]

Load = float | None
"""Utilisation (1 is all the time) or bytes; NaN where there is no utilisation; None where nothing was sent."""
IDLE, UNSHARED = to_rgba("#ffffff"), to_rgba("#8d959d")
"""Where nothing was sent, and where nothing can be full."""
_COLOURS = ListedColormap(colormaps["magma_r"](np.linspace(0.06, 0.86, 256)), name="load")  # no too pale nor dark ends


@dataclass(frozen=True)
class Loads:
    """One protocol's loads."""

    air: dict[str, tuple[Load, ...]]
    """By base station: of uplink and downlink, or one for both where they share a channel."""
    wires: dict[tuple[str, str], Load]
    """By sender and receiver."""


class Measured:
    """The loads of all protocols of a run, on one scale, which ends at 1, 2 or 5 times a power of ten."""

    def __init__(self, quantity: Literal["utilisation", "bytes"], by_protocol: dict[str, Loads]) -> None:
        self.quantity, self.by_protocol = quantity, by_protocol
        channels = [*chain(*((*chain(*loads.air.values()), *loads.wires.values()) for loads in by_protocol.values()))]
        known = [load for load in channels if load is not None and not math.isnan(load)]
        self.has_idle, self.has_unshared = None in channels, any(load != load for load in channels)
        """Whether something sent nothing, and whether some channel has no utilisation."""
        largest = max(known, default=0.0) or 1.0
        power = 10.0 ** math.floor(math.log10(largest))
        ceiling = next((step * power for step in (1, 2, 5) if largest <= step * power), 10 * power)
        self.scale, self.ticks = ScalarMappable(Normalize(0.0, ceiling), _COLOURS), MaxNLocator(5)
        self.label = "sent" if quantity == "bytes" else "utilisation, %"
        self.format = EngFormatter("B") if quantity == "bytes" else FuncFormatter(lambda load, _: f"{100 * load:g}")
        """Of the scale: where it has marks, what it is called, and what the marks say."""

    def colour(self, load: Load) -> Colour:
        """White where nothing was sent, grey where nothing can be full."""
        if load is None or math.isnan(load):
            return IDLE if load is None else UNSHARED
        red, green, blue, opacity = _COLOURS(load / self.scale.get_clim()[1])
        return red, green, blue, opacity

    def busiest(self, protocol: str, longest_name: int) -> str:
        """A line about the busiest cell of *protocol* and one about the busiest wire, with names of so many letters."""
        loads, lines = self.by_protocol[protocol], []
        cells = [((station,), load) for station, channels in loads.air.items() for load in channels]
        for kind, channels in (("cell", cells), ("wire", loads.wires.items())):
            known = [(load, ends) for ends, load in channels if load is not None and not math.isnan(load)]
            if known:
                load, ends = max(known, key=lambda channel: channel[0])
                text = f"{number(100 * load)} %" if self.quantity == "utilisation" else size(load)
                lines.append(f"busiest {kind}: {' to '.join(shortened(name, longest_name) for name in ends)}, {text}")
        return "\n".join(lines)


def measured(links: pd.DataFrame, net: Net, network: NetworkSettings, server: str) -> Measured:
    """What the table *links* of a run on *net*, under the settings *network*, says about every protocol.

    *server* holds the global model: uplink is the direction towards it. Raises `UserError` when the links are not those
    of *net*.
    """
    known = set(links["link"])
    ordered = ((a, b) if f"{a} -- {b}" in known else (b, a) for a, b in net.wires.edges)
    wires = {f"{a} -- {b}": (a, b) for a, b in ordered}
    settings = {f"cell {station}": network.cells.get(station, network.cell) for station in net.cells}
    if strange := known - {*settings, *wires}:
        raise UserError(f"the run used {min(strange)!r}, which this topology does not have")
    if missing := {*settings, *wires} - known:
        raise UserError(f"the run did not have {min(missing)!r}, which is in this topology")
    own = {cell for cell, its in settings.items() if isinstance(its.discipline, Dedicated)}
    means = links.groupby(["protocol", "link", "direction"], sort=False)[["utilisation", "bytes"]].mean()
    in_bytes = len(own) == len(settings) or bool(means["utilisation"].isna().any())
    if network.link is not None and isinstance(network.link.discipline, Dedicated):
        own |= wires.keys()
    sent, loads = means["bytes"].to_dict(), means["bytes" if in_bytes else "utilisation"].to_dict()

    def load(protocol: str, link: str, *directions: str) -> Load:
        channel = [(protocol, link, direction) for direction in directions]
        if sum(sent[part] for part in channel) == 0:
            return None
        return math.nan if not in_bytes and link in own else float(sum(loads[part] for part in channel))

    hops, both = nx.single_source_shortest_path_length(net.wires, server), ("uplink", "downlink")
    up = {link: (a, b) if hops[b] <= hops[a] else (b, a) for link, (a, b) in wires.items()}
    by_protocol = {}
    for protocol in map(str, links["protocol"].unique()):
        air: dict[str, tuple[Load, ...]] = {}
        for station, (cell, its) in zip(net.cells, settings.items(), strict=True):
            channels = [both] if its.duplex == "shared" else [(way,) for way in both]
            air[station] = tuple(load(protocol, cell, *channel) for channel in channels)
        ways = {way: load(protocol, link, "uplink") for link, way in up.items()}
        ways |= {way[::-1]: load(protocol, link, "downlink") for link, way in up.items()}
        by_protocol[protocol] = Loads(air, ways)
    return Measured("bytes" if in_bytes else "utilisation", by_protocol)
