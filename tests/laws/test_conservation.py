"""Law 4: bytes handed to a link are received, lost, given up or in flight: on every hop, at every moment."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from meters import Books, close
from simpy import Event, Process
from small_worlds import EVERYTHING_HAPPENS, Line, prepared

from fedsim.kernel.gather import Lost
from fedsim.kernel.trace import Outcome
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.packets import Loss, Transport


class LineUnderStress(RuleBasedStateMachine):
    """Messages are sent along a line of hops and given up at any moment, at any place."""

    @initialize(
        rates_bps=st.lists(st.sampled_from([500.0, 1_000.0, 8_000.0]), min_size=1, max_size=3).map(tuple),
        delay_s=st.sampled_from([0.0, 0.5]),
        channel=st.sampled_from([SerialChannel, DedicatedChannel]),
        loss=st.builds(Loss, probability=st.sampled_from([0.0, 0.4]), attempts=st.integers(1, 3)),
        transport=st.builds(Transport, payload_bytes=st.sampled_from([None, 100.0]), header_bytes=st.just(25.0)),
    )
    def build(self, rates_bps: tuple[float, ...], delay_s: float, **how: Any) -> None:
        self.line = Line(rates_bps, delays_s=(delay_s,) * len(rates_bps), **how)
        self.books = Books(self.line.env, self.line.network, self.line.trace)
        self.route = self.books.metered(self.line.route)
        self.under_way: list[Process] = []

    @rule(size_bytes=st.sampled_from([0.0, 50.0, 125.0, 1_000.0]))
    def send(self, size_bytes: float) -> None:
        def carry() -> Generator[Event, Any, None]:
            with suppress(Lost):
                yield from self.line.network.carry(0, self.route, size_bytes)

        self.under_way.append(self.line.env.process(carry()))

    @precondition(lambda self: any(process.is_alive for process in self.under_way))
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        alive = [number for number, process in enumerate(self.under_way) if process.is_alive]
        self.under_way[data.draw(st.sampled_from(alive))].interrupt()

    @precondition(lambda self: self.line.env.peek() < math.inf)
    @rule(events=st.integers(1, 5))
    def let_events_happen(self, events: int) -> None:
        for _ in range(events):
            if self.line.env.peek() < math.inf:
                self.books.step()
                self.books.check()

    def teardown(self) -> None:
        for _ in self.books.steps_to_the_end():
            self.books.check()
        assert not self.line.network.in_flight


LineUnderStress.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLineUnderStress = LineUnderStress.TestCase


worlds = st.fixed_dictionaries(
    {
        "stop": st.just({"rounds": 3}),
        "topology": st.sampled_from(
            [
                {"name": "star", "devices": 3},
                {"name": "factory_park", "factories": 2, "devices_per_factory": 2},
            ]
        ),
        "network.cell.duplex": st.sampled_from(["full", "half"]),
        "network.cell.discipline": st.sampled_from([{"name": "serial"}, {"name": "dedicated"}]),
        "network.cell.delay_s": st.sampled_from([0.0, 0.25]),
        "network.cell.loss": st.sampled_from([{}, {"probability": 0.3, "attempts": 2}]),
        "network.link": st.sampled_from([{"rate_bps": 8_000}, {"rate_bps": 3_000, "loss": {"probability": 0.2}}]),
        "network.transport": st.sampled_from([{}, {"payload_bytes": 300, "header_bytes": 40}]),
        "network.late_transfers": st.sampled_from(["finish", "cancel"]),
        "devices.aggregation_s": st.sampled_from([0.0, 1.0]),
        "protocols": st.fixed_dictionaries(
            {
                "name": st.just("fedavg"),
                "clients": st.integers(1, 4),
                "over_selection": st.sampled_from([1.0, 2.0]),
                "busy": st.sampled_from(["skip", "abort"]),
                "deadline_s": st.sampled_from([None, 3.0, 12.0, 20.0]),
            }
        ).map(lambda protocol: [protocol]),
    }
)


@settings(max_examples=150, deadline=None)
@given(changes=worlds, seed=st.integers(0, 3))
def test_in_any_world_every_byte_is_accounted_for_at_every_event(changes: dict[str, Any], seed: int) -> None:
    world, protocol = prepared(changes, seed=seed)
    books = Books.on(world)
    ended = world.env.process(protocol.run(world))
    for _ in books.steps_until(ended):
        books.check()
    for _ in books.steps_to_the_end():  # late transfers go on
        books.check()
    assert not world.network.in_flight


def test_every_outcome_occurs_where_everything_happens() -> None:
    world, protocol = prepared(EVERYTHING_HAPPENS | {"network.late_transfers": "cancel"})
    world.env.run(until=world.env.process(protocol.run(world)))
    assert set(world.trace.hops.array()["outcome"]) == {Outcome.ARRIVED, Outcome.LOST, Outcome.CANCELLED}


def test_the_books_see_a_byte_that_was_not_counted() -> None:
    line = Line((1_000.0,))
    books = Books(line.env, line.network, line.trace)
    (hop,) = books.metered(line.route)
    hop.channel.start(8.0)  # a message of 1000 B that the network knows nothing of
    with pytest.raises(AssertionError):
        books.check()


def test_bytes_given_up_are_what_the_rate_and_the_time_say() -> None:
    world, protocol = prepared(EVERYTHING_HAPPENS | {"network.late_transfers": "cancel"})
    world.env.run(until=world.env.process(protocol.run(world)))
    rates_bps = {
        (hop.link.index, hop.direction.value == "uplink"): hop.rate_bps
        for client in world.clients
        for hop in (*client.uplink, *client.downlink)
    }
    hops = world.trace.hops.array()
    assert (hops["outcome"] == Outcome.CANCELLED).sum() >= 3
    for row in hops:
        assert close(row["bytes"], row["airtime_s"] * rates_bps[row["link"], bool(row["uplink"])] / 8)
