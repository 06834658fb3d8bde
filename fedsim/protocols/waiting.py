"""How servers wait: for journeys, for an outage to end, for their own work; and what the trace keeps of it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from simpy import Environment, Event

from fedsim.kernel.gather import Gathered, Journey, gather
from fedsim.kernel.trace import AT_DEADLINE, NOBODY, Pause, Trace
from fedsim.network.attachment import Backbone
from fedsim.network.faults.outages import Outages
from fedsim.protocols.run_loop import RunLoop

__all__ = ["Waiting"]


class Waiting:
    """Part of a `fedsim.protocols.world.World`. What a server waits for is to be seen in the trace."""

    __slots__ = ()

    env: Environment
    trace: Trace
    loop: RunLoop
    outages: Outages

    def until_changed(self, at: Backbone | None = None) -> Generator[Event, Any, None]:
        """Wait until somebody may be reachable again, or free; the cloud does, or the station that *at* leads from."""
        since_s = self.env.now
        yield self.outages.changed
        self.note_pause(Pause.OUTAGE, since_s, at)

    def pause(self, kind: Pause, seconds: float, at: Backbone | None = None) -> Generator[Event, Any, None]:
        """The cloud, or the station that *at* leads from, lets *seconds* pass, for a reason that the trace keeps."""
        since_s = self.env.now
        yield self.env.timeout(seconds)
        self.note_pause(kind, since_s, at)

    def note_pause(self, kind: Pause, since_s: float, at: Backbone | None = None) -> None:
        """Since *since_s* until now time has passed at the cloud, or the station that *at* leads from; if it has."""
        if since_s < self.env.now:
            self.trace.pauses.append((-1 if at is None else at.cell, kind, since_s, self.env.now))

    def gather(
        self,
        journeys: Sequence[Journey],
        *,
        count: int | None = None,
        deadline_s: float | None = None,
        at: Backbone | None = None,
    ) -> Generator[Event, Any, Gathered]:
        """What came of the journeys, for which the cloud waits, or the station that *at* leads from.

        As `fedsim.kernel.gather.gather`, and the trace keeps what ended the waiting.
        """
        gathered: Gathered = yield gather(self.env, journeys, deadline_s=deadline_s, count=count)
        if gathered.last is None and gathered.late:
            self.note_pause(Pause.DEADLINE, gathered.since_s, at)
        if at is None:
            self.loop.closed_by = self.closed_by(gathered)
        return gathered

    @staticmethod
    def closed_by(gathered: Gathered) -> int:
        """Who was waited for last: a client, or of a station and of a group in sequence whom that has waited for."""
        if gathered.last is None:
            return AT_DEADLINE if gathered.late else NOBODY
        of = getattr(gathered.last, "of", None)
        index = getattr(of, "index", None)  # a client's; what else is waited for may know whom it has waited for
        return index if isinstance(index, int) else int(getattr(of, "closed_by", NOBODY))
