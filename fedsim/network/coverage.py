"""Rates that change with time: what a radio announces for each sensor comes true on the clock.

What changes in an instant changes at its end: a message whose last bit is sent then is through. All sensors whose rates
change in one instant change together, so that a cell is planned anew once, not once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from simpy import Environment

from fedsim.kernel.gather import at_the_end_of
from fedsim.network.attachment import Attachment
from fedsim.network.hop import Hop
from fedsim.network.network import Network, Patience
from fedsim.radio.settings import Rates

__all__ = ["Coverage"]

Changes = Iterator[tuple[float, Rates]]


class Coverage:
    """The rates of all sensors over time.

    While a sensor's rate is 0 its messages wait. When that is the last that the radio has to say, they are lost, and so
    is whatever comes later; the sensor never takes part again.
    """

    def __init__(self, env: Environment, network: Network, on_change: Callable[[], None]) -> None:
        self._env = env
        self._network = network
        self._on_change = on_change
        self._patience = Patience(
            env,
            network,
            "rates changed",
            "let a trace repeat, or shadowing be drawn again, less often (repeat_every_s, redraw_every_s), or give "
            "higher rates",
        )
        self._due: dict[float, list[tuple[Attachment, Rates, Changes]]] = {}
        """What changes next, by its time: the new rates, and what comes after them."""

    def follow(self, attachment: Attachment, changes: Changes) -> None:
        """From now on, let *changes*, (time in seconds, rates) in order of time, come true for a sensor."""
        if not self._expect_next(attachment, changes) and not attachment.in_coverage:
            self._lose([attachment])
            self._on_change()

    def _expect_next(self, attachment: Attachment, changes: Changes) -> bool:
        """Put the next change on the clock; false if there is none."""
        following = next(changes, None)
        if following is None:
            return False
        at_s, rates = following
        if at_s not in self._due:
            self._due[at_s] = []
            at_the_end_of(self._env, at_s - self._env.now).callbacks.append(lambda _: self._change(self._due.pop(at_s)))
        self._due[at_s].append((attachment, rates, changes))
        return True

    def _change(self, due: Collection[tuple[Attachment, Rates, Changes]]) -> None:
        self._patience.count_change()
        changed: dict[Hop, None] = {}  # not a set: what happens in one instant happens in the same order in every run
        somebody_is_back = False
        for attachment, rates, _ in due:
            before, known = attachment.in_coverage, [(hop.rate_bps, hop.share) for hop in attachment.air]
            attachment.air_uplink.set_rate(rates.uplink_bps, rates.uplink_share)
            attachment.air_downlink.set_rate(rates.downlink_bps, rates.downlink_share)
            for hop, was in zip(attachment.air, known, strict=True):
                if (hop.rate_bps, hop.share) != was:
                    changed[hop] = None
            somebody_is_back |= attachment.in_coverage and not before
        for transfer in self._network.on_hops(changed):
            transfer.adapt()
        lost = []
        for attachment, _, changes in due:
            if not self._expect_next(attachment, changes) and not attachment.in_coverage:
                lost.append(attachment)
        self._lose(lost)
        if somebody_is_back or lost:
            self._on_change()

    def _lose(self, attachments: Collection[Attachment]) -> None:
        """They are out of coverage for ever."""
        silent = {hop: None for attachment in attachments for hop in attachment.air if hop.rate_bps == 0}
        for attachment in attachments:
            attachment.covered = False
        for hop in silent:
            hop.closed = True
        for transfer in self._network.on_hops(silent):
            transfer.fail()
