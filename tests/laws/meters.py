"""Meters that a test puts on every channel of a world: a second, plainer simulation beside the network's own.

The meters hear what is handed to a channel and what is taken off it, and read rates, shares and which links are closed.
From these they serve every channel anew, from one event to the next, without virtual clocks, plans or bookings; bytes
follow from rate and time. Whatever the network says of a message is compared with that.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from simpy import Environment, Event

from fedsim.kernel.trace import Outcome, Table, Trace
from fedsim.network.disciplines.channel import Channel, Progress
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.disciplines.fair import FairChannel
from fedsim.network.disciplines.multi_server import MultiServerChannel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Direction, Hop
from fedsim.network.network import Network
from fedsim.network.packets import Attempted
from fedsim.network.transfer import Transfer
from fedsim.protocols.world import World

Way = tuple[int, Direction]
"""A link in one direction."""

SERIAL = SerialChannel, MultiServerChannel
"""Channels that serve whole messages, in the order in which they come."""
TINY_S = 1e-9
"""What would be sent within this time has been sent: clocks round."""


@dataclass(eq=False)
class Crossing:
    """One message on one hop, as a meter sees it."""

    flow: Transfer
    hop: Hop
    handed_s: float
    whole_bits: float
    left_bits: float
    share: float
    put_bits: float = 0.0
    vain_bits: float = 0.0
    """Of those put on the link, the ones that an outage has destroyed."""
    repeats: int = 0
    spent_s: float = 0.0
    """Airtime of one carrier."""
    begun_s: float | None = None
    sent_s: float = math.nan
    place: int = 0
    """In the order in which messages came to their channels."""

    @property
    def left_s(self) -> float:
        """Seconds at its full rate now."""
        return self.left_bits / self.hop.rate_bps

    def queued_s(self, now_s: float) -> float:
        """Until it was first given the channel, or until now."""
        return (now_s if self.begun_s is None else self.begun_s) - self.handed_s

    def repeat(self) -> None:
        """Begin again, when an outage has destroyed what was sent, and another attempt is allowed."""
        if self.repeats < self.flow.repeats < self.hop.loss.attempts:
            self.repeats = self.flow.repeats
            self.vain_bits, self.left_bits = self.put_bits, self.whole_bits

    def go_on_with(self, need_s: float, share: float) -> None:
        """The network says what is left, and must be right."""
        self.repeat()
        assert math.isinf(self.hop.rate_bps) or close(need_s * self.hop.rate_bps, self.left_bits)
        self.share = share

    def send(self, bits: float, spent_s: float) -> None:
        """So many bits go over the link, in so much airtime."""
        self.left_bits -= bits
        self.put_bits += bits
        self.spent_s += spent_s


class Ledger:
    """One channel, served anew."""

    def __init__(self, channel: Channel, now_s: float) -> None:
        self.channel = channel
        self.crossings: list[Crossing] = []
        """Being sent or waiting, in the order of arrival."""
        self.just_sent: list[Crossing] = []
        """Those whose last bit was sent in this instant."""
        self.now_s = now_s
        self.used_s = 0.0
        """Airtime of one carrier that anybody has used, all together."""
        self.open_s = 0.0
        """Time without an outage."""
        self.present_s = 0.0
        """The integral over time of the number of messages on it, sent or waiting."""

    def parts(self) -> list[float]:
        """What each has of a carrier now."""
        if not self.crossings or self.crossings[0].hop.link.closed:
            return [0.0] * len(self.crossings)
        if isinstance(self.channel, DedicatedChannel):
            return [1.0] * len(self.crossings)
        carriers = self.channel.carriers
        if isinstance(self.channel, SERIAL):
            return [1.0 if place < carriers else 0.0 for place in range(len(self.crossings))]
        assert isinstance(self.channel, FairChannel)
        parts = water_filled([(crossing.share, crossing.hop.weight) for crossing in self.crossings], carriers)
        assert close(math.fsum(parts), min(carriers, math.fsum(crossing.share for crossing in self.crossings)))
        return parts

    def advance(self, to_s: float, *, is_open: bool) -> None:
        """Serve until *to_s*, while nobody comes or goes but those who have been sent."""
        while True:
            serving = [(crossing, part, self._speed(crossing, part)) for crossing, part in self._serving()]
            step_s = min([to_s - self.now_s, *(crossing.left_s / speed for crossing, _, speed in serving)])
            if step_s <= 0:
                break
            self.present_s += step_s * len(self.crossings)
            self.open_s += step_s * is_open
            for crossing, part, speed in serving:
                crossing.send(speed * step_s * crossing.hop.rate_bps, part * step_s)
                self.used_s += part * step_s
            self.now_s += step_s
            self.just_sent = [crossing for crossing in self.just_sent if self.now_s - crossing.sent_s <= TINY_S]
        self.now_s = to_s

    def settle_ties(self) -> None:
        """Clocks round: whether the last bit came just before or just after an outage began, the network decides."""
        for crossing in list(self.just_sent):
            still_here = crossing.flow.hop is crossing.hop and self.channel.holds(crossing.flow)
            if still_here and crossing.hop.link.closed:
                self.just_sent.remove(crossing)
                bisect.insort(self.crossings, crossing, key=attrgetter("place"))
                for other in self.crossings[self.channel.carriers :] if isinstance(self.channel, SERIAL) else ():
                    other.begun_s = None

    def _serving(self) -> list[tuple[Crossing, float]]:
        """Those who are given a part of the channel; who has nothing left to send is let go first."""
        while True:
            serving = [(crossing, part) for crossing, part in zip(self.crossings, self.parts(), strict=True) if part]
            for crossing, _ in serving:
                if crossing.begun_s is None:
                    crossing.begun_s = self.now_s
            through = [
                crossing for crossing, part in serving if crossing.left_s <= TINY_S * self._speed(crossing, part)
            ]
            if not through:
                return serving
            for crossing in through:
                crossing.send(crossing.left_bits, 0.0)
                crossing.sent_s = self.now_s
                self.crossings.remove(crossing)
                self.just_sent.append(crossing)

    def _speed(self, crossing: Crossing, part: float) -> float:
        """Of its own full rate."""
        return part / crossing.share if isinstance(self.channel, FairChannel) else part


def water_filled(wishes: list[tuple[float, float]], carriers: int) -> list[float]:
    """Carriers shared out among wishes (largest share, weight): by weight, and nobody gets more than he can use."""
    parts = [0.0] * len(wishes)
    left, unsatisfied = float(carriers), set(range(len(wishes)))
    while unsatisfied:
        by_weight = left / math.fsum(wishes[one][1] for one in unsatisfied)
        modest = {one for one in unsatisfied if wishes[one][0] <= by_weight * wishes[one][1]}
        for one in modest or unsatisfied:
            parts[one] = wishes[one][0] if modest else by_weight * wishes[one][1]
        left -= math.fsum(parts[one] for one in modest)
        unsatisfied -= modest or unsatisfied
    return parts


class Meter:
    """Stands before the channel of a hop, and tells the books."""

    def __init__(self, channel: Channel, hop: Hop, books: Books) -> None:
        self.channel = channel
        self._hop = hop
        self._books = books

    def start(self, flow: Transfer) -> None:
        self._books.start(self._hop, self.channel, flow)
        self.channel.start(flow)

    def stop(self, flow: Transfer) -> None:
        crossings, crossing = self._books.ledgers[self.channel].crossings, self._books.crossings[flow.number]
        if crossing in crossings:
            crossings.remove(crossing)
        self.channel.stop(flow)

    def adjust(self, flow: Transfer, need_s: float, share: float) -> None:
        self._books.crossings[flow.number].go_on_with(need_s, share)
        self.channel.adjust(flow, need_s, share)

    def holds(self, flow: Transfer) -> bool:
        return self.channel.holds(flow)

    def progress(self, flow: Transfer) -> Progress:
        return self.channel.progress(flow)


class Books:
    """Meters on all hops, put there when a hop is first used; and the network's own books beside them."""

    def __init__(self, env: Environment, network: Network, trace: Trace) -> None:
        self.env = env
        self.channels: defaultdict[Channel, list[Way]] = defaultdict(list)
        """The channels, each with the ways that share it."""
        for link in network.links:
            for direction, channel in zip(Direction, link.channels * (2 // len(link.channels)), strict=True):
                self.channels[channel].append((link.index, direction))
        self.ledgers = {channel: Ledger(channel, env.now) for channel in self.channels}
        self.crossings: dict[int, Crossing] = {}
        """By the transfer's number: those that have been on the channel of their present hop."""
        self._places = itertools.count()
        self._channel_of = {way: channel for channel, ways in self.channels.items() for way in ways}
        self._network = network
        self._attempt = network.attempt
        network.attempt = self._hand_over  # type: ignore[method-assign]
        self._handed_bytes: defaultdict[Way, float] = defaultdict(float)
        self._handed_messages: Counter[Way] = Counter()
        self._settled_bytes: defaultdict[Way, float] = defaultdict(float)
        self._settled_messages: Counter[Way] = Counter()
        self._vain_bytes: defaultdict[Way, float] = defaultdict(float)
        self._airtime_s: defaultdict[Channel, float] = defaultdict(float)
        listen(trace.hops, self._note)

    @classmethod
    def on(cls, world: World) -> Books:
        """Watch every link of a world at time zero."""
        return cls(world.env, world.network, world.trace)

    @property
    def present_s(self) -> dict[Channel, float]:
        """By channel: the integral over time of the number of messages on it, sent or waiting."""
        return {channel: ledger.present_s for channel, ledger in self.ledgers.items()}

    def _hand_over(self, client: int, hop: Hop, size_bytes: float, messages: int) -> Attempted:
        """A message is handed to a hop."""
        if not isinstance(hop.channel, Meter):
            hop._channel = Meter(hop.channel, hop, self)  # type: ignore[assignment]
        attempted = self._attempt(client, hop, size_bytes, messages)
        self._handed_bytes[hop.link.index, hop.direction] += attempted.bytes
        self._handed_messages[hop.link.index, hop.direction] += 1
        return attempted

    def start(self, hop: Hop, channel: Channel, flow: Transfer) -> None:
        """A message comes to a channel, for the first time or again."""
        bits = 8 * flow.attempted.bytes
        crossing = self.crossings.setdefault(flow.number, Crossing(flow, hop, flow.start_s, bits, bits, flow.share))
        crossing.go_on_with(flow.need_s, flow.share)
        crossing.place = next(self._places)
        self.ledgers[channel].crossings.append(crossing)

    # -- the clock --

    def step(self) -> None:
        """Let one event happen; the time that passes before it is served first."""
        self._advance(self.env.peek())
        self.env.step()
        for ledger in self.ledgers.values():
            ledger.settle_ties()
        self._advance(self.env.now)

    def _advance(self, to_s: float) -> None:
        closed = {channel for link in self._network.links if link.closed for channel in link.channels}
        for channel, ledger in self.ledgers.items():
            ledger.advance(to_s, is_open=channel not in closed)

    def steps_until(self, event: Event) -> Iterator[None]:
        """Step until *event* has happened; yields after every step."""
        while not event.processed:
            self.step()
            yield

    def steps_until_nothing_moves(self) -> Iterator[None]:
        """Step until no message is in flight; yields after every step."""
        while self._network.in_flight:
            self.step()
            yield

    # -- the laws --

    def check(self) -> None:
        """What was handed over is received, lost, withdrawn or in flight; and every message is as far as it must be."""
        bytes_, messages = self._settled_bytes.copy(), self._settled_messages.copy()
        airtime_s, vain_bytes = self._airtime_s.copy(), self._vain_bytes.copy()
        for transfer in self._network.in_flight:
            way = transfer.hop.link.index, transfer.hop.direction
            bytes_[way] += transfer.handed_bytes
            messages[way] += 1
            airtime_s[self._channel_of[way]] += transfer.airtime_s
            vain_bytes[way] += self._check_in_flight(transfer)
        for way in self._channel_of:
            assert messages[way] == self._handed_messages[way], way
            assert close(bytes_[way], self._handed_bytes[way] + vain_bytes[way]), way
        for channel, ledger in self.ledgers.items():
            assert close(airtime_s[channel], ledger.used_s)
            if not isinstance(channel, DedicatedChannel):
                assert ledger.used_s <= ledger.open_s * channel.carriers + TINY_S

    def _check_in_flight(self, transfer: Transfer) -> float:
        """Compare with the meters what the network says of a message; returns the bytes that were in vain."""
        crossing = self.crossings.get(transfer.number)
        if crossing is None:
            assert transfer.bytes == transfer.airtime_s == 0
            assert close(transfer.queued_s, self.env.now - transfer.start_s)
            return 0.0
        crossing.repeat()
        assert close(transfer.bytes, crossing.put_bits / 8)
        assert close(transfer.airtime_s, crossing.spent_s)
        assert close(transfer.queued_s, crossing.queued_s(self.env.now))
        return crossing.vain_bits / 8

    def _note(self, row: dict[str, float]) -> None:
        """A message has left a hop: a row has been added to the trace."""
        way = int(row["link"]), Direction.UPLINK if row["uplink"] else Direction.DOWNLINK
        self._settled_bytes[way] += row["bytes"] + row["withdrawn_bytes"]
        self._settled_messages[way] += 1
        self._airtime_s[self._channel_of[way]] += row["airtime_s"]
        crossing = self.crossings.pop(int(row["transfer"]), None)
        if crossing is None:
            assert row["outcome"] != Outcome.ARRIVED
            assert row["bytes"] == row["airtime_s"] == 0
            assert close(row["queued_s"], row["end_s"] - row["start_s"])
            return
        if row["outcome"] == Outcome.ARRIVED and math.isnan(crossing.sent_s):  # in the event in which it began
            self._advance(self.env.now)
        crossing.repeat()
        self._vain_bytes[way] += crossing.vain_bits / 8
        assert close(row["bytes"], crossing.put_bits / 8)
        assert close(row["withdrawn_bytes"], crossing.left_bits / 8)
        assert close(row["airtime_s"], crossing.spent_s)
        assert close(row["queued_s"], crossing.queued_s(row["end_s"]))
        assert crossing.vain_bits / 8 <= row["retransmitted_bytes"] * (1 + TINY_S) <= row["bytes"] * (1 + TINY_S)
        if row["outcome"] == Outcome.ARRIVED:
            assert close(row["end_s"], crossing.sent_s + self._channel_of[way].delay_s)


def listen(table: Table, note: Callable[[dict[str, float]], None]) -> None:
    """Call *note* with every row that is appended to *table* from now on."""
    names, append = table.array().dtype.names, table.append

    def append_and_note(row: tuple[float, ...]) -> None:
        append(row)
        note(dict(zip(names, row, strict=True)))

    table.append = append_and_note  # type: ignore[method-assign]


def close(one: float, other: float) -> bool:
    """Equal up to the rounding of some thousand additions."""
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
