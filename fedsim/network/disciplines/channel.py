"""A channel serves flows; its discipline decides who sends when. Work is airtime: seconds at the flow's own full rate.

Measuring work in airtime lets flows of different rates share one channel (a slow device needs more airtime for the
same bits). A channel knows neither bytes nor routes: it tells a flow when all of it has been sent, and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar

from simpy import Environment

from fedsim.kernel.clock import Alarm
from fedsim.settings import Component

__all__ = ["Channel", "Discipline", "Flow", "FlowQueue", "Progress"]


class Flow:
    """One message on one channel. ``need_s``, ``share_sent`` and ``spent_s`` are as of when the channel last booked.

    ``share`` is the largest part of one carrier (0 < share <= 1) that it can use, which it needs for its full rate;
    ``weight`` is its part relative to others when there is not enough for all. Both matter to fair sharing only.
    """

    __slots__ = (
        *("ahead", "alarm", "begun_s", "behind", "due_s", "need_s", "offered_s"),
        *("share", "share_sent", "since", "spent_s", "ticket", "weight"),
    )

    def __init__(self, *, share: float = 1.0, weight: float = 1.0) -> None:
        self.share = share
        self.weight = weight
        self.ticket = -1
        """Its place on a channel, or -1 when it is on none, or all of it has been sent: the channel's own affair."""
        self.ahead: Flow | None = None
        self.behind: Flow | None = None
        """Its neighbours in a queue: the queue's own affair."""
        self.alarm: Alarm | None = None
        """Rings at whatever is planned for it alone; None when nothing is."""
        self.since: float
        """When it was last booked, as a time or as the reading of a virtual clock: the channel's own affair."""
        self.due_s: float
        """When its last bit is sent, as planned: the channel's own affair."""
        self.offered_s: float
        self.begun_s: float | None
        """When it is first given the channel, which may be in the future; None while that is not known."""
        self.need_s: float
        """Seconds at its own full rate that what is left of it needs."""
        self.share_sent: float
        """Part of the message (0 to 1) that has been sent."""
        self.spent_s: float
        """Airtime of one carrier that it has used: carrier-seconds."""

    def offer(self, airtime_s: float, now_s: float) -> None:
        """Begin anew as a message that needs *airtime_s* seconds at its full rate (0 or more, finite)."""
        self.offered_s = now_s
        self.begun_s = None
        self.need_s = airtime_s
        self.share_sent = 0.0
        self.spent_s = 0.0

    def book(self, served_s: float) -> None:
        """*served_s* more seconds, at its full rate, have been given to it."""
        served_s = min(served_s, self.need_s)  # the clock rounds
        self.share_sent += (1.0 - self.share_sent) * (served_s / self.need_s if self.need_s > 0 else 0.0)
        self.spent_s += served_s * self.share
        self.need_s -= served_s

    def book_all(self) -> None:
        """All of it has been sent: it is on no channel any more."""
        self.ticket = -1
        self.share_sent = 1.0
        self.spent_s += self.need_s * self.share
        self.need_s = 0.0

    def arrived(self) -> None:
        """What happens when its last bit has come to the end of the channel: for subclasses."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a flow is, now."""

    share_sent: float
    """Part of the message (0 to 1) that has been sent."""
    spent_s: float
    """Airtime of one carrier that it has used: carrier-seconds."""


