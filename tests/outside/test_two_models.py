"""Device classes with different models in one scenario, run by a protocol of one's own that averages within a class."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal

import digit_runs
import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from simpy import Event
from small_worlds import RING, simulated
from tiers import mostly_long

import fedsim
from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.describe import describe
from fedsim.experiment.host import HostOptions, Learners, host_for
from fedsim.experiment.results import Results
from fedsim.experiment.simulate import simulate
from fedsim.experiment.validate import validate
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.learning.spread import spread_of_own
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.site import Site
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.schema import Scenario
from fedsim.settings import Several

__all__ = ["WithinClasses"]


class WithinClasses(Protocol):
    """Federated averaging among those who have the same model."""

    name: Literal["within_classes"] = "within_classes"
    only: Several[str] = ()
    """Who takes part; all as a rule."""

    def run(self, world: World) -> Generator[Event, Any, None]:
        tables = {client.model.digest: client.model for client in world.clients}
        clouds = [Site(world, table=table) for table in tables.values()]
        for number in world.loop.rounds():
            trips = []
            for cloud in clouds:
                task = cloud.task(number, Plain(), Float32())
                members = [client for client in world.clients if client.model is cloud.table]
                asked = [client for client in members if client.name in self.only or not self.only]
                trips.append([cloud.visit(client, task) for client in asked])
            for cloud, under_way in zip(clouds, trips, strict=True):
                got = yield from cloud.collect(under_way)
                yield from cloud.fold(Mean(), got.arrived, round_number=number)
            further = {cloud.table.digest: cloud.state["model"] for cloud in clouds}
            total = sum(map(len, trips))
            world.loop.finish_round(further.get(world.model.digest, {}), further, selected=total, participants=total)


CAMERAS = ("east-2", "west-1", "west-2")
MIXED = RING | {
    "nodes": {
        name: node | ({"device": "camera" if name in CAMERAS else "sensor"} if node["kind"] == "sensor" else {})
        for name, node in RING["nodes"].items()
    }
}
SIZES = {"camera": 300.0, "sensor": 250.0}


def network(**flops: float) -> dict[str, Any]:
    """A sensor of 250 parameters, three cameras of 300; each computes 1 kFLOP/s."""
    kinds = {
        name: {
            "compute": {"name": "flops", "flops_per_s": 1e3},
            "model": {"name": "declared", "parameters": SIZES[name], "training_flops_per_sample": flops[name]},
        }
        for name in SIZES
    }
    return {
        "topology": MIXED,
        "stop": {"rounds": 2},
        "devices": {"classes": kinds},
        "training.epochs": 3,
        "protocols": [{"path": f"{__file__}:WithinClasses"}],
    }


def work(world: World) -> dict[str, list[float]]:
    """Seconds of each local work, by device class."""
    rows = world.trace.work.array()
    seconds: dict[str, list[float]] = {"camera": [], "sensor": []}
    for client, begin_s, end_s in zip(rows["client"], rows["start_s"], rows["end_s"], strict=True):
        seconds["camera" if world.clients[client].name in CAMERAS else "sensor"].append(end_s - begin_s)
    return seconds


def test_bytes_and_work_are_those_of_the_class() -> None:
    world = simulated(network(camera=200.0, sensor=50.0))
    seconds = work(world)  # 10 samples, 3 epochs
    assert seconds["camera"] == pytest.approx([30 * 200.0 / 1e3] * 6, rel=1e-12)
    assert seconds["sensor"] == pytest.approx([30 * 50.0 / 1e3] * 2, rel=1e-12)
    hops = world.trace.hops.array()
    on_air = hops[hops["access"] == 1]
    for client in world.clients:
        sent = on_air["bytes"][on_air["client"] == client.index]
        assert sent.tolist() == [4 * (300.0 if client.name in CAMERAS else 250.0)] * 4, "two rounds, there and back"


def test_twice_the_operations_of_one_class_are_twice_its_work_and_nobody_elses() -> None:
    before = work(simulated(network(camera=200.0, sensor=50.0)))
    after = work(simulated(network(camera=400.0, sensor=50.0)))
    assert after["camera"] == pytest.approx([2 * seconds for seconds in before["camera"]], rel=1e-12)
    assert after["sensor"] == pytest.approx(before["sensor"], rel=1e-12)


CAMERA = {"name": "mlp", "hidden": [12]}
LEARNED = {
    "topology": MIXED,
    "stop": {"rounds": 3},
    "devices.classes": {"camera": digit_runs.INSTANT | {"model": CAMERA}, "sensor": digit_runs.INSTANT},
    "data.client_test_fraction": 0.3,
    "evaluate": {"on": ["own"]},
    "protocols": [{"path": f"{__file__}:WithinClasses"}],
}
TITLE = "within_classes"


@pytest.mark.parametrize("executor", mostly_long(["serial", "processes", "batched"], now=["batched"]))
def test_a_class_learns_what_it_learns_alone(tmp_path: Path, executor: str) -> None:
    both = fedsim.run(digit_runs.scenario(LEARNED), out=tmp_path / "both", executor=executor).final_weights(TITLE, 1)
    assert both.keys() == {"extractor", "classifier", "camera/extractor", "camera/classifier"}
    alike = LEARNED | {"devices.classes": {"camera": digit_runs.INSTANT, "sensor": digit_runs.INSTANT}}
    for model, names, place in (({"name": "mlp", "hidden": [16]}, ("east-1",), ""), (CAMERA, CAMERAS, "camera/")):
        protocols = [{"path": f"{__file__}:WithinClasses", "only": names}]
        alone = digit_runs.scenario(alike | {"model": model, "protocols": protocols})
        files = fedsim.run(alone, out=tmp_path / f"alone {place}", executor=executor).final_weights(TITLE, 1)
        for part, path in files.items():
            assert path.read_bytes() == both[f"{place}{part}"].read_bytes()


def test_a_class_that_names_the_scenarios_model_once_more_has_that_one(tmp_path: Path) -> None:
    again = {"camera": digit_runs.INSTANT | {"model": digit_runs.scenario().model}, "sensor": digit_runs.INSTANT}
    scenario = digit_runs.scenario(
        LEARNED | {"devices.classes": again, "protocols": [{"name": "fedavg", "clients": 2}]}
    )
    materials = gather_materials(scenario, 1)
    assert all(table is materials.table for table in materials.client_tables)
    (run,) = fedsim.run(scenario, out=tmp_path).manifest["runs"]
    assert "model" not in run, "what it trains is not adapted"


def test_a_run_of_two_models_goes_on_from_its_store(tmp_path: Path) -> None:
    scenario, store = digit_runs.scenario(LEARNED), tmp_path / "store"
    cold = fedsim.run(scenario, out=tmp_path / "cold", store=store, executor="batched")
    warm = fedsim.run(scenario, out=tmp_path / "warm", store=store, executor="batched")
    assert warm.manifest["runs"][0]["trace_hash"] == cold.manifest["runs"][0]["trace_hash"]
    (last,) = [one for one in (store / "ledger").glob("*.jsonl") if warm.manifest["run"] in one.name]
    rows = [json.loads(line) for line in last.read_bytes().splitlines()]
    assert "computed" not in {row["event"] for row in rows}


def scored_by_hand(results: Results, scenario: Scenario) -> list[float]:
    """The accuracy of each client's final model on its own test samples."""
    materials = gather_materials(scenario, 1)
    data, names = materials.dataset, materials.topology.sensors
    assert data.x is not None and data.y is not None
    found = []
    for index, ids in enumerate(data.client_test_ids):
        place = "camera/" if names[index] in CAMERAS else ""
        files = results.final_weights(TITLE, 1)
        parts = [load_file(files[f"{place}{part}"]) for part in ("extractor", "classifier")]
        made = torch.from_numpy(data.encoding.decode(data.x[ids])).float().flatten(1)
        (hidden, head) = parts
        layer, last = (next(iter(part)).split(".")[0] for part in parts)
        made = torch.relu(made @ hidden[f"{layer}.weight"].T + hidden[f"{layer}.bias"])
        made = made @ head[f"{last}.weight"].T + head[f"{last}.bias"]
        found.append((made.argmax(1).numpy() == data.y[ids]).mean())
    return found


