"""A sensor's place in the network: its own air, and the wires behind its base station."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from fedsim.network.hop import Hop, Link
from fedsim.radio.settings import ANYWHERE, Duplex, Place

__all__ = ["Attachment", "Backbone", "Cuts", "DeviceKind", "Ways", "between"]


class Cuts(Collection[Link]):
    """Some links, and who is behind them.

    To look along each way by itself would take n * n / 4 steps in a ring of n factories. Here it takes n, and once more
    only after the links have changed.
    """

    def __init__(self) -> None:
        self._links: dict[Link, None] = {}
        self._behind: dict[int, tuple[Mapping[str, str], set[str]]] = {}
        """By the identity of a mapping that says for each node the next one: that mapping, and who is behind a link."""

    def add(self, link: Link) -> None:
        """It is one of them."""
        self._links[link] = None
        self._behind.clear()

    def discard(self, link: Link) -> None:
        """It is none of them any more."""
        self._links.pop(link, None)
        self._behind.clear()

    def on_the_way(self, node: str, towards: Mapping[str, str]) -> bool:
        """Whether one of them is a wire on the way of *node*, which leads from each node to the next one *towards* the
        server; nodes that are nearer to the server come first in *towards*."""
        if not self._links:
            return False
        if id(towards) not in self._behind:
            wires = [link.ends for link in self._links if not link.access]
            steps = {step for one, other in wires for step in ((one, other), (other, one))}
            behind: set[str] = set()
            for farther, nearer in towards.items():
                if nearer in behind or (farther, nearer) in steps:
                    behind.add(farther)
            self._behind[id(towards)] = towards, behind
        return node in self._behind[id(towards)][1]

    def __contains__(self, link: object) -> bool:
        return link in self._links

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)


Ways = tuple[tuple[Hop, ...], tuple[Hop, ...]]
WayFinder = Callable[[str, Mapping[str, str]], Ways]


class Backbone:
    """The wires between a base station and the server, as they are used now.

    *find* returns them, uplink and downlink, for *station* and for each node the next one *towards* the server, when
    they are first asked for: in a ring of n factories all ways together have n * n / 4 wires, and most stations of a
    large network send in no round. *shut* are all wires with an outage.
    """

    __slots__ = ("_find", "_shut", "_station", "_towards", "_ways", "cell")

    def __init__(self, find: WayFinder, station: str, towards: Mapping[str, str], shut: Cuts, cell: int = -1) -> None:
        self.cell = cell
        """The index of the station's own cell among all links."""
        self._find = find
        self._station = station
        self._shut = shut
        self.lead(towards)

    def lead(self, towards: Mapping[str, str]) -> None:
        """From now on its traffic goes from each node to the next one *towards* the server."""
        self._towards = towards
        self._ways: Ways | None = None

    @property
    def ways(self) -> Ways:
        """The hops to the server, and those back."""
        if self._ways is None:
            self._ways = self._find(self._station, self._towards)
        return self._ways

    @property
    def uplink(self) -> tuple[Hop, ...]:
        """The hops to the server."""
        return self.ways[0]

    @property
    def downlink(self) -> tuple[Hop, ...]:
        """The hops from the server."""
        return self.ways[1]

    @property
    def closed(self) -> bool:
        """Whether there is an outage on one of them."""
        return self.crosses(self._shut)

    def crosses(self, cuts: Cuts) -> bool:
        """Whether one of *cuts* is on the way."""
        return cuts.on_the_way(self._station, self._towards)


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """What a network has to know of a device."""

    name: str | None = None
    """Of its class."""
    duplex: Duplex | None = None
    """None: as the radio's technology has it."""
    place: Place = ANYWHERE
    """Where devices of its class stand."""


@dataclass(eq=False, slots=True)
class Attachment:
    """One sensor, and how it is attached to its base station."""

    sensor: str
    client: int
    """Its canonical index."""
    air_uplink: Hop
    air_downlink: Hop
    backbone: Backbone
    """Shared by all sensors of the base station."""
    on: bool = True
    """Whether the device works: false while it has failed."""
    covered: bool = True
    """Whether the air reaches it now or ever will again."""

    @property
    def air(self) -> tuple[Hop, Hop]:
        """Its own two hops."""
        return self.air_uplink, self.air_downlink

    @property
    def in_coverage(self) -> bool:
        """Whether the air reaches it now, in both directions."""
        return self.air_uplink.rate_bps > 0 and self.air_downlink.rate_bps > 0

    @property
    def uplink(self) -> tuple[Hop, ...]:
        """The hops from the sensor to the server, as they are used now."""
        return (self.air_uplink, *self.backbone.uplink)

    @property
    def downlink(self) -> tuple[Hop, ...]:
        """The hops from the server to the sensor, as they are used now."""
        return (*self.backbone.downlink, self.air_downlink)

    @property
    def on_air(self) -> bool:
        """Whether it works and is in coverage, and its base station does, too."""
        up, down = self.air_uplink, self.air_downlink
        in_coverage = up.rate_bps > 0 and down.rate_bps > 0
        return self.on and self.covered and in_coverage and not up.link.closed

    @property
    def reachable(self) -> bool:
        """Whether it works and is in coverage, and there is no outage between it and the server."""
        return self.on_air and not self.backbone.closed


def between(source: Backbone, target: Backbone) -> tuple[Hop, ...]:
    """The hops from one base station to another, by the first node on the way up that is on the other's way too."""
    up, down = source.uplink, target.downlink
    shared = 0  # wires that would be gone up, and down again at once
    for above, below in zip(reversed(up), down, strict=False):
        if above.link is not below.link:
            break
        shared += 1
    return (*up[: len(up) - shared], *down[shared:])
