"""Two shortcuts past SimPy's general events: an alarm that costs one small object, and an event that happens at once.

A simulation of many devices sets millions of timers, most of them for a single listener. Leaves out values, failures
and conditions: for these there are `simpy.Event` and `simpy.Timeout`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy import Environment, Event
from simpy.events import NORMAL

__all__ = ["Alarm", "happen"]


class Alarm:
    """Calls one function *delay_s* seconds from now, unless it is stopped before."""

    __slots__ = ("_ok", "callbacks", "of")

    def __init__(self, env: Environment, delay_s: float, action: Callable[[Alarm], None], of: Any = None) -> None:
        self.callbacks: tuple[Callable[[Alarm], None], ...] | None = (action,)
        self.of = of
        """Whatever the action wants to find here."""
        self._ok = True
        env.schedule(self, NORMAL, delay_s)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Never ring."""
        self.callbacks = ()
        self.of = None


def happen(event: Event, value: Any = None, *, ok: bool = True) -> None:
    """Let *event* happen now, inside the event that is being processed, instead of as the next one of this instant.

    With *ok* false it fails, and *value* is the exception. Must not be called from within a process: those who wait for
    *event* go on at once.
    """
    event._ok, event._value = ok, value
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
    for callback in callbacks:
        callback(event)