class Channel(ABC):
    """One direction of a link or a cell, or both directions of a cell where they share one."""

    __slots__ = ("_on_the_way", "_reception", "carriers", "delay_s", "env", "paused")  # a large network has very many

    def __init__(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> None:
        self.env = env
        self.carriers = carriers
        """How many equal carriers it has: a flow can use ``share`` of one of them."""
        self.delay_s = delay_s
        """From a flow's last bit sent to its last bit received; the channel is free for others meanwhile."""
        self.paused = False
        self._on_the_way: OrderedDict[Flow, float] | None = None  # the first of a plain dict is slow to find
        """What has been sent and not yet received, with the time of its arrival, in order; None when nothing has."""
        self._reception: Alarm | None = None
        """Rings when the first of these arrives."""

    @property
    @abstractmethod
    def flows(self) -> Collection[Flow]:
        """All of which something is still to be sent, in the order in which they were started."""

    @property
    def sent(self) -> Collection[Flow]:
        """All whose last bit has been sent and has not arrived."""
        return () if self._on_the_way is None else self._on_the_way.keys()

    @abstractmethod
    def start(self, flow: Flow) -> None:
        """Take *flow* on. It is told when it has arrived, never within this call."""

    @abstractmethod
    def stop(self, flow: Flow) -> None:
        """Take *flow* off before it has arrived, with what has been sent of it booked; its place is free at once."""

    def holds(self, flow: Flow) -> bool:
        """Whether something of *flow* is still to be sent here; if not, all of it is booked."""
        return flow.ticket >= 0

    @abstractmethod
    def adjust(self, flow: Flow, need_s: float, share: float) -> None:
        """From now on, what is left of *flow* needs *need_s* seconds at its full rate, and *share* of a carrier."""

    @abstractmethod
    def pause(self) -> None:
        """Send nothing until `resume`; flows keep their places, and new ones are taken on."""

    @abstractmethod
    def resume(self) -> None:
        """Go on where `pause` stopped."""

    @abstractmethod
    def served_s(self, flow: Flow) -> float:
        """Seconds, at its full rate, that *flow*, which it holds, has been given since it was last booked."""

    def progress(self, flow: Flow) -> Progress:
        """How far *flow*, on this channel or through with it, is now."""
        if not self.holds(flow):
            return Progress(flow.share_sent, flow.spent_s)
        served_s = min(self.served_s(flow), flow.need_s)
        part = served_s / flow.need_s if flow.need_s > 0 else 0.0
        return Progress(flow.share_sent + (1.0 - flow.share_sent) * part, flow.spent_s + served_s * flow.share)

    def _send_off(self, flow: Flow) -> None:
        """The last bit of *flow*, of which all is booked, has just been sent."""
        if self.delay_s == 0:
            flow.arrived()
            return
        if self._on_the_way is None:
            self._on_the_way = OrderedDict()
        self._on_the_way[flow] = self.env.now + self.delay_s
        if self._reception is None:
            self._reception = Alarm(self.env, self.delay_s, self._receive)

    def _recall(self, flow: Flow) -> None:
        """Forget *flow*, whose last bit is on the way."""
        if self._on_the_way is not None:
            del self._on_the_way[flow]

    def _receive(self, _: Alarm) -> None:
        """Everything that is due arrives, in the order in which it was sent."""
        self._reception = None
        way, now_s = self._on_the_way, self.env.now
        while way and (first := next(iter(way.items())))[1] <= now_s:
            del way[first[0]]
            first[0].arrived()
        if way and self._reception is None:
            self._reception = Alarm(self.env, next(iter(way.values())) - now_s, self._receive)


class Discipline(Component):
    """What is registered under "disciplines"."""

    shared_at_once: ClassVar[bool] = False
    """Whether those who send at the same time have a part of it each; if not, whoever sends has a carrier meanwhile."""

    @abstractmethod
    def make_channel(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> Channel:
        """A channel of so many equal carriers that follows this discipline."""

    def weight(self, device_class: str | None) -> float:
        """The weight of flows of devices of *device_class*."""
        return 1.0


class FlowQueue:
    """Flows, first come, first out; each of them may also leave from the middle, in the same short time.

    A flow itself notes who is ahead of it and who is behind it, so it can be in one queue at a time. The queue needs no
    memory while it is empty: a large network has hundreds of thousands of them.
    """

    __slots__ = ("first", "last")

    def __init__(self) -> None:
        self.first: Flow | None = None
        self.last: Flow | None = None

    def append(self, flow: Flow) -> None:
        """It is the last one now."""
        last = self.last
        flow.ahead, flow.behind = last, None
        if last is None:
            self.first = flow
        else:
            last.behind = flow
        self.last = flow

    def remove(self, flow: Flow) -> None:
        """It leaves; those behind it move up."""
        ahead, behind = flow.ahead, flow.behind
        if ahead is None:
            self.first = behind
        else:
            ahead.behind = behind
        if behind is None:
            self.last = ahead
        else:
            behind.ahead = ahead
        flow.ahead = flow.behind = None

    def __iter__(self) -> Iterator[Flow]:
        flow = self.first
        while flow is not None:
            behind = flow.behind
            yield flow
            flow = behind
