"""From topology and network settings to links, channels and each sensor's hops."""

from __future__ import annotations

import math

import networkx as nx
from simpy import Environment

from fedsim.errors import Misfit, nearest
from fedsim.network.disciplines.channel import Channel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Direction, Hop, Link
from fedsim.network.packets import Loss
from fedsim.network.settings import CellSettings, NetworkSettings
from fedsim.topology.graph import Topology
from fedsim.topology.kinds import NodeKind

__all__ = ["Wires"]


class Wires:
    """All links of a network: a cell for each base station with sensors, and a link for each wire."""

    def __init__(self, env: Environment, topology: Topology, network: NetworkSettings) -> None:
        self._env = env
        self._topology = topology
        self._network = network
        self.links: list[Link] = []
        """In canonical order: cells in the order of their first sensor, then wires in the order of the topology."""
        self._air: dict[str, dict[Direction, Hop]] = {}
        self._wire: dict[tuple[str, str], Hop] = {}
        for sensor in topology.sensors:
            self._add_cell(topology.cell_of(sensor))
        self._check_cell_names()
        for one, other, attributes in topology.graph.edges(data=True):
            if NodeKind.SENSOR not in (topology.graph.nodes[one]["kind"], topology.graph.nodes[other]["kind"]):
                self._add_wire(one, other, attributes["rate_bps"], attributes["delay_s"])

    def uplink(self, sensor: str) -> tuple[Hop, ...]:
        """The hops from *sensor* to the cloud."""
        _, *way = self._topology.route(sensor, self._topology.cloud)
        return (self._air[way[0]][Direction.UPLINK], *map(self._wire.__getitem__, nx.utils.pairwise(way)))

    def downlink(self, sensor: str) -> tuple[Hop, ...]:
        """The hops from the cloud to *sensor*."""
        *way, _ = self._topology.route(self._topology.cloud, sensor)
        return (*map(self._wire.__getitem__, nx.utils.pairwise(way)), self._air[way[-1]][Direction.DOWNLINK])

    def _add_cell(self, station: str) -> None:
        if station in self._air:
            return
        cell = self._network.cells.get(station, self._network.cell)
        link = self._new_link(f"cell {station}", access=True)
        rates = cell.radio.rates()
        up, down = self._channels(cell)
        self._air[station] = {
            Direction.UPLINK: Hop(link, Direction.UPLINK, up, rates.uplink_bps, cell.delay_s, cell.loss),
            Direction.DOWNLINK: Hop(link, Direction.DOWNLINK, down, rates.downlink_bps, cell.delay_s, cell.loss),
        }

    def _channels(self, cell: CellSettings) -> tuple[Channel, Channel]:
        up = cell.discipline.channel(self._env)
        return up, up if cell.duplex == "half" else cell.discipline.channel(self._env)

    def _add_wire(self, one: str, other: str, rate_bps: float | None, delay_s: float | None) -> None:
        default = self._network.link
        if rate_bps is None and default is None:
            way_out = "give it rate_bps in the topology, or set network.link.rate_bps"
            raise Misfit(f"the wire {one} -- {other} has no rate; {way_out}", "link")
        rate = rate_bps if rate_bps is not None else default.rate_bps if default else math.inf
        delay = delay_s if delay_s is not None else default.delay_s if default else 0.0
        loss = default.loss if default else Loss()
        link = self._new_link(f"{one} -- {other}", access=False)
        for ends in ((one, other), (other, one)):
            self._wire[ends] = Hop(link, self._direction(*ends), SerialChannel(self._env), rate, delay, loss)

    def _direction(self, source: str, target: str) -> Direction:
        towards_cloud = self._topology.route(source, self._topology.cloud)
        return Direction.UPLINK if target in towards_cloud else Direction.DOWNLINK

    def _new_link(self, label: str, *, access: bool) -> Link:
        link = Link(len(self.links), label, access)
        self.links.append(link)
        return link

    def _check_cell_names(self) -> None:
        for station in self._network.cells:
            if station not in self._air:
                near = nearest(station, self._air)
                raise Misfit(f"describes {station!r}, which is no base station with sensors{near}", "cells", station)
