"""A hop is one link in one direction as one client meets it: a channel to share, a rate, a delay, a chance of loss."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fedsim.network.disciplines.channel import Channel
from fedsim.network.packets import Loss

__all__ = ["Direction", "Hop", "Link"]


class Direction(Enum):
    """Which way a message goes."""

    UPLINK = "uplink"
    """Towards the cloud."""
    DOWNLINK = "downlink"
    """Towards the sensor."""


@dataclass(frozen=True, slots=True)
class Link:
    """A wired link or a cell's air, as tables name it."""

    index: int
    label: str
    access: bool
    """Whether clients are attached to it: it is a cell."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One link in one direction."""

    link: Link
    direction: Direction
    channel: Channel
    rate_bps: float
    """The client's own full rate on it; may be infinite."""
    delay_s: float
    """From the last bit sent to the last bit received."""
    loss: Loss
