"""Protocols, rules and codecs written outside of the package, on the seams alone."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import digit_runs
import numpy as np
import pytest
import sparse
from simpy import Event
from small_worlds import EVERYTHING_HAPPENS, prepared, simulated
from tiers import mostly_long

import fedsim
from fedsim.cli import main
from fedsim.errors import Misfit, UserError
from fedsim.experiment.validate import validate
from fedsim.learning.codecs.codec import Codec, Coded
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.learner import Learner
from fedsim.learning.objectives.objective import Given, Objective, State, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.operation import Inputs, Operation
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import Aggregation, ServerRule
from fedsim.learning.rules.rule import State as ServerState
from fedsim.learning.rules.update import Update
from fedsim.models.table import ModelTable
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.random import RandomCohort
from fedsim.protocols.schedules.rounds import Rounds
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


@pytest.mark.parametrize("executor", mostly_long(["serial", "processes", "batched"], now=["batched"]))
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


def test_a_codec_that_remembers_goes_with_parts_of_the_model(tmp_path: Path) -> None:
    """The whole model in rounds 1 and 4, its classifier in between."""
    codec = {"path": f"{sparse.__file__}:Sparse", "threshold": 0.02}
    fedavg = {"name": "fedavg", "clients": 6, "interval": 3, "exchange": {"name": "lasp"}, "codec": codec}
    changes = MEASURED | {"protocols": [fedavg], "stop.rounds": 4}
    results = fedsim.run(digit_runs.scenario(changes), out=tmp_path / "run")
    assert results.rounds["accuracy"].notna().all()


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


class Counted(Codec):
    """An update takes 1,000 bytes for each one that the client has written so far."""

    name: Literal["counted"] = "counted"
    measured: ClassVar[bool] = True
    remembers: ClassVar[tuple[str, ...]] = ("before",)

    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        some = next(iter(change.values()))
        number = state["before"]["number"] + 1 if state else some.new_ones(())
        return Coded(
            {name: value.clone() for name, value in change.items()}, {"before": {"number": number}}, 1000 * int(number)
        )


@pytest.mark.parametrize("executor", mostly_long(["serial", "processes", "batched"], now=["batched"]))
def test_a_client_keeps_what_its_codec_remembers(tmp_path: Path, executor: str) -> None:
    protocol = {"name": "fedavg", "clients": 20, "codec": {"path": f"{__file__}:Counted"}}
    results = fedsim.run(digit_runs.scenario({"protocols": [protocol]}), out=tmp_path, executor=executor)
    assert results.rounds["uplink_bytes"].tolist() == [20_000, 60_000, 120_000]
    sent = results.transfers[(results.transfers["direction"] == "uplink") & results.transfers["access"]]
    assert sent["bytes"].tolist() == [1_000] * 20 + [2_000] * 20 + [3_000] * 20


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


class Controlling(Mean):
    """The mean, from a server that says it has a control."""

    name: Literal["controlling"] = "controlling"  # type: ignore[assignment]
    provides: ClassVar[tuple[str, ...]] = ("control",)


def test_what_travels_beside_the_model_is_counted_both_ways(tmp_path: Path) -> None:
    parts = {"objective": {"path": f"{__file__}:Controlled"}, "server": {"path": f"{__file__}:Controlling"}}
    protocols = [
        {"name": "fedavg", "clients": 6},
        {"name": "fedavg", "label": "two", "clients": 6, **parts},
    ]
    results = fedsim.run(digit_runs.scenario({"protocols": protocols}), out=tmp_path)
    bytes_of = results.rounds.groupby("protocol")[["uplink_bytes", "downlink_bytes"]].max()
    model = results.manifest["model"]["bytes"]
    assert bytes_of.loc["fedavg"].tolist() == [18 * model] * 2
    assert bytes_of.loc["two"].tolist() == [36 * model] * 2
    same = results.rounds.set_index(["protocol", "round"])["accuracy"]
    assert same["fedavg"].tolist() == same["two"].tolist()


class Asking(Mean):
    """The mean, from a server that asks for what no client sends."""

    name: Literal["asking"] = "asking"  # type: ignore[assignment]

    @property
    def needs(self) -> tuple[str, ...]:
        return ("advice",)


def test_where_no_part_of_fedsim_has_what_is_needed_no_name_is_proposed() -> None:
    scenario = digit_runs.scenario(
        {"protocols": [{"name": "fedavg", "clients": 2, "server": {"path": f"{__file__}:Asking"}}]}
    )
    with pytest.raises(UserError, match="'asking' needs 'advice' of each .* 'plain' sends none; choose another one$"):
        validate(scenario)


# -- a rule that is wrong --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Half(Operation):
    """Makes the classifier, and of that the weights only."""

    name: ClassVar[str] = "half"

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        return {"classifier": {"fc2.weight": inputs.model("model")["classifier"]["fc2.weight"]}}


class Halving(ServerRule):
    """Asks for more than its operation makes, or takes what is no model for one."""

    name: Literal["halving"] = "halving"
    output: str

    def apply(self, learner: Learner, state: ServerState, updates: Sequence[Update], at: Aggregation) -> ServerState:
        made = learner.apply(Half(), {"model": updates[0].model}, [self.output], round_number=at.round_number)
        return {"model": {**state["model"], **made}}


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("extractor", "operation 'half' makes 'classifier', and no 'extractor'"),
        ("classifier", "'classifier' of operation 'half' is no such part of the model: it has 1 tensors, and 2 are "),
    ],
)
def test_what_a_rule_makes_wrong_is_one_message(
    output: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = {"path": f"{__file__}:Halving", "output": output}
    content = digit_runs.data({"protocols": [{"name": "fedavg", "clients": 3, "server": server}]})
    (tmp_path / "halving.yaml").write_text(json.dumps(content).replace("Infinity", ".inf"))
    assert main(["run", str(tmp_path / "halving.yaml"), "--out", str(tmp_path / "run"), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"fedsim: {message}") and said.count("\n") == 1


class Never(Rounds):
    """A schedule that no world is good enough for."""

    name: Literal["never"] = "never"  # type: ignore[assignment]

    def check(self, world: World) -> None:
        raise Misfit(f"{len(world.clients)} clients are too few", "interval")


def test_a_schedule_may_refuse_before_anything_runs() -> None:
    keys = {"cohort": {"name": "random", "clients": 2}, "schedule": {"path": f"{__file__}:Never"}}
    scenario = digit_runs.scenario({"protocols": [{"name": "composed", **keys}]})
    with pytest.raises(UserError, match=r"protocols\[0\]\.schedule\.interval: 20 clients are too few"):
        validate(scenario)
