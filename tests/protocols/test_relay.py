"""A chain of clients: when each of them works, what is sent where, and what becomes of it when one does not answer.

A wire takes 1 s, the air 4 s down and 8 s up, work 5 s. So a chain of three in one cell:

====== =========== ========= ========= =========
client on the wire down      works     up
====== =========== ========= ========= =========
first  0 to 1      1 to 5    5 to 10   10 to 18
second             18 to 22  22 to 27  27 to 35
third              35 to 39  39 to 44  44 to 52, and home by wire until 53
====== =========== ========= ========= =========
"""

from __future__ import annotations

from typing import Any

import pytest
from chains import ended, on_the_wires, over_the_air, relayed, work
from hypothesis import given
from hypothesis import strategies as st
from plain_learner import PlainLearner
from small_worlds import EVERYTHING_HAPPENS, NO_CONTENTION, RING, hall, prepared

from fedsim.network.attachment import between
from fedsim.protocols.world import World

CELL = {"topology.devices": 3}
THREE = (0, 1, 2)


def away(sensor: int, at_s: float, for_s: float | None = 1.0) -> dict[str, Any]:
    return {"node": f"sensor-{sensor + 1}", "at_s": at_s} | ({} if for_s is None else {"for_s": for_s})


def failing(*faults: dict[str, Any], messages: str = "lose") -> dict[str, Any]:
    return CELL | {"faults": {"scheduled": list(faults), "messages": messages}}


# -- the way -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("members", "end_s"), [(1, 19.0), (2, 19.0 + 17.0), (3, 19.0 + 2 * 17.0)])
def test_each_member_of_a_chain_in_one_cell_adds_its_air_and_its_work(members: int, end_s: float) -> None:
    world = relayed(CELL, range(members))
    assert ended(world) == [(end_s, members, members, 0, 0)]
    assert over_the_air(world) == {"uplink": 1_000.0 * members, "downlink": 1_000.0 * members}
    assert len(on_the_wires(world)) == 2  # to the station, and home


def test_everybody_works_after_the_one_before() -> None:
    assert work(relayed(CELL, THREE)) == [
        (0, 5.0, 10.0, "arrived"),
        (1, 22.0, 27.0, "arrived"),
        (2, 39.0, 44.0, "arrived"),
    ]


def test_from_one_station_to_another_the_model_goes_by_their_common_edge_server() -> None:
    # 2 wires, 4 + 5 + 8 s, 2 wires across, 4 + 5 + 8 s, 2 wires home.
    world = relayed(hall(a="east", b="west"), (0, 1))
    assert ended(world) == [(2 + 17.0 + 2 + 17.0 + 2, 2, 2, 0, 0)]
    assert on_the_wires(world) == [
        (0, "cloud -- edge", "down", 1_000.0),
        (0, "edge -- east", "down", 1_000.0),
        (1, "edge -- east", "up", 1_000.0),
        (1, "edge -- west", "down", 1_000.0),
        (1, "edge -- west", "up", 1_000.0),
        (1, "cloud -- edge", "up", 1_000.0),
    ]


def test_it_goes_by_the_cloud_only_where_stations_have_nothing_else_in_common() -> None:
    # east-1, east-2, west-1: 2 wires, 17 s, 17 s, 4 wires over the cloud, 17 s, 2 wires home.
    world = relayed({"topology": RING}, (0, 1, 2))
    assert ended(world) == [(2 + 17.0 + 17.0 + 4 + 17.0 + 2, 3, 3, 0, 0)]
    assert [wire for client, wire, _, _ in on_the_wires(world)][2:6] == [
        "east -- east-station",
        "cloud -- east",
        "cloud -- west",
        "west -- west-station",
    ]


@pytest.mark.parametrize(("order", "crossings"), [((0, 2, 1), 1), ((0, 1, 2), 2)])
def test_a_chain_that_changes_station_less_often_is_faster(order: tuple[int, ...], crossings: int) -> None:
    world = relayed(hall(a="east", b="west", c="east"), order)
    assert ended(world)[0][0] == 2 + 3 * 17.0 + 2 * crossings + 2


def test_groups_train_in_parallel() -> None:
    world = relayed(NO_CONTENTION | {"topology.devices": 5}, (0, 1), (2, 3, 4))
    assert ended(world) == [(3 * 17.0, 5, 5, 0, 0)]
    assert {client: start_s for client, start_s, _, _ in work(world)} == {0: 4.0, 1: 21.0, 2: 4.0, 3: 21.0, 4: 38.0}


