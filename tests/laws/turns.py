"""Half-duplex devices of a world, looked at after every event: each sends or receives, and nobody waits for nothing."""

from __future__ import annotations

from collections import defaultdict

from fedsim.network.transfer import Transfer
from fedsim.protocols.world import World

__all__ = ["Turns"]

TINY_S = 1e-9
"""Times of the trace round."""


class Turns:
    """Who is on the air of each device, and who waits for it, in the order in which they came."""

    def __init__(self, world: World) -> None:
        self.half_duplex = {
            client.index for client in world.clients if client.attachment.air_uplink.half_duplex is not None
        }
        self._world = world
        self._came: dict[Transfer, int] = {}
        """All that are on the air or wait for their device: how many looks before, when they came."""
        self._on_air: set[Transfer] = set()
        self._interrupted: set[tuple[int, int]] = set()
        """Transfers, each with a link, that had no coverage for a while."""
        self._looks = 0
        self.waited = 0
        """How often somebody has been seen waiting for a device."""

    def check(self) -> None:
        """Look at the world as it is now; to be called after every event."""
        self._looks += 1
        on_air: defaultdict[int, list[Transfer]] = defaultdict(list)
        waiting: defaultdict[int, list[Transfer]] = defaultdict(list)
        for transfer in self._world.network.in_flight:
            hop = transfer.hop
            if not hop.link.access or transfer in self._world.network.doomed:
                continue
            if transfer not in hop.link.waiting:
                assert hop.rate_bps > 0 or not hop.channel.holds(transfer), "on the air without coverage"
                on_air[transfer.client].append(transfer)
            elif hop.rate_bps > 0:
                waiting[transfer.client].append(transfer)
            else:
                self._interrupted.add((transfer.number, hop.link.index))
        present = [transfer for those in (on_air, waiting) for several in those.values() for transfer in several]
        self._came = {transfer: self._came.get(transfer, self._looks) for transfer in present}
        for client in {*on_air, *waiting}:
            self._check_device(client, on_air[client], waiting[client])
        self._on_air = {transfer for several in on_air.values() for transfer in several}

    def _check_device(self, client: int, on_air: list[Transfer], waiting: list[Transfer]) -> None:
        if client not in self.half_duplex:
            assert not waiting, "who can do both at once waits for nothing but coverage"
            return
        self.waited += len(waiting)
        ways = {transfer.hop.is_uplink for transfer in on_air}
        assert len(ways) <= 1, "it sends and receives at once"
        for transfer in waiting:
            assert on_air, "waits for a device that does nothing"
            others = [other for other in waiting if other.hop.is_uplink != transfer.hop.is_uplink]
            came = self._came[transfer]
            assert transfer.hop.is_uplink not in ways or any(self._came[other] <= came for other in others), (
                "waits for what goes the same way, and nobody was before it"
            )
        for transfer in set(on_air) - self._on_air:
            assert all(self._came[transfer] <= self._came[other] for other in waiting), "has overtaken somebody"

    def check_trace(self) -> None:
        """From its beginning to its end on the air no message of a half-duplex device meets one of the other way."""
        hops = self._world.trace.hops.array()
        rows = [row for row in hops[hops["access"]] if row["client"] in self.half_duplex]
        rows = [row for row in rows if (int(row["transfer"]), int(row["link"])) not in self._interrupted]
        for up in (row for row in rows if row["uplink"]):
            for down in (row for row in rows if not row["uplink"] and row["client"] == up["client"]):
                begun_s = max(row["start_s"] + row["queued_s"] for row in (up, down))
                assert begun_s >= min(up["end_s"], down["end_s"]) - TINY_S
