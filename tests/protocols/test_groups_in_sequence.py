"""Who is in which group: how many groups take part, for how long, in what order, and what their reports cost.

Where nobody waits for the network, a journey takes 17 s: 4 down, 5 of work, 8 up.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from chains import ended, over_the_air, work
from numpy.typing import NDArray
from plain_learner import PlainLearner
from small_worlds import EVERYTHING_HAPPENS, NO_CONTENTION, prepared, simulated

from fedsim.grouping.growth import Constant
from fedsim.grouping.settings import GroupingSettings
from fedsim.kernel.trace import Outcome
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.rules.mean import Mean
from fedsim.protocols.cohorts.grouped import GroupedCohort
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.rounds import Rounds
from fedsim.protocols.schedules.schedule import Parts
from fedsim.protocols.world import World

FAULTS = {
    "random": [{"of": kind, "mean_up_s": 60.0, "mean_down_s": 8.0} for kind in ("sensors", "base_stations", "wires")]
}


def stp(devices: int, groups: int, **keys: Any) -> dict[str, Any]:
    """So many devices in so many random groups, all of which take part."""
    protocol = {
        "name": "stp",
        "grouping": {"name": "random", "once": False},
        "growth": {"name": "constant", "beta": groups},
        "sampling_rate": 1.0,
    }
    return NO_CONTENTION | {"topology.devices": devices, "protocols": [protocol | keys]}


LABELLED = {
    "data": {"name": "digits", "partition": {"name": "iid"}, "stream": {"samples": 10}},
    "network.cell.discipline": {"name": "dedicated"},
}
"""Ten classes: a report has 40 bytes, 0.32 s up the air."""


def formed(world: World) -> dict[int, list[tuple[list[int], bool]]]:
    """Round -> the groups formed then, and whether each takes part."""
    groups: dict[int, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for number, group, position, client, selected in world.trace.groups.array().tolist():
        assert position == len(groups[number][group])
        groups[number][group].append((client, selected))
    return {
        number: [([client for client, _ in members], members[0][1]) for _, members in sorted(some.items())]
        for number, some in groups.items()
    }


def order_of_work(world: World, round_number: int) -> list[int]:
    """Who worked in a round, first to last."""
    begin_s, end_s = world.trace.rounds.array()[["start_s", "end_s"]][round_number - 1]
    return [client for client, start_s, _, _ in work(world) if begin_s <= start_s < end_s]


# -- as many groups as clients -----------------------------------------------------------------------------------------


class InOrder(GroupingSettings):
    """As it comes: the first so many clients are the first group, and so on."""

    needs_counts: ClassVar[bool] = False
    name: Literal["in_order"] = "in_order"
    once: bool = False

    def equal_groups(self, counts: NDArray[Any], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.arange(len(counts)).reshape(number, -1)


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
@pytest.mark.parametrize("faults", [{}, FAULTS], ids=["calm", "failing"])
@pytest.mark.parametrize(("interval", "deadline_s"), [(1, None), (1, 40.0), (3, 40.0)])
def test_with_groups_of_one_it_is_fedavg_event_by_event(
    interval: int, deadline_s: float | None, faults: dict[str, Any], late_transfers: str
) -> None:
    """A share of the groups is one of the clients that are there: where some are missing, all that are there."""
    share = 1.0 if faults or deadline_s else 0.5
    fedavg = {"name": "fedavg", "fraction": share, "interval": interval, "deadline_s": deadline_s}
    changes = EVERYTHING_HAPPENS | {"protocols": [fedavg], "faults": faults, "network.late_transfers": late_transfers}
    averaged, (world, _) = simulated(changes), prepared(changes)
    cohort = GroupedCohort.model_construct(grouping=InOrder(), growth=Constant(beta=99), sampling_rate=share)
    schedule = Rounds(interval=interval, deadline_s=deadline_s)
    parts = Parts(cohort, Whole(), Plain(), Float32(), Mean())
    world.env.run(until=world.env.process(schedule.run(world, parts)))
    for name in ("hops", "work", "rounds"):
        assert np.array_equal(world.trace.tables[name].array(), averaged.trace.tables[name].array()), name
    assert len(world.trace.hops) > 50


# -- how many ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampling_rate", "groups", "taking_part"), [(1.0, 4, 4), (0.5, 4, 2), (0.7, 4, 2), (0.3, 10, 3), (0.1, 4, 1)]
)
def test_a_share_of_the_groups_takes_part_rounded_down_and_at_least_one(
    sampling_rate: float, groups: int, taking_part: int
) -> None:
    world = simulated(stp(2 * groups, groups, sampling_rate=sampling_rate))
    assert sum(selected for _, selected in formed(world)[1]) == taking_part
    assert ended(world) == [(34.0, 2 * taking_part, 2 * taking_part, 0, 0)]


def test_groups_grow_in_number_and_shrink_in_size() -> None:
    # 2, 4, 8, 8 groups of 8 clients: chains of 4, 2, 1 and 1.
    growth = {"name": "exponential", "beta": 2, "alpha": 1.0}
    world = simulated(stp(8, 2, growth=growth) | {"stop.rounds": 4})
    assert [len(groups) for groups in formed(world).values()] == [2, 4, 8, 8]
    assert [end_s for end_s, *_ in ended(world)] == [4 * 17.0, 6 * 17.0, 7 * 17.0, 8 * 17.0]


@pytest.mark.parametrize(("leftover", "sizes"), [("idle", [2, 2, 2]), ("spread", [2, 3, 3])])
def test_clients_that_are_left_over_sit_out_or_are_spread(leftover: str, sizes: list[int]) -> None:
    grouping = {"name": "random", "once": False, "leftover": leftover}
    world = simulated(stp(8, 3, grouping=grouping))
    assert sorted(len(members) for members, _ in formed(world)[1]) == sizes
    assert ended(world) == [(17.0 * max(sizes), sum(sizes), sum(sizes), 0, 0)]


# -- how long ----------------------------------------------------------------------------------------------------------


def test_the_groups_of_a_block_take_part_in_all_of_it() -> None:
    world = simulated(stp(8, 4, sampling_rate=0.5, interval=3) | {"stop.rounds": 6})
    groups = formed(world)
    assert list(groups) == [1, 4]
    for number in range(1, 7):
        chosen = [members for members, selected in groups[number - (number - 1) % 3] if selected]
        assert sorted(order_of_work(world, number)) == sorted(client for members in chosen for client in members)
    assert groups[1] != groups[4]


def test_without_blocks_groups_are_formed_in_every_round() -> None:
    assert list(formed(simulated(stp(6, 2) | {"stop.rounds": 3}))) == [1, 2, 3]


@pytest.mark.parametrize("shuffle", ["regroup", "round"])
def test_members_change_their_order_with_each_block_or_with_each_round(shuffle: str) -> None:
    world = simulated(stp(6, 1, interval=3, shuffle=shuffle) | {"stop.rounds": 6})
    orders = [order_of_work(world, number) for number in range(1, 7)]
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert [orders[0], orders[3]] == [groups[0][0] for groups in formed(world).values()]
    blocks = [len({tuple(order) for order in orders[first : first + 3]}) for first in (0, 3)]
    assert blocks == ([1, 1] if shuffle == "regroup" else [3, 3])
    assert orders[0] != orders[3]


@pytest.mark.parametrize("interval", [1, 2])
@pytest.mark.parametrize("shuffle", ["regroup", "round"])
def test_groups_that_stay_keep_their_order_or_change_it_in_each_round(shuffle: str, interval: int) -> None:
    protocol = {"name": "naive_gsp", "groups": 2, "sampling_rate": 1.0, "shuffle": shuffle, "interval": interval}
    world = simulated(NO_CONTENTION | {"topology.devices": 10, "protocols": [protocol], "stop.rounds": 4})
    groups = formed(world)
    assert list(groups) == list(range(1, 5, interval))
    (members,) = {tuple(frozenset(members) for members, _ in some) for some in groups.values()}
    orders = set()
    for number in range(1, 5):
        order = order_of_work(world, number)
        orders.add(tuple(tuple(client for client in order if client in group) for group in members))
    assert len(orders) == (1 if shuffle == "regroup" else 4)


def test_groups_that_stay_are_drawn_anew_with_each_block() -> None:
    protocol = {"name": "naive_gsp", "groups": 5, "sampling_rate": 0.4}
    world = simulated(NO_CONTENTION | {"topology.devices": 10, "protocols": [protocol], "stop.rounds": 6})
    drawn = {tuple(selected for _, selected in groups) for groups in formed(world).values()}
    assert len(drawn) > 1
    assert {sum(selected) for selected in drawn} == {2}


def test_of_groups_that_stay_only_those_with_somebody_there_are_drawn() -> None:
    # Without the others it would be a round of 0 s.
    away = [{"node": f"sensor-{number}", "at_s": 0.0, "for_s": 500.0} for number in range(1, 9)]
    protocol = {"name": "naive_gsp", "groups": 3, "sampling_rate": 0.4}
    changes = {"topology.devices": 9, "protocols": [protocol], "stop.rounds": 5, "faults": {"scheduled": away}}
    world = simulated(NO_CONTENTION | changes)
    assert world.trace.rounds.array()["participants"].tolist() == [1] * 5
    assert {client for client, *_ in work(world)} == {8}


@pytest.mark.parametrize(
    ("for_s", "cut_short"), [(100.0, None), (None, "no device can ever be reached again (4 cut off by a failure")]
)
def test_where_nobody_can_be_reached_groups_that_stay_wait_or_give_up(
    for_s: float | None, cut_short: str | None
) -> None:
    fault = {"node": "station", "at_s": 0.0} | ({} if for_s is None else {"for_s": for_s})
    protocol = {"name": "naive_gsp", "groups": 2, "sampling_rate": 1.0}
    changes = {"topology.devices": 4, "protocols": [protocol], "faults": {"scheduled": [fault]}}
    world = simulated(NO_CONTENTION | changes)
    assert ended(world) == ([(134.0, 4, 4, 0, 0)] if cut_short is None else [])
    assert (world.loop.cut_short or "").startswith(cut_short or "")


@pytest.mark.parametrize(("for_s", "ends_s"), [(100.0, [17.0, 18.0, 135.0, 152.0]), (None, [17.0] + [18.0] * 3)])
def test_in_the_middle_of_a_block_rounds_wait_for_its_clients_unless_there_is_no_hope(
    for_s: float | None, ends_s: list[float]
) -> None:
    fault = {"node": "station", "at_s": 18.0} | ({} if for_s is None else {"for_s": for_s})
    changes = {"faults": {"scheduled": [fault], "messages": "lose"}, "stop.rounds": 4}
    world = simulated(NO_CONTENTION | changes | {"protocols": [{"name": "fedavg", "fraction": 1.0, "interval": 4}]})
    assert [end_s for end_s, *_ in ended(world)] == ends_s


# -- reports -----------------------------------------------------------------------------------------------------------


def by_icg(devices: int, groups: int, **keys: Any) -> dict[str, Any]:
    return stp(devices, groups, grouping={"name": "icg"} | keys.pop("grouping", {}), **keys) | LABELLED


def test_reports_of_four_bytes_a_class_go_up_before_groups_are_formed() -> None:
    world = simulated(by_icg(4, 2) | {"stop.rounds": 2})
    # A report takes 0.32 s; then two journeys of 17 s.
    assert [end_s for end_s, *_ in ended(world)] == pytest.approx([34.32, 2 * 34.32], rel=1e-12)
    assert over_the_air(world) == {"uplink": 2 * (4 * 40.0 + 4 * 1_000.0), "downlink": 2 * 4 * 1_000.0}


def test_the_cloud_may_take_its_time_to_form_groups() -> None:
    assert ended(simulated(by_icg(4, 2, grouping_s=0.5)))[0][0] == pytest.approx(34.82, rel=1e-12)


def test_in_a_block_everybody_reports_once_and_with_once_in_the_whole_run() -> None:
    for keys, reports in (({"interval": 3}, 2), ({"interval": 3, "grouping": {"once": True}}, 1)):
        world = simulated(by_icg(4, 2, **keys) | {"stop.rounds": 6})
        hops = world.trace.hops.array()
        assert (hops["bytes"][hops["access"]] == 40.0).sum() == reports * 4


def test_the_same_from_the_yardstick_that_groups_once() -> None:
    protocol = {"name": "naive_gsp_icg", "groups": 2, "sampling_rate": 1.0}
    world = simulated(NO_CONTENTION | LABELLED | {"topology.devices": 4, "protocols": [protocol], "stop.rounds": 5})
    hops = world.trace.hops.array()
    assert (hops["bytes"][hops["access"]] == 40.0).sum() == 4


def test_who_cannot_report_is_in_no_group() -> None:
    away = [{"node": "sensor-2", "at_s": 0.0, "for_s": 10.0}]
    world = simulated(by_icg(4, 1) | {"stop.rounds": 2, "faults": {"scheduled": away}})
    members = [sorted(groups[0][0]) for groups in formed(world).values()]
    assert members == [[0, 2, 3], [0, 1, 2, 3]]


def test_a_lost_report_leaves_its_client_out_and_is_counted() -> None:
    fault = {"scheduled": [{"node": "sensor-2", "at_s": 0.16, "for_s": 0.1}], "messages": "lose"}
    world = simulated(by_icg(5, 2) | {"faults": fault})
    assert {client for some, _ in formed(world)[1] for client in some} == {0, 2, 3, 4}
    assert over_the_air(world)["uplink"] == pytest.approx(4 * 40.0 + 20.0 + 4 * 1_000.0)


def test_reports_that_are_late_are_given_up_and_their_clients_left_out() -> None:
    # One behind the other on the air, 0.32 s each: by 1 s three have arrived, and the fourth has sent 5 bytes.
    changes = by_icg(6, 1, deadline_s=1.0) | {"network.cell.discipline": {"name": "serial"}}
    world = simulated(changes)
    (members, _), *_ = formed(world)[1]
    assert sorted(members) == [0, 1, 2]
    hops = world.trace.hops.array()
    late = hops[hops["outcome"] == Outcome.CANCELLED]
    assert late["bytes"][:3].tolist() == pytest.approx([5.0, 0.0, 0.0], abs=1e-9)
    assert late["client"][:3].tolist() == [3, 4, 5]


@pytest.mark.parametrize("interval", [1, 3])
def test_a_round_without_reports_is_a_round_in_which_nothing_arrived(interval: int) -> None:
    # 0.32 s are never to be had: each block ends its first round at 0.1 s, and the others at once.
    learner = PlainLearner()
    world = simulated(by_icg(4, 2, deadline_s=0.1, interval=interval) | {"stop.rounds": 6}, learner=lambda *_: learner)
    assert [row[1:] for row in ended(world)] == [(0, 0, 0, 0)] * 6
    assert world.env.now == pytest.approx(0.1 * 6 / interval)
    assert [model for _, _, model in learner.evaluations] == ["initial"] * 6


def test_groups_are_alike_in_what_their_members_train_on() -> None:
    # Each class is that of two clients; two groups of ten have each class once.
    partition = {"name": "classes_per_client", "classes": 1}
    data = {"name": "digits", "partition": partition, "stream": {"samples": 10}}
    world, protocol = prepared(by_icg(20, 2) | {"data": data})
    world.env.run(until=world.env.process(protocol.run(world)))
    assert world.dataset.y is not None
    class_of = [int(world.dataset.y[ids[0]]) for ids in world.dataset.train_ids]
    for members, _ in formed(world)[1]:
        assert sorted(class_of[client] for client in members) == list(range(10))


def test_a_proximal_term_goes_with_it() -> None:
    for keys, objective in (({}, Plain()), ({"objective": {"name": "proximal", "mu": 0.25}}, Proximal(mu=0.25))):
        learner = PlainLearner()
        simulated(stp(2, 1, **keys), learner=lambda *_, learner=learner: learner)
        assert {training.objective for training in learner.trainings} == {objective}
