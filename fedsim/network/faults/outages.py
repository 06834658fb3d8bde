"""Failures and repairs as they happen on the clock: links close and open, devices go and come back.

What fails in an instant fails at its end: a message whose last bit is sent then, or work that is done then, is through.
A link is closed while it, or a node at one of its ends, has failed. What is lost with a failing device is what it is
sending or receiving over the air; a message that is on a wire goes on, and is lost at the air if the device is still
away when it gets there. What fails for ever takes with it what is on its links, and whatever comes later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from simpy import Environment, Event

from fedsim.errors import Misfit, nearest, some
from fedsim.kernel.gather import at_the_end_of
from fedsim.kernel.streams import Streams
from fedsim.network.attachment import Attachment, Backbone
from fedsim.network.faults.settings import FaultsSettings, RandomFaults, ScheduledFault
from fedsim.network.hop import Link
from fedsim.network.network import Network, Patience
from fedsim.network.wires import Wires
from fedsim.topology.checks import NodeKind, of_kind
from fedsim.topology.graph import Topology

__all__ = ["Fate", "Outages"]

KINDS = {
    "sensors": NodeKind.SENSOR,
    "base_stations": NodeKind.BASE_STATION,
    "edges": NodeKind.EDGE,
    "clouds": NodeKind.CLOUD,
}


class Fate(StrEnum):
    """Why a sensor can never be reached again."""

    FAILED = "failed"
    UNCOVERED = "out of coverage"
    CUT_OFF = "cut off by a failure on the way"


@dataclass(frozen=True)
class _Part:
    """What fails together: a wire; a node's links; or a device."""

    links: tuple[Link, ...] = ()
    device: Attachment | None = None


