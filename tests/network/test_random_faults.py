"""What fails by chance: how often and for how long by theory, and on nothing but the seed."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sending import failing, send
from small_worlds import EVERYTHING_HAPPENS, NO_CONTENTION, RING, prepared
from watching import History, history_of, times_s

from fedsim.network.faults.outages import Fate
from fedsim.protocols.world import World

DEVICES, CYCLES = 8, 2_500
MEAN_UP_S, MEAN_DOWN_S = 30.0, 10.0
UNTIL_S = CYCLES * (MEAN_UP_S + MEAN_DOWN_S)
SIGMAS = 4.0


def by_chance(*random: dict[str, Any], seed: int = 1, **changes: Any) -> World:
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    return prepared(paths | {"faults": {"random": list(random)}}, seed=seed)[0]


@pytest.fixture(scope="module")
def cycles() -> tuple[np.ndarray, np.ndarray, float]:
    """(working times, failed times, share of time working) of 8 devices in 2,500 cycles each."""
    sensors = {"of": "sensors", "mean_up_s": MEAN_UP_S, "mean_down_s": MEAN_DOWN_S}
    world = by_chance(sensors, topology={"name": "star", "devices": DEVICES})
    history = history_of(world, UNTIL_S)
    up_s, down_s = [], []
    for client in world.clients:
        for total, of_it in zip((up_s, down_s), times_s(history, client.name, UNTIL_S), strict=True):
            total += of_it
    away_s = np.sum(
        [
            len(away) * (end_s - at_s)
            for (at_s, away), (end_s, _) in zip(history, [*history[1:], (UNTIL_S, None)], strict=True)
        ]
    )
    return np.array(up_s), np.array(down_s), 1 - float(away_s) / (DEVICES * UNTIL_S)


def test_the_availability_is_up_over_up_and_down(cycles: tuple[np.ndarray, np.ndarray, float]) -> None:
    # Over a time T an alternating renewal process of exponential times is working for a share of U / (U + D), with
    # variance 2 U^2 D^2 / ((U + D)^3 T) (Takacs 1957). Means that are 10 % off lie 8 sigmas away and more.
    expected = MEAN_UP_S / (MEAN_UP_S + MEAN_DOWN_S)
    error = math.sqrt(2 * (MEAN_UP_S * MEAN_DOWN_S) ** 2 / ((MEAN_UP_S + MEAN_DOWN_S) ** 3 * DEVICES * UNTIL_S))
    assert abs(cycles[2] - expected) < SIGMAS * error
    for faulty in (1.1 * MEAN_UP_S / (1.1 * MEAN_UP_S + MEAN_DOWN_S), MEAN_UP_S / (MEAN_UP_S + 1.1 * MEAN_DOWN_S)):
        assert abs(faulty - expected) > 2 * SIGMAS * error


@pytest.mark.parametrize(("which", "mean_s"), [(0, MEAN_UP_S), (1, MEAN_DOWN_S)], ids=["working", "failed"])
def test_working_and_failed_times_are_exponential(
    cycles: tuple[np.ndarray, np.ndarray, float], which: int, mean_s: float
) -> None:
    # 20,000 times, about: a mean 10 % off lies 14 standard errors away. The test of Kolmogorov and Smirnov sees a
    # distribution function that is off by 0.02 anywhere (p < 1e-4 from 2.2 / sqrt(n) = 0.016 on).
    times = cycles[which]
    assert len(times) > 0.95 * DEVICES * CYCLES
    assert abs(times.mean() - mean_s) < SIGMAS * mean_s / math.sqrt(len(times))
    assert stats.kstest(times, "expon", args=(0, mean_s)).pvalue > 1e-3
    assert stats.kstest(times, "expon", args=(0, 1.1 * mean_s)).pvalue < 1e-4


def test_one_time_says_nothing_of_the_next(cycles: tuple[np.ndarray, np.ndarray, float]) -> None:
    # Correlations of 20,000 independent pairs: standard error 0.007.
    for times in cycles[:2]:
        assert abs(np.corrcoef(times[:-1], times[1:])[0, 1]) < SIGMAS / math.sqrt(len(times))
    pairs = min(map(len, cycles[:2]))
    assert abs(np.corrcoef(cycles[0][:pairs], cycles[1][:pairs])[0, 1]) < SIGMAS / math.sqrt(pairs)


def test_what_is_never_repaired_dies_out_exponentially() -> None:
    # 2,000 devices, each still working after its mean time with probability 1/e: 735.8, standard error 21.6.
    sensors = {"of": "sensors", "mean_up_s": 100.0, "mean_down_s": math.inf}
    world = by_chance(sensors, topology={"name": "star", "devices": 2_000})
    world.env.run(until=100.0)
    working = [client.attachment for client in world.clients if client.attachment.on]
    assert abs(len(working) - 2_000 / math.e) < SIGMAS * math.sqrt(2_000 * (1 - 1 / math.e) / math.e)
    fates = Counter(world.outages.fate(client.attachment) for client in world.clients)
    assert fates == {Fate.FAILED: 2_000 - len(working), None: len(working)}


# -- what fails --------------------------------------------------------------------------------------------------------

EAST = {"cell east-station", "east -- east-station", "east-station -- west-station"}
WEST = {"cell west-station", "west -- west-station", "east-station -- west-station"}


@pytest.mark.parametrize(
    ("of", "fails_together"),
    [
        ("sensors", [{"east-1"}, {"east-2"}, {"west-1"}, {"west-2"}]),
        ("base_stations", [EAST, WEST]),
        ("edges", [{"cloud -- east", "east -- east-station"}, {"cloud -- west", "west -- west-station"}]),
        ("clouds", [{"cloud -- east", "cloud -- west"}]),
        (
            "wires",
            [
                {label}
                for label in sorted({"cloud -- east", "cloud -- west", *EAST, *WEST})
                if not label.startswith("cell")
            ],
        ),
    ],
)
def test_each_of_a_kind_fails_on_its_own(of: str, fails_together: list[set[str]]) -> None:
    world = by_chance({"of": of, "mean_up_s": 1e4, "mean_down_s": 1.0}, topology=RING)
    history = history_of(world, 1e6)
    away = [set(now) for _, now in history]
    for together in fails_together:
        assert together in away
    assert all(now in [set(), *fails_together] for now in away)  # two at once: 1e4 times as rare


def test_only_those_that_are_named_fail() -> None:
    random = {"of": "sensors", "mean_up_s": 10.0, "mean_down_s": 10.0, "only": ["east-2", "west-1"]}
    away = [now for _, now in history_of(by_chance(random, topology=RING), 1e3)]
    assert set().union(*away) == {"east-2", "west-1"}


def test_a_device_fails_at_its_own_times_whoever_else_is_named() -> None:
    random = {"of": "sensors", "mean_up_s": 10.0, "mean_down_s": 10.0}
    histories = [
        history_of(by_chance(random | only, topology=RING), 1e3)
        for only in ({}, {"only": ["west-1"]}, {"only": ["east-1", "west-1"]})
    ]
    one, other, third = (times_s(history, "west-1", 1e3) for history in histories)
    assert one == other == third
    assert len(one[0]) > 20


def test_failures_by_chance_and_planned_ones_overlap() -> None:
    # The cell is closed while either has failed: a message that needs 8 s is sent in what is left.
    random = {"of": "base_stations", "mean_up_s": 5.0, "mean_down_s": 5.0}
    planned = {"node": "station", "at_s": 0.0, "for_s": 2.0, "every_s": 4.0}
    world = failing(planned, faults={"random": [random]})
    history = history_of(world, ended=send(world))
    (air,) = (row for row in world.trace.hops.array() if row["access"])
    changes = [
        (0.0, frozenset()),
        *((at_s, now) for at_s, now in history if at_s <= air["end_s"]),
        (air["end_s"], frozenset()),
    ]
    open_s = [end_s - at_s for (at_s, now), (end_s, _) in pairwise(changes) if "cell station" not in now]
    assert sum(open_s) == pytest.approx(8.0)
    assert air["end_s"] > 16.0


# -- on nothing but the seed -------------------------------------------------------------------------------------------

EVERYTHING_FAILS = {
    "random": [
        {"of": kind, "mean_up_s": 60.0, "mean_down_s": 10.0}
        for kind in ("sensors", "base_stations", "edges", "clouds", "wires")
    ]
}


def histories(*changes: dict[str, Any], seeds: tuple[int, ...] = (1,)) -> list[History]:
    """What fails in the first 200 s, while the first protocol runs."""
    found = []
    for change in changes:
        for seed in seeds:
            world, protocol = prepared(EVERYTHING_HAPPENS | {"faults": EVERYTHING_FAILS} | change, seed=seed)
            world.env.process(protocol.run(world))
            found.append(history_of(world, 200.0))
    return found


def test_the_same_seed_fails_alike_and_another_one_differently() -> None:
    once, other = histories({}, seeds=(1, 2))
    again, _ = histories({}, seeds=(1, 2))
    assert once == again != other
    assert len(once) > 50


def test_failures_do_not_depend_on_traffic_protocols_or_what_becomes_of_messages() -> None:
    cloud = {"devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}}}
    first, *others = histories(
        {},
        {"protocols": [{"name": "fedprox", "clients": 2, "mu": 0.1, "busy": "abort", "deadline_s": 20.0}]},
        cloud | {"protocols": [{"name": "centralised"}]},
        {"network.cell.loss": {"probability": 0.5, "attempts": 1}},
        {"network.cell.discipline": {"name": "fair"}},
        {"faults": EVERYTHING_FAILS | {"messages": "lose"}},
        {"faults": EVERYTHING_FAILS | {"messages": "restart", "routing": "around_outages", "device_memory": "lost"}},
        {"data.samples_per_client": 99},
    )
    idle = prepared(EVERYTHING_HAPPENS | {"faults": EVERYTHING_FAILS})[0]
    assert [history == first for history in [*others, history_of(idle, 200.0)]] == [True] * 8


def test_two_protocols_on_one_seed_meet_the_same_outages() -> None:
    # Their journeys differ, but what each is told of the network at its own time is the same.
    protocols = [{"name": "fedavg", "clients": 3}, {"name": "fedprox", "fraction": 1.0, "mu": 1.0}]
    one, other = histories(*({"protocols": [protocol]} for protocol in protocols))
    assert one == other


def test_the_nth_failure_of_a_device_has_the_nth_stream() -> None:
    random = {"of": "sensors", "mean_up_s": 10.0, "mean_down_s": 5.0}
    world = by_chance(random, topology=RING)
    streams = [world.streams("faults/0/sensors", 2, use).generator() for use in range(3)]
    up_s, down_s = times_s(history_of(world, 1e3), world.clients[2].name, 1e3)
    expected = np.array([(each.exponential(10.0), each.exponential(5.0)) for each in streams])
    assert np.column_stack([up_s[:3], down_s[:3]]) == pytest.approx(expected)


def test_names_do_not_matter_to_chance() -> None:
    renamed = {name: f"z{9 - number}" for number, name in enumerate(RING["nodes"])}
    other_ring = RING | {
        "nodes": {
            renamed[name]: node | ({"attach": renamed[node["attach"]]} if "attach" in node else {})
            for name, node in RING["nodes"].items()
        },
        "links": [{"between": [renamed[end] for end in link["between"]]} for link in RING["links"]],
    }
    ours, others = (
        history_of(prepared(NO_CONTENTION | {"topology": topology, "faults": EVERYTHING_FAILS})[0], 500.0)
        for topology in (RING, other_ring)
    )
    assert [(at_s, len(away)) for at_s, away in ours] == [(at_s, len(away)) for at_s, away in others]
