"""Half-duplex devices beside full-duplex ones, while messages come and go, rates change and everything fails.

At every event each half-duplex device sends or receives, whoever waits for it has a reason, and every byte is accounted
for; in the end every message has ended once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from meters import Books
from random_worlds import change_rates, times_s
from simpy import Event, Process
from small_worlds import prepared
from tiers import examples
from turns import Turns

from fedsim.kernel.gather import Lost
from fedsim.kernel.trace import Outcome
from fedsim.network.hop import Hop
from fedsim.radio.settings import Rates

NODES: dict[str, Any] = {
    "cloud": {"kind": "cloud"},
    "station": {"kind": "base_station"},
    **{
        f"{kind}-{number}": {"kind": "sensor", "attach": "station", "device": kind}
        for kind, number in (("half", 1), ("half", 2), ("full", 1), ("half", 3))
    },
}
HALL = {"name": "explicit", "nodes": NODES, "links": [{"between": ["cloud", "station"]}]}
FULL_DUPLEX, CLIENTS = 2, range(4)
"""Which of the clients can do both at once."""
COVERED, FAR_S = Rates(1_000.0, 2_000.0), 1_000.0

failures = st.builds(
    lambda node, at_s, for_s: {"node": node, "at_s": at_s} | ({} if for_s is None else {"for_s": for_s}),
    st.sampled_from(["station", "half-1", "half-2", "full-1", "cloud"]),
    times_s,
    st.sampled_from([0.25, 1.0, 4.0, 10.0, 10.0, None]),
)


class HalfDuplexUnderStress(RuleBasedStateMachine):
    """Messages go up and down one cell, most of them over the air alone, so that they meet on their devices."""

    @initialize(
        duplex=st.sampled_from(["full", "shared"]),
        discipline=st.sampled_from(
            [{"name": "serial"}, {"name": "dedicated"}, {"name": "fair"}, {"name": "fair", "weights": {"half": 3.0}}]
        ),
        delay_s=st.sampled_from([0.0, 0.5, 2.0]),
        loss=st.sampled_from([{}, {"probability": 0.3, "attempts": 2}]),
        scheduled=st.lists(failures, max_size=5),
        messages=st.sampled_from(["wait", "restart", "lose"]),
    )
    def build(self, delay_s: float, scheduled: list[dict[str, Any]], messages: str, **cell: Any) -> None:
        compute = {"name": "per_sample", "seconds_per_sample": 0.5}
        changes = {
            **{f"network.cell.{key}": value for key, value in cell.items()},
            "network.cell.delay_s": delay_s,
            "topology": HALL,
            "devices.classes": {kind: {"compute": compute, "duplex": kind} for kind in ("half", "full")},
            "faults": {"scheduled": scheduled, "messages": messages},
        }
        self.world, _ = prepared(changes)
        self.books, self.turns = Books.on(self.world), Turns(self.world)
        assert self.turns.half_duplex == set(CLIENTS) - {FULL_DUPLEX}
        self.under_way: list[Process] = []
        self.given_up: set[Process] = set()
        self.ends: Counter[str] = Counter()

    @rule(
        client=st.sampled_from(CLIENTS),
        ups=st.lists(st.booleans(), min_size=1, max_size=4),
        size_bytes=st.sampled_from([0.0, 50.0, 125.0, 500.0, 1_000.0]),
        far=st.booleans(),
    )
    def send(self, client: int, ups: list[bool], size_bytes: float, far: bool) -> None:
        attachment = self.world.clients[client].attachment
        for up in ups:
            way = (attachment.uplink if up else attachment.downlink) if far else attachment.air[0 if up else 1 :][:1]
            self.under_way.append(self.world.env.process(self._carry(client, way, size_bytes)))

    def _carry(self, client: int, way: tuple[Hop, ...], size_bytes: float) -> Generator[Event, Any, None]:
        end = "lost"
        with suppress(Lost):
            yield from self.world.network.carry(client, way, size_bytes)
            end = "there"
        self.ends[end] += 1

    @precondition(lambda self: any(process.is_alive for process in self.under_way))
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        alive = [number for number, process in enumerate(self.under_way) if process.is_alive]
        process = self.under_way[data.draw(st.sampled_from(alive))]
        process.interrupt()
        self.given_up.add(process)

    @rule(
        client=st.sampled_from(CLIENTS),
        rates=st.builds(
            Rates,
            uplink_bps=st.sampled_from([1_000.0, 500.0, 0.0]),
            downlink_bps=st.sampled_from([2_000.0, 1_000.0, 0.0]),
            uplink_share=st.sampled_from([0.25, 0.5, 1.0]),
        ),
    )
    def change_the_rates(self, client: int, rates: Rates) -> None:
        change_rates(self.world, client, [(0.0, rates), (FAR_S, COVERED)])  # or 0 would be for ever

    @rule(events=st.integers(1, 8))
    def let_events_happen(self, events: int) -> None:
        for _ in range(events):
            if self.world.env.peek() < math.inf:
                self.books.step()
                self._check()

    def _check(self) -> None:
        self.books.check()
        self.turns.check()

    def teardown(self) -> None:
        for client in CLIENTS:
            change_rates(self.world, client, [(0.0, COVERED)])
        while self.world.env.peek() < math.inf:
            self.books.step()
            self._check()
        assert not self.world.network.in_flight
        assert self.ends.total() == len(self.under_way)
        hops = self.world.trace.hops.array()
        over = hops[hops["outcome"] != Outcome.ARRIVED]["transfer"].tolist()
        assert len(over) == len(set(over)) <= self.ends["lost"]
        assert len({*zip(hops["transfer"].tolist(), hops["link"].tolist(), strict=True)}) == len(hops)
        self.turns.check_trace()


HalfDuplexUnderStress.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestHalfDuplexUnderStress = pytest.mark.drawn(HalfDuplexUnderStress.TestCase)
