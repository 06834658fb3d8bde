"""Equal airtime among those who send at the same time: exact processor sharing, as round-robin schedulers come near.

Each flow gets a part of the capacity, which is the number of carriers, in proportion to its weight, but at most its own
largest share of one carrier; what it leaves goes to the others (weighted max-min, *water-filling*). How that is found
is said in `one_class`, for flows of one share and weight, and in `water_filling` for several (weights: discriminatory
processor sharing, Altman et al., Queueing Systems 53, 2006).

One alarm waits for the next departure. Arrivals only put it off, so the alarm is left as it is, and set again when it
rings too early. The flow that is due is taken by identity, whatever its clock reads: no comparison of rounded times can
keep it from leaving. Nor is the clock set to what was due, or roundings would add up over many departures. Leaves out
the slots of real schedulers: sharing is fluid.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import count
from operator import itemgetter
from typing import Literal

from pydantic import Field
from simpy import Environment

from fedsim.kernel.clock import Alarm
from fedsim.network.disciplines.channel import Channel, Discipline, Flow
from fedsim.network.disciplines.one_class import FlowClass, OneClass, Sharing
from fedsim.network.disciplines.water_filling import WaterFilling
from fedsim.settings import Positive

__all__ = ["Fair", "FairChannel"]


class FairChannel(Channel):
    """Serves all at once, each with its fair part of the airtime."""

    __slots__ = ("_alarm", "_alarm_s", "_due", "_leaving", "_sharing", "_tickets")

    def __init__(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> None:
        super().__init__(env, delay_s, carriers)
        self._sharing: Sharing | None = None
        """Those who share it; none before the first has come."""
        self._tickets = count()
        self._alarm: Alarm | None = None
        self._alarm_s = math.inf
        """When it rings; not later than the next departure."""
        self._due: FlowClass | None = None
        """Whose first flow leaves when the alarm rings, if nothing has changed until then."""
        self._leaving: list[Flow] = []
        """Those who leave together and have not been told so yet, in the opposite order."""

    @property
    def flows(self) -> Collection[Flow]:
        """In the order in which they were started."""
        present = [] if self._sharing is None else self._sharing.present()
        return [flow for _, flow in sorted(present, key=itemgetter(0))]

    @property
    def sent(self) -> Collection[Flow]:
        """With those that leave now and have not been told so yet."""
        return [*reversed(self._leaving), *super().sent]

    def start(self, flow: Flow) -> None:
        """Share the channel with one more from now on."""
        now_s = self.env.now
        if flow.begun_s is None and not self.paused:
            flow.begun_s = now_s
        sharing = self._sharing
        if sharing is None or not sharing.takes(flow):
            sharing = self._sharing_with(flow, now_s)
        first = sharing.add(flow, next(self._tickets), now_s)
        self._due = None
        if first or self._alarm is None:  # or nobody is sent any sooner than before
            self._set_alarm()

    def stop(self, flow: Flow) -> None:
        """Leave its part to the others, or forget what is on the way."""
        if flow in self._leaving:
            self._leaving.remove(flow)
        elif not self.holds(flow):
            self._recall(flow)
        elif self._sharing is not None:
            self._sharing.remove(flow, self.env.now)
            self._set_alarm()

    def adjust(self, flow: Flow, need_s: float, share: float) -> None:
        """Leave, and come back with another need."""
        self.stop(flow)
        flow.need_s, flow.share = need_s, share
        self.start(flow)

    def pause(self) -> None:
        """Stop all clocks: there is nothing to share."""
        self.paused = True
        if self._sharing is not None:
            self._sharing.set_capacity(0, self.env.now)
            self._set_alarm()

    def resume(self) -> None:
        """Let the clocks go on."""
        self.paused = False
        if self._sharing is None:
            return
        for _, flow in self._sharing.present():
            if flow.begun_s is None:
                flow.begun_s = self.env.now
        self._sharing.set_capacity(self.carriers, self.env.now)
        self._set_alarm()

    def served_s(self, flow: Flow) -> float:
        """What the virtual clock of its class says."""
        return 0.0 if self._sharing is None else self._sharing.served_s(flow, self.env.now)

    def _sharing_with(self, flow: Flow, now_s: float) -> Sharing:
        """One that *flow* can join, as it is not like those who are here; or the first of all."""
        if isinstance(self._sharing, OneClass):
            self._sharing = WaterFilling(self._sharing, now_s)
        else:
            self._sharing = OneClass(flow, 0 if self.paused else self.carriers, now_s)
        return self._sharing

    def _set_alarm(self) -> None:
        """See to it that the alarm rings no later than the next departure."""
        due_s, due = (math.inf, None) if self._sharing is None else self._sharing.next_departure()
        if due_s < self._alarm_s:
            if self._alarm is not None:
                self._alarm.stop()
            self._alarm = Alarm(self.env, max(0.0, due_s - self.env.now), self._ring)
            self._alarm_s, self._due = due_s, due
        else:
            self._due = due if due_s == self._alarm_s else None

    def _ring(self, _: Alarm) -> None:
        self._alarm, self._alarm_s = None, math.inf
        due = self._due
        if due is None and self._sharing is not None:
            due_s, due = self._sharing.next_departure()
            if due_s > self.env.now:
                self._set_alarm()
                return
        if due is not None:
            self._depart(due)

    def _depart(self, due: FlowClass) -> None:
        """Let the first flow of a class leave, and those that are sent at the same reading of its clock."""
        if self._sharing is None:
            return
        self._leaving = self._sharing.depart(due, self.env.now)
        self._leaving.reverse()
        self._set_alarm()
        while self._leaving:
            self._send_off(self._leaving.pop())


class Fair(Discipline):
    """Equal airtime for all who send at the same time; a device that can use only a part leaves the rest to others."""

    shared_at_once = True

    name: Literal["fair"] = "fair"
    weights: dict[str, Positive] = Field(default_factory=dict)
    """Parts of the airtime relative to each other, by device class; a class that is not named has weight 1."""

    def make_channel(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> Channel:
        """A processor-sharing channel."""
        return FairChannel(env, delay_s, carriers)

    def weight(self, device_class: str | None) -> float:
        """As given under ``weights``."""
        return self.weights.get(device_class, 1.0) if device_class is not None else 1.0