def test_a_model_is_handed_on_and_groups_are_averaged() -> None:
    learner = PlainLearner()
    relayed(NO_CONTENTION | {"topology.devices": 5}, (0, 1), (4, 3, 2), learner=learner)
    assert [(one.client, one.model["model"], one.share) for one in learner.means[1]] == [
        (2, "initial trained by 4 trained by 3 trained by 2", 0.5),
        (1, "initial trained by 0 trained by 1", 0.5),
    ]


@pytest.mark.parametrize(("weighting", "weights"), [("uniform", [1, 1]), ("samples", [30, 20])])
def test_groups_weigh_the_same_or_as_many_samples_as_they_were_trained_on(weighting: Any, weights: list[float]) -> None:
    learner = PlainLearner()
    relayed(NO_CONTENTION | {"topology.devices": 5}, (0, 1), (2, 3, 4), weighting=weighting, learner=learner)
    assert [one.client for one in learner.means[1]] == [4, 1], "the longer group comes first"
    assert [one.share for one in learner.means[1]] == [weight / sum(weights) for weight in weights]


# -- one that does not answer ------------------------------------------------------------------------------------------

SILENT = {
    # what happens to the second one: until when the third one has to wait, what went up and down meanwhile
    "it cannot be reached": (away(1, 10.0, 20.0), 18.0, 0.0, 0.0),
    "the download is lost": (away(1, 20.0), 20.0, 2 * 250.0, 0.0),
    "it fails while it works": (away(1, 24.0), 24.0, 1_000.0, 0.0),
    "the upload is lost": (away(1, 30.0), 30.0, 1_000.0, 3 * 125.0),
}


@pytest.mark.parametrize(("fault", "until_s", "down", "up"), SILENT.values(), ids=SILENT)
def test_who_is_lost_is_skipped_and_costs_what_was_sent(
    fault: dict[str, Any], until_s: float, down: float, up: float
) -> None:
    learner = PlainLearner()
    world = relayed(failing(fault), THREE, learner=learner)
    assert ended(world) == [(until_s + 17.0 + 1.0, 3, 2, 1, 0)]
    assert over_the_air(world) == {"uplink": 2_000.0 + up, "downlink": 2_000.0 + down}
    assert [one.model["model"] for one in learner.means[1]] == ["initial trained by 0 trained by 2"]


@pytest.mark.parametrize(("fault", "until_s", "down", "up"), SILENT.values(), ids=SILENT)
def test_or_the_group_is_abandoned(fault: dict[str, Any], until_s: float, down: float, up: float) -> None:
    learner = PlainLearner()
    world = relayed(failing(fault), THREE, on_loss="abandon", learner=learner)
    assert ended(world) == [(until_s, 3, 0, 3, 0)]
    assert over_the_air(world) == {"uplink": 1_000.0 + up, "downlink": 1_000.0 + down}
    assert learner.means == {}


def test_as_long_as_nobody_has_trained_the_model_comes_from_the_cloud() -> None:
    # The first one fails at 6: 1 s over the wire again, 17 s, 17 s, and home.
    world = relayed(failing(away(0, 6.0)), THREE)
    assert ended(world) == [(6.0 + 1.0 + 2 * 17.0 + 1.0, 3, 2, 1, 0)]
    assert [direction for _, _, direction, _ in on_the_wires(world)] == ["down", "down", "up"]


@pytest.mark.parametrize(("at_s", "end_s"), [(34.0, 36.0), (40.0, 41.0), (50.0, 51.0)])
def test_when_the_last_one_is_lost_the_station_sends_the_model_home(at_s: float, end_s: float) -> None:
    # Away before its turn at 35, at work, on the air.
    learner = PlainLearner()
    world = relayed(failing(away(2, at_s, 5.0)), THREE, learner=learner)
    assert ended(world) == [(end_s, 3, 2, 1, 0)]
    assert on_the_wires(world)[-1] == (-1, "cloud -- station", "up", 1_000.0)
    assert [(one.client, one.model["model"]) for one in learner.means[1]] == [(1, "initial trained by 0 trained by 1")]


def test_a_group_of_which_all_are_lost_is_no_group() -> None:
    # The first fails at 6, so that the second begins; it fails at 12, and the third at 18.
    world = relayed(failing(away(0, 6.0), away(1, 12.0), away(2, 18.0)), THREE)
    assert ended(world) == [(18.0, 3, 0, 3, 0)]
    assert [end_s for _, _, end_s, _ in work(world)] == [6.0, 12.0, 18.0]


