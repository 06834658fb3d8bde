"""A channel serves flows; its discipline decides who sends when. Work is airtime: seconds at the flow's own full rate.

Measuring work in airtime lets flows of different rates share one channel (a slow device needs more airtime for the
same bits).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from simpy import Environment, Event

from fedsim.settings import Component

__all__ = ["Channel", "Discipline", "Flow"]


class Flow(Event):
    """One message on one channel; it happens when its last bit has been sent."""

    def __init__(self, env: Environment, airtime_s: float) -> None:
        super().__init__(env)
        self.airtime_s = airtime_s
        self.offered_s: float = env.now
        self.begun_s: float | None = None
        """When it was first given the channel; None while it waits."""

    @property
    def queued_s(self) -> float:
        """Seconds that it waited, or has waited so far, before it was first given the channel."""
        return (self.env.now if self.begun_s is None else self.begun_s) - self.offered_s

    def begin(self) -> None:
        """Take the channel alone now, and happen when the airtime is over."""
        self.begun_s = self.env.now
        self._ok, self._value = True, None
        self.env.schedule(self, delay=self.airtime_s)

    def sent_alone(self) -> float:
        """The share (0 to 1) that has been sent, for a flow that had the channel's full rate since it began."""
        if self.begun_s is None:
            return 0.0
        return min(1.0, (self.env.now - self.begun_s) / self.airtime_s) if self.airtime_s > 0 else 1.0

    def withdraw(self) -> None:
        """Never happen for anybody, even if already scheduled."""
        self.callbacks = []


class Channel(ABC):
    """One direction of a link or a cell, or both directions of a half-duplex one."""

    def __init__(self, env: Environment) -> None:
        self.env = env

    @abstractmethod
    def start(self, airtime_s: float) -> Flow:
        """Offer a message that needs *airtime_s* seconds of the channel (0 or more, finite)."""

    @abstractmethod
    def cancel(self, flow: Flow) -> None:
        """Give up a flow that has not happened yet; the channel is free for others at once."""

    def sent(self, flow: Flow) -> float:
        """The share (0 to 1) of a flow that has been sent by now."""
        return 1.0 if flow.processed else flow.sent_alone()


class Discipline(Component):
    """What is registered under "disciplines"."""

    @property
    @abstractmethod
    def channel(self) -> type[Channel]:
        """The class of channel that follows this discipline."""