def test_the_model_of_each_class_is_loaded_by_its_name(tmp_path: Path) -> None:
    results = fedsim.run(digit_runs.scenario(LEARNED | {"stop.rounds": 1}), out=tmp_path)
    for name, hidden in (("camera", 12), ("sensor", 16)):
        shapes = [tuple(value.shape) for value in results.load_model(TITLE, 1, device_class=name).parameters()]
        assert shapes == [(hidden, 64), (hidden,), (10, hidden), (10,)]
    with pytest.raises(UserError, match="several models, as 'camera' of its device classes .* device_class='camera'"):
        results.load_model(TITLE, 1)


def test_each_client_is_scored_with_its_own_model(tmp_path: Path) -> None:
    scenario = digit_runs.scenario(LEARNED)
    results = fedsim.run(scenario, out=tmp_path)
    by_hand, last = scored_by_hand(results, scenario), results.rounds.iloc[-1]
    assert last["accuracy_mean"] == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert last["accuracy_std"] == pytest.approx(np.std(by_hand), abs=1e-12)
    assert (last["accuracy_min"], last["accuracy_max"]) == (min(by_hand), max(by_hand))


def test_the_models_of_classes_are_described_and_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts, _ = describe(digit_runs.scenario(LEARNED))
    assert facts["class_models"]["camera"]["parameters"] == 64 * 12 + 12 + 12 * 10 + 10
    manifest = fedsim.run(digit_runs.scenario(LEARNED), out=tmp_path / "run").manifest
    assert manifest["class_models"] == {"camera": {"parameters": 910, "bytes": 3640}}
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump(digit_runs.data(LEARNED)))
    assert main(["validate", str(path)]) == 0
    assert "a model of 910 parameters (3,640 bytes)" in capsys.readouterr().out
    assert main(["describe", str(path)]) == 0
    assert re.search(r"^\| model of camera +\| mlp ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "fedavg", "clients": 2},
        {"name": "fedprox", "clients": 2, "mu": 0.1},
        {"name": "stp", "grouping": {"name": "random"}, "growth": {"name": "logarithmic"}},
        {"name": "fedgsp"},
        {"name": "hfedms_d"},
        {"name": "composed", "cohort": {"name": "random", "clients": 2}},
    ],
    ids=lambda keys: keys["name"],
)
def test_who_makes_one_model_for_all_refuses_several(keys: dict[str, Any]) -> None:
    scenario = digit_runs.scenario(LEARNED | {"protocols": [keys]})
    with pytest.raises(UserError, match=r"makes one model for all, and 'east-2' has another; leave model out"):
        validate(scenario)