@pytest.mark.parametrize("on_loss", ["skip", "abandon"])
def test_a_group_that_cannot_even_begin_is_lost_at_once(on_loss: Any) -> None:
    world = relayed(NO_CONTENTION | failing(away(0, 0.0, None), away(1, 0.0, None)), (0, 1), (2,), on_loss=on_loss)
    assert ended(world) == [(17.0, 3, 1, 2, 0)]


def test_what_waits_for_the_end_of_an_outage_is_not_lost() -> None:
    # The second one's upload has 5 s to go when the station fails at 30 s, for 4.
    world = relayed(failing({"node": "station", "at_s": 30.0, "for_s": 4.0}, messages="wait"), THREE)
    assert ended(world) == [(57.0, 3, 3, 0, 0)]


def test_the_way_home_can_be_lost_too() -> None:
    # The cloud fails while the station sends, from 52 to 53.
    fault = {"node": "cloud", "at_s": 52.5, "for_s": 1.0}
    world = relayed(failing(fault), THREE)
    assert ended(world) == [(52.5, 3, 0, 3, 0)]
    assert over_the_air(world) == {"uplink": 3_000.0, "downlink": 3_000.0}


# -- late --------------------------------------------------------------------------------------------------------------

SLOW = {
    "devices": {
        "classes": {
            "sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}},
            "slow": {"compute": {"name": "per_sample", "seconds_per_sample": 5.0}},
        },
        "default": "sensor",
    },
    "topology": {
        "name": "explicit",
        "nodes": {
            "cloud": {"kind": "cloud"},
            "station": {"kind": "base_station"},
            "sensor-1": {"kind": "sensor", "attach": "station"},
            "sensor-2": {"kind": "sensor", "attach": "station", "device": "slow"},
            "sensor-3": {"kind": "sensor", "attach": "station"},
        },
        "links": [{"between": ["cloud", "station"]}],
    },
}
"""The second one works for 50 s: from 22 to 72."""


@pytest.mark.parametrize(("late_transfers", "outcome"), [("finish", []), ("cancel", [(1, 22.0, 38.0, "cancelled")])])
def test_the_group_goes_on_without_who_is_late(late_transfers: str, outcome: list[Any]) -> None:
    # Its turn is from 18 to 38; then 17 s, and home.
    world = relayed(SLOW | {"network.late_transfers": late_transfers}, THREE, turn_s=20.0)
    assert ended(world) == [(38.0 + 17.0 + 1.0, 3, 2, 1, 0)]
    assert [row for row in work(world) if row[0] == 1] == outcome
    assert world.clients[1].busy is (late_transfers == "finish")


def test_who_is_late_may_cost_the_whole_group() -> None:
    world = relayed(SLOW, THREE, turn_s=20.0, on_loss="abandon")
    assert ended(world) == [(38.0, 3, 0, 3, 0)]


@pytest.mark.parametrize(("turn_s", "counts"), [(18.0, (53.0, 3, 3, 0, 0)), (17.0, (3 * 17.0, 3, 0, 3, 0))])
def test_a_turn_that_ends_exactly_in_time_is_in_time(turn_s: float, counts: tuple[Any, ...]) -> None:
    """With its wire a turn takes 18 s; when nobody has trained yet, each one's begins in the cloud."""
    world = relayed(CELL | {"network.late_transfers": "cancel"}, THREE, turn_s=turn_s)
    assert ended(world) == [counts]


def test_a_late_last_member_leaves_the_model_with_the_station() -> None:
    # sensor-2 is the last, in its turn from 18 to 38; then the wire.
    world = relayed(SLOW, (0, 1), turn_s=20.0)
    assert ended(world) == [(39.0, 2, 1, 1, 0)]


# -- the deadline of the round -----------------------------------------------------------------------------------------


def test_at_the_deadline_the_whole_group_is_late() -> None:
    # At 30 the second one is in the air for 3 s.
    world = relayed(CELL | {"network.late_transfers": "cancel"}, THREE, deadline_s=30.0)
    assert ended(world) == [(30.0, 3, 0, 0, 3)]
    assert over_the_air(world) == {"uplink": 1_000.0 + 3 * 125.0, "downlink": 2_000.0}
    assert not any(client.busy for client in world.clients)


def test_of_a_late_group_that_may_finish_the_one_who_has_begun_goes_on_and_nobody_begins() -> None:
    # The second one is at work at 30, and its model at the station at 35.
    learner = PlainLearner()
    world = relayed(CELL, THREE, deadline_s=30.0, learner=learner)
    assert ended(world) == [(30.0, 3, 0, 0, 3)]
    world.env.run()
    assert world.env.now == 35.0
    assert over_the_air(world) == {"uplink": 2_000.0, "downlink": 2_000.0}
    assert learner.means == {}


