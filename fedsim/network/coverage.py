"""Rates that change with time: what a radio announces for each sensor comes true on the clock.

What changes in an instant changes at its end: a message whose last bit is sent then is through. All sensors whose rates
change in one instant change together, so that a cell is planned anew once, not once for each of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from simpy import Environment

from fedsim.kernel.gather import at_the_end_of
from fedsim.network.attachment import Attachment
from fedsim.network.hop import Hop
from fedsim.network.network import Network, Patience
from fedsim.radio.settings import Rates, RatesOfMany, TransportFormat

__all__ = ["Coverage"]

New = TypeVar("New")


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
        self._due: dict[float, list[_One | _Many]] = {}
        """Whose rates change next, by the time of that."""

    def follow(self, attachment: Attachment, changes: Iterator[tuple[float, Rates]]) -> None:
        """From now on, let *changes*, (time in seconds, rates) in order of time, come true for a sensor."""
        self._begin(_One(attachment, changes))

    def follow_together(self, attachments: Sequence[Attachment], changes: Iterator[tuple[float, RatesOfMany]]) -> None:
        """The same for sensors that change in the same instants; *changes* have their rates in the same order."""
        self._begin(_Many(attachments, changes))

    def _begin(self, story: _One | _Many) -> None:
        if not self._expect_next(story) and (lost := story.uncovered):
            self._lose(lost)
            self._on_change()

    def _expect_next(self, story: _One | _Many) -> bool:
        """Put the next change on the clock; false if there is none."""
        at_s = story.look_ahead()
        if at_s is None:
            return False
        if at_s not in self._due:
            self._due[at_s] = []
            at_the_end_of(self._env, at_s - self._env.now).callbacks.append(lambda _: self._change(self._due.pop(at_s)))
        self._due[at_s].append(story)
        return True

    def _change(self, due: Collection[_One | _Many]) -> None:
        self._patience.count_change()
        changed: dict[Hop, None] = {}  # not a set: what happens in one instant happens in the same order in every run
        somebody_is_back = False
        for story in due:
            known = {hop: (hop.rate_bps, hop.share) for hop in story.hops(self._network)}
            somebody_is_back |= story.come_true()
            changed.update((hop, None) for hop, was in known.items() if (hop.rate_bps, hop.share) != was)
        for transfer in self._network.on_hops(changed):
            transfer.adapt()
        lost: list[Attachment] = []
        for story in due:
            if not self._expect_next(story):
                lost += story.uncovered
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


class _Story(ABC, Generic[New]):
    """What a radio announces for one sensor, or for several that change in the same instants."""

    def __init__(self, changes: Iterator[tuple[float, New]]) -> None:
        self._changes = changes
        self._next: New

    def look_ahead(self) -> float | None:
        """When the next change is; None when there is none."""
        following = next(self._changes, None)
        if following is None:
            return None
        at_s, self._next = following
        return at_s

    @abstractmethod
    def hops(self, network: Network) -> Collection[Hop]:
        """Those whose change may matter to messages that are under way now."""

    @abstractmethod
    def come_true(self) -> bool:
        """The next rates are the present ones from now on; returns whether somebody has come into coverage."""

    @property
    @abstractmethod
    def uncovered(self) -> list[Attachment]:
        """Who is not in coverage now."""


class _One(_Story[Rates]):
    """One sensor."""

    def __init__(self, attachment: Attachment, changes: Iterator[tuple[float, Rates]]) -> None:
        super().__init__(changes)
        self._attachment = attachment

    def hops(self, network: Network) -> Collection[Hop]:
        """Both of its own."""
        return self._attachment.air

    def come_true(self) -> bool:
        attachment, rates = self._attachment, self._next
        before = attachment.in_coverage
        attachment.air_uplink.set_rate(rates.uplink_bps, rates.uplink_share, rates.uplink_format)
        attachment.air_downlink.set_rate(rates.downlink_bps, rates.downlink_share, rates.downlink_format)
        return attachment.in_coverage and not before

    @property
    def uncovered(self) -> list[Attachment]:
        return [] if self._attachment.in_coverage else [self._attachment]


class _Many(_Story[RatesOfMany]):
    """Very many sensors, of which few send or receive at a time."""

    def __init__(self, attachments: Sequence[Attachment], changes: Iterator[tuple[float, RatesOfMany]]) -> None:
        super().__init__(changes)
        self._attachments = attachments
        self._uplink = _Direction([attachment.air_uplink for attachment in attachments])
        self._downlink = _Direction([attachment.air_downlink for attachment in attachments])
        self._links = tuple(dict.fromkeys(attachment.air_uplink.link for attachment in attachments))
        self._covered = np.array([attachment.in_coverage for attachment in attachments])

    def hops(self, network: Network) -> Collection[Hop]:
        """Those on which there are messages."""
        return [transfer.hop for link in self._links for transfer in network.on_link(link)]

    def come_true(self) -> bool:
        rates, before = self._next, self._covered
        self._uplink.take(rates.uplink_bps, rates.uplink_share, rates.formats.uplink, rates.uplink_row)
        self._downlink.take(rates.downlink_bps, rates.downlink_share, rates.formats.downlink, rates.downlink_row)
        self._covered = (rates.uplink_bps > 0) & (rates.downlink_bps > 0)
        return bool((self._covered & ~before).any())

    @property
    def uncovered(self) -> list[Attachment]:
        return [self._attachments[place] for place in np.flatnonzero(~self._covered).tolist()]


class _Direction:
    """The hops of many sensors in one direction."""

    def __init__(self, hops: Sequence[Hop]) -> None:
        self._hops = hops
        self._shared = np.array([hop.link.medium.shared_at_once for hop in hops])
        self._share = np.array([hop.share for hop in hops])

    def take(
        self,
        rate_bps: NDArray[np.float64],
        share: NDArray[np.float64],
        formats: Sequence[TransportFormat],
        row: NDArray[np.intp] | None,
    ) -> None:
        """These are their rates and formats, and their shares where the air is shared at once, from now on."""
        for hop, rate in zip(self._hops, rate_bps.tolist(), strict=True):
            hop.rate_bps = rate
        for place in np.flatnonzero(self._shared & (share != self._share)).tolist():
            self._hops[place].share = float(share[place])
        self._share = share
        if row is not None:
            for hop, number in zip(self._hops, row.tolist(), strict=True):
                hop.format = formats[number]
