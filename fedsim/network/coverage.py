"""Rates that change with time: what a radio announces for each sensor comes true on the clock.

What changes in an instant changes at its end: a message whose last bit is sent then is through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simpy import Environment

from fedsim.kernel.gather import at_the_end_of
from fedsim.network.attachment import Attachment
from fedsim.network.network import Network
from fedsim.radio.settings import Rates

__all__ = ["Coverage"]


class Coverage:
    """The rates of one sensor over time.

    While a rate is 0 its messages wait. When that is the last that the radio has to say, they are lost, and so is
    whatever comes later; the sensor never takes part again.
    """

    def __init__(
        self,
        env: Environment,
        network: Network,
        attachment: Attachment,
        changes: Iterator[tuple[float, Rates]],
        on_change: Callable[[], None],
    ) -> None:
        self._env = env
        self._network = network
        self._attachment = attachment
        self._changes = changes
        self._on_change = on_change
        self._await_next()

    def _await_next(self) -> None:
        following = next(self._changes, None)
        if following is not None:
            at_s, rates = following
            at_the_end_of(self._env, at_s - self._env.now).callbacks.append(lambda _: self._change(rates))
        elif not self._attachment.in_coverage:
            self._attachment.covered = False
            for hop in self._attachment.air:
                if hop.rate_bps == 0:
                    hop.closed = True
                    for transfer in self._network.on_hop(hop):
                        transfer.fail()
            self._on_change()

    def _change(self, rates: Rates) -> None:
        attachment = self._attachment
        before, rates_before = attachment.in_coverage, [(hop.rate_bps, hop.share) for hop in attachment.air]
        attachment.air_uplink.set_rate(rates.uplink_bps, rates.uplink_share)
        attachment.air_downlink.set_rate(rates.downlink_bps, rates.downlink_share)
        for hop, known in zip(attachment.air, rates_before, strict=True):
            for transfer in self._network.on_hop(hop) if (hop.rate_bps, hop.share) != known else ():
                transfer.adapt()
        if attachment.in_coverage and not before:
            self._on_change()
        self._await_next()
