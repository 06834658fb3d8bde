"""Which way messages take while parts of a ring have failed.

In the ring a message takes 8 s up over the air, and 1 s over each wire: two of them on its usual way, three on the
other one.
"""

from __future__ import annotations

from typing import Any

import pytest
from sending import crossed, failing, send
from small_worlds import NO_CONTENTION, RING, simulated

from fedsim.network.attachment import Attachment
from fedsim.network.faults.outages import Fate
from fedsim.network.network import TransferLost
from fedsim.protocols.world import World

USUAL = ["cell east-station", "east -- east-station", "cloud -- east"]
OTHER = ["cell east-station", "east-station -- west-station", "west -- west-station", "cloud -- west"]
EAST_AWAY = {"link": ["cloud", "east"], "at_s": 5.0, "for_s": 45.0}


def ring(*scheduled: dict[str, Any], routing: str = "around_outages", **changes: Any) -> World:
    also = {"network__cell__discipline": {"name": "dedicated"}} | changes
    return failing(*scheduled, faults={"routing": routing}, topology=RING, **also)


def way(world: World, client: int = 0) -> list[str]:
    """The links that a message up would take now."""
    return [hop.link.label for hop in world.clients[client].uplink]


def taken(world: World, number: int) -> list[str]:
    """The links that a message has crossed."""
    rows = world.trace.hops.array()
    return [world.network.links[link].label for link in rows["link"][rows["transfer"] == number]]


def test_what_sets_out_during_an_outage_takes_the_other_way_and_what_is_under_way_waits() -> None:
    world = ring(EAST_AWAY)
    before, meanwhile, after = send(world), send(world, client=1, at_s=6.0), send(world, at_s=51.0)
    world.env.run()
    assert before.value == 50.0 + 1.0
    assert meanwhile.value == 6.0 + 8.0 + 3 * 1.0
    assert after.value == 51.0 + 8.0 + 1.0 + 1.0
    assert [taken(world, number) for number in range(3)] == [USUAL, OTHER, USUAL]


def test_a_message_down_takes_the_same_way_in_the_other_direction() -> None:
    world = ring(EAST_AWAY)
    down = send(world, up=False, at_s=6.0)
    world.env.run()
    assert down.value == 6.0 + 3 * 1.0 + 4.0
    assert taken(world, 0) == OTHER[::-1]


@pytest.mark.parametrize("messages", ["wait", "restart", "lose"])
def test_on_fixed_routes_everybody_keeps_his_way(messages: str) -> None:
    world = failing(EAST_AWAY, faults={"messages": messages}, topology=RING)
    meanwhile = send(world, at_s=6.0)
    world.env.run()
    assert taken(world, 0) == USUAL
    assert isinstance(meanwhile.value, TransferLost) if messages == "lose" else meanwhile.value == 51.0


@pytest.mark.parametrize(
    "fault", [{"link": ["cloud", "east"]}, {"link": ["east-station", "east"]}, {"node": "east"}], ids=str
)
def test_whatever_fails_on_the_way_is_gone_around(fault: dict[str, Any]) -> None:
    world = ring(fault | {"at_s": 5.0, "for_s": 10.0})
    ways = []
    for until_s in (4.0, 6.0, 16.0):
        world.env.run(until=until_s)
        ways.append(way(world))
    assert ways == [USUAL, OTHER, USUAL]


@pytest.mark.parametrize(
    "fault",
    [{"link": ["west", "west-station"]}, {"node": "west"}, {"node": "west-station"}, {"node": "west-1"}],
    ids=str,
)
def test_what_fails_elsewhere_changes_nothing(fault: dict[str, Any]) -> None:
    world = ring(fault | {"at_s": 5.0, "for_s": 10.0})
    world.env.run(until=6.0)
    assert way(world) == USUAL


def test_others_who_rely_on_the_same_wire_go_round_too() -> None:
    world = ring({"link": ["cloud", "west"], "at_s": 5.0})
    world.env.run(until=6.0)
    assert way(world, 2) == [
        "cell west-station",
        "east-station -- west-station",
        "east -- east-station",
        "cloud -- east",
    ]
    assert way(world, 0) == USUAL


