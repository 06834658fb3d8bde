"""Law 5: a hop is a queue, and behaves as queueing theory says.

Messages come at random (Poisson) over one hop of a network, and the mean of their sojourns (from being handed to the
hop to having crossed it) is compared with the closed form. In each test of a mean the chance of a false alarm is 1e-4
for a seed at random, and a fault of 5 % in that mean would be seen with a chance of 0.99 or more: the test fails when
its standard error is too large for that (`Deviation.check`). The seeds are fixed.

Airtimes are 1 s in the mean if nothing else is said; the load is the part of time that the hop has something to do.
"""

from __future__ import annotations

import dataclasses
import heapq
import math

import numpy as np
import pytest
from carriers import FairOnThree, SerialOnThree
from meters import Books
from queues import (
    Deviation,
    Kind,
    Messages,
    Served,
    constant,
    deviation,
    exponential,
    hyperexponential,
    serve,
)
from small_worlds import EVERYTHING_HAPPENS, Line, prepared

from fedsim.metrics.tables import links_table
from fedsim.network.disciplines.channel import Channel
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.disciplines.fair import FairChannel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Direction
from fedsim.network.packets import Loss

# First come, first served.


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param(exponential(0.5), 100_000, id="M/M/1", marks=pytest.mark.long),
        pytest.param(constant(0.5), 35_000, id="M/D/1"),
    ],
)
def test_the_mean_sojourn_on_a_serial_hop_is_pollaczek_and_khinchines(kind: Kind, number: int) -> None:
    """E[T] = E[S] + rate E[S^2] / (2 (1 - load)); with exponential airtimes that is E[S] / (1 - load)."""
    load = kind.rate * kind.mean_s
    theory_s = kind.mean_s + kind.rate * kind.second_moment_s2 / (2 * (1 - load))
    served = serve(Messages.drawn("serial", number, kind), SerialChannel)
    deviation(served, theory_s, work_found=False).check()


def test_each_sojourn_on_a_serial_hop_is_the_work_found_and_its_own() -> None:
    served = serve(Messages.drawn("serial", 5_000, hyperexponential(0.9, 9.0)), SerialChannel)
    expected_s = served.messages.work_found_s + served.messages.airtimes_s
    assert served.sojourn_s == pytest.approx(expected_s, rel=1e-9, abs=1e-9)


@pytest.mark.long
def test_retransmissions_make_the_queue_that_their_airtime_makes() -> None:
    # Half of the messages are sent twice, and half of these are lost: airtimes of 2/3 and 4/3 s, so E[S^2] = 10/9.
    load, loss = 0.5, Loss(probability=0.5, attempts=2)
    served = serve(Messages.drawn("lossy", 60_000, constant(load, 2 / 3)), SerialChannel, loss=loss)
    deviation(served, 1 + load * (10 / 9) / (2 * (1 - load))).check()
    lost, number = float(np.mean(served.lost)), len(served.lost)
    Deviation(lost / 0.25 - 1, math.sqrt(0.25 * 0.75 / number) / 0.25, number - 1).check()


def test_on_a_dedicated_hop_the_sojourn_is_the_airtime_whatever_the_load() -> None:
    served = serve(Messages.drawn("dedicated", 5_000, exponential(20.0)), DedicatedChannel)
    assert served.sojourn_s == pytest.approx(served.messages.airtimes_s, rel=1e-9, abs=1e-9)


# Everybody an equal part: processor sharing.


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param(exponential(0.6), 30_000, id="M/M/1-PS"),
        pytest.param(constant(0.8), 30_000, id="M/D/1-PS", marks=pytest.mark.long),
        pytest.param(hyperexponential(0.5, 9.0), 80_000, id="M/H/1-PS", marks=pytest.mark.long),
    ],
)
def test_the_mean_sojourn_on_a_fair_hop_does_not_depend_on_the_distribution_of_sizes(kind: Kind, number: int) -> None:
    """E[T] = E[S] / (1 - load): sharing is insensitive (Kelly, Reversibility and Stochastic Networks, 1979, 3.3).

    With constant sizes at a load of 0.8 that is 5 E[S]; there the controls leave nothing to chance, and
    `test_equal_messages_delay_each_other_equally` says why.
    """
    served = serve(Messages.drawn("fair", number, kind), FairChannel)
    deviation(served, kind.mean_s / (1 - kind.rate * kind.mean_s)).check()


@pytest.mark.long
def test_the_mean_sojourn_on_a_fair_hop_is_in_proportion_to_the_size() -> None:
    """E[T | x] = x / (1 - load): who asks for twice as much stays twice as long (Kleinrock, J. ACM 14, 1967)."""
    load, sizes_s, chances = 0.6, (0.25, 1.0, 4.0), (0.5, 0.375, 0.125)
    kinds = [constant(load * chance, size_s) for size_s, chance in zip(sizes_s, chances, strict=True)]
    served = serve(Messages.drawn("sizes", 60_000, *kinds), FairChannel)
    for number, size_s in enumerate(sizes_s):
        deviation(served, size_s / (1 - load), kind=number).check()