def test_a_group_that_is_cancelled_between_two_members_ends_there() -> None:
    # The first one's turn ends at 18, in the instant of the deadline.
    world = relayed(CELL | {"network.late_transfers": "cancel"}, THREE, deadline_s=18.0)
    assert ended(world) == [(18.0, 3, 0, 0, 3)]
    world.env.run()
    assert [client for client, _, _, _ in work(world)] == [0]


def test_a_cancelled_way_home_is_cancelled() -> None:
    # The last one is lost at 40, and the station sends the model home until 41.
    changes = failing(away(2, 40.0)) | {"network.late_transfers": "cancel"}
    world = relayed(changes, THREE, deadline_s=40.5)
    assert ended(world) == [(40.5, 3, 0, 0, 3)]
    assert on_the_wires(world)[-1] == (-1, "cloud -- station", "up", 500.0)


# -- from station to station -------------------------------------------------------------------------------------------


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """Trees of edge servers and stations, with wires across."""
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}}
    links = []
    for number in range(draw(st.integers(0, 4))):
        name = f"edge-{number}"
        links.append((draw(st.sampled_from(list(nodes))), name))
        nodes[name] = {"kind": "edge"}
    wired = list(nodes)
    stations = [f"station-{number}" for number in range(draw(st.integers(2, 5)))]
    for name in stations:
        links.append((draw(st.sampled_from(wired)), name))
        nodes[name] = {"kind": "base_station"}
        nodes[f"{name}-sensor"] = {"kind": "sensor", "attach": name}
    inside = st.sampled_from([*wired, *stations])
    for pair in draw(st.lists(st.tuples(inside, inside), max_size=3)):
        if len(set(pair)) == 2 and not any(set(pair) == set(link) for link in links):
            links.append(pair)
    return {"topology": {"name": "explicit", "nodes": nodes, "links": [{"between": list(pair)} for pair in links]}}


@given(changes=networks())
def test_the_way_between_stations_is_the_shortest_by_a_common_node(changes: dict[str, Any]) -> None:
    world, _ = prepared(changes)
    for source in world.clients:
        for target in world.clients:
            check_way(world, source.index, target.index)


@given(changes=networks(), data=st.data())
def test_so_it_is_around_outages(changes: dict[str, Any], data: st.DataObject) -> None:
    link = data.draw(st.sampled_from(changes["topology"]["links"]))["between"]
    faults = {"scheduled": [{"link": link, "at_s": 1.0}], "routing": "around_outages"}
    world, _ = prepared(changes | {"faults": faults})
    world.env.run(until=2.0)
    for source in world.clients:
        for target in world.clients:
            if source.attachment.reachable and target.attachment.reachable:
                check_way(world, source.index, target.index)


def check_way(world: World, source: int, target: int) -> None:
    """It is connected, over no wire twice, and as short as the two ways to the cloud allow."""
    here, there = (world.clients[index].attachment.backbone for index in (source, target))
    way = between(here, there)
    links = [hop.link.label for hop in way]
    assert len(set(links)) == len(links)
    ups, downs = ([set(hop.link.label.split(" -- ")) for hop in some.uplink] for some in (here, there))
    stations = [world.clients[index].name.removesuffix("-sensor") for index in (source, target)]
    ways = [visited(station, steps) for station, steps in zip(stations, (ups, downs), strict=True)]
    assert visited(stations[0], [set(label.split(" -- ")) for label in links])[-1] == stations[1]
    assert len(way) == min(ways[0].index(node) + ways[1].index(node) for node in {*ways[0]} & {*ways[1]})


def visited(station: str, steps: list[set[str]]) -> list[str]:
    """The nodes on a way from *station* over these wires."""
    nodes = [station]
    for ends in steps:
        (following,) = ends - {nodes[-1]}
        nodes.append(following)
    return nodes


def test_lossy_ways_between_servers_do_not_break_it() -> None:
    changes = EVERYTHING_HAPPENS | {"network.link.loss": {"probability": 0.5}, "stop": {"rounds": 30}}
    world = relayed(changes, (0, 4, 1), (5, 2, 6, 3))
    rounds = world.trace.rounds.array()
    assert {3, 4, 7} & set(rounds["participants"].tolist())
    assert (world.trace.hops.array()["client"] == -1).any()
