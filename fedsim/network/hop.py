"""A hop is one link in one direction as one client meets it: a channel to share, a rate, a delay, a chance of loss."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum

from fedsim.network.disciplines.channel import Channel, Flow
from fedsim.network.half_duplex import HalfDuplex
from fedsim.network.packets import Loss
from fedsim.radio.settings import ANY_FORMAT, TransportFormat

__all__ = ["Direction", "Hop", "Link", "Medium"]


class Direction(Enum):
    """Which way a message goes."""

    UPLINK = "uplink"
    """Towards the server."""
    DOWNLINK = "downlink"
    """Towards the sensor."""


@dataclass(frozen=True, eq=False, slots=True)
class Medium:
    """What links alike have in common."""

    make_channels: Callable[[], tuple[Channel, ...]]
    """One channel for each direction, or one that both share."""
    shared_at_once: bool = False
    """Whether those who send at the same time have a part of a channel each."""
    rate_bps: float = 0.0
    """Full rate of each direction of a wire, may be infinite; of air, each sensor has its own."""
    delays_s: tuple[float, ...] = (0.0,)
    """Of each channel: from the last bit sent to the last bit received."""
    loss: Loss = field(default_factory=Loss)
    carriers: int = 1
    """How many equal carriers each channel has."""


@dataclass(eq=False, slots=True)
class Link:
    """A wired link or a cell's air, as tables name it."""

    index: int
    ends: tuple[str, ...]
    """The nodes that a wire joins; of air, the base station."""
    access: bool
    """Whether clients are attached to it: it is a cell."""
    medium: Medium
    closed: bool = False
    """Whether there is an outage now."""
    refuses: bool = False
    """Whether what is handed to it now is lost at once, instead of waiting for the outage to end."""
    _waiting: dict[Flow, None] | None = None
    channels_used: tuple[Channel, ...] = ()
    """Its channels, once anybody has asked for them."""

    @property
    def label(self) -> str:
        """What tables call it."""
        return f"cell {self.ends[0]}" if self.access else " -- ".join(self.ends)

    @property
    def waiting(self) -> Collection[Flow]:
        """What has been handed to it, and is on no channel: its device is out of coverage, or busy the other way."""
        return () if self._waiting is None else self._waiting.keys()

    def keep_waiting(self, flow: Flow) -> None:
        """*flow* waits for its device."""
        if self._waiting is None:
            self._waiting = {}
        self._waiting[flow] = None

    def take_waiting(self, flow: Flow) -> bool:
        """*flow* waits no longer; returns whether it did."""
        if self._waiting is None or flow not in self._waiting:
            return False
        del self._waiting[flow]
        return True

    @property
    def channels(self) -> tuple[Channel, ...]:
        """One for each direction, or one for both; made when first asked for, as most links of a large network wait."""
        if not self.channels_used:
            self.channels_used = self.medium.make_channels()
        return self.channels_used


@dataclass(eq=False, slots=True)
class Hop:
    """One link in one direction, for those who meet it alike: all who use a wire, or one sensor on the air."""

    link: Link
    is_uplink: bool
    """Whether it leads towards the server; a member of an enumeration would take long to look up."""
    rate_bps: float
    """The client's own full rate on it now; may be infinite, and is 0 while there is no coverage."""
    share: float = 1.0
    """Part of a carrier that the client needs for its full rate: all of it where whole messages are served."""
    weight: float = 1.0
    """Its part relative to others when there is not enough for all."""
    closed: bool = False
    """Whether the client's device has failed, or is out of coverage for ever: what is handed to it now is lost."""
    half_duplex: HalfDuplex | None = None
    """Whose turn it is on the client's device, both of whose hops have it; None where both can be used at once."""
    device_failed: bool = False
    """Whether the client's device has failed: then what was sent down to it before, and comes now, is lost too."""
    format: TransportFormat = ANY_FORMAT
    """What its rate is made of."""
    _channel: Channel | None = field(default=None, init=False)

    @property
    def loss(self) -> Loss:
        """Random loss of packets on it: all who use the link have the same."""
        return self.link.medium.loss

    @property
    def direction(self) -> Direction:
        """Which way it leads."""
        return Direction.UPLINK if self.is_uplink else Direction.DOWNLINK

    @property
    def channel(self) -> Channel:
        """What sends it, and how long a bit is on the way."""
        channel = self._channel
        if channel is None:
            channel = self._channel = self.link.channels[0 if self.is_uplink else -1]
        return channel

    def set_rate(self, rate_bps: float, share: float, format_: TransportFormat = ANY_FORMAT) -> None:
        """From now on the client has another full rate, for which it needs *share* of a channel shared at once."""
        self.rate_bps = rate_bps
        self.format = format_
        self.share = share if self.link.medium.shared_at_once else 1.0
