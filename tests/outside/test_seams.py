"""Protocols, rules and codecs written outside of the package, on the seams alone."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import digit_runs
import pytest
import sparse
from simpy import Event
from small_worlds import EVERYTHING_HAPPENS, prepared, simulated

import fedsim
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.objective import Given, Objective, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.models.table import ModelTable
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.random import RandomCohort
from fedsim.protocols.site import Site
from fedsim.protocols.world import World

# -- a protocol ------------------------------------------------------------------------------------------------------


def fedavg(world: World, cohort: RandomCohort) -> Generator[Event, Any, None]:
    """Federated averaging, in as many lines as it takes."""
    cloud, draw = Site(world), cohort.begin(None)
    for number in world.loop.rounds():
        chosen = yield from draw.groups(world, BlockRound.of(number, interval=1))
        task = cloud.task(number, Plain(), Float32())
        trips = [cloud.visit(client, task) for (client,) in chosen]
        got = yield from cloud.collect(trips, count=draw.enough(world))
        yield from cloud.fold(Mean(), got.arrived, round_number=number)
        arrived, late = len(got.arrived), len(got.late)
        counts = {"participants": arrived, "late": late, "lost": len(chosen) - arrived - late}
        world.loop.finish_round(cloud.state["model"], selected=len(chosen), **counts)


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_fedavg_in_a_few_lines_has_the_trace_of_fedavg(late_transfers: str) -> None:
    keys = {"fraction": 0.7, "over_selection": 1.3}
    changes = EVERYTHING_HAPPENS | {"network.late_transfers": late_transfers, "stop": {"rounds": 8}}
    changes |= {"protocols": [{"name": "fedavg", **keys}]}
    expected, (world, _) = simulated(changes), prepared(changes)
    world.env.run(until=world.env.process(fedavg(world, RandomCohort(**keys))))
    assert len(world.trace.rounds) == 8
    assert world.trace.digest() == expected.trace.digest()


# -- a codec, and what travels beside the model ----------------------------------------------------------------------


MEASURED = {
    "protocols": [{"name": "fedavg", "clients": 6, "codec": {"path": f"{sparse.__file__}:Sparse", "threshold": 0.02}}],
    "network.cell.radio": {"name": "fixed", "uplink_bps": 1e5, "downlink_bps": 1e5},
    "devices.classes.sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}},
}


def computed(store: Path, run: int) -> list[str]:
    """What a run has computed, by operation."""
    ledgers = sorted((store / "ledger").glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    rows = [json.loads(line) for line in ledgers[run].read_bytes().splitlines()]
    return [row["operation"] for row in rows if row["event"] == "computed"]


@pytest.mark.parametrize("executor", ["serial", "processes", "batched"])
def test_a_measured_size_is_kept_and_nothing_is_trained_for_it_again(tmp_path: Path, executor: str) -> None:
    scenario, store = digit_runs.scenario(MEASURED), tmp_path / "store"
    cold = fedsim.run(scenario, out=tmp_path / "cold", store=store, executor=executor)
    assert computed(store, 0).count("train") == 18
    warm = fedsim.run(scenario, out=tmp_path / "warm", store=store, executor=executor)
    hashes = [results.manifest["runs"][0]["trace_hash"] for results in (cold, warm)]
    assert hashes[0] == hashes[1]
    assert "train" not in computed(store, 1)
    sent = cold.transfers[(cold.transfers["direction"] == "uplink") & cold.transfers["access"]]["bytes"]
    assert sent.nunique() > 12 and (sent % 8 == 0).all() and sent.max() < cold.manifest["model"]["bytes"] * 2
    assert warm.rounds["accuracy"].tolist() == cold.rounds["accuracy"].tolist()


def test_without_training_a_measured_size_has_to_be_declared(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="declared_bytes"):
        digit_runs.scenario(MEASURED | {"learn": False})
    codec = MEASURED["protocols"][0]["codec"] | {"declared_bytes": 500.0}  # type: ignore[index]
    declared = MEASURED | {"protocols": [{"name": "fedavg", "clients": 6, "codec": codec}]}
    hashes = [
        fedsim.run(digit_runs.scenario(declared | {"learn": learn}), out=tmp_path / str(learn)).manifest["runs"][0]
        for learn in (True, False)
    ]
    assert hashes[0]["trace_hash"] == hashes[1]["trace_hash"]


class Controlled(Objective):
    """A client is pushed by a control that the server sends, and sends one back."""

    name: Literal["controlled"] = "controlled"
    receives: ClassVar[tuple[str, ...]] = ("control",)
    remembers: ClassVar[tuple[str, ...]] = ("control",)
    sends: ClassVar[tuple[str, ...]] = ("control",)
    reads_start: ClassVar[bool] = True

    def bytes_of(self, name: str, table: ModelTable) -> float:
        return 4.0 * table.parameters()

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        rate = given.steps * given.training.learning_rate
        return {"control": {name: (start - weights[name]) / rate for name, start in given.start.items()}}


def test_what_travels_beside_the_model_is_counted_both_ways(tmp_path: Path) -> None:
    objective = {"path": f"{__file__}:Controlled"}
    protocols = [
        {"name": "fedavg", "clients": 6},
        {"name": "fedavg", "label": "two", "clients": 6, "objective": objective},
    ]
    results = fedsim.run(digit_runs.scenario({"protocols": protocols}), out=tmp_path)
    bytes_of = results.rounds.groupby("protocol")[["uplink_bytes", "downlink_bytes"]].max()
    model = results.manifest["model"]["bytes"]
    assert bytes_of.loc["fedavg"].tolist() == [18 * model] * 2
    assert bytes_of.loc["two"].tolist() == [36 * model] * 2
    same = results.rounds.set_index(["protocol", "round"])["accuracy"]
    assert same["fedavg"].tolist() == same["two"].tolist()
