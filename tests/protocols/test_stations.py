"""Base stations between the cloud and its clients: which bytes cross which hop, when, and who takes part.

A wire takes 1 s, the air 4 s down and 8 s up, and work on 10 samples 5 s. A report of 10 class counts has 40 bytes,
which take 0.32 s on the air. Two stations share the wire to the cloud.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_learner import PlainLearner
from small_worlds import NO_CONTENTION, hall, prepared

from fedsim.data.captures import Capture, classes_seen
from fedsim.errors import UserError
from fedsim.experiment.simulate import simulate
from fedsim.grouping.subset.gbp_cs import GBPCS
from fedsim.protocols.schedules.membership import Membership
from fedsim.protocols.world import World

STATIONS = {"a": "east", "b": "east", "c": "east", "d": "west", "e": "west", "f": "west"}
REPORT, MODEL = 40.0, 1_000.0
LABELS: dict[str, Any] = {"data": {"name": "digits", "partition": {"name": "iid"}}, "training.batch_size": 10}
FEDGS: dict[str, Any] = {"name": "fedgs", "devices": 2, "presampled": 1, "iterations": 3}


def ran(protocol: dict[str, Any], changes: dict[str, Any] | None = None, **learner: Any) -> World:
    """A world in which the protocol has run to its end; a model has 1,000 bytes."""
    base = NO_CONTENTION | hall(**STATIONS) | {"network.link.rate_bps": 8_000} | LABELS
    base |= {"model": {"name": "declared", "parameters": MODEL / 4}, "protocols": [protocol]}
    world, found = prepared(base | (changes or {}), **learner)
    simulate(world, found, world.loop.stop)
    return world


def crossings(world: World) -> Counter[tuple[str, str, float]]:
    """How many messages have crossed each link in each direction, by their bytes; reports together are one."""
    hops, links = world.trace.hops.array(), world.network.links
    ways = ["up" if uplink else "down" for uplink in hops["uplink"]]
    return Counter(zip([links[link].label for link in hops["link"]], ways, hops["bytes"].tolist(), strict=True))


def on_wires(reports_to_cloud: int, rounds: int) -> Counter[tuple[str, str, float]]:
    """What two stations report, and are sent, in so many rounds, and what their six clients told the cloud before."""
    expected: Counter[tuple[str, str, float]] = Counter()
    for wire, times in {"cloud -- edge": 2, "edge -- east": 1, "edge -- west": 1}.items():
        expected[wire, "down", MODEL] = expected[wire, "up", MODEL] = rounds * times
        if reports_to_cloud:
            expected[wire, "up", REPORT] = 3 * times
    return expected


# -- bytes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 3])
def test_bytes_of_a_round_in_closed_form(rounds: int) -> None:
    """On the air of a station T (L + L) models and T reports of its K devices; on its wire a model each way."""
    iterations, devices, members = 3, 2, 3
    expected = on_wires(6, rounds)
    for cell in ("cell east", "cell west"):
        expected[cell, "down", MODEL] = expected[cell, "up", MODEL] = rounds * iterations * devices
        expected[cell, "up", members * REPORT] = rounds * iterations
        expected[cell, "up", REPORT] = members  # of all samples, once
    assert crossings(ran(FEDGS, {"stop.rounds": rounds})) == expected


def test_reports_cost_the_same_singly() -> None:
    singly = {**FEDGS, "label_reports": "singly"}
    together, apart = (
        ran(protocol, {"network.transport": {"payload_bytes": 300, "header_bytes": 40}}) for protocol in (FEDGS, singly)
    )
    for world in (together, apart):
        assert world.network.access_bytes == together.network.access_bytes
    sizes = [set(world.trace.hops.array()["bytes"].tolist()) for world in (together, apart)]
    assert 3 * (REPORT + 40) in sizes[0] and 3 * (REPORT + 40) not in sizes[1]
    assert together.env.now == pytest.approx(apart.env.now, rel=1e-12)


@pytest.mark.parametrize("discipline", ["serial", "fair", "dedicated"])
def test_reports_take_as_long_and_as_much_airtime_singly(discipline: str) -> None:
    """With rates that differ, one iteration of one station."""
    rates = {"network.cell.discipline": {"name": discipline}, "network.cell.radio": RADIO, **FAR_AND_NEAR}
    found = []
    for how in ("together", "singly"):
        keys = {**FEDGS, "iterations": 1, "label_reports": how, "devices": 3}
        world = ran(keys, rates)
        hops = world.trace.hops.array()
        found.append((world.env.now, hops["airtime_s"][(hops["bytes"] % REPORT == 0) & (hops["bytes"] < MODEL)].sum()))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


RADIO = {"name": "fixed", "uplink_bps": 1_000, "downlink_bps": 2_000}
FAR_AND_NEAR = {
    "network.cells": {"east": {"radio": {"name": "fixed", "uplink_bps": 500, "downlink_bps": 2_000}}},
}


def test_where_packets_are_lost_each_report_is_a_message_of_its_own() -> None:
    world = ran(FEDGS, {"network.cell.loss": {"probability": 0.2, "attempts": 1}, "stop.rounds": 5})
    sizes = Counter(world.trace.hops.array()["bytes"].tolist())
    assert set(sizes) == {REPORT, MODEL}


def test_without_a_need_for_counts_nobody_reports() -> None:
    expected = on_wires(0, 1)
    for cell in ("cell east", "cell west"):
        expected[cell, "down", MODEL] = expected[cell, "up", MODEL] = 3 * 2
    keys = {name: value for name, value in FEDGS.items() if name != "name"}
    assert crossings(ran({"name": "fedgs_random", **keys})) == expected
    declared = {"data": {"name": "declared", "samples_per_client": 10}}
    assert crossings(ran({"name": "fedgs_random", **keys}, declared)) == expected


def test_edge_rounds_cross_the_air_and_rounds_the_wires() -> None:
    expected = on_wires(0, 2)
    for cell in ("cell east", "cell west"):
        expected[cell, "down", MODEL] = expected[cell, "up", MODEL] = 2 * 4 * 3
    assert crossings(ran({"name": "hierarchical", "fraction": 1.0, "edge_rounds": 4}, {"stop.rounds": 2})) == expected


# -- time --------------------------------------------------------------------------------------------------------------


def test_an_iteration_takes_reports_selection_and_a_round_trip() -> None:
    world = ran({**FEDGS, "selection_s": 0.25})
    # The reports of all samples to the cloud share the wire of the edge server: 0.32 s by air, 0.04 s on each wire.
    told_s = 0.32 + 3 * 0.04 + 3 * 0.04 + 0.04
    down_s, up_s = 2.0, 2.0  # the second station's model waits a second, twice
    iteration_s = 0.32 + 0.25 + 4 + 5 + 8
    assert world.env.now == pytest.approx(told_s + down_s + 3 * iteration_s + up_s + 1, abs=0.1)


def test_a_device_too_slow_for_an_iteration_is_left_out_of_it() -> None:
    changes = {"network.late_transfers": "cancel"}
    in_time = ran({**FEDGS, "iteration_deadline_s": 17.0}, changes)
    late = ran({**FEDGS, "iteration_deadline_s": 16.9}, changes)
    assert in_time.trace.rounds.array()[["participants", "lost"]].tolist() == [(6, 0)], "some in each iteration"
    assert late.trace.rounds.array()[["participants", "lost"]].tolist() == [(0, 6)]
    assert not [key for key in crossings(late) if "edge" in key[0] and key[1:] == ("up", MODEL)], "nothing to report"


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_a_station_that_is_late_counts_with_all_whom_it_has_asked(late_transfers: str) -> None:
    world = ran({**FEDGS, "deadline_s": 40.0}, {"network.late_transfers": late_transfers, "stop.rounds": 2})
    rounds = world.trace.rounds.array()
    assert (rounds["participants"] == 0).all() and (rounds["late"] == rounds["selected"]).all()
    assert rounds["late"].min() >= 2


def test_no_work_begins_for_a_round_that_is_over() -> None:
    """The station is still selecting when the cloud waits no longer: whom it would have asked stays free."""
    keys = {**FEDGS, "selection_s": 60.0, "deadline_s": 50.0}
    world = ran(keys, {"network.late_transfers": "finish", "stop.rounds": 5})
    assert (world.trace.rounds.array()["selected"] == 0).all() and len(world.trace.work.array()) == 0
    assert not [key for key in crossings(world) if key[0].startswith("cell") and key[2] == MODEL]


@pytest.mark.parametrize("wire", [["cloud", "edge"], ["edge", "east"]])
def test_a_station_goes_on_with_its_own_clients_while_a_wire_is_cut(wire: list[str]) -> None:
    keys = {"name": "hierarchical", "fraction": 1.0, "edge_rounds": 3}
    fault = {"link": wire, "at_s": 100.0, "for_s": 100.0}
    whole, cut = ran(keys), ran(keys, {"faults": {"scheduled": [fault]}})
    starts_s = whole.trace.work.array()["start_s"]
    assert ((starts_s > 100.0) & (starts_s < 200.0)).any()
    work = [world.trace.work.array()[["client", "start_s", "end_s"]].tolist() for world in (whole, cut)]
    assert work[0] == work[1]
    assert cut.env.now == whole.env.now


@pytest.mark.parametrize("at_s", [3.0, 8.0, 20.0, 30.0])
@pytest.mark.parametrize("fails", [{"node": "east"}, {"link": ["edge", "east"]}], ids=["station", "wire"])
@pytest.mark.parametrize("name", ["fedgs", "hierarchical"])
def test_a_station_that_has_failed_for_ever_does_not_wait_for_those_who_have_moved_to_it(
    name: str, fails: dict[str, Any], at_s: float
) -> None:
    """They can be reached, but not from there. The rounds go on with the other station."""
    keys = FEDGS if name == "fedgs" else {"name": name, "fraction": 1.0, "edge_rounds": 3}
    fault = fails | {"at_s": at_s}
    world = ran({**keys, "move_share": 0.5}, {"stop.rounds": 6, "faults": {"scheduled": [fault]}})
    rounds, work = world.trace.rounds.array(), world.trace.work.array()
    assert len(rounds) == 6
    alone = work[work["start_s"] > rounds["end_s"][0]]
    assert len(alone) and set(alone["client"].tolist()) <= {3, 4, 5}, "whose cell still has a way to the cloud"


def test_a_station_gives_its_clients_the_whole_model_while_its_wire_is_cut() -> None:
    keys = {"name": "hierarchical", "fraction": 1.0, "edge_rounds": 3, "exchange": {"name": "lasp", "scc": None}}
    fault = {"link": ["edge", "east"], "at_s": 10.0, "for_s": 500.0}
    world = ran(keys, PARTS_IN_NO_TIME | {"stop.rounds": 1, "faults": {"scheduled": [fault]}})
    assert Counter(world.trace.work.array()["client"].tolist()) == dict.fromkeys(range(6), 3)


def test_super_nodes_are_selected_from_those_who_have_what_a_calibration_needs() -> None:
    exchange = {"name": "lasp", "scc": None}
    world = ran({**FEDGS, "iterations": 3, "fused": False, "exchange": exchange}, PARTS_IN_NO_TIME)
    rounds, work = world.trace.rounds.array(), world.trace.work.array()
    assert (rounds["lost"] == 0).all() and (rounds["participants"] == rounds["selected"]).all()
    assert (rounds["selected"] == 4).all(), "two at each of two stations, the same in all iterations"
    assert len(work) == 4 * 3 * len(rounds)


def test_a_device_reports_once_its_next_mini_batch_is_there() -> None:
    stream = {"samples": 10, "arrival": {"samples_per_s": 0.1, "buffer_samples": 50, "buffered_at_start": 0}}
    world = ran({**FEDGS, "iterations": 2}, {"data.stream": stream})
    work, hops = world.trace.work.array(), world.trace.hops.array()
    reports = hops[(hops["bytes"] < MODEL) & (hops["start_s"] > 50.0)]
    assert reports["start_s"].min() == pytest.approx(100.0, rel=1e-9)
    assert work["start_s"].min() > 100.0
    assert len(work) == 2 * 2 + 2, "in the second iteration one of a station has samples left, and then all have"


def test_reports_that_may_miss_a_deadline_are_messages_of_their_own() -> None:
    world = ran({**FEDGS, "iteration_deadline_s": 0.7}, {"network.cell.discipline": {"name": "serial"}})
    hops = world.trace.hops.array()
    assert (hops["bytes"] == REPORT).any() and not (hops["bytes"] == 3 * REPORT).any()


def test_reports_are_bundled_on_one_carrier_only() -> None:
    one_by_one = {"network.cell.discipline": {"name": "serial"}}
    worlds = [ran(FEDGS, one_by_one | {"network.cell.carriers": carriers}) for carriers in (1, 2)]
    found = [world.trace.hops.array()["bytes"] for world in worlds]
    assert [(sizes == 3 * REPORT).any() for sizes in found] == [True, False]


def test_what_a_rule_sends_beside_goes_along_between_cloud_and_stations() -> None:
    sizes = {}
    for accounting in ("sent", "paper"):
        server = {"name": "fednova", "accounting": accounting}
        keys = {"name": "hierarchical", "fraction": 1.0, "edge_rounds": 1, "server": server}
        sizes[accounting] = {key[1:] for key in crossings(ran(keys)) if key[0] == "cloud -- edge"}
    assert sizes == {
        "sent": {("down", MODEL), ("up", MODEL + 4)},
        "paper": {("down", 2 * MODEL), ("up", 2 * MODEL)},
    }


@pytest.mark.parametrize("key", ["codec", "inner_codec"])
def test_a_measured_size_needs_learning_whoever_writes_it(key: str) -> None:
    sparse: dict[str, Any] = {"path": f"{Path(__file__).parents[1] / 'outside' / 'sparse.py'}:Sparse"}
    for keys in (
        {"name": "hierarchical", "fraction": 1.0, key: sparse},
        {**FEDGS, "fused": False, key: sparse},
    ):
        with pytest.raises(ValueError, match="measured on what was learned; give declared_bytes"):
            ran(keys, {"learn": False})
        sparse["declared_bytes"] = 500.0
        assert ("cloud -- edge" if key == "codec" else "cell east", "up", 500.0) in crossings(ran(keys))
        del sparse["declared_bytes"]


class NoCode(PlainLearner):
    """Writes nothing for the wire."""

    def apply(self, operation: Any, *arguments: Any, **options: Any) -> Any:
        assert operation.name != "code", "there is nothing to be written"
        return super().apply(operation, *arguments, **options)


def test_a_station_with_nothing_to_report_writes_nothing_so_its_codec_forgets_nothing() -> None:
    sparse = {"path": f"{Path(__file__).parents[1] / 'outside' / 'sparse.py'}:Sparse", "declared_bytes": 500.0}
    keys = {**FEDGS, "codec": sparse, "iteration_deadline_s": 16.0}
    world = ran(keys, {"network.late_transfers": "cancel"}, learner=lambda *_: NoCode(parts=("model",)))
    assert world.trace.rounds.array()[["selected", "participants"]].tolist() == [(6, 0)]
    with pytest.raises(AssertionError, match="nothing to be written"):
        ran({**keys, "iteration_deadline_s": 18.0}, learner=lambda *_: NoCode(parts=("model",)))


# -- mini-batches ------------------------------------------------------------------------------------------------------


def captures_of(world_keys: dict[str, Any], **changes: Any) -> dict[int, list[Capture]]:
    """The mini-batches of each client, in order, where each step is a training of its own."""
    learner = PlainLearner(parts=("model",))
    ran({**world_keys, "fused": False}, {"stop.rounds": 4, **changes}, learner=lambda *_: learner)
    found: dict[int, list[Capture]] = {}
    for _, client, capture in learner.captures:
        found.setdefault(client, []).append(capture)
    return found


@pytest.mark.parametrize(
    "stream", [None, {"samples": 3}, {"samples": 50, "drift": {"name": "gradual", "begin": 0, "end": 9}}]
)
def test_a_mini_batch_is_used_up_by_whom_it_is_trained_on_and_by_nobody_else(stream: dict[str, Any] | None) -> None:
    if stream is not None and "drift" in stream:
        stream["drift"]["by"] = "rounds"
    found = captures_of(FEDGS, **({} if stream is None else {"data.stream": stream}))
    assert sum(map(len, found.values())) == 4 * 3 * 2 * 2  # rounds, iterations, stations, devices
    for captures in found.values():
        assert [capture.first for capture in captures] == [10 * number for number in range(len(captures))]
        assert {capture.samples for capture in captures} == {10}


def test_each_device_has_a_chance_where_some_are_presampled() -> None:
    found = captures_of({**FEDGS, "devices": 1, "presampled": 1})
    assert len(found) == 6


# -- selection ---------------------------------------------------------------------------------------------------------


def test_the_selector_is_asked_for_what_the_presampled_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    """y = n L P_real - b, with the class counts of each device's next mini-batch."""
    asked: list[tuple[Any, Any]] = []

    def first_ones(_: GBPCS, rows: Any, target: Any, size: int, rng: np.random.Generator) -> Any:
        asked.append((rows.copy(), target.copy()))
        return np.arange(size)

    monkeypatch.setattr(GBPCS, "some", first_ones)
    learner = PlainLearner(parts=("model",))
    uneven = {"data.partition": {"name": "shards", "shards_per_client": 3}}
    world = ran({**FEDGS, "fused": False}, uneven, learner=lambda *_: learner)
    assert len(asked) == 3 * 2
    y, ids = world.dataset.y, world.dataset.train_ids
    assert y is not None
    real = np.bincount(y[np.concatenate(ids)], minlength=10) / sum(map(len, ids))
    used = {client: Counter[int]() for client in range(6)}

    def next_batch(client: int) -> Any:
        capture = Capture(used[client].total(), 10)
        return classes_seen(world.dataset, client, capture, world.streams)

    trained = [(client, capture) for _, client, capture in learner.captures]
    for number, (rows, target) in enumerate(sorted_by_station(asked)):
        station, step = divmod(number, 3)
        chosen = [one for one in trained if one[0] // 3 == station][2 * step : 2 * step + 2]
        members = range(3 * station, 3 * station + 3)
        batches = {client: next_batch(client) for client in members}
        presampled = [client for client in members if not any((batches[client] == row).all() for row in rows)]
        assert len(presampled) == 1 and len(rows) == 2
        np.testing.assert_allclose(target, 10 * 2 * real - batches[presampled[0]], rtol=0, atol=1e-12)
        for client, _ in chosen:
            used[client][0] += 10


def sorted_by_station(asked: list[Any]) -> list[Any]:
    """Both stations ask in turn."""
    return asked[0::2] + asked[1::2]


# -- who moves ---------------------------------------------------------------------------------------------------------


def test_a_share_of_the_clients_moves_when_a_round_begins() -> None:
    world, _ = prepared(hall(**STATIONS))
    membership, before = Membership(world, 0.5), [0, 0, 0, 1, 1, 1]
    moved = []
    for number in range(1, 30):
        homes = membership.of_round(number, world.clients)
        now = [next(station for station, own in homes.items() if client in own) for client in world.clients]
        moved.append(np.flatnonzero(np.array(now) != before).tolist())
        before = now
    assert {len(some) for some in moved} == {3}
    assert len({tuple(some) for some in moved}) > 10
    again = Membership(world, 0.5)
    assert [again.of_round(number, world.clients) for number in range(1, 30)][-1] == homes


def test_nobody_moves_without_a_share_or_another_station() -> None:
    for stations, share in ((STATIONS, 0.0), (dict.fromkeys("abcdef", "east"), 0.9)):
        world, _ = prepared(hall(**stations))
        membership = Membership(world, share)
        assert membership.of_round(1, world.clients) == membership.of_round(2, world.clients)


def test_a_device_that_has_moved_is_reached_over_the_wires_between() -> None:
    keys = {"name": "hierarchical", "fraction": 1.0, "edge_rounds": 1, "move_share": 0.2}
    stay, move = (ran({**keys, "move_share": share}) for share in (0.0, 0.2))
    more = crossings(move) - crossings(stay)
    assert sum(number for (link, *_), number in more.items() if link.startswith("edge")) == 4
    assert not crossings(stay) - crossings(move)


MANY = {"topology": {"name": "star", "devices": 60}}
PARTS_IN_NO_TIME: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [3]},
    "devices.classes.sensor.compute": {"name": "flops", "flops_per_s": math.inf},
}


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        ({}, {"training.epochs": 2}, "training.epochs=2, and a single step is one mini-batch"),
        ({}, {"training.batch_size": 10**9}, "batch_size=1,000,000,000 samples in the mini-batch of one"),
        ({}, {"data.stream": {"samples": 5, "refresh_rounds": 2}}, "data.stream.refresh_rounds=2 keeps samples"),
        ({}, {"training.momentum": 0.9}, "training.momentum=0.9 has no effect, as each single step"),
        ({"objective": {"name": "proximal", "mu": 0.1}}, {}, "objective 'proximal' looks at where a training began"),
        ({"objective": {"name": "distilled", "coefficient": 0.1}}, {}, "objective 'distilled' looks at where"),
        ({"move_share": 0.1}, {}, "move_share: 0.1 of 6 clients at stations moves nobody"),
        ({"move_share": 0.5}, {"topology": {"name": "star", "devices": 6}}, "only one has clients of its own"),
        ({"exchange": {"name": "lasp"}}, PARTS_IN_NO_TIME, "fused: .* exchange 'lasp'; choose"),
        (
            {"selector": {"name": "random"}, "presampled": 3},
            {},
            "presampled=3 must be at most devices=2; give a smaller",
        ),
        ({"selector": {"name": "exact"}, "devices": 30, "presampled": 0}, MANY, "selector: 30 of 60 candidates"),
        (
            {"selector": {"name": "exact"}, "devices": 20, "presampled": 0, "move_share": 0.1},
            hall(**{f"{number}": "east" if number < 30 else "west" for number in range(60)}),
            "selector: 20 of 60 candidates",
        ),
        ({}, {"data": {"name": "declared", "samples_per_client": 10}}, "selector 'gbp_cs' goes by the classes"),
    ],
)
def test_what_does_not_fit_is_refused(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises((UserError, ValueError), match=message):
        ran({**FEDGS, **keys}, changes)


def test_who_writes_fewer_devices_only_is_told_of_the_key_that_is_larger() -> None:
    with pytest.raises(ValueError, match=r"presampled=2 \(its default\) must be at most devices=1"):
        ran({"name": "fedgs", "devices": 1, "iterations": 3})


def test_a_model_that_may_mix_samples_is_refused_where_steps_are_fused() -> None:
    net = {"name": "torch_module", "path": f"{Path(__file__).parents[1] / 'laws' / 'normalised_net.py'}:NormalisedNet"}
    base = NO_CONTENTION | hall(**STATIONS) | LABELS | {"model": net, "protocols": [FEDGS]}
    with pytest.raises(UserError, match=r"\.fused: .* not here: .* module of the user's own .* fused: f"):
        prepared(base)
    prepared(base | {"protocols": [{**FEDGS, "fused": False}]})


def test_a_cohort_is_for_the_cloud_or_for_stations() -> None:
    wrong = {
        "super nodes are selected by base stations": ({"name": "super_nodes"}, {"name": "rounds"}),
        "groups that train in sequence": ({"name": "grouped"}, {"name": "edge_rounds"}),
        "over_selection: 2 is for a cloud": (
            {"name": "random", "clients": 2, "over_selection": 2.0},
            {"name": "edge_rounds"},
        ),
    }
    for message, (cohort, schedule) in wrong.items():
        with pytest.raises(UserError, match=message):
            ran({"name": "composed", "cohort": cohort, "schedule": schedule})