def test_weights_divide_a_fair_hop_as_fayolle_mitrani_and_iasnogorodski_say() -> None:
    """Two kinds of weights w, exponential airtimes of means 1 / mu and loads r, in all r_1 + r_2 = r:

    E[T_1] = (1 + mu_1 r_2 (w_2 - w_1) / D) / (mu_1 (1 - r)),  D = mu_1 w_1 (1 - r_1) + mu_2 w_2 (1 - r_2)

    (J. ACM 27, 1980; in this form in Altman, Avrachenkov and Ayesta, Queueing Systems 53, 2006).
    """
    slow = dataclasses.replace(exponential(0.2, 1.5), weight=1.0)
    fast = dataclasses.replace(exponential(0.6, 0.5), weight=4.0)
    served = serve(Messages.drawn("weights", 60_000, slow, fast), FairChannel)
    load, apart = {kind: kind.rate * kind.mean_s for kind in (slow, fast)}, 0.0
    for kind in (slow, fast):
        apart += kind.weight * (1 - load[kind]) / kind.mean_s
    for number, (kind, other) in enumerate([(slow, fast), (fast, slow)]):
        gain = load[other] * (other.weight - kind.weight) / kind.mean_s / apart
        deviation(served, (1 + gain) * kind.mean_s / (1 - load[kind] - load[other]), kind=number).check()


@pytest.mark.parametrize(
    "kind",
    [pytest.param(exponential(2.8), id="M/M/4", marks=pytest.mark.long), pytest.param(constant(2.8), id="M/D/4")],
)
def test_a_hop_of_which_each_can_use_a_quarter_is_erlangs_queue_of_four(kind: Kind) -> None:
    """Up to four are at their full rate, more of them share: as many are present as in M/M/4, whatever the distribution
    of sizes (Cohen, Acta Informatica 12, 1979), so E[T] = E[S] (1 + C / (4 (1 - load))), with Erlang's C for a wait.
    """
    narrow = dataclasses.replace(kind, share=1 / 4)
    served = serve(Messages.drawn("narrow", 60_000, narrow), FairChannel)
    deviation(served, erlangs_sojourn_s(kind, 4)).check()


def erlangs_sojourn_s(kind: Kind, servers: int) -> float:
    """The mean in M/M/c, of which Erlang's C is the chance of a wait."""
    offered = kind.rate * kind.mean_s
    load = offered / servers
    all_busy = offered**servers / math.factorial(servers) / (1 - load)
    erlang_c = all_busy / (all_busy + sum(offered**busy / math.factorial(busy) for busy in range(servers)))
    return kind.mean_s * (1 + erlang_c / (servers * (1 - load)))


# Several carriers.


@pytest.mark.parametrize(
    ("channel", "kind", "number"),
    [
        pytest.param(SerialOnThree, exponential(1.8), 40_000, id="M/M/3"),
        pytest.param(FairOnThree, exponential(1.8), 60_000, id="M/M/3-PS", marks=pytest.mark.long),
        pytest.param(FairOnThree, hyperexponential(1.8, 9.0), 60_000, id="M/H/3-PS", marks=pytest.mark.long),
    ],
)
def test_a_hop_of_three_carriers_is_erlangs_queue_of_three(channel: type[Channel], kind: Kind, number: int) -> None:
    """Queued before the carriers, with exponential airtimes; or shared, whatever the distribution of sizes."""
    served = serve(Messages.drawn("carriers", number, kind, carriers=3), channel)
    deviation(served, erlangs_sojourn_s(kind, 3)).check()


def test_each_sojourn_on_a_serial_hop_of_three_carriers_is_kiefers_and_wolfowitzs() -> None:
    """Each has the carrier that is free first (Transactions of the American Mathematical Society 78, 1955)."""
    served = serve(Messages.drawn("carriers", 5_000, hyperexponential(2.7, 9.0), carriers=3), SerialOnThree)
    free_s, expected_s = [0.0] * 3, []
    for start_s, airtime_s in zip(served.start_s.tolist(), served.messages.airtimes_s.tolist(), strict=True):
        expected_s.append(max(start_s, free_s[0]) + airtime_s)
        heapq.heapreplace(free_s, expected_s[-1])
    assert served.end_s == pytest.approx(expected_s, rel=1e-9)


