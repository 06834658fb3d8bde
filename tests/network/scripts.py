"""Scripts of what happens on a channel, and a channel to which they happen, side by side with an exact one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from exact_channels import RULES, ExactChannel, Work
from flows import CHANNELS, Note, at, put
from hypothesis import strategies as st
from simpy import Environment

from fedsim.network.disciplines.channel import Channel

__all__ = ["LATE_S", "SHARES", "WEIGHTS", "SideBySide", "Step", "scripts", "starts"]

SHARES = (1.0, 0.5, 0.25, 0.75, 0.4, 0.3, 0.2, 1 / 3, 0.1, 1 / 48)
WEIGHTS = (1.0, 2.0, 0.5, 3.0, 0.1, 100.0)
LATE_S = 1e8
"""A clock of three years: a second more is a relative change of 1e-8."""


@dataclass(frozen=True)
class Step:
    """Something that happens on a channel, some time after the last thing."""

    gap_s: float
    first: bool
    """Before all else that happens in that instant, or after it."""
    what: str
    which: int = 0
    """Which of those that have not arrived it happens to."""
    need_s: float = 0.0
    share: float = 1.0
    weight: float = 1.0


gaps = st.one_of(st.just(0.0), st.sampled_from([0.5, 1.0, 2.0]), st.floats(1e-3, 20.0), st.floats(1e-9, 1e-3))
needs = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 4.0]), st.floats(1e-3, 30.0), st.floats(1e-9, 1e-3), st.floats(1e3, 1e5)
)
shares = st.one_of(st.sampled_from(SHARES), st.sampled_from(SHARES), st.floats(0.01, 1.0))
weights = st.one_of(st.sampled_from(WEIGHTS), st.sampled_from(WEIGHTS), st.floats(0.1, 100.0))
starts = st.builds(Step, gaps, st.booleans(), st.just("start"), need_s=needs, share=shares, weight=weights)
changes = st.builds(
    Step,
    gaps,
    st.booleans(),
    st.sampled_from(["stop", "adjust", "pause", "resume"]),
    which=st.integers(0, 30),
    need_s=needs,
    share=shares,
)
steps = st.one_of(starts, starts, changes)
scripts = st.one_of(st.lists(steps, min_size=1, max_size=20), st.lists(steps, min_size=20, max_size=50))


class SideBySide:
    """A channel and an exact one; they agree at every step, to 1e-9 s and 1e-12 of the clock."""

    def __init__(
        self,
        discipline: str,
        start_s: float = 0.0,
        *,
        delay_s: float = 0.0,
        carriers: int = 1,
        make: Callable[..., Channel] | None = None,
        compare: bool = True,
        starved: bool = False,
    ) -> None:
        """Where a flow may be *starved*, a rounding of what it needs is long: two units in the last place of all needs
        are allowed as well, at the pace that it had last."""
        self.env = Environment(start_s)
        self.channel = (make or CHANNELS[discipline])(self.env, delay_s, carriers)
        self.exact = ExactChannel(RULES[discipline], Fraction(start_s), carriers)
        self.flows: list[Note] = []
        self.stopped: set[Note] = set()
        self.least_need_s: list[float] = []
        self.operations = 0
        """Starts, stops, pauses and the like; another rate is a stop and a start."""
        self.events = 0
        """At every moment at most two for each operation and arrival: whatever happens sets two alarms at most."""
        self._compare = compare
        self._starved = starved

    @property
    def tolerance_s(self) -> float:
        return 1e-9 + 1e-12 * self.env.now

    def _late_s(self, work: Work) -> float:
        """How late a flow may be."""
        if not self._starved:
            return self.tolerance_s
        needs_s = math.fsum(float(one.given_s) for one in self.exact.flows.values())
        return self.tolerance_s + 2 * math.ulp(needs_s) / float(work.pace)

    def run(self, script: Sequence[Step]) -> None:
        """Let the whole script happen, and then everything that is still to come."""
        at_s = self.env.now
        for step in script:
            at_s += step.gap_s
            self._until(at_s, step.first)
            if self._compare:
                self.exact.advance(Fraction(self.env.now))
                self._settle_ties()
                self.check()
            self._do(step)
        if self.channel.paused:
            self._do(Step(0.0, True, "resume"))
        self._until(math.inf, True)
        if self._compare:
            self.exact.advance(None)
            self.check()

    def _until(self, at_s: float, first: bool) -> None:
        while (next_s := self.env.peek()) < at_s or (next_s == at_s and not first):
            self.env.step()
            self.events += 1
            assert self.events <= 2 * (self.operations + len(self.flows)), "events without end"
        if at_s < math.inf:
            at(self.env, at_s)

    def _do(self, step: Step) -> None:
        self.operations += 2 if step.what == "adjust" else 1
        if step.what == "start":
            self.exact.start(len(self.flows), step.need_s, step.share, step.weight)
            self.flows.append(put(self.channel, step.need_s, share=step.share, weight=step.weight))
            self.least_need_s.append(step.need_s)
        elif step.what == "pause" and not self.channel.paused:
            self.channel.pause()
            self.exact.paused = True
        elif step.what == "resume" and self.channel.paused:
            self.channel.resume()
            self.exact.paused = False
        elif here := [flow for flow in self.flows if math.isnan(flow.arrived_s) and flow not in self.stopped]:
            flow = here[step.which % len(here)]
            if step.what == "stop":
                self._stop(flow)
            elif step.what == "adjust" and self.channel.holds(flow):
                self._adjust(flow, step.need_s, step.share)

    def _stop(self, flow: Note) -> None:
        if self.channel.holds(flow):
            self.exact.stop(self.flows.index(flow))
        self.channel.stop(flow)
        self.stopped.add(flow)

    def _adjust(self, flow: Note, need_s: float, share: float) -> None:
        number = self.flows.index(flow)
        self.exact.adjust(number, need_s, share)
        self.channel.adjust(flow, need_s, share)
        self.least_need_s[number] = min(self.least_need_s[number], need_s)

    def _settle_ties(self) -> None:
        """What begins or is sent in this very instant, up to rounding, has begun or been sent on both or on neither."""
        for number, flow in enumerate(self.flows):
            work, held = self.exact.flows[number], self.channel.holds(flow)
            if held and work.gone_s is not None:
                assert self.env.now - work.gone_s <= self._late_s(work)
                self.exact.put_back(number)
            elif not held and number in self.exact.on:
                assert work.left_s * work.share <= self._late_s(work) * self.exact.parts()[number]
                self.exact.let_go(number)
            begun = flow.begun_s is not None and flow.begun_s <= self.env.now
            if begun and work.begun_s is None:
                work.begun_s = Fraction(flow.begun_s or 0.0)
                assert self.env.now - work.begun_s <= self.tolerance_s
            elif work.begun_s is not None and not begun:
                assert self.env.now - work.begun_s <= self.tolerance_s
                work.begun_s = None

    def check(self) -> None:
        """What has begun and arrived, how far each is and what it used is the same on both."""
        used_s = 0.0
        for number, flow in enumerate(self.flows):
            work, seen = self.exact.flows[number], self.channel.progress(flow)
            assert 0.0 <= seen.share_sent <= 1.0 and seen.spent_s >= 0.0
            assert abs(seen.spent_s - work.spent_s) <= self.tolerance_s
            assert abs(seen.share_sent - work.share_sent) * self.least_need_s[number] <= self.tolerance_s
            assert work.begun_s is None or abs(flow.begun_s - work.begun_s) <= self.tolerance_s
            self._check_arrival(flow, work)
            used_s += seen.spent_s
        assert abs(used_s - self.exact.used_s) <= self.tolerance_s * (1 + len(self.flows))

    def _check_arrival(self, flow: Note, work: Work) -> None:
        if flow in self.stopped or work.gone_s is None:
            assert math.isnan(flow.arrived_s)
            return
        due_s = work.gone_s + Fraction(self.channel.delay_s)
        if math.isnan(flow.arrived_s):
            assert due_s > self.env.now - self._late_s(work)
        else:
            assert abs(flow.arrived_s - due_s) <= self._late_s(work)