@pytest.mark.parametrize("on", [["global"], ["own", "clients"]])
def test_several_models_have_no_single_score(on: list[str]) -> None:
    with pytest.raises(UserError, match="evaluate.on: device classes have 2 models"):
        validate(digit_runs.scenario(LEARNED | {"evaluate": {"on": on}}))


def test_a_class_whose_model_does_not_fit_is_told_with_its_key() -> None:
    wrong = LEARNED | {"devices.classes.camera.model": {"name": "conv1d"}}
    with pytest.raises(UserError, match=r"devices.classes.camera.model"):
        validate(digit_runs.scenario(wrong))


def test_a_class_that_has_the_same_model_again_is_no_other(tmp_path: Path) -> None:
    same = LEARNED | {"devices.classes.camera.model": {"name": "mlp", "hidden": [16]}, "evaluate": {"on": ["global"]}}
    results = fedsim.run(digit_runs.scenario(same | {"protocols": [{"name": "fedavg", "clients": 2}]}), out=tmp_path)
    assert results.final_weights("fedavg", 1).keys() == {"extractor", "classifier"}


def test_for_fedavg_own_is_the_same_as_clients(tmp_path: Path) -> None:
    changes = {"data.client_test_fraction": 0.3, "evaluate": {"on": ["clients", "own"]}}
    rounds = fedsim.run(digit_runs.scenario(changes), out=tmp_path).rounds
    names = ["accuracy", "loss", "accuracy_std", "accuracy_min", "accuracy_max"]
    assert rounds[names].to_numpy().tolist() == rounds[[f"{name}_own" for name in names]].to_numpy().tolist()
    assert rounds["accuracy_mean_own"].nunique() > 1 and "accuracy_mean" not in rounds


