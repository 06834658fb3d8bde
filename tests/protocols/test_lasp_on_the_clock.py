"""LASP and SCC on the clock: what travels in which round, who takes part, how long it takes, and what is kept.

The model has 1000 B, its classifier 200 B. Where nobody waits, and work takes no time, a journey of the whole model
takes 4 s down and 8 s up, one of the classifier a fifth of that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import ended, over_the_air, work
from plain_learner import PlainLearner
from small_worlds import NO_CONTENTION, simulated

from fedsim.data.captures import Capture, classes_seen
from fedsim.kernel.trace import Outcome
from fedsim.learning.operations.extract import Extract
from fedsim.learning.operations.operation import Operation
from fedsim.protocols.exchanges.memory import Memory
from fedsim.protocols.world import World

WHOLE, CLASSIFIER = 1_000.0, 200.0

PARTED: dict[str, Any] = NO_CONTENTION | {
    "model": {
        "name": "declared",
        "parameters": WHOLE / 4,
        "classifier_parameters": CLASSIFIER / 4,
        "training_flops_per_sample": 1.0,
    },
    "devices.classes.sensor.compute": {"name": "flops", "flops_per_s": float("inf")},
    "data": {"name": "digits", "partition": {"name": "iid"}, "stream": {"samples": 4}},
}


def fedavg(interval: int, devices: int = 2, **keys: Any) -> dict[str, Any]:
    """FedAvg with LASP, for two blocks."""
    lasp = {"name": "lasp", "scc": keys.pop("scc", None)}
    protocol = {"name": "fedavg", "fraction": 1.0, "interval": interval, "exchange": lasp, **keys}
    return PARTED | {"protocols": [protocol], "stop.rounds": 2 * interval, "topology.devices": devices}


def hfedms(interval: int, devices: int, groups: int, **keys: Any) -> dict[str, Any]:
    protocol = {"name": "hfedms_d", "growth": {"name": "constant", "beta": groups}, "interval": interval, **keys}
    return PARTED | {"protocols": [protocol], "stop.rounds": 2 * interval, "topology.devices": devices}


def by_round(world: World, *, up: bool) -> list[list[float]]:
    """The sizes of messages on the air in each round."""
    hops, ends = world.trace.hops.array(), world.trace.rounds.array()["hops"]
    return [
        sorted(row["bytes"] for row in some if row["access"] and row["uplink"] == up)
        for some in np.split(hops, ends)[:-1]
    ]


def memory(world: World, client: int = 0) -> Memory:
    return Memory.of(world.clients[client])


# -- what travels ------------------------------------------------------------------------------------------------------


def test_a_full_round_is_one_up_and_two_down_and_a_calibration_one_of_each_of_the_classifier() -> None:
    world = simulated(fedavg(3))
    assert by_round(world, up=True) == [[WHOLE] * 2, [CLASSIFIER] * 2, [CLASSIFIER] * 2] * 2
    assert by_round(world, up=False) == [[WHOLE] * 4, [CLASSIFIER] * 2, [CLASSIFIER] * 2] * 2
    # Full: 4 + 8, and 4 s for the scatter; calibrations a fifth of 4 + 8.
    assert np.diff([0.0, *(row[0] for row in ended(world))]).tolist() == pytest.approx([16.0, 2.4, 2.4] * 2)
    assert [row[1:] for row in ended(world)] == [(2, 2, 0, 0)] * 6


@pytest.mark.parametrize("interval", [2, 5])
def test_bytes_are_those_of_eq_20(interval: int) -> None:
    # kappa K clients; F_r = ceil(R / T) full rounds: 3 M F_r + 2 (R - F_r) Mc for each.
    rounds, clients = 2 * interval + 1, 3
    world = simulated(fedavg(interval, clients) | {"stop.rounds": rounds})
    full = 3
    expected = clients * (3 * WHOLE * full + 2 * (rounds - full) * CLASSIFIER)
    assert sum(over_the_air(world).values()) == expected


def test_the_scatter_goes_to_the_members_of_the_block_only() -> None:
    world = simulated(fedavg(2, devices=5, fraction=None, clients=2) | {"stop.rounds": 6})
    hops, ends = world.trace.hops.array(), world.trace.rounds.array()["hops"]
    asked = []
    for some in np.split(hops, ends)[:-1]:
        down = some[some["access"] & ~some["uplink"]]
        asked.append(sorted(down["client"].tolist()))
    for full, calibration in zip(asked[::2], asked[1::2], strict=True):
        assert full == sorted([*calibration, *calibration])
        assert len(calibration) == 2


def test_a_group_that_takes_no_part_gets_nothing() -> None:
    world = simulated(hfedms(2, 6, 3, sampling_rate=0.4))
    groups = world.trace.groups.array()
    hops = world.trace.hops.array()
    first = hops[: world.trace.rounds.array()["hops"][1]]
    down = first["client"][first["access"] & ~first["uplink"]]
    chosen = groups["client"][(groups["round"] == 1) & groups["selected"]]
    assert sorted(down.tolist()) == sorted([*chosen] * 3)  # the model, its mean, the classifier


def test_chains_hand_on_the_model_and_then_the_classifier() -> None:
    # A chain of two: 2 x 12 s, 4 s for the scatter; then 2 x 2.4 s. A report of 40 B takes 0.32 s.
    world = simulated(hfedms(2, 2, 1))
    assert np.diff([0.0, *(row[0] for row in ended(world))]).tolist() == pytest.approx([28.32, 4.8] * 2)
    assert by_round(world, up=True) == [[40.0] * 2 + [WHOLE] * 2, [CLASSIFIER] * 2] * 2


@pytest.mark.parametrize("name", ["fedavg", "stp"])
def test_with_blocks_of_one_round_it_is_the_whole_model_and_nothing_is_scattered(name: str) -> None:
    keys = {"fedavg": {"fraction": 1.0}, "stp": {"growth": {"name": "constant", "beta": 2}, "sampling_rate": 1.0}}
    one, other = (
        simulated(
            PARTED
            | {"topology.devices": 4, "stop.rounds": 3}
            | {"protocols": [{"name": name, "exchange": {"name": part}, **keys[name]}]}
        )
        for part in ("lasp", "whole")
    )
    assert one.trace.digest() == other.trace.digest()
    assert len(one.trace.rounds) == 3


def test_the_mean_of_classifiers_goes_with_the_extractor_of_the_full_round() -> None:
    learner = PlainLearner(parts=("extractor", "classifier"))
    world = simulated(fedavg(2), learner=lambda *_: learner)
    assert {part: handle.text for part, handle in world.loop.model.items()} == {  # type: ignore[attr-defined]
        "extractor": "mean of round 3",
        "classifier": "mean of round 4",
    }
    assert [list(one.model) for one in learner.means[4]] == [["classifier"]] * 2
    assert {one.extractor for one in learner.extractions if one.round_number == 4} == {"mean of round 3"}
    starts = {training.round_number: training.start for training in learner.trainings}
    assert starts == {1: "initial", 2: "mean of round 1", 3: "mean of round 1 & mean of round 2", 4: "mean of round 3"}


# -- who takes part ----------------------------------------------------------------------------------------------------


def away(at_s: float, for_s: float) -> list[dict[str, Any]]:
    return [{"node": "sensor-1", "at_s": at_s, "for_s": for_s}]


def test_who_misses_the_scatter_sits_the_block_out() -> None:
    # Up until 12, the scatter down from 12 to 16: it is lost half-way.
    faults = {"faults": {"scheduled": away(14.0, 1.0), "messages": "lose"}}
    world = simulated(fedavg(3) | faults)
    assert [row[1:] for row in ended(world)] == [(2, 2, 0, 0), (2, 1, 1, 0), (2, 1, 1, 0)] + [(2, 2, 0, 0)] * 3
    assert by_round(world, up=False)[0] == [500.0] + [WHOLE] * 3
    assert by_round(world, up=False)[1] == [CLASSIFIER]


def test_who_cannot_be_reached_is_not_waited_for_with_the_scatter() -> None:
    world = simulated(fedavg(2) | {"faults": {"scheduled": away(11.9, 0.5)}})
    assert by_round(world, up=False)[0] == [WHOLE] * 3
    assert [row[1:] for row in ended(world)][:2] == [(2, 1, 1, 0)] * 2


def test_a_scatter_ends_at_its_deadline_and_who_is_late_sits_out() -> None:
    # One behind the other on the air, 4 s each, and up in 0.08 s. Two are asked for one: the round's mean is there at
    # 4.08 s, the second one's download has begun. The scatter goes to both, until 8.08 s and for 1 s until 9.08 s.
    changes = fedavg(2, fraction=None, clients=1, over_selection=2.0, deadline_s=5.0) | {
        "network.cell.discipline": {"name": "serial"},
        "network.cell.radio": {"name": "fixed", "uplink_bps": 100_000, "downlink_bps": 2_000},
        "network.late_transfers": "cancel",
    }
    world = simulated(changes)
    assert ended(world)[0] == (pytest.approx(9.08), 2, 1, 0, 1)
    assert by_round(world, up=False)[0] == [pytest.approx(20.0), pytest.approx(250.0), WHOLE, WHOLE]
    assert ended(world)[1][1:] == (2, 1, 1, 0)


def test_who_forgets_has_no_extractor_and_sits_the_block_out() -> None:
    # The first calibration round is from 16 to 18.4: sensor-1 fails for a moment after its end.
    faults = {"scheduled": away(18.39, 0.001)}
    for device_memory, counts in (("kept", (2, 2, 0, 0)), ("lost", (2, 1, 1, 0))):
        world = simulated(fedavg(3) | {"faults": faults | {"device_memory": device_memory, "messages": "lose"}})
        assert [row[1:] for row in ended(world)][2:4] == [counts, (2, 2, 0, 0)]


def test_a_device_that_forgets_while_a_classifier_is_on_its_way_to_it_does_nothing_with_it() -> None:
    # A wire of 0.2 s for a classifier: it fails and is back before the message is on the air.
    learner = PlainLearner(parts=("extractor", "classifier"))
    changes = fedavg(2, devices=1) | {"network.link.rate_bps": 8_000}
    begin_s = ended(simulated(changes))[0][0]
    faults = {"faults": {"scheduled": away(begin_s + 0.05, 0.1), "device_memory": "lost"}}
    world = simulated(changes | faults | {"stop.rounds": 2}, learner=lambda *_: learner)
    assert [row[1:] for row in ended(world)] == [(1, 1, 0, 0), (1, 0, 1, 0)]
    assert by_round(world, up=False)[1] == [CLASSIFIER]
    assert len(learner.trainings) == 1


def test_a_late_full_update_that_goes_on_keeps_its_client_from_the_scatter() -> None:
    # The deadline of 10 s comes while both are still sending; nobody has an extractor, and calibrations are empty.
    world = simulated(fedavg(3, deadline_s=10.0) | {"stop.rounds": 3})
    assert [row[1:] for row in ended(world)] == [(2, 0, 0, 2), (2, 0, 2, 0), (2, 0, 2, 0)]
    assert [row[0] for row in ended(world)] == [10.0] * 3


# -- what it takes -----------------------------------------------------------------------------------------------------

EXTRACT, CLASSIFY = 2 * 64 * 3, 2 * 3 * 10
"""FLOPs of a sample through an MLP of 64 - 3 - 10 numbers: 2 per multiply-accumulate."""

LAYERS: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [3]},
    "devices.classes.sensor.compute": {"name": "flops", "flops_per_s": 1.0},
}
"""A device of one operation a second."""


def seconds_of_work(changes: dict[str, Any]) -> list[float]:
    return [end_s - start_s for client, start_s, end_s, _ in work(simulated(changes)) if client == 0]


def test_calibration_takes_a_frozen_extractor_forward_and_a_classifier_in_training() -> None:
    # Four samples; without a memory each round has only its own.
    full, calibration = 4 * 3 * (EXTRACT + CLASSIFY), 4 * (EXTRACT + 3 * CLASSIFY)
    assert seconds_of_work(fedavg(3) | LAYERS) == pytest.approx([full, calibration, calibration] * 2)


def test_compensation_and_remembered_rows_take_their_time() -> None:
    full = 4 * 3 * (EXTRACT + CLASSIFY)
    first = (4 + 4) * EXTRACT + 3 * 4 * CLASSIFY  # the full round's batch too, by the extractor that has come
    second = 4 * EXTRACT + 3 * 4 * CLASSIFY
    # Twelve rows are remembered by then; the first batch of the block and the old extractor's view of the new one.
    third = (4 + 4 + 4) * EXTRACT + 3 * (4 + 12) * CLASSIFY
    fourth = 4 * EXTRACT + 3 * (4 + 12) * CLASSIFY
    assert seconds_of_work(fedavg(3, scc={}) | LAYERS) == pytest.approx([full, first, second, full, third, fourth])


@pytest.mark.parametrize(
    ("scc", "extracted", "trained"),
    [
        ({"compensation": "none"}, 4 + 4, 4 + 12),
        ({"keep": "samples"}, 4 + 4 + 12, 4 + 12),
        ({"capacity": 5}, 4 + 4 + 4, 4 + 5),
    ],
)
def test_what_is_kept_decides_what_it_takes(scc: dict[str, Any], extracted: int, trained: int) -> None:
    seconds = seconds_of_work(fedavg(3, scc=scc) | LAYERS)
    assert seconds[4] == pytest.approx(extracted * EXTRACT + 3 * trained * CLASSIFY)


def test_calibration_epochs_repeat_the_classifier_only() -> None:
    lasp = {"name": "lasp", "calibration_epochs": 3, "scc": None}
    changes = fedavg(3, exchange=lasp) | LAYERS | {"training.epochs": 2}
    full, calibration = 2 * 4 * 3 * (EXTRACT + CLASSIFY), 4 * EXTRACT + 3 * 3 * 4 * CLASSIFY
    assert seconds_of_work(changes)[:2] == pytest.approx([full, calibration])
    rows = simulated(changes).trace.work.array()
    assert rows["samples"][rows["client"] == 0].tolist()[:2] == [8, 12]


def test_without_history_a_client_may_skip_its_calibration() -> None:
    learner = PlainLearner(parts=("extractor", "classifier"))
    changes = fedavg(3, scc={"without_history": "skip"})
    world = simulated(changes, learner=lambda *_: learner)
    rows = world.trace.work.array()
    assert rows["samples"][rows["client"] == 0].tolist() == [4, 0, 0, 4, 16, 16]
    assert [training.rows for training in learner.trainings if training.client == 0] == [None, None, 16, 16]


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_memory_grows_by_a_blocks_batches_up_to_its_capacity() -> None:
    # Three batches of four rows in each block.
    rows = []
    for blocks in (1, 2, 3):
        world = simulated(fedavg(3, scc={"capacity": 20}) | {"stop.rounds": 3 * blocks})
        database = memory(world).database
        assert database is not None
        rows.append((database.rows, memory(world).most_rows, memory(world).most_extractors))
    assert rows == [(12, 12, 1), (20, 24, 2), (20, 32, 2)]


@pytest.mark.parametrize("scc", [{"compensation": "none"}, {"keep": "samples"}])
def test_an_extractor_that_nobody_needs_again_is_not_kept(scc: dict[str, Any]) -> None:
    world = simulated(fedavg(3, scc=scc) | {"stop.rounds": 6})
    assert (memory(world).most_extractors, memory(world).backup) == (1, {})
    learner = PlainLearner(parts=("extractor", "classifier"))
    world = simulated(fedavg(3, scc=scc) | {"stop.rounds": 6}, learner=lambda *_: learner)
    assert (memory(world).backup, memory(world).extractor) == ({}, {})
    world = simulated(fedavg(3, scc={}) | {"stop.rounds": 6}, learner=lambda *_: learner)
    assert memory(world).backup.keys() == {"extractor"}
    assert memory(world).extractor == {}


class NeedsAnExtractor(PlainLearner):
    def apply(self, operation: Operation, inputs: Any, outputs: Any, **keys: Any) -> Any:
        if isinstance(operation, Extract):
            assert inputs["model"].keys() == {"extractor"}
        return super().apply(operation, inputs, outputs, **keys)


@pytest.mark.parametrize("scc", [None, {}])
@pytest.mark.parametrize("deadline_s", [4.5, 5.0, 6.0])
def test_a_late_group_of_an_ended_block_passes_over_those_who_have_let_go_of_its_extractor(
    scc: dict[str, Any] | None, deadline_s: float
) -> None:
    late = {"scc": scc, "deadline_s": deadline_s, "sampling_rate": 1.0}
    world = simulated(
        hfedms(2, 6, 1, **late) | {"stop.rounds": 12},
        learner=lambda *_: NeedsAnExtractor(parts=("extractor", "classifier")),
    )
    assert sum(row[4] for row in ended(world)) > 0


def test_rows_are_remembered_until_the_block_ends_and_those_to_choose_from_come_newest_first() -> None:
    learner = PlainLearner(parts=("extractor", "classifier"))
    simulated(fedavg(3, devices=1, scc={"capacity": 10}), learner=lambda *_: learner)
    # The batch of round 1 is extracted in round 2, by the scattered extractor, after that of round 2.
    assert learner.kept == [
        (3, 0, ["0 in round 3", "0 in round 2", "0 in round 2"], 10),
        (6, 0, ["0 in round 6", "0 in round 5", "0 in round 5", "kept in round 3, moved"], 10),
    ]
    assert [training.rows for training in learner.trainings] == [None, 4, 4, None, 14, 14]
    captures = [(one.round_number, one.capture.first) for one in learner.extractions if one.capture]
    assert captures == [(2, 4), (2, 0), (3, 8), (5, 16), (5, 16), (5, 12), (6, 20)]


@pytest.mark.parametrize(
    ("first_extractor", "of"), [("scattered", "mean of round 1"), ("local", "initial trained by 0")]
)
def test_the_first_batch_is_extracted_by_the_scattered_extractor_or_by_the_clients_own(
    first_extractor: str, of: str
) -> None:
    learner = PlainLearner(parts=("extractor", "classifier"))
    changes = fedavg(2, devices=1, scc={"first_extractor": first_extractor}) | {"stop.rounds": 2}
    simulated(changes, learner=lambda *_: learner)
    assert [one.extractor for one in learner.extractions if one.capture and one.capture.first == 0] == [of]


@pytest.mark.parametrize("stream", [None, {"samples": 4, "refresh_rounds": 3}])
def test_samples_that_stay_for_a_block_are_remembered_once(stream: dict[str, Any] | None) -> None:
    data = {"data": {"name": "digits", "partition": {"name": "iid"}} | ({"stream": stream} if stream else {})}
    world = simulated(fedavg(3, devices=4, scc={"capacity": 1_000}) | data | {"stop.rounds": 3})
    database = memory(world).database
    assert database is not None
    assert database.rows == memory(world).most_rows == (4 if stream else world.clients[0].samples)


def test_an_even_share_of_the_memory_for_each_class() -> None:
    partition = {"name": "classes_per_client", "classes": 3}
    data = {"data": {"name": "digits", "partition": partition, "stream": {"samples": 30}}}
    world = simulated(fedavg(2, devices=10, scc={"capacity": 10, "quota": "per_class"}) | data | {"stop.rounds": 4})
    for client in world.clients:
        database = memory(world, client.index).database
        assert database is not None and database.classes is not None
        there = sum(
            classes_seen(world.dataset, client.index, Capture(30 * number, 30), world.streams) for number in range(4)
        )
        present = np.flatnonzero(there)
        # Ten rows for three classes: 4, 3, 3, the first ones more; every class has been seen more often than that.
        assert [database.classes[label] for label in present] == [4, 3, 3]
        assert database.rows == sum(database.classes) == 10


def test_a_client_that_was_not_chosen_keeps_what_it_remembers_for_its_next_block() -> None:
    world = simulated(fedavg(2, devices=3, fraction=None, clients=1, scc={}) | {"stop.rounds": 24})
    for client in world.clients:
        blocks = client.trainings // 2
        database = memory(world, client.index).database
        assert database is not None and database.rows == 8 * blocks
        last_s = max(end_s for index, _, end_s, _ in work(world) if index == client.index)
        rounds_before = sum(row[0] < last_s for row in ended(world))
        assert memory(world, client.index).backup_block == rounds_before // 2 + 1


def test_nothing_is_lost_on_the_air_without_a_reason() -> None:
    world = simulated(hfedms(3, 6, 2, sampling_rate=1.0))
    assert set(world.trace.hops.array()["outcome"]) == {Outcome.ARRIVED}
    assert [row[1:] for row in ended(world)] == [(6, 6, 0, 0)] * 6


def test_a_batch_that_was_learned_too_late_for_its_block_is_no_batch_of_a_later_one(tmp_path: Path) -> None:
    # sensor-1 has the model of round 1 at 20 s, after its block, which ends at 19.4 s, and sits the second block out.
    # In the third one it misses the model at 40 s, and gets the scatter.
    learner = PlainLearner(parts=("extractor", "classifier"))
    rates = ["time_s,device,uplink_bps,downlink_bps", "0,*,1000,2000", "0,sensor-1,1000,400", "25,sensor-1,1000,2000"]
    (tmp_path / "hall.csv").write_text("\n".join(rates), encoding="utf-8")
    air = {"network.cell.radio": {"name": "trace", "path": str(tmp_path / "hall.csv")}, "stop.rounds": 6}
    faults = {"faults": {"scheduled": away(40.0, 1.0), "messages": "lose"}}
    world = simulated(fedavg(2, deadline_s=13.0, scc={}) | air | faults, learner=lambda *_: learner)
    counts = [(2, 1, 0, 1), (2, 1, 1, 0), (1, 1, 0, 0), (1, 1, 0, 0), (2, 1, 1, 0), (2, 2, 0, 0)]
    assert [row[1:] for row in ended(world)] == counts
    assert [end_s for client, _, end_s, _ in work(world) if client == 0] == [20.0, pytest.approx(54.6)]
    assert [one.capture.first for one in learner.extractions if one.client == 0 and one.capture] == [4]
    assert memory(world).most_rows == 4
