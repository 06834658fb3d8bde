"""All links of one simulated world, what is on them, and how a message is carried from one end to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Sequence
from typing import Literal

import numpy as np
from simpy import Environment, Event, Interrupt

from fedsim.errors import UserError
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Trace
from fedsim.kernel.trip import Abandoned
from fedsim.network.blocks import air_bits
from fedsim.network.hop import Direction, Hop, Link
from fedsim.network.packets import Attempted, Transport, put_on_link
from fedsim.network.transfer import Transfer, TransferLost
from fedsim.units import bits

__all__ = ["MOST_CHANGES", "MOST_CHANGES_EACH", "Abandoned", "Network", "Patience", "TransferLost"]

MOST_CHANGES = 10_000_000
"""While nothing that was sent comes to an end."""
MOST_CHANGES_EACH = 100
"""Beside these, for each thing that changes: so many devices may all fail in a quiet hour."""


class Network:
    """All links of one simulated world, and what is on them."""

    def __init__(
        self, env: Environment, trace: Trace, streams: Streams, links: Sequence[Link], transport: Transport
    ) -> None:
        self.env = env
        self.links = tuple(links)
        self.doomed: dict[Transfer, None] = {}
        """Messages that will be lost in this instant."""
        self._uplink_bytes = self._downlink_bytes = 0.0
        self._hops = trace.hops
        self._transport = transport
        self._streams = streams
        self._transfers = 0
        self._lossless: dict[tuple[float, int], Attempted] = {}
        """What so many messages of a size become where nothing is lost: few, and asked for by every message."""
        self._crossings: Counter[tuple[str, int, int, Direction]] = Counter()

    @property
    def access_bytes(self) -> dict[Direction, float]:
        """Bytes put on the clients' own hops so far, by direction; every attempt counts."""
        return {Direction.UPLINK: self._uplink_bytes, Direction.DOWNLINK: self._downlink_bytes}

    @property
    def hops_crossed(self) -> int:
        """How many times a message has left a hop, arrived or not."""
        return len(self._hops)

    @property
    def in_flight(self) -> list[Transfer]:
        """The messages on their way, in the order in which they were sent."""
        flows = [flow for link in self.links for flow in link.waiting]
        for channel in dict.fromkeys(channel for link in self.links for channel in link.channels_used):
            flows += (*channel.flows, *channel.sent)
        messages = {flow for flow in flows if isinstance(flow, Transfer)} | self.doomed.keys()
        return sorted(messages, key=lambda message: message.number)

    def send(self, client: int, route: Sequence[Hop], size_bytes: float, messages: int = 1) -> Transfer:
        """Send *size_bytes* for a client (-1: between servers) over the hops of *route*, one after the other.

        Of so many *messages* of that size, sent as one, none can be lost alone. What is returned may be waited for; it
        happens when the last bit is there, and fails with `TransferLost`.
        """
        transfer = Transfer(self, self._transfers, client, route, size_bytes, messages)
        self._transfers += 1
        return transfer

    def carry(self, client: int, route: Sequence[Hop], size_bytes: float) -> Generator[Event, None, None]:
        """The same as a process of its own, which gives the message up when it is interrupted.

        Raises `TransferLost` when a hop loses the message, `Abandoned` when the process is interrupted.
        """
        transfer = self.send(client, route, size_bytes)
        try:
            yield transfer  # type: ignore[misc]
        except Interrupt as interrupt:
            transfer.give_up()
            raise Abandoned(*interrupt.args) from None

    def attempt(self, client: int, hop: Hop, size_bytes: float, messages: int) -> Attempted:
        """What so many *messages* of *size_bytes* become on *hop*: packets, headers and every attempt of each."""
        if hop.loss.probability > 0.0:
            return put_on_link(size_bytes, self._transport, hop.loss, self._luck("loss", client, hop), messages)
        attempted = self._lossless.get((size_bytes, messages))
        if attempted is None:
            attempted = put_on_link(size_bytes, self._transport, hop.loss, None, messages)
            self._lossless[size_bytes, messages] = attempted
        return attempted

    def air_bits(self, client: int, hop: Hop, size_bytes: float, messages: int) -> float:
        """For how many bits *messages*, of *size_bytes* together, use the air or the wire of *hop*."""
        format_ = hop.format
        if format_.block_bits == 0:
            return bits(size_bytes)
        rng = self._luck("blocks", client, hop) if format_.block_errors > 0 else None
        return air_bits(bits(size_bytes) / messages, format_, rng, messages)

    def note(self, hop: Hop, put_bytes: float, row: tuple[float, ...]) -> None:
        """A message has left *hop*, on which *put_bytes* have been put for it: its row for the trace."""
        if hop.link.access:
            if hop.is_uplink:
                self._uplink_bytes += put_bytes
            else:
                self._downlink_bytes += put_bytes
        self._hops.append(row)

    def on_link(self, link: Link) -> list[Transfer]:
        """The messages on *link* whose last bit has not been sent."""
        flows = [flow for channel in dict.fromkeys(link.channels_used) for flow in channel.flows]
        return [flow for flow in (*flows, *link.waiting) if isinstance(flow, Transfer)]

    def on_hops(self, hops: Collection[Hop]) -> list[Transfer]:
        """The messages on *hops* whose last bit has not been sent."""
        links = dict.fromkeys(hop.link for hop in hops)
        return [transfer for link in links for transfer in self.on_link(link) if transfer.hop in hops]

    def _luck(self, of: Literal["loss", "blocks"], client: int, hop: Hop) -> np.random.Generator:
        """What decides on losses: a stream for each time that the client crosses the hop, whatever others do."""
        use = self._crossings[of, client, hop.link.index, hop.direction]
        self._crossings[of, client, hop.link.index, hop.direction] += 1
        return self._streams(f"network/{of}/{hop.link.index}/{hop.direction.value}", client, use).generator()


class Patience:
    """Counts changes while no message comes to an end."""

    def __init__(self, env: Environment, network: Network, what: str, way_out: str) -> None:
        self._env = env
        self._network = network
        self._what = what
        self._way_out = way_out
        self._things = 0
        self._changes = 0
        self._hops_seen = 0

    def expect(self, things: int) -> None:
        """So many more things change."""
        self._things += things

    def count_change(self) -> None:
        """Something has changed. Raises `UserError` when that has happened so often that nothing would ever end."""
        if self._network.hops_crossed != self._hops_seen:
            self._hops_seen, self._changes = self._network.hops_crossed, 0
        self._changes += 1
        most = MOST_CHANGES + MOST_CHANGES_EACH * self._things
        if self._changes > most:
            raise UserError(
                f"until {self._env.now:g} s of simulated time, {self._what} {most:,} times while no message came to an "
                f"end; {self._way_out}"
            )
