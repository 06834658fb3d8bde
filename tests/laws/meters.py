"""Meters that a test puts on every channel of a world: they count what is handed over, and who is there when."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from simpy import Environment, Event

from fedsim.kernel.trace import Outcome, Table, Trace
from fedsim.network.disciplines.channel import Channel, Flow
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Direction, Hop
from fedsim.network.network import Network
from fedsim.protocols.world import World

Way = tuple[int, Direction]
"""A link in one direction."""


class Meter(Channel):
    """A channel as one direction of a link meets it. Bytes follow from airtime and rate, not from the network's own."""

    def __init__(self, channel: Channel, rate_bps: float) -> None:
        super().__init__(channel.env)
        self.channel = channel
        self.messages = 0
        self.bytes = 0.0
        self.in_system = 0
        self._rate_bps = rate_bps

    def start(self, airtime_s: float) -> Flow:
        flow = self.channel.start(airtime_s)
        flow.callbacks.append(self._left)
        self.messages += 1
        self.bytes += airtime_s * self._rate_bps / 8
        self.in_system += 1
        return flow

    def cancel(self, flow: Flow) -> None:
        self.channel.cancel(flow)
        self._left()

    def sent(self, flow: Flow) -> float:
        return self.channel.sent(flow)

    def _left(self, _: Event | None = None) -> None:
        self.in_system -= 1


class Books:
    """Meters on all hops, and the network's own books beside them."""

    def __init__(self, env: Environment, network: Network, trace: Trace) -> None:
        self.env = env
        self.meters: dict[Way, Meter] = {}
        self.busy_s: defaultdict[Channel, float] = defaultdict(float)
        """By channel: the time in which there was something on it."""
        self.present_s: defaultdict[Channel, float] = defaultdict(float)
        """By channel: the integral over time of the number of messages on it, sent or waiting."""
        self._network = network
        self._settled_bytes: defaultdict[Way, float] = defaultdict(float)
        self._settled_messages: Counter[Way] = Counter()
        self._airtime_s: defaultdict[Channel, float] = defaultdict(float)
        self._queued_s: defaultdict[Channel, float] = defaultdict(float)
        listen(trace.hops, self._note)

    @classmethod
    def on(cls, world: World) -> Books:
        """Put meters on every hop of every client."""
        books = cls(world.env, world.network, world.trace)
        for client in world.clients:
            client.uplink, client.downlink = books.metered(client.uplink), books.metered(client.downlink)
        return books

    def metered(self, route: Iterable[Hop]) -> tuple[Hop, ...]:
        """The same hops, with meters on their channels."""
        return tuple(dataclasses.replace(hop, channel=self._meter(hop)) for hop in route)

    def _meter(self, hop: Hop) -> Meter:
        way = hop.link.index, hop.direction
        if way not in self.meters:
            self.meters[way] = Meter(hop.channel, hop.rate_bps)
        return self.meters[way]

    @property
    def channels(self) -> dict[Channel, list[Way]]:
        """The channels, each with the ways that share it."""
        found: defaultdict[Channel, list[Way]] = defaultdict(list)
        for way, meter in self.meters.items():
            found[meter.channel].append(way)
        return found

    def step(self) -> None:
        """Let one event happen; time that passes before it is integrated first."""
        passed_s = self.env.peek() - self.env.now
        for channel, ways in self.channels.items():
            in_system = sum(self.meters[way].in_system for way in ways)
            self.busy_s[channel] += passed_s * min(in_system, 1)
            self.present_s[channel] += passed_s * in_system
        self.env.step()

    def steps_until(self, event: Event) -> Iterator[None]:
        """Step until *event* has happened; yields after every step."""
        while not event.processed:
            self.step()
            yield

    def steps_to_the_end(self) -> Iterator[None]:
        """Step until nothing happens any more; yields after every step."""
        while self.env.peek() < math.inf:
            self.step()
            yield

    def check(self) -> None:
        """What was handed over is received, lost, given up or in flight; a link sends while it has something to."""
        bytes_, messages = self._settled_bytes.copy(), self._settled_messages.copy()
        airtime_s, queued_s = self._airtime_s.copy(), self._queued_s.copy()
        for crossing in self._network.in_flight:
            way = crossing.hop.link.index, crossing.hop.direction
            channel = self.meters[way].channel
            assert 0 <= crossing.sent_bytes <= crossing.attempted.bytes * (1 + 1e-12)
            bytes_[way] += crossing.attempted.bytes
            messages[way] += 1
            airtime_s[channel] += crossing.airtime_s
            queued_s[channel] += crossing.flow.queued_s
        for way, meter in self.meters.items():
            assert meter.messages == messages[way], way
            assert close(meter.bytes, bytes_[way]), way
        for channel in self.channels:
            assert close(airtime_s[channel] + queued_s[channel], self.present_s[channel])
            if isinstance(channel, SerialChannel):
                assert close(airtime_s[channel], self.busy_s[channel])
            else:
                assert queued_s[channel] == 0

    def _note(self, row: dict[str, float]) -> None:
        """A row has been added to the trace."""
        way = int(row["link"]), Direction.UPLINK if row["uplink"] else Direction.DOWNLINK
        channel = self.meters[way].channel
        assert row["bytes"] >= 0 and row["withdrawn_bytes"] >= 0
        assert row["withdrawn_bytes"] == 0 or row["outcome"] == Outcome.CANCELLED
        self._settled_bytes[way] += row["bytes"] + row["withdrawn_bytes"]
        self._settled_messages[way] += 1
        self._airtime_s[channel] += row["airtime_s"]
        self._queued_s[channel] += row["queued_s"]


def listen(table: Table, note: Callable[[dict[str, float]], None]) -> None:
    """Call *note* with every row that is appended to *table* from now on."""
    names, append = table.array().dtype.names, table.append

    def append_and_note(*row: float) -> None:
        append(*row)
        note(dict(zip(names, row, strict=True)))

    table.append = append_and_note  # type: ignore[method-assign]


def close(one: float, other: float) -> bool:
    """Equal up to the rounding of some thousand additions."""
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