class Asked(Protocol):
    """Each client, in its turn, trains the initial model, and keeps its classifier to itself."""

    name: Literal["asked"] = "asked"

    def run(self, world: World) -> Generator[Event, Any, None]:
        cloud = Site(world)
        for number in world.loop.rounds():
            client = world.clients[number - 1]
            got = yield from cloud.collect([cloud.visit(client, cloud.task(number, Plain(), Float32()))])
            model = got.arrived[0].model
            client.kept["private"] = {"classifier": model["classifier"]}
            shared = {"extractor": model["extractor"], "classifier": cloud.state["model"]["classifier"]}
            world.loop.finish_round(shared, selected=1, participants=1)


def test_own_is_what_all_have_with_what_one_keeps_and_else_the_beginning(tmp_path: Path) -> None:
    changes = {
        "topology.devices": 4,
        "data.client_test_fraction": 0.3,
        "evaluate": {"on": ["own", "clients"]},
        "stop": {"rounds": 2},
        "protocols": [{"path": f"{__file__}:Asked"}],
    }
    settings = digit_runs.scenario(changes)
    materials = gather_materials(settings, 1)
    with Learners(host_for(HostOptions(executor="serial"), materials.tables, learn=True), tmp_path, "r", print) as made:
        world = build_world(settings, settings.protocols[0], materials, made.make)
        simulate(world, settings.protocols[0], settings.stop)
        learner, start = world.learner, world.learner.initial_model()
        own = world.loop.own_models()
        assert [one.client for one in own] == [0, 1, 2, 3]
        kept = [world.clients[index].kept["private"]["classifier"] for index in (0, 1)]
        assert [one.model["classifier"] for one in own[:2]] == kept
        assert {one.model["classifier"].node.key for one in own[2:]} == {start["classifier"].node.key}
        assert {id(one.model["extractor"]) for one in own} == {id(world.loop.model["extractor"])}
        world.clients[0].kept.clear()  # as when a device fails that forgets
        assert world.loop.own_models()[0].model["classifier"].node.key == start["classifier"].node.key
        scored = learner.evaluate_own(own, round_number=9)
        assert scored is not None and set(scored) == {0, 1, 2, 3}
        assert spread_of_own([*scored.values()]) == world.loop.rounds_done[-1].metrics["own"]
    first = world.loop.rounds_done[-1].metrics
    assert first["own"]["accuracy_mean"] > first["clients"]["accuracy"], "half of them have a head that fits"


def test_what_has_not_changed_is_not_scored_again(tmp_path: Path) -> None:
    only = {"protocols": [{"path": f"{__file__}:WithinClasses", "only": CAMERAS}]}
    results = fedsim.run(digit_runs.scenario(LEARNED | only), out=tmp_path)
    operations = [row["operation"] for row in digit_runs.ledger(tmp_path / "store") if row["event"] == "computed"]
    assert operations.count("evaluate_own") == 1 + 3 * 3, "the sensor never trains"
    assert len(results.rounds) == 3
