"""A generator on its way from event to event: what a SimPy process is, for those of which there are a million.

It begins at once, its end wakes those who wait for it at once, and an interruption reaches it at once: three events
less for each, and no more memory than its generator and a few fields. Processes and other trips may wait for it. Leaves
out conditions on it (``one & other``): `fedsim.kernel.gather` waits for many.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from simpy import Environment, Event
from simpy.events import URGENT

__all__ = ["Abandoned", "Lost", "Trip"]


class Lost(Exception):
    """A journey ended without its result: a transfer was lost, or it was given up. Not an error of the simulation."""


class Abandoned(Lost):
    """The journey was given up before its end."""


class Trip:
    """A generator that is resumed by the events which it yields. It may be waited for like an event.

    When the generator raises, even at its first step, the trip has failed, and nobody else: not who started it, nor who
    interrupted it. Who takes care of the failure sets ``defused``, as those do who wait for it. A failure that nobody
    has taken care of when the clock goes on ends the simulation.
    """

    __slots__ = ("_defused", "_env", "_generator", "_ok", "_target", "_value", "callbacks", "of")

    def __init__(self, env: Environment, generator: Generator[Event, Any, Any], of: Any = None) -> None:
        self._env = env
        self.of = of
        """Whatever those who wait for it want to find here."""
        self.callbacks: list[Callable[[Any], None]] | None = []
        """Whom to call when it has ended; None afterwards."""
        self._ok = True
        self._value: Any = None
        self._generator: Generator[Event, Any, Any] | None = generator
        self._target: Any = None
        self._proceed(generator.send, None)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._generator is not None

    @property
    def processed(self) -> bool:
        """Whether it has ended, and those who waited for it have been called."""
        return self.callbacks is None

    @property
    def ok(self) -> bool:
        """Whether it returned a value, rather than raised an exception."""
        return self._ok

    @property
    def value(self) -> Any:
        """What it returned, or the exception that it raised."""
        return self._value

    @property
    def defused(self) -> bool:
        """Whether somebody has taken care of its failure."""
        return hasattr(self, "_defused")  # as in SimPy's events: only those that fail have the field

    @defused.setter
    def defused(self, _: bool) -> None:
        self._defused = True

    def interrupt(self, cause: Any = None) -> None:
        """Raise `Abandoned` in it, now, and give up what it waits for, where that has a ``give_up()``.

        So an interruption goes down to a transfer, to local work, to the journeys of a gathering, and to another trip.
        Must not be called from within it, nor while what it waits for is calling back those who wait.
        """
        target = self._target
        assert self._generator is not None and target is not None, "it has ended, or is running"
        target.callbacks.remove(self)
        if hasattr(target, "give_up"):
            target.give_up()
        self._proceed(self._generator.throw, Abandoned(cause))

    def give_up(self) -> None:
        """Who waited for it was interrupted: so is this, and nobody else need take care of what it loses by that."""
        self.interrupt("nobody waits for it any more")
        if isinstance(self._value, Lost):
            self.defused = True

    def __call__(self, event: Any) -> None:
        """Go on, as *event*, which it waits for, has happened: a trip is what an event calls back."""
        self._proceed(self._answer(event), event._value)

    def _answer(self, event: Any) -> Callable[[Any], Any]:
        """How to hand over the value of *event*, which has happened: sent as a result, or thrown as an exception."""
        assert self._generator is not None
        if event._ok:
            return self._generator.send
        event._defused = True
        return self._generator.throw

    def _proceed(self, step: Callable[[Any], Any], value: Any) -> None:
        """Go on until it waits for something, or ends."""
        self._target = None
        try:
            target = step(value)
            while target.callbacks is None:  # it has happened already
                target = self._answer(target)(target._value)
        except StopIteration as end:
            self._end(True, end.value)
        except Lost as failure:
            failure.__traceback__ = failure.__context__ = None  # or it would keep all that the journey knew alive
            self._end(False, failure)
        except Exception as failure:
            self._end(False, failure)
        else:
            self._target = target
            target.callbacks.append(self)

    def _end(self, ok: bool, value: Any) -> None:
        self._generator = None
        self._ok, self._value = ok, value
        callbacks, self.callbacks = self.callbacks, None
        for callback in callbacks or ():
            callback(self)
        if not ok and not self.defused:
            # Not raised here: that would be in whoever started it, interrupted it or let its event happen. Urgent, so
            # that it is the next thing that happens, and no run can end before.
            soon = Event(self._env)
            soon._ok, soon._value = True, None
            soon.callbacks.append(self._fail_unless_defused)
            self._env.schedule(soon, URGENT)

    def _fail_unless_defused(self, _: Event) -> None:
        if not self.defused:
            raise self._value