class Outages:
    """All that fails in one simulated world."""

    def __init__(
        self,
        env: Environment,
        streams: Streams,
        settings: FaultsSettings,
        topology: Topology,
        wires: Wires,
        network: Network,
    ) -> None:
        self._env = env
        self._network = network
        self._streams = streams
        self._settings = settings
        self._topology = topology
        self._wires = wires
        self._devices = {attachment.sensor: attachment for attachment in wires.attachments}
        self._failures: Counter[Link | Attachment] = Counter()
        """How many failures there are now, of each link and device."""
        self._gone = wires.gone
        self._dead: set[Attachment] = set()
        """Devices that have failed for ever."""
        self.changed: Event = Event(env)
        """Happens when a sensor may have become reachable or free, or be lost for ever; then there is a new one."""
        self.on_device_failure: Callable[[Attachment], None] = lambda _: None
        """What else happens when a device fails."""
        self._patience = Patience(
            env,
            network,
            "things failed",
            "let them fail less often (every_s, mean_up_s), or give higher rates",
        )
        for position, fault in enumerate(settings.scheduled):
            self._plan(fault, ("scheduled", position))
        for position, faults in enumerate(settings.random):
            self._expect(faults, position)

    def fate(self, attachment: Attachment, station: Backbone | None = None) -> Fate | None:
        """Why a sensor can never be reached again, by the way that its messages take now; None when it can.

        Messages come from the cloud, over the wires behind its own base station. If *station* is given, they come from
        there, and then the wires behind that one count as well.
        """
        if attachment in self._dead:
            return Fate.FAILED
        if not attachment.covered:
            return Fate.UNCOVERED
        ways = {attachment.backbone, station or attachment.backbone}
        cut_off = attachment.air_uplink.link in self._gone or any(way.crosses(self._gone) for way in ways)
        return Fate.CUT_OFF if cut_off else None

    def _plan(self, fault: ScheduledFault, key: tuple[str, int]) -> None:
        part = self._node(fault.node, *key, "node") if fault.node is not None else self._wire(fault.link, *key, "link")

        def fail(_: Event) -> None:
            self._fail(part, fault.lasts_s)
            if fault.for_s is not None:
                self._later(fault.for_s, lambda _: self._repair(part))
            if fault.every_s is not None:
                self._later(fault.every_s, fail)

        self._later(fault.at_s, fail)

    def _expect(self, faults: RandomFaults, position: int) -> None:
        parts = self._parts(faults, position)
        self._patience.expect(len(parts))
        for index, part in parts:
            self._expect_next(faults, part, f"faults/{position}/{faults.of}", index, 0)

    def _expect_next(self, faults: RandomFaults, part: _Part, purpose: str, index: int, use: int) -> None:
        rng = self._streams(purpose, index, use).generator()
        up_s = float(rng.exponential(faults.mean_up_s))
        down_s = math.inf if math.isinf(faults.mean_down_s) else float(rng.exponential(faults.mean_down_s))

        def fail(_: Event) -> None:
            self._fail(part, down_s)
            if math.isfinite(down_s):
                self._later(down_s, repair)

        def repair(_: Event) -> None:
            self._repair(part)
            self._expect_next(faults, part, purpose, index, use + 1)

        self._later(up_s, fail)

    def _later(self, delay_s: float, action: Callable[[Event], None]) -> None:
        at_the_end_of(self._env, delay_s).callbacks.append(action)

    def _fail(self, part: _Part, lasts_s: float) -> None:
        self._patience.count_change()
        for_ever = math.isinf(lasts_s)
        for link in part.links:
            self._failures[link] += 1
            if for_ever:
                self._gone.add(link)
            self._close(link)
        if part.device is not None:
            self._failures[part.device] += 1
            if for_ever:
                self._dead.add(part.device)
            self._switch_off(part.device)
        self._reroute(part)
        if for_ever:
            self.tell()

    def _repair(self, part: _Part) -> None:
        for link in part.links:
            self._failures[link] -= 1
            if not self._failures[link]:
                link.closed = link.refuses = False
                self._wires.shut.discard(link)
                for channel in dict.fromkeys(link.channels):
                    channel.resume()
        if part.device is not None:
            self._failures[part.device] -= 1
            if not self._failures[part.device]:
                part.device.on = True
                for hop in part.device.air:
                    hop.device_failed = False
                    hop.closed = not part.device.covered and hop.rate_bps == 0
        self._reroute(part)
        if part.device is None or part.device.reachable:
            self.tell()

    def _close(self, link: Link) -> None:
        rule = "lose" if link in self._gone else self._settings.messages
        if not link.closed:
            for channel in dict.fromkeys(link.channels):
                channel.pause()
        link.closed = True
        if not link.access:
            self._wires.shut.add(link)
        link.refuses = rule == "lose"
        for transfer in self._network.on_link(link):
            if rule == "lose":
                transfer.fail()
            elif rule == "restart":
                transfer.repeat()

    def _switch_off(self, device: Attachment) -> None:
        device.on = False
        for hop in device.air:
            hop.closed = hop.device_failed = True
        for transfer in self._network.on_hops(device.air):
            transfer.fail()
        self.on_device_failure(device)

    def _reroute(self, part: _Part) -> None:
        if part.links and self._settings.routing == "around_outages":
            self._wires.reroute()

    def tell(self) -> None:
        """Somebody may have become reachable, or never will be again."""
        changed, self.changed = self.changed, Event(self._env)
        changed.succeed()

    def _parts(self, faults: RandomFaults, position: int) -> list[tuple[int, _Part]]:
        if faults.of == "wires":
            return [(link.index, _Part((link,))) for link in self._wires.links if not link.access]
        nodes, wanted = of_kind(KINDS[faults.of], self._topology.graph), faults.of.replace("_", " ")
        if not nodes:
            others = [of for of, kind in KINDS.items() if of_kind(kind, self._topology.graph)]
            problem = f"of={faults.of!r} means nodes of kind {str(KINDS[faults.of])!r}, and the topology has none"
            raise Misfit(f"{problem}; name one of {', '.join(others)}, wires", "random", position, "of")
        for name in faults.only:
            kind = self._kind(name, "random", position, "only")
            if kind != KINDS[faults.of]:
                problem = f"{name!r} is of kind {kind}, and these are failures of {wanted}; give it an entry of its own"
                raise Misfit(problem, "random", position, "only")
        return [(i, self._node(name)) for i, name in enumerate(nodes) if not faults.only or name in faults.only]

    def _node(self, name: str, *key: str | int) -> _Part:
        if self._kind(name, *key) == NodeKind.SENSOR:
            return _Part(device=self._devices[name])
        neighbours = self._topology.infrastructure[name]
        wires = sorted(
            (self._wires.wire(name, other) for other in neighbours), key=attrgetter("index")
        )  # however they are listed
        cell = [self._wires.cells[name].link] if name in self._wires.cells else []
        return _Part((*cell, *wires))

    def _wire(self, ends: tuple[str, str] | None, *key: str | int) -> _Part:
        assert ends is not None
        kinds = [self._kind(name, *key) for name in ends]
        others = list(self._topology.infrastructure.adj.get(ends[0], ()))
        if ends[1] not in others:
            way_out = f"{ends[0]!r} has wires to {some(others)}"
            if NodeKind.SENSOR in kinds:
                way_out = "where there is air, name the node that fails"
            raise Misfit(f"the topology has no wire between {ends[0]!r} and {ends[1]!r}; {way_out}", *key)
        return _Part((self._wires.wire(*ends),))

    def _kind(self, name: str, *key: str | int) -> NodeKind:
        graph = self._topology.graph
        if name not in graph:
            raise Misfit(f"the topology has no node {name!r}{nearest(name, graph)}", *key)
        kind: NodeKind = graph.nodes[name]["kind"]
        return kind
