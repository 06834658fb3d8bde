"""One message on its way over several hops, stored and forwarded: it goes on when its last bit has come over a hop.

Every crossing of a hop leaves one row in the trace, whether it arrived, was lost or was given up; what has been handed
to a link is at every moment either received, lost, withdrawn or still in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from simpy import Environment

from fedsim.kernel.clock import Alarm, happen
from fedsim.kernel.trace import Outcome
from fedsim.kernel.trip import Lost
from fedsim.network.disciplines.channel import Flow
from fedsim.network.hop import Hop
from fedsim.network.packets import Attempted

__all__ = ["CarryingNetwork", "Transfer", "TransferLost"]

ARRIVED, LOST, CANCELLED = Outcome.ARRIVED, Outcome.LOST, Outcome.CANCELLED  # members take long to look up


class TransferLost(Lost):
    """A message was lost on some hop: every allowed attempt of a packet failed, or an outage destroyed it."""


class CarryingNetwork(Protocol):
    """What a message needs to know of the network that carries it."""

    env: Environment
    doomed: dict[Transfer, None]
    """Messages that will be lost in this instant."""

    def attempt(self, client: int, hop: Hop, size_bytes: float, messages: int) -> Attempted:
        """What so many *messages* of *size_bytes* become on *hop*."""

    def air_bits(self, client: int, hop: Hop, size_bytes: float, messages: int) -> float:
        """For how many bits *messages*, of *size_bytes* together, use *hop*."""

    def note(self, hop: Hop, put_bytes: float, row: tuple[float, ...]) -> None:
        """A message has left *hop*, on which *put_bytes* have been put for it: its row for the trace."""


class Transfer(Flow):
    """A message on its way: a flow on the channel of one hop after the other.

    It is its own event: one may wait for it as for a `simpy.Event`, but not in conditions (``a & b``); to wait for the
    first of several things, make it a process of its own with `Network.carry`. When it is lost, the event fails with
    `TransferLost`.
    """

    __slots__ = (
        *("_defused", "_ok", "_value", "air_bits", "attempted", "callbacks", "client", "hop", "messages", "network"),
        *("number", "repeated_bytes", "repeats", "route", "size_bytes", "stage", "start_s"),
    )

    def __init__(
        self,
        network: CarryingNetwork,
        number: int,
        client: int,
        route: Sequence[Hop],
        size_bytes: float,
        messages: int = 1,
    ) -> None:
        super().__init__()
        self.network = network
        self.number = number
        self.client = client
        """The client's index, or -1 for a message between servers."""
        self.route = route
        self.size_bytes = size_bytes
        self.messages = messages
        """How many of that size it is, sent as one."""
        self.callbacks: list[Callable[[Any], None]] | None = []
        self.stage = 0
        """Which hop of the route it is on."""
        if route:
            self._begin()
        else:
            happen(self)  # type: ignore[arg-type]

    def _begin(self) -> None:
        """Hand it to the present hop of its route."""
        network = self.network
        hop = self.hop = self.route[self.stage]
        rate_bps = hop.rate_bps
        self.share, self.weight = hop.share, hop.weight
        self.start_s = now_s = network.env.now
        self.attempted = network.attempt(self.client, hop, self.size_bytes, self.messages)
        self.repeated_bytes = 0.0
        """Bytes put on the link in vain before an outage, beyond those of ``attempted``."""
        self.repeats = 0
        self.air_bits: float | None = None
        """For how many bits it uses the present link; not known while its device has been out of coverage."""
        self.offer(self._all_bits() / rate_bps if rate_bps > 0 else 0.0, now_s)
        if hop.closed or hop.link.refuses:
            self._fail()
        elif rate_bps > 0 and (hop.half_duplex is None or hop.half_duplex.takes(self)):
            hop.channel.start(self)
        else:
            hop.link.keep_waiting(self)

    @property
    def bytes(self) -> float:
        """Bytes put on the present link so far."""
        return self.repeated_bytes + self.attempted.bytes * self.hop.channel.progress(self).share_sent

    @property
    def handed_bytes(self) -> float:
        """Bytes that the present link has been given: what is to be put on it, and what was in vain."""
        return self.repeated_bytes + self.attempted.bytes

    @property
    def retransmitted_bytes(self) -> float:
        """Bytes put on the present link so far that were sent before; resent packets count in proportion."""
        share_sent = self.hop.channel.progress(self).share_sent
        return self.repeated_bytes + self.attempted.retransmitted_bytes * share_sent

    @property
    def airtime_s(self) -> float:
        """Airtime of the whole channel that it has used so far."""
        return self.hop.channel.progress(self).spent_s

    @property
    def queued_s(self) -> float:
        """Seconds that it waited, or has waited so far, before it was first given the channel."""
        now_s = self.network.env.now
        return (now_s if self.begun_s is None else min(self.begun_s, now_s)) - self.offered_s

    def give_up(self) -> None:
        """Its journey is over; what has been sent is counted."""
        self._leave()
        self._note(CANCELLED)

    def fail(self) -> None:
        """An outage destroys it, unless its last bit is on the way already."""
        if self._is_being_sent():
            self._leave()
            self._fail()

    def repeat(self) -> None:
        """An outage destroys what has been sent, and all is sent again, from the beginning, when it is over.

        After as many attempts as the hop's ``loss`` allows for a packet the message is lost instead.
        """
        if not self._is_being_sent() or self.hop.channel.progress(self).share_sent == 0:
            return
        self.repeats += 1
        if self.repeats >= self.hop.loss.attempts:
            self.fail()
            return
        whole_s = self._all_bits() / self.hop.rate_bps if self.hop.rate_bps > 0 else 0.0
        if self.hop.channel.holds(self):
            self.hop.channel.adjust(self, whole_s, self.share)
        self.repeated_bytes += self.attempted.bytes * self.share_sent
        self.share_sent = 0.0

    def adapt(self) -> None:
        """The rate of its hop has changed."""
        hop, channel, rate_bps = self.hop, self.hop.channel, self.hop.rate_bps
        if channel.holds(self):
            if rate_bps > 0:
                channel.adjust(self, self._left_bits(channel.progress(self).share_sent) / rate_bps, hop.share)
                return
            channel.stop(self)
            hop.link.keep_waiting(self)
        elif self not in hop.link.waiting:
            return
        if rate_bps == 0:
            self._release_device()  # out of coverage it keeps nobody else waiting
        elif hop.half_duplex is None or hop.half_duplex.takes(self):
            self.go_on_air()

    def go_on_air(self) -> None:
        """Its device is covered, and it is its turn there: begin, or go on where it was."""
        hop = self.hop
        hop.link.take_waiting(self)
        self.need_s, self.share = self._left_bits(self.share_sent) / hop.rate_bps, hop.share
        hop.channel.start(self)

    def _left_bits(self, share_sent: float) -> float:
        return (1.0 - share_sent) * self._all_bits()

    def _all_bits(self) -> float:
        """Its ``air_bits``, which depend on how its first bit is sent: worked out once, at a rate."""
        if self.air_bits is None:
            self.air_bits = self.network.air_bits(self.client, self.hop, self.attempted.bytes, self.messages)
        return self.air_bits

    def arrived(self) -> None:
        """It has come to the end of the link: go on with the next, if all packets got through and somebody is there."""
        if self.hop.half_duplex is not None:
            self.hop.half_duplex.release(self)
        if not self.attempted.delivered or (self.hop.device_failed and not self.hop.is_uplink):
            self._lose()
            return
        self._note(ARRIVED)
        self.stage += 1
        if self.stage < len(self.route):
            self._begin()
        else:
            happen(self)  # type: ignore[arg-type]

    def _fail(self) -> None:
        """Lost in this instant, but not before whoever caused it has gone on."""
        self.network.doomed[self] = None
        self.alarm = Alarm(self.network.env, 0.0, self._lose)

    def _lose(self, _: Alarm | None = None) -> None:
        self.network.doomed.pop(self, None)
        self._note(LOST)
        happen(self, TransferLost(self.number, self.client, self.hop.link.label), ok=False)  # type: ignore[arg-type]

    def _is_being_sent(self) -> bool:
        """Whether its last bit is not yet on the link."""
        return self.hop.channel.holds(self) or self in self.hop.link.waiting

    def _leave(self) -> None:
        """Off the channel, or out of wherever it waits."""
        if self in self.network.doomed:
            del self.network.doomed[self]
            self.alarm.stop()  # type: ignore[union-attr]
        elif not self.hop.link.take_waiting(self):
            self.hop.channel.stop(self)
        self._release_device()

    def _release_device(self) -> None:
        """Let its device do what else there is to be done."""
        half_duplex = self.hop.half_duplex
        if half_duplex is not None:
            half_duplex.release(self)

    def _note(self, outcome: Outcome) -> None:
        """A row in the trace, for the hop that it leaves."""
        hop, attempted, share_sent = self.hop, self.attempted, self.share_sent
        link = hop.link
        now_s = self.network.env.now
        begun_s = now_s if self.begun_s is None else self.begun_s
        sent_bytes = attempted.bytes * share_sent
        put_bytes = self.repeated_bytes + sent_bytes
        row = (
            self.number,
            self.client,
            link.index,
            hop.is_uplink,
            link.access,
            self.start_s,
            now_s,
            begun_s - self.offered_s,
            self.spent_s,
            put_bytes,
            self.repeated_bytes + attempted.retransmitted_bytes * share_sent,
            attempted.bytes - sent_bytes,
            outcome,
        )
        self.network.note(hop, put_bytes, row)