def test_three_carriers_are_one_of_which_each_can_use_a_third() -> None:
    kind = exponential(2.7)
    several = serve(Messages.drawn("carriers", 2_000, kind, carriers=3), FairOnThree)
    single = serve(Messages.drawn("carriers", 2_000, dataclasses.replace(kind, share=1 / 3)), FairChannel)
    assert several.sojourn_s == pytest.approx(single.sojourn_s, rel=1e-9, abs=1e-9)


# What holds on every path, without any chance.


def offered_to_all() -> Messages:
    return Messages.drawn("all", 5_000, hyperexponential(0.8, 9.0))


def test_a_fair_hop_is_empty_when_a_serial_one_is() -> None:
    # Work conservation: whoever is served first, the work that is left is the same.
    fair, serial = serve(offered_to_all(), FairChannel), serve(offered_to_all(), SerialChannel)
    assert (fair.cycles == serial.cycles).all()
    last = np.flatnonzero(np.diff(fair.cycles, append=fair.cycles[-1] + 1))

    def emptied_s(served: Served) -> np.ndarray:
        return np.maximum.accumulate(served.end_s)[last]

    assert len(last) > 500
    assert emptied_s(fair) == pytest.approx(emptied_s(serial), rel=1e-12)


def test_equal_messages_delay_each_other_equally() -> None:
    # While two are there together, both have the same: until the first is through, each delays the other by what the
    # first had left when the second came. So the sojourns are the airtimes and twice the work found, in the sum.
    served = serve(Messages.drawn("equal", 5_000, constant(0.8)), FairChannel)
    expected_s = len(served.end_s) + 2 * float(served.messages.work_found_s.sum())
    assert float(served.sojourn_s.sum()) == pytest.approx(expected_s, rel=1e-9)


@pytest.mark.parametrize("channel", [SerialChannel, DedicatedChannel, FairChannel, SerialOnThree, FairOnThree])
def test_littles_law_holds_on_every_hop_of_a_line(channel: type[Channel]) -> None:
    # The number on each channel, watched event by event, is in the mean what the rows of the trace add up to; and a
    # channel that has something to do spends all of its time on it, on as many carriers as can be used.
    line = Line((8_000.0, 10_000.0), channel=channel)
    carriers = line.route[0].channel.carriers
    messages = Messages.drawn("little", 2_000, exponential(0.7 * carriers))
    arrivals_s = np.cumsum(messages.gaps_s)
    for arrival_s, airtime_s in zip(arrivals_s.tolist(), messages.airtimes_s.tolist(), strict=True):
        line.env.timeout(arrival_s).callbacks.append(
            lambda _, size=1_000 * airtime_s: line.env.process(line.network.carry(0, line.route, size))
        )
    present_s, busy_s = np.zeros(2), np.zeros(2)
    while line.env.peek() < math.inf:
        passed_s = line.env.peek() - line.env.now
        there = np.array([len(hop.channel.flows) for hop in line.route])
        present_s += passed_s * there
        busy_s += passed_s * np.minimum(there, carriers)
        line.env.step()
    hops = line.trace.hops.array()
    for number in (0, 1):
        rows = hops[hops["link"] == number]
        assert np.sum(rows["end_s"] - rows["start_s"]) == pytest.approx(present_s[number], rel=1e-9)
        if channel is not DedicatedChannel:
            assert np.sum(rows["airtime_s"]) == pytest.approx(busy_s[number], rel=1e-9)
        if not issubclass(channel, FairChannel):
            assert np.sum(rows["queued_s"] + rows["airtime_s"]) == pytest.approx(present_s[number], rel=1e-9)


@pytest.mark.parametrize("duplex", ["full", "shared"])
@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_littles_law_holds_on_every_channel_of_a_whole_scenario(duplex: str, late_transfers: str) -> None:
    # The mean number of messages on a channel, watched event by event, is what the table of links makes of the waits
    # and airtimes of single messages (L = lambda W), messages still in flight included.
    changes = EVERYTHING_HAPPENS | {"network.cell.duplex": duplex, "network.late_transfers": late_transfers}
    world, protocol = prepared(changes)
    books = Books.on(world)
    for _ in books.steps_until(world.env.process(protocol.run(world))):
        pass
    table = links_table(world.trace, list(world.network.in_flight), world.network.links, duration_s=world.env.now)
    table = table.set_index(["link", "direction"])
    in_mean = {
        (link.index, direction): table.loc[(link.label, direction.value), ["utilisation", "mean_queue"]].sum()
        for link in world.network.links
        for direction in Direction
    }
    assert len(books.channels) == (4 * (1 if duplex == "shared" else 2) + 2 * 6)
    assert max(books.present_s.values()) > 0
    for channel, ways in books.channels.items():
        watched = books.present_s[channel] / world.env.now
        assert sum(in_mean[way] for way in ways) == pytest.approx(watched, rel=1e-9)
