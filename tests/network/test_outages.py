"""What an outage does to messages: waiting, being sent, on their way, handed over meanwhile, or somewhere else.

In the base world 1000 B take 8 s up over the air, 4 s down, and 1 s over the wire in each direction.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from sending import crossed, failing, send
from small_worlds import RING, prepared

from fedsim.network.coverage import Coverage
from fedsim.network.network import TransferLost
from fedsim.radio.settings import Rates

RULES = ["wait", "restart", "lose"]
DISCIPLINES = ["serial", "dedicated", "fair"]
STATION_AWAY = {"node": "station", "at_s": 2.0, "for_s": 3.0}
EVERY_DISCIPLINE = pytest.mark.parametrize("discipline", DISCIPLINES)


def the(rule: str) -> dict[str, Any]:
    return {"messages": rule}


# -- the three rules ---------------------------------------------------------------------------------------------------


@EVERY_DISCIPLINE
def test_a_message_that_waits_keeps_what_was_sent_and_goes_on(discipline: str) -> None:
    world = failing(STATION_AWAY, network__cell__discipline={"name": discipline})
    assert world.env.run(until=send(world)) == 8.0 + 3.0 + 1.0
    air, wire = crossed(world)
    assert air[2:] == (0.0, 11.0, "arrived", 1_000.0, 0.0, 0.0, 0.0, 8.0)
    assert wire[2:] == (11.0, 12.0, "arrived", 1_000.0, 0.0, 0.0, 0.0, 1.0)


@EVERY_DISCIPLINE
def test_a_message_that_is_restarted_is_sent_again_from_its_beginning_and_all_counts(discipline: str) -> None:
    world = failing(STATION_AWAY, faults=the("restart"), network__cell__discipline={"name": discipline})
    assert world.env.run(until=send(world)) == 5.0 + 8.0 + 1.0
    assert crossed(world)[0][2:] == (0.0, 13.0, "arrived", 1_250.0, 250.0, 0.0, 0.0, 10.0)
    assert sum(world.network.access_bytes.values()) == 1_250.0


@EVERY_DISCIPLINE
def test_a_message_that_an_outage_destroys_is_lost_at_once_and_the_rest_is_withdrawn(discipline: str) -> None:
    world = failing(STATION_AWAY, faults=the("lose"), network__cell__discipline={"name": discipline})
    lost = world.env.run(until=send(world))
    assert isinstance(lost, TransferLost)
    assert lost.args == (0, 0, "cell station")
    assert [row[2:] for row in crossed(world)] == [(0.0, 2.0, "lost", 250.0, 0.0, 750.0, 0.0, 2.0)]


@pytest.mark.parametrize(
    ("rule", "there_s", "queued_s"), [("wait", 5.0 + 8.0 + 1.0, 2.0), ("restart", 5.0 + 8.0 + 1.0, 2.0)]
)
@EVERY_DISCIPLINE
def test_what_is_handed_over_during_an_outage_waits_for_its_end(
    discipline: str, rule: str, there_s: float, queued_s: float
) -> None:
    world = failing(STATION_AWAY, faults=the(rule), network__cell__discipline={"name": discipline})
    assert world.env.run(until=send(world, at_s=3.0)) == there_s
    assert crossed(world)[0][2:] == (3.0, 13.0, "arrived", 1_000.0, 0.0, 0.0, queued_s, 8.0)


@EVERY_DISCIPLINE
def test_where_outages_destroy_messages_what_is_handed_over_meanwhile_is_lost_at_once(discipline: str) -> None:
    world = failing(STATION_AWAY, faults=the("lose"), network__cell__discipline={"name": discipline})
    meanwhile, afterwards = send(world, at_s=3.0), send(world, at_s=5.25)
    world.env.run()
    assert isinstance(meanwhile.value, TransferLost)
    assert crossed(world)[0][2:] == (3.0, 3.0, "lost", 0.0, 0.0, 1_000.0, 0.0, 0.0)
    assert afterwards.value == 5.25 + 8.0 + 1.0


def outages(*beginnings_s: float) -> list[dict[str, Any]]:
    """Of one second each."""
    return [{"node": "station", "at_s": at_s, "for_s": 1.0} for at_s in beginnings_s]


@pytest.mark.parametrize(
    ("attempts", "row"),
    [
        # Begun at 0, 3 and 6: 2 s each time, which is 250 B, and then all of it.
        (1, (0.0, 2.0, "lost", 250.0, 0.0, 750.0, 0.0, 2.0)),
        (2, (0.0, 5.0, "lost", 500.0, 250.0, 750.0, 0.0, 4.0)),
        (3, (0.0, 14.0, "arrived", 1_500.0, 500.0, 0.0, 0.0, 12.0)),
    ],
)
@EVERY_DISCIPLINE
def test_a_message_is_restarted_until_its_attempts_are_used_up(
    discipline: str, attempts: int, row: tuple[Any, ...]
) -> None:
    world = failing(
        *outages(2.0, 5.0),
        faults=the("restart"),
        network__cell__discipline={"name": discipline},
        network__cell__loss={"attempts": attempts},
    )
    send(world)
    world.env.run()
    assert crossed(world)[0][2:] == row


def test_an_outage_that_destroys_nothing_is_no_attempt() -> None:
    # Two of the three outages find the second message in the queue: nothing of it had been sent.
    world = failing(*outages(1.0, 3.0, 11.0), faults=the("restart"), network__cell__loss={"attempts": 2})
    first, second = send(world), send(world, client=1)
    world.env.run()
    assert isinstance(first.value, TransferLost)  # at 3
    assert crossed(world)[1][:5] == (1, "cell station", 0.0, 20.0, "arrived")  # sent from 4 to 11, and from 12 on
    assert second.value == 21.0


def test_packets_sent_again_before_an_outage_are_in_vain_too() -> None:
    lossy = {"probability": 0.9, "attempts": 50}
    cut = {"payload_bytes": 100.0}
    calm = failing(network__cell__loss=lossy, network__transport=cut)
    calm.env.run(until=send(calm))
    whole = crossed(calm)[0]
    assert whole.again > 1_000.0
    world = failing(STATION_AWAY, faults=the("restart"), network__cell__loss=lossy, network__transport=cut)
    world.env.run(until=send(world))
    restarted = crossed(world)[0]
    assert (restarted.bytes, restarted.again) == (whole.bytes + 250.0, whole.again + 250.0)


# -- outages without end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@EVERY_DISCIPLINE
def test_an_outage_for_ever_loses_what_is_there_and_what_comes_later(discipline: str, rule: str) -> None:
    world = failing({"node": "station", "at_s": 2.0}, faults=the(rule), network__cell__discipline={"name": discipline})
    there, later = send(world), send(world, at_s=6.0)
    world.env.run()
    assert isinstance(there.value, TransferLost) and isinstance(later.value, TransferLost)
    assert [row[2:5] for row in crossed(world)] == [(0.0, 2.0, "lost"), (6.0, 6.0, "lost")]


@pytest.mark.parametrize("rule", ["wait", "restart"])
def test_an_outage_that_becomes_one_for_ever_loses_those_who_waited_for_its_end(rule: str) -> None:
    world = failing({"node": "station", "at_s": 4.0}, STATION_AWAY, faults=the(rule))
    send(world)
    world.env.run()
    assert crossed(world)[0][2:] == (
        0.0,
        4.0,
        "lost",
        250.0,
        *((250.0, 1_000.0) if rule == "restart" else (0.0, 750.0)),
        0.0,
        2.0,
    )


def test_another_outage_on_a_link_that_is_gone_does_not_bring_it_back() -> None:
    world = failing({"node": "station", "at_s": 1.0}, STATION_AWAY)
    late = send(world, at_s=7.0)
    world.env.run()
    assert isinstance(late.value, TransferLost)


# -- which links -------------------------------------------------------------------------------------------------------

UP_OVER_THE_RING = ["cell east-station", "east -- east-station", "cloud -- east"]


@pytest.mark.parametrize(
    ("fault", "closed"),
    [
        ({"node": "east-station"}, {"cell east-station", "east -- east-station", "east-station -- west-station"}),
        ({"node": "east"}, {"cloud -- east", "east -- east-station"}),
        ({"node": "cloud"}, {"cloud -- east", "cloud -- west"}),
        ({"link": ["east", "cloud"]}, {"cloud -- east"}),
        ({"link": ["cloud", "east"]}, {"cloud -- east"}),
        ({"node": "east-1"}, set()),
    ],
    ids=["station", "edge", "cloud", "wire", "wire, the other way round", "sensor"],
)
def test_a_node_fails_with_all_its_links_and_a_wire_alone(fault: dict[str, Any], closed: set[str]) -> None:
    world = failing(fault | {"at_s": 0.0, "for_s": 5.0}, topology=RING)
    world.env.run(until=1.0)
    assert {link.label for link in world.network.links if link.closed} == closed
    world.env.run(until=6.0)
    assert not any(link.closed for link in world.network.links)


def test_a_wire_fails_in_both_directions_and_the_air_before_it_does_not() -> None:
    # Up: over the air until 8, then 1 s over the wire, of which half is sent. Down, from 8: the other way round.
    world = failing({"link": ["cloud", "station"], "at_s": 8.5, "for_s": 10.0})
    up, down = send(world), send(world, client=1, up=False, at_s=8.0)
    world.env.run()
    assert (up.value, down.value) == (19.0, 19.0 + 4.0)


@pytest.mark.parametrize("rule", RULES)
def test_others_go_on(rule: str) -> None:
    away = {"node": "west-station", "at_s": 2.0, "for_s": 3.0}
    world = failing(away, faults=the(rule), topology=RING)
    assert world.env.run(until=send(world)) == 8.0 + 1.0 + 1.0


def test_a_message_goes_on_over_the_air_and_waits_at_the_wire_that_is_closed() -> None:
    world = failing({"node": "cloud", "at_s": 2.0, "for_s": 20.0})
    assert world.env.run(until=send(world)) == 22.0 + 1.0
    assert [(row.end_s, row.queued_s) for row in crossed(world)] == [(8.0, 0.0), (23.0, 14.0)]


@pytest.mark.parametrize("order", [1, -1])
@EVERY_DISCIPLINE
def test_a_link_is_closed_until_all_that_failed_is_back(discipline: str, order: int) -> None:
    both = [
        {"link": ["cloud", "station"], "at_s": 8.5, "for_s": 3.0},
        {"node": "station", "at_s": 9.0, "for_s": 1.0},
        {"node": "cloud", "at_s": 11.0, "for_s": 4.0},
    ]
    world = failing(*both[::order], network__link__discipline={"name": discipline})
    assert world.env.run(until=send(world)) == 15.5


def test_outages_that_follow_each_other_in_one_instant_are_one() -> None:
    world = failing(*outages(2.0, 3.0, 4.0), {"node": "station", "at_s": 5.0, "for_s": 2.0})
    assert world.env.run(until=send(world)) == 8.0 + 5.0 + 1.0


def test_an_outage_that_repeats_begins_anew_after_every_period() -> None:
    # Open from 0 to 2, 3 to 6 and 7 to 10, which makes 8 s, the last of them up to the instant of the third outage;
    # the wire is closed by it too, until 11.
    world = failing({"node": "station", "at_s": 2.0, "for_s": 1.0, "every_s": 4.0})
    journey = send(world)
    assert world.env.run(until=journey) == 12.0
    assert [row.end_s for row in crossed(world)] == [10.0, 12.0]


# -- who is where on the link ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("delay_s", [0.0, 1.5])
@EVERY_DISCIPLINE
def test_a_message_whose_last_bit_was_sent_gets_through_even_in_the_very_instant(
    discipline: str, delay_s: float, rule: str
) -> None:
    for at_s in (8.0, 8.0 + delay_s / 2):
        world = failing(
            {"node": "station", "at_s": at_s, "for_s": 20.0},
            faults=the(rule),
            network__cell__discipline={"name": discipline},
            network__cell__delay_s=delay_s,
        )
        send(world)
        world.env.run(until=10.0)
        assert crossed(world)[0][3:5] == (8.0 + delay_s, "arrived")


@pytest.mark.parametrize(
    ("discipline", "rule", "ends"),
    [
        # Serial: 0 - 8 and 8 - 16 without the outage from 2 to 5, of which 2 s are sent before.
        ("serial", "wait", [(11.0, 1_000.0, 0.0, 0.0), (19.0, 1_000.0, 0.0, 11.0)]),
        ("serial", "restart", [(13.0, 1_250.0, 250.0, 0.0), (21.0, 1_000.0, 0.0, 13.0)]),
        ("serial", "lose", [(2.0, 250.0, 0.0, 0.0), (2.0, 0.0, 0.0, 2.0)]),
        ("dedicated", "wait", [(11.0, 1_000.0, 0.0, 0.0), (11.0, 1_000.0, 0.0, 0.0)]),
        ("dedicated", "restart", [(13.0, 1_250.0, 250.0, 0.0), (13.0, 1_250.0, 250.0, 0.0)]),
        ("dedicated", "lose", [(2.0, 250.0, 0.0, 0.0), (2.0, 250.0, 0.0, 0.0)]),
        # Fair: both at half the rate, until 16 without the outage; before it, 125 B of each.
        ("fair", "wait", [(19.0, 1_000.0, 0.0, 0.0), (19.0, 1_000.0, 0.0, 0.0)]),
        ("fair", "restart", [(21.0, 1_125.0, 125.0, 0.0), (21.0, 1_125.0, 125.0, 0.0)]),
        ("fair", "lose", [(2.0, 125.0, 0.0, 0.0), (2.0, 125.0, 0.0, 0.0)]),
    ],
)
def test_of_two_on_the_air(discipline: str, rule: str, ends: list[tuple[float, ...]]) -> None:
    world = failing(STATION_AWAY, faults=the(rule), network__cell__discipline={"name": discipline})
    for client in range(2):
        send(world, client=client)
    world.env.run()
    air = [row for row in crossed(world) if row.link == "cell station"]
    assert [(row.client, row.end_s, row.bytes, row.again, row.queued_s) for row in air] == [
        (client, *end) for client, end in enumerate(ends)
    ]


def test_air_that_both_ways_share_is_closed_both_ways_and_keeps_its_order() -> None:
    # Up from 0 to 8, then down (it comes over the wire at 1) from 8 to 12; the outage takes 3 s.
    world = failing(STATION_AWAY, network__cell__duplex="shared")
    up, down = send(world), send(world, client=1, up=False)
    world.env.run()
    assert (up.value, down.value) == (11.0 + 1.0, 15.0)
    assert next(row for row in crossed(world) if row.client == 1 and row.link == "cell station").queued_s == 10.0


def test_those_that_come_during_an_outage_are_served_in_the_order_of_their_coming() -> None:
    world = failing({"node": "cloud", "at_s": 0.0, "for_s": 40.0}, network__cell__discipline={"name": "dedicated"})
    late, early = send(world, at_s=10.0), send(world, client=1)
    world.env.run()
    assert (early.value, late.value) == (41.0, 42.0)


@pytest.mark.parametrize(
    ("rule", "there_s"), [("wait", 20.0 + 6.0 + 1.0), ("restart", 20.0 + 8.0 + 1.0), ("lose", None)]
)
def test_a_message_without_coverage_meets_the_outage_too(rule: str, there_s: float | None) -> None:
    # 2 s are sent, then there is no coverage until 20; the outage comes and goes meanwhile.
    world = failing({"node": "station", "at_s": 4.0, "for_s": 3.0}, faults=the(rule))
    covered = Rates(1_000.0, 2_000.0)
    changes = iter([(2.0, Rates(0.0, 2_000.0)), (20.0, covered)])
    Coverage(world.env, world.network, world.outages.tell).follow(world.clients[0].attachment, changes)
    journey = send(world)
    world.env.run()
    air = crossed(world)[0]
    if there_s is None:
        assert air[3:] == (4.0, "lost", 250.0, 0.0, 750.0, 0.0, 2.0)
    else:
        assert journey.value == there_s
        assert (air.bytes, air.again) == ((1_250.0, 250.0) if rule == "restart" else (1_000.0, 0.0))


@EVERY_DISCIPLINE
def test_a_message_that_takes_no_time_waits_for_the_end_of_an_outage(discipline: str) -> None:
    for rule, outcome in (("wait", (5.0, "arrived", 1_000.0, 0.0, 0.0)), ("lose", (3.0, "lost", 0.0, 0.0, 1_000.0))):
        world = failing(
            STATION_AWAY,
            faults=the(rule),
            network__cell__discipline={"name": discipline},
            network__cell__radio={"name": "fixed", "uplink_bps": math.inf, "downlink_bps": math.inf},
        )
        send(world, at_s=3.0)
        world.env.run()
        assert crossed(world)[0][3:8] == outcome


# -- giving up meanwhile -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "sent"), [("wait", (250.0, 0.0, 750.0)), ("restart", (250.0, 250.0, 1_000.0))])
@EVERY_DISCIPLINE
def test_a_message_can_be_given_up_during_an_outage(discipline: str, rule: str, sent: tuple[float, ...]) -> None:
    world = failing(STATION_AWAY, faults=the(rule), network__cell__discipline={"name": discipline})
    first, second = send(world), send(world, client=1, at_s=3.0)
    world.env.run(until=4.0)
    first.interrupt()
    world.env.run()
    assert crossed(world)[0][2:] == (0.0, 4.0, "cancelled", *sent, 0.0, 2.0)
    assert second.value == 5.0 + 8.0 + 1.0


@pytest.mark.parametrize("rule", RULES)
@EVERY_DISCIPLINE
def test_giving_up_in_the_very_instant_of_an_outage_leaves_one_row(discipline: str, rule: str) -> None:
    for before in (True, False):
        world = failing(STATION_AWAY, faults=the(rule), network__cell__discipline={"name": discipline})
        journey = send(world)
        if before:
            world.env.timeout(2.0).callbacks.append(lambda _, journey=journey: journey.interrupt())
        else:
            world.env.run(until=2.0)
            while not world.network.links[0].closed:
                world.env.step()
            journey.interrupt()
        world.env.run()
        (row,) = crossed(world)
        assert row[3:5] == (2.0, "cancelled")
        assert row.bytes == 250.0
        assert not world.network.in_flight


def test_each_hop_has_its_own_attempts_after_outages() -> None:
    # The air is interrupted once and the wire once; two attempts are allowed on each.
    world = failing(
        {"node": "station", "at_s": 2.0, "for_s": 1.0},
        {"link": ["cloud", "station"], "at_s": 11.5, "for_s": 1.0},
        faults={"messages": "restart"},
        network__cell__loss={"attempts": 2},
        network__link={"rate_bps": 8_000.0, "loss": {"attempts": 2}},
    )
    assert world.env.run(until=send(world)) == 12.5 + 1.0
    assert [row.bytes for row in crossed(world)] == [1_250.0, 1_500.0]


def test_a_restarted_message_takes_the_time_of_all_its_attempts_again() -> None:
    # 1000 B with a header of 250: 10 s, of which 2 are in vain.
    world = failing(
        {"node": "station", "at_s": 2.0, "for_s": 1.0},
        faults={"messages": "restart"},
        network__transport={"header_bytes": 250.0},
    )
    world.env.run(until=send(world))
    assert crossed(world)[0].end_s == 3.0 + 10.0


@pytest.mark.parametrize("discipline", ["serial", "dedicated", "fair"])
def test_what_a_device_has_sent_before_it_fails_arrives(discipline: str) -> None:
    sensor = prepared()[0].clients[0].name
    world = failing(
        {"node": sensor, "at_s": 9.0, "for_s": 5.0},
        network__cell__delay_s=2.0,
        network__cell__discipline={"name": discipline},
    )
    assert world.env.run(until=send(world)) == 8.0 + 2.0 + 1.0


def test_where_the_server_is_the_base_station_its_failure_makes_its_sensors_unreachable() -> None:
    world = failing({"node": "station", "at_s": 2.0, "for_s": 3.0}, network__server="station")
    attachment = world.clients[0].attachment
    world.env.run(until=3.0)
    assert not attachment.reachable
    world.env.run(until=6.0)
    assert attachment.reachable


@pytest.mark.parametrize("rule", ["wait", "restart", "lose"])
def test_a_wire_that_fails_for_ever_loses_what_is_on_it(rule: str) -> None:
    world = failing({"link": ["cloud", "station"], "at_s": 8.5}, faults={"messages": rule})
    there, later = send(world), send(world, at_s=9.0)
    world.env.run()
    assert isinstance(there.value, TransferLost) and isinstance(later.value, TransferLost)
    assert [(row.link, row.end_s) for row in crossed(world) if row.outcome == "lost"] == [
        ("cloud -- station", 8.5),
        ("cloud -- station", 17.0),
    ]
