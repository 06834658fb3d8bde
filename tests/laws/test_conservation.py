"""Law 4: bytes handed to a link are received, lost, withdrawn or in flight: on every hop, at every moment.

With it goes the law of work: a channel in use is idle only when nobody is there or an outage closes it, and it gives
everybody what its discipline says; under outages, changing rates, losses, deadlines and messages that are given up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import pytest
from carriers import FairOnTwo, SerialOnTwo
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from meters import Books, close
from random_worlds import CROWDED_RING, STARS, change_rates, faults, networks, times_s
from simpy import Event, Process
from small_worlds import EVERYTHING_HAPPENS, Line, prepared
from tiers import drawn, examples
from turns import Turns

from fedsim.kernel.gather import Lost
from fedsim.kernel.trace import Outcome
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.disciplines.fair import FairChannel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.packets import Loss, Transport
from fedsim.network.transfer import Transfer
from fedsim.radio.settings import Rates

CHANNELS = [SerialChannel, DedicatedChannel, FairChannel, SerialOnTwo, FairOnTwo]

# -- a line of hops ----------------------------------------------------------------------------------------------------


class LineUnderStress(RuleBasedStateMachine):
    """Messages are sent along a line of hops and given up at any moment, at any place."""

    @initialize(
        rates_bps=st.lists(st.sampled_from([500.0, 1_000.0, 8_000.0]), min_size=1, max_size=3).map(tuple),
        delay_s=st.sampled_from([0.0, 0.5]),
        channel=st.sampled_from(CHANNELS),
        loss=st.builds(Loss, probability=st.sampled_from([0.0, 0.4]), attempts=st.integers(1, 3)),
        transport=st.builds(Transport, payload_bytes=st.sampled_from([None, 100.0]), header_bytes=st.just(25.0)),
    )
    def build(self, rates_bps: tuple[float, ...], delay_s: float, **how: Any) -> None:
        self.line = Line(rates_bps, delays_s=(delay_s,) * len(rates_bps), **how)
        self.books = Books(self.line.env, self.line.network, self.line.trace)
        self.under_way: list[Process] = []

    @rule(size_bytes=st.sampled_from([0.0, 50.0, 125.0, 1_000.0]))
    def send(self, size_bytes: float) -> None:
        def carry() -> Generator[Event, Any, None]:
            with suppress(Lost):
                yield from self.line.network.carry(0, self.line.route, size_bytes)

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
        for _ in self.books.steps_until_nothing_moves():
            self.books.check()


LineUnderStress.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestLineUnderStress = pytest.mark.drawn(LineUnderStress.TestCase)


# -- a network that fails, with rates that change ----------------------------------------------------------------------

rates = st.builds(
    Rates,
    uplink_bps=st.sampled_from([1_000.0, 500.0, 3_000.0, 0.0]),
    downlink_bps=st.sampled_from([2_000.0, 1_000.0, 0.0]),
    uplink_share=st.sampled_from([0.25, 0.4, 0.5, 1.0]),
    downlink_share=st.sampled_from([0.3, 0.5, 1.0]),
)
COVERED = Rates(1_000.0, 2_000.0, 0.5, 1.0)


changes_of_rates = st.lists(st.tuples(times_s.map(lambda gap_s: gap_s + 0.25), rates), max_size=6)
sizes_bytes = st.sampled_from([50.0, 125.0, 1_000.0, 4_000.0])
FAR_S = 1_000.0


class NetworkUnderStress(RuleBasedStateMachine):
    """Messages up and down a ring of base stations whose parts fail, and whose sensors' rates change at any moment."""

    @initialize(network=st.fixed_dictionaries(networks), faults=faults, rates=st.lists(rates, min_size=4, max_size=4))
    def build(self, network: dict[str, Any], faults: dict[str, Any], rates: list[Rates]) -> None:
        self.world, _ = prepared(network | {"topology": CROWDED_RING, "faults": faults})
        self.books, self.turns = Books.on(self.world), Turns(self.world)
        for client, of_it in enumerate(rates):
            self.change_the_rates(client, of_it)
        self.under_way: list[Process] = []

    @rule(clients=st.lists(st.integers(0, 3), min_size=1, max_size=4), up=st.booleans(), size_bytes=sizes_bytes)
    def send(self, clients: list[int], up: bool, size_bytes: float) -> None:
        for client in clients:
            self.under_way.append(self.world.env.process(self._carry(client, up, size_bytes)))

    def _carry(self, client: int, up: bool, size_bytes: float) -> Generator[Event, Any, None]:
        attachment = self.world.clients[client].attachment
        with suppress(Lost):
            yield from self.world.network.carry(client, attachment.uplink if up else attachment.downlink, size_bytes)

    @precondition(lambda self: any(process.is_alive for process in self.under_way))
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        alive = [number for number, process in enumerate(self.under_way) if process.is_alive]
        self.under_way[data.draw(st.sampled_from(alive))].interrupt()

    @rule(client=st.integers(0, 3), rates=rates)
    def change_the_rates(self, client: int, rates: Rates) -> None:
        change_rates(self.world, client, [(0.0, rates), (FAR_S, COVERED)])  # or 0 would be for ever

    @rule(events=st.integers(1, 8))
    def let_events_happen(self, events: int) -> None:
        for _ in range(events):
            if self.world.env.peek() < math.inf:
                self.books.step()
                self.books.check()
                self.turns.check()

    def teardown(self) -> None:
        for client in self.world.clients:
            change_rates(self.world, client.index, [(0.0, COVERED)])
        for _ in self.books.steps_until_nothing_moves():
            self.books.check()
            self.turns.check()
        self.turns.check_trace()