def test_where_there_is_no_way_messages_wait_on_the_last_one_that_there_was() -> None:
    # East is closed from 5, west from 10 on as well, and open again at 40.
    world = ring(EAST_AWAY, {"link": ["cloud", "west"], "at_s": 10.0, "for_s": 30.0})
    meanwhile = send(world, at_s=12.0)
    world.env.run(until=12.0)
    assert way(world) == OTHER
    assert not world.clients[0].attachment.reachable
    world.env.run()
    assert meanwhile.value == 40.0 + 1.0
    assert taken(world, 0) == OTHER


def test_where_no_way_is_open_that_one_is_taken_which_will_be() -> None:
    # The other way is closed from 5 on for ever, the usual one from 6 to 60.
    world = ring({"link": ["cloud", "east"], "at_s": 5.0}, {"link": ["cloud", "west"], "at_s": 6.0, "for_s": 54.0})
    first, second = send(world, at_s=7.0), send(world, client=2, at_s=7.0)
    world.env.run()
    assert (second.value, first.value) == (61.0, 62.0)  # the second one's way to the closed wire is the shorter one
    again = ring({"link": ["cloud", "west"], "at_s": 6.0, "for_s": 54.0}, {"link": ["cloud", "east"], "at_s": 7.0})
    late = send(again, at_s=8.0)
    again.env.run()
    assert late.value == 61.0
    assert not any(again.outages.fate(client.attachment) for client in again.clients)


def test_where_every_way_is_gone_messages_are_lost() -> None:
    world = ring({"link": ["cloud", "east"], "at_s": 5.0}, {"link": ["west-station", "east-station"], "at_s": 6.0})
    lost, well = send(world, at_s=7.0), send(world, client=2, at_s=7.0)
    world.env.run()
    assert isinstance(lost.value, TransferLost)
    assert [row.outcome for row in crossed(world) if row.client == 0] == ["arrived", "lost"]
    assert well.value == 7.0 + 8.0 + 2 * 1.0
    fates = [world.outages.fate(client.attachment) for client in world.clients]
    assert fates == [Fate.CUT_OFF, Fate.CUT_OFF, None, None]


def test_a_message_that_finds_its_detour_closed_stays_on_it() -> None:
    world = ring(EAST_AWAY, {"node": "west", "at_s": 15.5, "for_s": 10.0})
    detour = send(world, at_s=6.0)  # at 15 at the western station, of whose wire it then has crossed half
    world.env.run()
    assert detour.value == 6.0 + 8.0 + 1.0 + (1.0 + 10.0) + 1.0


def test_ways_lead_to_the_server_wherever_it_is() -> None:
    world = ring(
        {"link": ["east", "east-station"], "at_s": 5.0, "for_s": 10.0},
        network__server="east",
    )
    ways = []
    for until_s in (4.0, 6.0, 16.0):
        world.env.run(until=until_s)
        ways.append(way(world))
    assert ways == [USUAL[:2], [*OTHER, "cloud -- east"], USUAL[:2]]


def test_a_server_in_a_base_station_has_no_way_to_go_for_its_own_sensors() -> None:
    world = ring({"link": ["east", "east-station"], "at_s": 5.0, "for_s": 10.0}, network__server="east-station")
    world.env.run(until=6.0)
    assert way(world) == USUAL[:1]
    assert way(world, 2) == ["cell west-station", "east-station -- west-station"]
    assert world.env.run(until=send(world)) == 6.0 + 8.0


def test_a_failed_server_is_waited_for() -> None:
    world = ring({"node": "cloud", "at_s": 5.0, "for_s": 10.0})
    meanwhile = send(world, at_s=6.0)
    assert world.env.run(until=meanwhile) == 15.0 + 1.0
    assert way(world) == USUAL


def test_a_device_with_an_open_way_is_reachable() -> None:
    world = ring(EAST_AWAY)
    attachment: Attachment = world.clients[0].attachment
    reachable = []
    for until_s in (4.0, 6.0, 51.0):
        world.env.run(until=until_s)
        reachable.append(attachment.reachable)
    assert reachable == [True, True, True]


@pytest.mark.parametrize(("routing", "selected"), [("fixed", [4, 2]), ("around_outages", [4, 4])])
def test_those_who_have_a_way_are_asked(routing: str, selected: list[int]) -> None:
    faults = {"scheduled": [{"link": ["cloud", "east"], "at_s": 17.0, "for_s": 90.0}], "routing": routing}
    world = simulated(NO_CONTENTION | {"topology": RING, "stop": {"rounds": 2}, "faults": faults})
    assert world.trace.rounds.array()["selected"].tolist() == selected
