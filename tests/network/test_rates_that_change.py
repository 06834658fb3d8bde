"""What becomes of messages when rates change, end for a while, or end for good; all times by hand.

In the base world 1000 B, which are 8000 bits, take 8 s up over the air, 4 s down, and 1 s over the wire.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from sending import crossed, failing, send
from small_worlds import NO_CONTENTION, prepared, simulated

from fedsim.errors import UserError
from fedsim.kernel.clock import Alarm
from fedsim.network import network as network_module
from fedsim.network.coverage import Coverage
from fedsim.network.disciplines.channel import Channel
from fedsim.network.faults.outages import Fate
from fedsim.network.network import TransferLost
from fedsim.protocols.world import World
from fedsim.radio.settings import Rates

EVERY_DISCIPLINE = pytest.mark.parametrize("discipline", ["serial", "dedicated", "fair"])


def with_rates(*changes: tuple[float, int, Rates], **also: Any) -> World:
    """The base world, in which these become the rates of these clients at these times."""
    world = failing(**also)
    coverage = Coverage(world.env, world.network, world.outages.tell)
    for client in world.clients:
        coverage.follow(
            client.attachment, iter([(at_s, rates) for at_s, index, rates in changes if index == client.index])
        )
    return world


def up(rate_bps: float, share: float = 1.0) -> Rates:
    return Rates(rate_bps, 2_000.0, share)


def over_the_air(world: World) -> list[tuple[float, ...]]:
    """Client, when it was through, how long it waited first, how long it was sent."""
    return [
        (row.client, row.end_s, row.queued_s, row.airtime_s) for row in crossed(world) if row.link == "cell station"
    ]


# -- one message -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "through_s", "airtime_s"),
    [
        ([(2.0, up(3_000.0))], 4.0, 4.0),  # 2000 bits before, 6000 after
        ([(2.0, up(500.0))], 14.0, 14.0),
        ([(2.0, up(500.0)), (4.0, up(2_500.0))], 6.0, 6.0),  # 2000, 1000, 5000
        ([(2.0, up(1_000.0))], 8.0, 8.0),
        ([(2.0, Rates(1_000.0, 9_000.0))], 8.0, 8.0),  # the other direction's
        ([(2.0, up(math.inf))], 2.0, 2.0),
        ([(9.0, up(500.0))], 8.0, 8.0),
        ([(2.0, up(0.0)), (10.0, up(1_000.0))], 16.0, 8.0),
        ([(2.0, up(0.0)), (3.0, up(0.0)), (10.0, up(3_000.0))], 12.0, 4.0),
        ([(2.0, up(0.0)), (4.0, up(1_000.0)), (5.0, up(0.0)), (6.5, up(1_000.0))], 11.5, 8.0),
    ],
)
@EVERY_DISCIPLINE
def test_what_is_left_is_sent_at_the_new_rate(
    discipline: str, changes: list[tuple[float, Rates]], through_s: float, airtime_s: float
) -> None:
    world = with_rates(*((at_s, 0, rates) for at_s, rates in changes), network__cell__discipline={"name": discipline})
    there = world.env.run(until=send(world))
    assert over_the_air(world) == [(0, through_s, 0.0, airtime_s)]
    assert there == through_s + 1.0
    assert crossed(world)[0].bytes == 1_000.0


@EVERY_DISCIPLINE
def test_a_download_meets_the_rate_of_its_own_direction(discipline: str) -> None:
    changes = [(3.0, 0, Rates(0.0, 1_000.0)), (4.0, 0, Rates(1_000.0, 4_000.0))]
    world = with_rates(*changes, network__cell__discipline={"name": discipline}, network__cell__duplex="shared")
    assert world.env.run(until=send(world, up=False)) == 4.75  # from 1 on: 4000, 1000 and 3000 bits


@EVERY_DISCIPLINE
def test_a_message_handed_over_without_coverage_waits_for_it(discipline: str) -> None:
    changes = [(2.0, 0, up(0.0)), (10.0, 0, up(2_000.0))]
    world = with_rates(*changes, network__cell__discipline={"name": discipline})
    send(world, at_s=3.0)
    world.env.run()
    assert over_the_air(world) == [(0, 14.0, 7.0, 4.0)]


@EVERY_DISCIPLINE
@pytest.mark.parametrize("delay_s", [0.0, 1.5])
def test_a_message_whose_last_bit_was_sent_gets_through_even_in_the_very_instant(
    discipline: str, delay_s: float
) -> None:
    for at_s in (8.0, 8.0 + delay_s / 2):
        changes = [(at_s, 0, up(0.0)), (90.0, 0, up(1_000.0))]
        world = with_rates(*changes, network__cell__discipline={"name": discipline}, network__cell__delay_s=delay_s)
        send(world)
        world.env.run(until=50.0)
        assert over_the_air(world) == [(0, 8.0 + delay_s, 0.0, 8.0)]


@EVERY_DISCIPLINE
def test_a_message_is_not_sent_at_a_rate_that_ends_in_the_instant_of_its_coming(discipline: str) -> None:
    changes = [(3.0, 0, up(0.0)), (10.0, 0, up(1_000.0))]
    world = with_rates(*changes, network__cell__discipline={"name": discipline})
    assert world.env.run(until=send(world, at_s=3.0)) == 10.0 + 8.0 + 1.0


@EVERY_DISCIPLINE
def test_resent_packets_count_in_proportion_however_often_the_rate_changes(discipline: str) -> None:
    lossy = {
        "network__cell__loss": {"probability": 0.9, "attempts": 50},
        "network__transport": {"payload_bytes": 100.0},
    }
    calm = failing(**lossy)
    calm.env.run(until=send(calm))
    changes = [(4.0 * n, 0, up([500.0, 0.0, 3_000.0, 1_000.0][n % 4])) for n in range(1, 40)]
    world = with_rates(*changes, **lossy, network__cell__discipline={"name": discipline})
    journey = send(world)
    world.env.run(until=journey)
    assert crossed(world)[0][5:8] == crossed(calm)[0][5:8]
    again = with_rates(*changes, **lossy, network__cell__discipline={"name": discipline})
    journey = send(again)
    again.env.run(until=17.0)
    journey.interrupt()
    again.env.run(until=18.0)
    cut, whole = crossed(again)[0], crossed(calm)[0]
    # 4000 bits at first, none for 4 s, 12000, 4000, and 500 in the last second.
    assert cut.bytes == pytest.approx(20_500 / 8, rel=1e-12)
    assert cut.again / cut.bytes == pytest.approx(whole.again / whole.bytes, rel=1e-12)


# -- among others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "through"),
    [
        # Alone: client 0 from 0 to 8, client 1 from 8 to 16.
        ([(2.0, 0, up(500.0))], [(0, 14.0, 0.0, 14.0), (1, 22.0, 14.0, 8.0)]),  # keeps its place
        ([(2.0, 0, up(3_000.0))], [(0, 4.0, 0.0, 4.0), (1, 12.0, 4.0, 8.0)]),
        ([(2.0, 1, up(2_000.0))], [(0, 8.0, 0.0, 8.0), (1, 12.0, 8.0, 4.0)]),  # while it waits
        ([(2.0, 0, up(0.0)), (4.0, 0, up(1_000.0))], [(1, 10.0, 2.0, 8.0), (0, 16.0, 0.0, 8.0)]),  # gives it up
        ([(2.0, 1, up(0.0)), (4.0, 1, up(1_000.0))], [(0, 8.0, 0.0, 8.0), (1, 16.0, 8.0, 8.0)]),
        ([(2.0, 1, up(0.0)), (9.5, 1, up(1_000.0))], [(0, 8.0, 0.0, 8.0), (1, 17.5, 9.5, 8.0)]),
        ([(2.0, 0, up(500.0)), (2.0, 1, up(2_000.0))], [(0, 14.0, 0.0, 14.0), (1, 18.0, 14.0, 4.0)]),
        ([(2.0, 0, up(0.0)), (2.0, 1, up(0.0)), (5.0, 1, up(1_000.0)), (6.0, 0, up(1_000.0))],
         [(1, 13.0, 5.0, 8.0), (0, 19.0, 0.0, 8.0)]),
    ],
)  # fmt: skip
def test_in_a_queue_a_slower_one_keeps_its_place_and_one_without_coverage_leaves_it(
    changes: list[tuple[float, int, Rates]], through: list[tuple[float, ...]]
) -> None:
    world = with_rates(*changes)
    for client in range(2):
        send(world, client=client)
    world.env.run()
    assert over_the_air(world) == through


def test_of_those_who_are_covered_again_in_one_instant_each_comes_once() -> None:
    changes = [(at_s, client, up(rate_bps)) for client in range(2) for at_s, rate_bps in ((2.0, 0.0), (5.0, 1_000.0))]
    world = with_rates(*changes)
    for client in range(2):
        send(world, client=client)
    world.env.run()
    assert over_the_air(world) == [(0, 11.0, 0.0, 8.0), (1, 19.0, 11.0, 8.0)]


def test_on_dedicated_air_nobody_notices_the_others_rate() -> None:
    changes = [(2.0, 0, up(500.0)), (2.0, 1, up(0.0)), (7.0, 1, up(3_000.0))]
    world = with_rates(*changes, network__cell__discipline={"name": "dedicated"}, topology__devices=3)
    for client in range(3):
        send(world, client=client)
    world.env.run()
    assert over_the_air(world) == [(2, 8.0, 0.0, 8.0), (1, 9.0, 0.0, 4.0), (0, 14.0, 0.0, 14.0)]


@pytest.mark.parametrize(
    ("changes", "through"),
    [
        # Both need half of the air for 1000 bit/s: nobody hinders the other. Airtime is of the whole channel.
        ([], [(0, 8.0, 4.0), (1, 8.0, 4.0)]),
        # From 2 on, client 0 needs all of it for 1000 bit/s and is given half: 3000 bits until 8, then 3000 in 3 s.
        ([(2.0, 0, up(1_000.0, 1.0))], [(1, 8.0, 4.0), (0, 11.0, 1.0 + 3.0 + 3.0)]),
        # From 2 on, client 0 needs a quarter: no change for anybody.
        ([(2.0, 0, up(1_000.0, 0.25))], [(1, 8.0, 4.0), (0, 8.0, 1.0 + 1.5)]),
        # Both need all of it: 6000 bits each at half the rate; in one instant.
        ([(2.0, 0, up(1_000.0)), (2.0, 1, up(1_000.0))], [(0, 14.0, 1.0 + 6.0), (1, 14.0, 1.0 + 6.0)]),
        # Client 0 leaves from 2 to 6, and client 1 can use all of it for 2000 bit/s: 6000 bits in 3 s.
        ([(2.0, 0, up(0.0, 0.5)), (2.0, 1, up(2_000.0, 1.0)), (6.0, 0, up(1_000.0, 0.5))],
         [(1, 5.0, 1.0 + 3.0), (0, 12.0, 1.0 + 3.0)]),
        # A quarter of the air is all that client 0 can use: the other three are client 1's until 8, and 2000 bits left.
        ([(0.0, 0, up(1_000.0, 0.25)), (0.0, 1, up(1_000.0, 1.0))], [(0, 8.0, 2.0), (1, 10.0, 6.0 + 2.0)]),
        # The rate follows the share: with the half of the air that it is given client 1 gets 1500 bit/s of 3000.
        ([(2.0, 1, up(3_000.0, 1.0))], [(1, 6.0, 1.0 + 2.0), (0, 8.0, 4.0)]),
    ],
)  # fmt: skip
def test_on_fair_air_rates_and_shares_change_what_is_left_for_others(
    changes: list[tuple[float, int, Rates]], through: list[tuple[float, ...]]
) -> None:
    halves = [(0.0, client, up(1_000.0, 0.5)) for client in range(2)]
    world = with_rates(*halves, *changes, network__cell__discipline={"name": "fair"})
    for client in range(2):
        send(world, client=client)
    world.env.run()
    assert [(client, end_s, airtime_s) for client, end_s, _, airtime_s in over_the_air(world)] == through


@pytest.mark.parametrize("discipline", ["serial", "dedicated"])
def test_where_the_air_is_not_shared_at_once_a_message_has_all_of_it(discipline: str) -> None:
    # A device that could do with a quarter of the carrier is alone on it all the same.
    changes = [(0.0, 0, up(1_000.0, 0.25)), (2.0, 0, up(500.0, 0.125))]
    world = with_rates(*changes, network__cell__discipline={"name": discipline})
    world.env.run(until=send(world))
    assert over_the_air(world) == [(0, 14.0, 0.0, 14.0)]


# -- and outages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "through_s"),
    [
        ([(3.0, 0, up(3_000.0))], 7.0),
        ([(3.0, 0, up(0.0)), (4.0, 0, up(3_000.0))], 7.0),
        ([(3.0, 0, up(0.0)), (9.0, 0, up(3_000.0))], 11.0),
        ([(2.0, 0, up(3_000.0))], 7.0),  # in the instant of its beginning
        ([(5.0, 0, up(3_000.0))], 7.0),  # of its end
        ([(1.0, 0, up(0.0)), (3.0, 0, up(1_000.0))], 12.0),
    ],
)
@EVERY_DISCIPLINE
def test_a_rate_may_change_during_an_outage(
    discipline: str, changes: list[tuple[float, int, Rates]], through_s: float
) -> None:
    away = {"scheduled": [{"node": "station", "at_s": 2.0, "for_s": 3.0}]}
    world = with_rates(*changes, faults=away, network__cell__discipline={"name": discipline})
    send(world)
    world.env.run()
    assert [row[1] for row in over_the_air(world)] == [through_s]


@EVERY_DISCIPLINE
def test_after_an_outage_all_of_it_is_sent_again_at_the_rate_of_then(discipline: str) -> None:
    away = {"scheduled": [{"node": "station", "at_s": 2.0, "for_s": 3.0}], "messages": "restart"}
    for changes in ([(3.0, 0, up(2_000.0))], [(3.0, 0, up(0.0)), (4.0, 0, up(2_000.0))]):
        world = with_rates(*changes, faults=away, network__cell__discipline={"name": discipline})
        send(world)
        world.env.run()
        assert over_the_air(world) == [(0, 9.0, 0.0, 2.0 + 4.0)]
        assert crossed(world)[0][5:8] == (1_250.0, 250.0, 0.0)


@EVERY_DISCIPLINE
def test_a_message_that_waits_for_coverage_is_lost_with_its_device(discipline: str) -> None:
    changes = [(2.0, 0, up(0.0)), (20.0, 0, up(1_000.0))]
    dies = {"scheduled": [{"node": "sensor-1", "at_s": 7.0, "for_s": 1.0}]}
    world = with_rates(*changes, faults=dies, network__cell__discipline={"name": discipline})
    journey = send(world)
    world.env.run()
    assert isinstance(journey.value, TransferLost)
    assert [row[2:8] for row in crossed(world)] == [(0.0, 7.0, "lost", 250.0, 0.0, 750.0)]


# -- when nothing more will come ---------------------------------------------------------------------------------------


@EVERY_DISCIPLINE
def test_when_coverage_has_ended_for_good_messages_are_lost(discipline: str) -> None:
    world = with_rates((2.0, 0, up(0.0)), network__cell__discipline={"name": discipline})
    there, later, down, others = send(world), send(world, at_s=3.0), send(world, up=False), send(world, client=1)
    world.env.run()
    assert isinstance(there.value, TransferLost) and isinstance(later.value, TransferLost)
    air = [row for row in crossed(world) if row.link == "cell station" and row.outcome == "lost"]
    assert [(row.end_s, row.withdrawn) for row in air] == [
        (2.0, 750.0 if discipline != "fair" else 875.0),
        (3.0, 1_000.0),
    ]
    assert down.value == 5.0  # that direction is still covered
    assert others.value > 8.0
    assert not world.clients[0].attachment.reachable
    assert world.outages.fate(world.clients[0].attachment) is Fate.UNCOVERED


@pytest.mark.parametrize("away", ["0,2000", "1000,0"], ids=["up", "down"])
def test_a_device_out_of_coverage_is_not_asked_until_it_is_back(away: str, tmp_path: Path) -> None:
    # Rounds of 17 s begin at 0, 17, 34, 51 and 68; client 0 is away from the instant of the second choice until 60.
    (tmp_path / "hall.csv").write_text(
        f"time_s,device,uplink_bps,downlink_bps\n0,*,1000,2000\n0,sensor-1,1000,2000\n17,sensor-1,{away}\n"
        "60,sensor-1,1000,2000\n",
        encoding="utf-8",
    )
    changes = {"network.cell.radio": {"name": "trace", "path": str(tmp_path / "hall.csv")}, "stop": {"rounds": 5}}
    rounds = simulated(NO_CONTENTION | changes).trace.rounds.array()
    assert rounds["selected"].tolist() == [2, 1, 1, 1, 2]
    assert rounds["end_s"].tolist() == [17.0 * number for number in range(1, 6)]


def test_an_upload_waits_for_coverage_while_its_device_is_busy(tmp_path: Path) -> None:
    # Uplinks last from 9 to 17: client 0's has sent 1000 bits until 10, and the other 7000 follow from 60 on.
    (tmp_path / "hall.csv").write_text(
        "time_s,device,uplink_bps,downlink_bps\n"
        "0,*,1000,2000\n0,sensor-1,1000,2000\n10,sensor-1,0,2000\n60,sensor-1,1000,2000\n",
        encoding="utf-8",
    )
    changes = {"network.cell.radio": {"name": "trace", "path": str(tmp_path / "hall.csv")}, "stop": {"rounds": 5}}
    protocol = {"name": "fedavg", "fraction": 1.0, "deadline_s": 17.0}
    world = simulated(NO_CONTENTION | changes | {"protocols": [protocol]})
    assert world.trace.rounds.array()["selected"].tolist() == [2, 1, 1, 1, 2]
    hops = world.trace.hops.array()
    own = hops[hops["access"] & hops["uplink"] & (hops["client"] == 0)]
    assert own["end_s"].tolist() == [67.0, 85.0]


def test_when_nobody_will_be_covered_again_the_run_ends_with_the_rounds_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "hall.csv").write_text(
        "time_s,uplink_bps,downlink_bps\n0,1000,2000\n20,0,0\n25,1000,2000\n50,1000,0\n", encoding="utf-8"
    )
    changes = {"network.cell.radio": {"name": "trace", "path": str(tmp_path / "hall.csv")}, "stop": {"rounds": 9}}
    world = simulated(NO_CONTENTION | changes)
    # The second round stands still from 20 to 25; the third is lost on its way down, or has been sent up by then.
    assert world.trace.rounds.array()[["end_s", "participants"]].tolist() == [(17.0, 2), (39.0, 2), (56.0, 2)]
    assert world.loop.cut_short == "no device can ever be reached again (2 out of coverage)"


def test_who_comes_back_into_coverage_has_the_share_of_his_new_rate() -> None:
    # From 2 to 4 there is no coverage; afterwards a quarter of the air is enough: the other one has three quarters.
    world = failing(network__cell__discipline={"name": "fair"})
    changes = iter([(2.0, Rates(0.0, 2_000.0)), (4.0, Rates(1_000.0, 2_000.0, 0.25, 1.0))])
    Coverage(world.env, world.network, world.outages.tell).follow(world.clients[0].attachment, changes)
    send(world), send(world, client=1)
    world.env.run()
    # client 1: 1 s + 2 s by 4 s, then 5 s of work at 3/4; client 0: 1 s of 8 by 2 s, then 7 s at its full rate
    assert {row.client: row.end_s for row in crossed(world) if row.link == "cell station"} == pytest.approx(
        {1: 4.0 + 5.0 / 0.75, 0: 4.0 + 7.0}
    )


def test_a_device_that_lost_its_coverage_for_ever_and_is_repaired_is_still_out_of_it() -> None:
    sensor = prepared()[0].clients[0].name
    world = failing({"node": sensor, "at_s": 4.0, "for_s": 1.0})
    attachment = world.clients[0].attachment
    Coverage(world.env, world.network, world.outages.tell).follow(attachment, iter([(2.0, Rates(0.0, 2_000.0))]))
    later = send(world, at_s=6.0)
    world.env.run()
    assert isinstance(later.value, TransferLost)
    assert crossed(world)[0].end_s == 6.0


@pytest.mark.parametrize("later", [(), ((20.0, Rates(1_000.0, 2_000.0)),)])
def test_what_has_been_sent_down_arrives_whether_or_not_there_ever_is_coverage_again(later: tuple[Any, ...]) -> None:
    # Sent from 1 to 5, and 2 s on the way; no coverage from 6 on.
    world = failing(network__cell__delay_s=2.0)
    changes = iter([(6.0, Rates(0.0, 0.0)), *later])
    Coverage(world.env, world.network, world.outages.tell).follow(world.clients[0].attachment, changes)
    assert world.env.run(until=send(world, up=False)) == 7.0


@pytest.mark.parametrize("discipline", ["serial", "fair"])
def test_a_cell_is_planned_once_when_the_rates_of_many_change_in_one_instant(
    discipline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = failing(topology__devices=40, network__cell__discipline={"name": discipline})
    channel = world.clients[0].attachment.air_uplink.channel
    planned, looked_for = [], []
    plan = "_replan" if discipline == "serial" else "_ring"
    original, on_link = getattr(type(channel), plan), world.network.on_link

    def counted(own: Channel, alarm: Alarm) -> None:
        if own is channel:
            planned.append(world.env.now)
        original(own, alarm)

    monkeypatch.setattr(type(channel), plan, counted)
    monkeypatch.setattr(world.network, "on_link", lambda link: (looked_for.append(link), on_link(link))[1])
    coverage = Coverage(world.env, world.network, world.outages.tell)
    for client in world.clients:
        coverage.follow(client.attachment, iter([(3.0, up(2_000.0))]))
        send(world, client=client.index)
    world.env.run(until=3.5)
    assert len(looked_for) == 1
    assert planned == ([3.0] if discipline == "serial" else [])


def test_a_device_that_is_repaired_while_it_has_no_coverage_waits_for_it() -> None:
    away, back = Rates(0.0, 0.0), up(1_000.0)
    dies = {"scheduled": [{"node": "sensor-1", "at_s": 2.0, "for_s": 1.0}]}
    world = with_rates((1.0, 0, away), (20.0, 0, back), faults=dies)
    sent = send(world, at_s=5.0)
    assert world.env.run(until=sent) == 20.0 + 8.0 + 1.0


# -- without end -------------------------------------------------------------------------------------------------------


def test_rates_that_change_while_no_message_ever_ends_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "MOST_CHANGES", 50)
    world = failing()
    coverage = Coverage(world.env, world.network, world.outages.tell)
    coverage.follow(world.clients[0].attachment, ((float(at_s), up(1e-9)) for at_s in itertools.count(1)))
    send(world)
    with pytest.raises(UserError, match="until 51 s .* rates changed 50 times while no message came to an end"):
        world.env.run(until=200.0)