NetworkUnderStress.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
TestNetworkUnderStress = pytest.mark.drawn(NetworkUnderStress.TestCase)


# -- whole protocols ---------------------------------------------------------------------------------------------------

in_parallel = st.fixed_dictionaries(
    {
        "name": st.just("fedavg"),
        "clients": st.integers(1, 4),
        "over_selection": st.sampled_from([1.0, 2.0]),
        "busy": st.sampled_from(["skip", "abort"]),
        "deadline_s": st.sampled_from([None, 3.0, 12.0, 20.0]),
    }
)
in_sequence = st.fixed_dictionaries(
    {
        "name": st.just("stp"),
        "grouping": st.fixed_dictionaries(
            {"name": st.just("random"), "once": st.booleans(), "leftover": st.sampled_from(["idle", "spread"])}
        ),
        "growth": st.builds(lambda beta: {"name": "linear", "beta": beta, "alpha": 0.5}, st.integers(1, 3)),
        "sampling_rate": st.sampled_from([0.5, 1.0]),
        "interval": st.integers(1, 3),
        "shuffle": st.sampled_from(["regroup", "round"]),
        "on_loss": st.sampled_from(["skip", "abandon"]),
        "turn_s": st.sampled_from([None, 3.0, 12.0, 20.0]),
        "deadline_s": st.sampled_from([None, 3.0, 20.0, 40.0]),
    }
)
protocols = in_parallel | in_sequence
worlds = st.fixed_dictionaries(
    networks
    | {
        "stop": st.just({"rounds": 3}),
        "topology": st.sampled_from([*STARS, CROWDED_RING]),
        "network.late_transfers": st.sampled_from(["finish", "cancel"]),
        "devices.aggregation_s": st.sampled_from([0.0, 1.0]),
        "protocols": protocols.map(lambda protocol: [protocol]),
    }
)


@drawn(60)
@given(changes=worlds, seed=st.integers(0, 3))
def test_in_any_world_every_byte_is_accounted_for_at_every_event(changes: dict[str, Any], seed: int) -> None:
    world, protocol = prepared(changes, seed=seed)
    books = Books.on(world)
    ended = world.env.process(protocol.run(world))
    for _ in books.steps_until(ended):
        books.check()
    for _ in books.steps_until_nothing_moves():  # late transfers go on
        books.check()


