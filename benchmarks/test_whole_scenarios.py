"""Whole runs: how the clock grows with the number of devices, and what the simulator adds to the training itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from fedsim.experiment.simulate import simulate
from fedsim.kernel.streams import Streams
from fedsim.learning.batches import batches
from fedsim.learning.learner import NoLearner
from fedsim.models.torch_module import build, initial_parameters
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.load import load
from fedsim.scenario.schema import Scenario
from fedsim.topology.factories import FactoryPark

from .conftest import SCENARIOS


@pytest.mark.benchmark(group="ten rounds of a network study with everybody, by sensors")
@pytest.mark.parametrize("sensors", [1_000, 3_000, 10_000])
def test_network_study(benchmark: BenchmarkFixture, sensors: int) -> None:
    scenario = load(
        SCENARIOS / "digits.yaml",
        overrides=[
            "learn=false",
            "stop.rounds=10",
            f"topology.factories={sensors // 100}",
            "topology.devices_per_factory=100",
            "data={name: declared, samples_per_client: 50}",
            "model={name: declared, parameters: 1e5, training_flops_per_sample: 1e6}",
            "protocols=[{name: fedavg, fraction: 1.0}]",
        ],
    )
    materials = gather_materials(scenario, 1)

    def one_run() -> int:
        world = build_world(scenario, scenario.protocols[0], materials, lambda *_: NoLearner())
        simulate(world, scenario.protocols[0], scenario.stop)
        return len(world.trace.hops)

    assert benchmark.pedantic(one_run, rounds=2) == 60 * sensors


@pytest.mark.benchmark(group="ten rounds of T = 50 iterations at base stations with 35 devices each, without training")
@pytest.mark.parametrize(("protocol", "stations"), [("fedgs_random", 10), ("fedgs", 10), ("fedgs", 30), ("fedgs", 100)])
def test_compound_steps(benchmark: BenchmarkFixture, protocol: str, stations: int) -> None:
    """Ten of 35 devices make each step; `fedgs` selects eight of these by class counts."""
    scenario = load(
        SCENARIOS / "digits.yaml",
        overrides=[
            "learn=false",
            "stop.rounds=10",
            f"topology={{name: factory_park, factories: {stations}, devices_per_factory: 35}}",
            "network.link={rate_bps: 100e6}",
            "network.cell={radio: {name: fixed, uplink_bps: 50e6, downlink_bps: 100e6}, discipline: {name: serial}}",
            "devices.classes.camera.compute={name: per_sample, seconds_per_sample: 1e-3}",
            "data={name: glyphs}",
            "training={learning_rate: 0.01, batch_size: 32}",
            f"protocols=[{{name: {protocol}, iterations: 50, devices: 10, presampled: 2}}]",
        ],
    )
    materials = gather_materials(scenario, 1)

    def a_world() -> tuple[tuple[World], dict[str, Any]]:
        return (build_world(scenario, scenario.protocols[0], materials, lambda *_: NoLearner()),), {}

    def ten_rounds(world: World) -> int:
        simulate(world, scenario.protocols[0], scenario.stop)
        return len(world.trace.hops)

    hops, reports = 10 * (50 * 2 * 10 + 2 * 2), 10 * 50 + 35 * 3 if protocol == "fedgs" else 0
    assert benchmark.pedantic(ten_rounds, setup=a_world, rounds=3) == stations * (hops + reports)


@pytest.mark.benchmark(group="build a park of 100,000 sensors, and every route")
def test_topology(benchmark: BenchmarkFixture) -> None:
    def build_and_route() -> int:
        topology = FactoryPark(factories=100, devices_per_factory=1_000, stations_per_factory=4).build()
        return sum(len(topology.route("cloud", sensor)) - 1 for sensor in topology.sensors)

    assert benchmark.pedantic(build_and_route, rounds=3) == 300_000


ROUNDS, COHORT = 5, 20


@pytest.mark.benchmark(group=f"{ROUNDS} rounds of FedAvg on digits, {COHORT} clients each")
def test_fedsim(benchmark: BenchmarkFixture, digits: Scenario, tmp_path_factory: pytest.TempPathFactory) -> None:
    from fedsim.experiment.run import run

    protocols = (digits.protocols[0],)
    scenario = digits.model_copy(
        update={"protocols": protocols, "stop": digits.stop.model_copy(update={"rounds": ROUNDS})}
    )
    benchmark.pedantic(lambda: run(scenario, out=tmp_path_factory.mktemp("bench") / "run"), rounds=3, warmup_rounds=1)


@pytest.mark.benchmark(group=f"{ROUNDS} rounds of FedAvg on digits, {COHORT} clients each")
def test_plain_pytorch_loop(benchmark: BenchmarkFixture, digits: Scenario) -> None:
    """The same training and evaluation without clock, network, graph, store or tables."""
    materials = gather_materials(digits, 1)
    data, training, streams = materials.dataset, digits.training, Streams(1)
    assert data.x is not None and data.y is not None
    x, y = torch.tensor(data.x), torch.tensor(data.y)

    def loop() -> None:
        torch.set_num_threads(1)
        module = build(materials.table)
        for part, tensors in initial_parameters(materials.table, streams("model/init").generator()).items():
            module.parts[part].load_state_dict(tensors)
        for round_number in range(1, ROUNDS + 1):
            base = {name: value.clone() for name, value in module.state_dict().items()}
            cohort = streams("selection", 0, round_number).generator().permutation(80)[:COHORT]
            total = sum(int(data.client_samples[client]) for client in cohort)
            mean = {name: torch.zeros_like(value) for name, value in base.items()}
            for client in sorted(cohort.tolist()):
                module.load_state_dict(base)
                optimiser = torch.optim.SGD(module.parameters(), lr=training.learning_rate, foreach=False)
                rng = streams("batches", client, round_number).generator()
                ids = data.train_ids[client]
                for batch in batches(ids, batch_size=training.batch_size, epochs=training.epochs, rng=rng):
                    optimiser.zero_grad()
                    torch.nn.functional.cross_entropy(module(x[batch]), y[batch]).backward()
                    optimiser.step()
                for name, value in module.state_dict().items():
                    mean[name] += (value - base[name]) * (len(ids) / total)
            module.load_state_dict({name: base[name] + mean[name] for name in base})
            with torch.no_grad():
                module(x[torch.tensor(data.test_ids)]).argmax(dim=1)

    benchmark.pedantic(loop, rounds=3, warmup_rounds=1)
