"""From topology and network settings to links, channels and each sensor's hops."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from simpy import Environment

from fedsim.errors import Misfit, UserError, nearest
from fedsim.kernel.streams import Streams
from fedsim.network.attachment import Attachment, Backbone, Cuts, DeviceKind, Ways
from fedsim.network.cell import Cell
from fedsim.network.coverage import Coverage
from fedsim.network.disciplines.channel import Channel, Discipline
from fedsim.network.disciplines.serial import Serial
from fedsim.network.hop import Hop, Link, Medium
from fedsim.network.network import Network
from fedsim.network.packets import Loss
from fedsim.network.radio_paths import by_radio, first_rates, paths_of, surroundings_of
from fedsim.network.settings import NetworkSettings
from fedsim.radio.settings import Place, RadioPath, RadioSettings, Rates
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.routing import next_hops, steps_to

__all__ = ["Wires"]


class Wires:
    """All links of a network: a cell for each base station with sensors, and a link for each wire."""

    def __init__(
        self,
        env: Environment,
        topology: Topology,
        network: NetworkSettings,
        streams: Streams,
        kind_of: Callable[[int], DeviceKind] | None = None,
    ) -> None:
        """*kind_of* tells the kind of the n-th sensor; left out, its class is what the topology says."""
        self._env = env
        self._topology = topology
        self._network = network
        self._streams = streams
        self.server = _server(topology, network)
        self.links: list[Link] = []
        """In canonical order: cells in the order of their first sensor, then wires in the order of the topology."""
        self.cells: dict[str, Cell] = {}
        """By base station."""
        self.shut = Cuts()
        """The wires on which there is an outage now."""
        self.gone = Cuts()
        """The links that have failed for ever."""
        self._wire_hops: dict[tuple[str, str], Hop] = {}
        self._backbones: dict[str, Backbone] = {}
        self._media: dict[Hashable, Medium] = {}
        for sensor in topology.sensors:
            self._add_cell(topology.cell_of(sensor))
        self._check_cell_names()
        towards = topology.towards(self.server)
        for one, other, attributes in topology.infrastructure.edges(data=True):
            self._add_wire(one, other, attributes["rate_bps"], attributes["delay_s"])
        find = self._ways  # one method for all of them
        for station, cell in self.cells.items():
            self._backbones[station] = Backbone(find, station, towards, self.shut, cell.link.index)
        checked: set[int] = set()  # most cells share one radio
        for station, cell in self.cells.items():
            with self._about_radio(station):
                if id(cell.settings.radio) not in checked:
                    cell.settings.radio.check_sensors(topology.sensors)
            checked.add(id(cell.settings.radio))
        kind_of = self._kind_of = kind_of or self._kind_in_topology
        self._around = surroundings_of(topology, streams, self._place_of, self._radio_of)
        known = first_rates(self.paths(), self._radio_of)
        self.attachments = tuple(self._attach(path, rates, kind_of(path.index)) for path, rates in known)
        """In the order of the sensors."""
        if not any(attachment.covered for attachment in self.attachments):
            problem = "the air reaches none of the sensors, so nobody can take part"
            raise Misfit(f"{problem}; bring at least one of them into coverage", "cell", "radio")

    def paths(self, only: Iterable[int] | None = None) -> Iterator[RadioPath]:
        """Every sensor's way over the air, in their order; or *only* of those at these positions."""
        return paths_of(self._topology, self._streams, self._place_of, only, self._around)

    def let_rates_change(self, network: Network, on_change: Callable[[], None]) -> None:
        """What the radios announce for later comes true on *network*'s clock.

        *on_change* is told whenever a sensor comes into coverage, or has left it for ever.
        """
        if not any(cell.settings.radio.announces for cell in self.cells.values()):
            return
        coverage = Coverage(self._env, network, on_change)
        alone: list[RadioPath] = []
        for radio, paths in by_radio(self.paths(), self._radio_of):
            with self._about_radio(self._topology.cell_of(paths[0].sensor)):
                together = radio.changes_together(paths)
            if together is not None:
                coverage.follow_together([self.attachments[path.index] for path in paths], together)
            elif radio.announces:
                alone += paths
        for path in sorted(alone, key=attrgetter("index")):
            with self._about_radio(self._topology.cell_of(path.sensor)):
                coverage.follow(self.attachments[path.index], self._radio_of(path.sensor).changes(path))

    def used(self) -> list[Link]:
        """The wires between the base stations and the server when nothing has failed, each once."""
        towards = self._topology.towards(self.server)
        passed = {self.server}
        for station in self.cells:
            node = station
            while node not in passed:
                passed.add(node)
                node = towards[node]
        used = []
        for link in self.links:
            if not link.access:
                one, other = link.ends
                if (one in passed and towards.get(one) == other) or (other in passed and towards.get(other) == one):
                    used.append(link)
        return used

    def wire(self, one: str, other: str) -> Link:
        """The wire between two neighbours. Raises `KeyError` when there is none."""
        return self._wires.get((one, other)) or self._wires[other, one]

    def steps(self) -> list[int]:
        """How many wires there are between each base station and the server when nothing has failed."""
        return [self._steps[station] for station in self.cells]

    @cached_property
    def _wires(self) -> dict[tuple[str, ...], Link]:
        """By their ends, in the order of the topology: wanted only when something is sent or fails there."""
        return {link.ends: link for link in self.links if not link.access}

    @cached_property
    def _steps(self) -> dict[str, int]:
        """How many wires there are between each node and the server."""
        return steps_to(self.server, self._topology.towards(self.server))

    def path(self, *nodes: str) -> tuple[Hop, ...]:
        """The hops over the wires along *nodes*, for messages between servers."""
        return tuple(map(self._wire_hop, pairwise(nodes)))

    def reroute(self) -> None:
        """Lead every base station's traffic around the wires with an outage.

        Where there is no other way it stays, unless that way is gone for ever and another will be open again.
        """
        ways, waiting = self._towards_server(self.shut), None
        for station, backbone in self._backbones.items():
            if station in ways or station == self.server:
                backbone.lead(ways)
            elif backbone.crosses(self.gone):
                waiting = self._towards_server(self.gone) if waiting is None else waiting
                if station in waiting:
                    backbone.lead(waiting)

    def _towards_server(self, closed: Collection[Link]) -> dict[str, str]:
        shut = [link.ends for link in closed if not link.access]
        return next_hops(self._topology.infrastructure, self.server, closed_links=shut)

    def _ways(self, station: str, towards: Mapping[str, str]) -> Ways:
        way = [station]
        while way[-1] != self.server:
            way.append(towards[way[-1]])
        return self.path(*way), self.path(*reversed(way))

    def _add_cell(self, station: str) -> None:
        if station in self.cells:
            return
        settings = self._network.cells.get(station, self._network.cell)
        medium = self._media.get(id(settings))
        if medium is None:
            up_s, down_s = (settings.delay_s + access_s for access_s in settings.radio.access_delays_s)
            medium = self._media[id(settings)] = self._medium(
                settings.discipline,
                (max(up_s, down_s),) if settings.duplex == "shared" else (up_s, down_s),
                math.inf,
                settings.loss,
                settings.carriers,
            )
        link = self._new_link((station,), medium, access=True)
        self.cells[station] = Cell(link, settings)

    def _kind_in_topology(self, index: int) -> DeviceKind:
        return DeviceKind(self._topology.graph.nodes[self._topology.sensors[index]]["device"])

    def _place_of(self, index: int) -> Place:
        return self._kind_of(index).place

    def _radio_of(self, sensor: str) -> RadioSettings:
        return self.cells[self._topology.cell_of(sensor)].settings.radio

    def _attach(self, path: RadioPath, known: Rates | None, kind: DeviceKind) -> Attachment:
        station = self._topology.cell_of(path.sensor)
        cell = self.cells[station]
        radio = cell.settings.radio
        try:
            rates = radio.rates(path) if known is None else known
            uncovered = radio.why_no_coverage(path) if min(rates.uplink_bps, rates.downlink_bps) == 0 else None
            if uncovered is not None and not radio.excludes_uncovered:
                raise UserError(uncovered)
            if kind.duplex == "half" and radio.divides_time:
                raise UserError(
                    f"sensor {path.sensor!r} is of the half-duplex class {kind.name!r}, and the radio's rates contain "
                    "already that the two directions take turns (TDD), so it would be counted twice; leave duplex out "
                    "of the class, or name another class for the sensor"
                )
        except UserError as error:
            raise self._about(station, error) from error
        up, down = cell.hops(rates, kind)
        return Attachment(path.sensor, path.index, up, down, self._backbones[station], covered=uncovered is None)

    @contextmanager
    def _about_radio(self, station: str) -> Iterator[None]:
        """What goes wrong inside is about the key of the radio around *station*."""
        try:
            yield
        except UserError as error:
            raise self._about(station, error) from error

    def _about(self, station: str, error: UserError) -> Misfit:
        """*error*, about the key of the radio around *station*."""
        section = ("cells", station, "radio") if station in self._network.cells else ("cell", "radio")
        if isinstance(error, Misfit):
            return Misfit(error.problem, *section, *error.key)
        return Misfit(str(error), *section)

    def _add_wire(self, one: str, other: str, rate_bps: float | None, delay_s: float | None) -> None:
        medium = self._media.get((rate_bps, delay_s))
        if medium is None:
            medium = self._media[rate_bps, delay_s] = self._wire_medium(one, other, rate_bps, delay_s)
        self._new_link((one, other), medium, access=False)

    def _wire_medium(self, one: str, other: str, rate_bps: float | None, delay_s: float | None) -> Medium:
        default = self._network.link
        if rate_bps is None and default is None:
            way_out = "give it rate_bps in the topology, or set network.link.rate_bps"
            raise Misfit(f"the wire {one} -- {other} has no rate; {way_out}", "link")
        rate = rate_bps if rate_bps is not None else default.rate_bps if default else math.inf
        delay = delay_s if delay_s is not None else default.delay_s if default else 0.0
        loss = default.loss if default else Loss()
        return self._medium(default.discipline if default else Serial(), (delay, delay), rate, loss)

    def _wire_hop(self, ends: tuple[str, str]) -> Hop:
        """The wire from one node to another, made when a message first goes that way."""
        hop = self._wire_hops.get(ends)
        if hop is None:
            link, (one, other) = self.wire(*ends), ends
            far, near = self._steps[one], self._steps[other]
            upwards = far > near or (far == near and ends in self._wires)  # on a level, as the topology lists them
            hop = self._wire_hops[ends] = Hop(link, upwards, link.medium.rate_bps)
        return hop

    def _medium(
        self, discipline: Discipline, delays_s: tuple[float, ...], rate_bps: float, loss: Loss, carriers: int = 1
    ) -> Medium:
        """One channel for each of *delays_s*."""
        env = self._env

        def make() -> tuple[Channel, ...]:
            return tuple(discipline.make_channel(env, delay_s, carriers) for delay_s in delays_s)

        return Medium(make, discipline.shared_at_once, rate_bps, delays_s, loss, carriers)

    def _new_link(self, ends: tuple[str, ...], medium: Medium, *, access: bool) -> Link:
        link = Link(len(self.links), ends, access, medium)
        self.links.append(link)
        return link

    def _check_cell_names(self) -> None:
        for station in self._network.cells:
            if station not in self.cells:
                near = nearest(station, self.cells)
                raise Misfit(f"describes {station!r}, which is no base station with sensors{near}", "cells", station)


def _server(topology: Topology, network: NetworkSettings) -> str:
    """The node that holds the global model."""
    name = network.server
    if name is None:
        return topology.cloud
    if name not in topology.graph or topology.graph.nodes[name]["kind"] == NodeKind.SENSOR:
        choices = [node for node, of in topology.graph.nodes(data=True) if of["kind"] != NodeKind.SENSOR]
        raise Misfit(
            f"{name!r} must be a cloud, an edge server or a base station of the topology{nearest(name, choices)}",
            "server",
        )
    return name
