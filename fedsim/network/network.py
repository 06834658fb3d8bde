"""Messages over several hops, stored and forwarded: a hop begins when the last bit has crossed the one before.

Every crossing leaves one row in the trace, whether it arrived, was lost or was given up; what has been handed to a
link is at every moment either received, lost, withdrawn or still in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from simpy import Environment, Event, Interrupt

from fedsim.kernel.gather import Lost
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Outcome, Trace
from fedsim.network.disciplines.channel import Flow
from fedsim.network.hop import Direction, Hop, Link
from fedsim.network.packets import Attempted, Transport, put_on_link
from fedsim.units import bits

__all__ = ["Abandoned", "Crossing", "Network", "TransferLost"]


class TransferLost(Lost):
    """Every allowed attempt of a packet failed on some hop."""


class Abandoned(Lost):
    """The journey was given up before its end."""


@dataclass(eq=False, slots=True)
class Crossing:
    """A message on one hop, now."""

    transfer: int
    client: int
    hop: Hop
    start_s: float
    attempted: Attempted
    flow: Flow

    @property
    def airtime_s(self) -> float:
        """Seconds that it has been on the link so far, not counting the fixed delay."""
        return self.flow.airtime_s * self.hop.channel.sent(self.flow)

    @property
    def sent_bytes(self) -> float:
        """Bytes put on the link so far."""
        return self.attempted.bytes * self.hop.channel.sent(self.flow)

    @property
    def retransmitted_bytes(self) -> float:
        """Bytes put on the link so far that were sent before; resent packets count in proportion."""
        attempted = self.attempted
        return attempted.retransmitted_bytes * self.sent_bytes / attempted.bytes if attempted.bytes else 0.0


class Network:
    """All links of one simulated world, and what is on them."""

    def __init__(
        self, env: Environment, trace: Trace, streams: Streams, links: Sequence[Link], transport: Transport
    ) -> None:
        self.env = env
        self.links = tuple(links)
        self.in_flight: dict[Crossing, None] = {}
        self.access_bytes = {Direction.UPLINK: 0.0, Direction.DOWNLINK: 0.0}
        """Bytes put on the clients' own hops so far, by direction; every attempt counts."""
        self._trace = trace
        self._transport = transport
        self._streams = streams
        self._transfers = 0
        self._crossings: Counter[tuple[int, int, Direction]] = Counter()

    def carry(self, client: int, route: Sequence[Hop], size_bytes: float) -> Generator[Event, None, None]:
        """Carry *size_bytes* for a client over the hops of *route*, one after the other.

        Raises `TransferLost` when a hop loses the message, `Abandoned` when the process that carries it is interrupted.
        """
        transfer = self._transfers
        self._transfers += 1
        for hop in route:
            attempted = put_on_link(size_bytes, self._transport, hop.loss, self._luck(client, hop))
            flow = hop.channel.start(bits(attempted.bytes) / hop.rate_bps)
            yield from self._cross(Crossing(transfer, client, hop, self.env.now, attempted, flow))
            if not attempted.delivered:
                raise TransferLost(transfer, client, hop.link.label)

    def _luck(self, client: int, hop: Hop) -> np.random.Generator | None:
        """What decides on losses: a stream for each time that the client crosses the hop, whatever others do."""
        if hop.loss.probability == 0.0:
            return None
        use = self._crossings[client, hop.link.index, hop.direction]
        self._crossings[client, hop.link.index, hop.direction] += 1
        return self._streams(f"network/loss/{hop.link.index}/{hop.direction.value}", client, use).generator()

    def _cross(self, crossing: Crossing) -> Generator[Event, None, None]:
        self.in_flight[crossing] = None
        try:
            yield crossing.flow
            if crossing.hop.delay_s:
                yield self.env.timeout(crossing.hop.delay_s)
        except Interrupt as interrupt:
            self._end(crossing, Outcome.CANCELLED)
            if not crossing.flow.processed:
                crossing.hop.channel.cancel(crossing.flow)
            raise Abandoned(*interrupt.args) from None
        self._end(crossing, Outcome.ARRIVED if crossing.attempted.delivered else Outcome.LOST)

    def _end(self, crossing: Crossing, outcome: Outcome) -> None:
        del self.in_flight[crossing]
        hop, attempted, sent_bytes = crossing.hop, crossing.attempted, crossing.sent_bytes
        if hop.link.access:
            self.access_bytes[hop.direction] += sent_bytes
        self._trace.hops.append(
            crossing.transfer,
            crossing.client,
            hop.link.index,
            hop.direction is Direction.UPLINK,
            hop.link.access,
            crossing.start_s,
            self.env.now,
            crossing.flow.queued_s,
            crossing.airtime_s,
            sent_bytes,
            crossing.retransmitted_bytes,
            attempted.bytes - sent_bytes,
            outcome,
        )