@drawn(50)
@given(
    changes=worlds,
    faults=faults,
    changes_of_rates=st.lists(changes_of_rates, max_size=4),
    seed=st.integers(0, 3),
)
def test_so_it_is_where_things_fail_and_rates_change(
    changes: dict[str, Any], faults: dict[str, Any], changes_of_rates: list[list[tuple[float, Rates]]], seed: int
) -> None:
    changes = changes | {"topology": CROWDED_RING, "faults": faults, "stop": {"sim_time_s": 90.0}}
    world, protocol = prepared(changes, seed=seed)
    for client, of_it in enumerate(changes_of_rates):
        change_rates(world, client, of_it)
    books = Books.on(world)
    world.env.process(protocol.run(world)).defused = True  # it may be that nobody is left
    while world.env.peek() <= 90.0:
        books.step()
        books.check()


# -- what the laws would see -------------------------------------------------------------------------------------------


def test_every_outcome_occurs_where_everything_happens() -> None:
    world, protocol = prepared(EVERYTHING_HAPPENS | {"network.late_transfers": "cancel"})
    world.env.run(until=world.env.process(protocol.run(world)))
    assert set(world.trace.hops.array()["outcome"]) == {Outcome.ARRIVED, Outcome.LOST, Outcome.CANCELLED}


def test_watching_changes_nothing() -> None:
    changes = EVERYTHING_HAPPENS | {
        "network.cell.discipline": {"name": "fair"},
        "faults": {"random": [{"of": "wires", "mean_up_s": 20.0, "mean_down_s": 5.0}]},
    }
    watched, unwatched = prepared(changes), prepared(changes)
    books = Books.on(watched[0])
    for _ in books.steps_until(watched[0].env.process(watched[1].run(watched[0]))):
        books.check()
    unwatched[0].env.run(until=unwatched[0].env.process(unwatched[1].run(unwatched[0])))
    assert watched[0].trace.digest() == unwatched[0].trace.digest()


def too_much_sent(transfer: Transfer) -> None:
    transfer.share_sent += 1e-6


def too_much_airtime(transfer: Transfer) -> None:
    transfer.spent_s += 1e-6


def too_long_a_wait(transfer: Transfer) -> None:
    transfer.offered_s -= 1e-6


def a_byte_withdrawn(transfer: Transfer) -> None:
    transfer.repeated_bytes += 1.0


def forgotten(transfer: Transfer) -> None:
    transfer.hop.channel.channel.stop(transfer)  # type: ignore[attr-defined]


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("fault", [too_much_sent, too_much_airtime, too_long_a_wait, a_byte_withdrawn, forgotten])
def test_the_books_see_what_is_not_so(fault: Callable[[Transfer], None], channel: Any) -> None:
    line = Line((1_000.0,), channel=channel)
    books = Books(line.env, line.network, line.trace)
    line.env.process(line.network.carry(0, line.route, 1_000.0))
    line.env.timeout(2.0)
    books.step()
    books.step()
    books.check()
    (transfer,) = line.network.in_flight
    fault(transfer)
    with pytest.raises(AssertionError):
        books.check()


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_books_see_a_channel_that_sends_too_fast_or_too_slowly(channel: Any) -> None:
    for factor in (0.99, 1.01):

        class Wrong(channel):  # type: ignore[misc]
            def start(self, flow: Transfer, factor: float = factor) -> None:
                flow.need_s *= factor
                super().start(flow)

        line = Line((1_000.0,), channel=Wrong)
        books = Books(line.env, line.network, line.trace)
        line.env.process(line.network.carry(0, line.route, 1_000.0))
        with pytest.raises(AssertionError):
            for _ in range(10):
                books.step()
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
