"""The only wiring: from a scenario, a protocol and a seed to a world that is ready to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from simpy import Environment

from fedsim.data.dataset import FederatedDataset
from fedsim.devices.compute import ComputeSettings
from fedsim.errors import UserError, nearest
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Trace
from fedsim.learning.learner import Learner
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable
from fedsim.network.network import Network
from fedsim.network.wires import Wires
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round, RunLoop
from fedsim.protocols.world import Client, Cloud, World
from fedsim.scenario.schema import Scenario
from fedsim.topology.graph import Topology

__all__ = ["LearnerFactory", "Materials", "build_world", "gather_materials"]


@dataclass(frozen=True)
class Materials:
    """What all protocols share on one seed."""

    seed: int
    topology: Topology
    dataset: FederatedDataset
    table: ModelTable


LearnerFactory = Callable[[Materials, Protocol, TrainingSettings], Learner]


def gather_materials(scenario: Scenario, seed: int) -> Materials:
    """Topology, data and model table of a scenario on one seed.

    Raises `UserError` when they do not fit each other.
    """
    streams = Streams(seed)

    def generator(purpose: str) -> np.random.Generator:
        return streams(purpose).generator()

    topology = scenario.topology.build()
    dataset = scenario.data.load(len(topology.sensors), generator)
    table = scenario.model.table(dataset.sample_shape, dataset.classes)
    if scenario.learn and not (table.trainable and dataset.x is not None):
        raise UserError(
            "only sizes are declared, so there is nothing to train; use --no-training (or learn: false), "
            "or a model and a data set with numbers in them"
        )
    if scenario.learn and "clients" in scenario.evaluate.on and not any(map(len, dataset.client_test_ids)):
        raise UserError("evaluate.on names 'clients', but no client holds test samples; set data.client_test_fraction")
    return Materials(seed, topology, dataset, table)


def build_world(
    scenario: Scenario,
    protocol: Protocol,
    materials: Materials,
    learner_for: LearnerFactory,
    on_round: Callable[[Round], None] = lambda _: None,
) -> World:
    """A world at time zero. Raises `UserError` when parts of the scenario do not fit each other."""
    env, trace, streams = Environment(), Trace(), Streams(materials.seed)
    wires = Wires(env, materials.topology, scenario.network)
    network = Network(env, trace, streams, wires.links, scenario.network.transport)
    training = protocol.training or scenario.training
    learner = learner_for(materials, protocol, training)
    loop = RunLoop(
        env,
        trace,
        network,
        learner,
        stop=protocol.stop or scenario.stop,
        evaluate=scenario.evaluate,
        on_round=on_round,
    )
    cloud = scenario.devices.cloud
    world = World(
        env=env,
        trace=trace,
        streams=streams,
        network=network,
        clients=_clients(scenario, materials, wires),
        cloud=Cloud(cloud.compute if cloud else None, scenario.devices.aggregation_s),
        model=materials.table,
        training=training,
        learner=learner,
        loop=loop,
        cancel_late=scenario.network.late_transfers == "cancel",
    )
    protocol.check(world)
    return world


def _clients(scenario: Scenario, materials: Materials, wires: Wires) -> tuple[Client, ...]:
    dataset, known_size = materials.dataset, materials.dataset.sample_bytes is not None
    return tuple(
        Client(
            index=index,
            name=name,
            samples=int(dataset.client_samples[index]),
            raw_bytes=dataset.raw_bytes(index) if known_size else None,
            compute=_compute(scenario, materials.topology, name),
            uplink=wires.uplink(name),
            downlink=wires.downlink(name),
        )
        for index, name in enumerate(materials.topology.sensors)
    )


def _compute(scenario: Scenario, topology: Topology, sensor: str) -> ComputeSettings:
    classes = scenario.devices.classes
    named = topology.graph.nodes[sensor]["device"] or scenario.devices.default_class
    if named is None:
        raise UserError(
            f"sensor {sensor!r} has no device class; name one in the topology, or set devices.default to one of: "
            f"{', '.join(classes)}"
        )
    if named not in classes:
        raise UserError(
            f"sensor {sensor!r} is of device class {named!r}, which devices.classes does not have"
            f"{nearest(named, classes)} (classes: {', '.join(classes)})"
        )
    return classes[named].compute
