"""The only wiring: from a scenario, a protocol and a seed to a world that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedsim.data.dataset import FederatedDataset
from fedsim.data.held_back import holding_back
from fedsim.data.raw_dataset import Clients
from fedsim.devices.stream_buffer import StreamBuffer
from fedsim.errors import Misfit, nearest
from fedsim.kernel.clock import Clock
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Trace
from fedsim.learning.executors.choice import ByProtocol
from fedsim.learning.learner import Learner
from fedsim.learning.training import TrainingSettings
from fedsim.models.settings import ModelSettings
from fedsim.models.table import ModelTable
from fedsim.network.attachment import DeviceKind
from fedsim.network.disciplines.fair import Fair
from fedsim.network.faults.outages import Outages
from fedsim.network.network import Network
from fedsim.network.wires import Wires
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round, RunLoop
from fedsim.protocols.world import Client, Cloud, World
from fedsim.radio.settings import ANYWHERE
from fedsim.scenario.fitting import check_samples, check_table, check_that_learning_fits
from fedsim.scenario.schema import Scenario
from fedsim.topology.graph import Topology
from fedsim.topology.places import factories

__all__ = ["LearnerFactory", "Materials", "build_world", "check_protocol", "device_kinds", "gather_materials"]


@dataclass(frozen=True)
class Materials:
    """What all protocols share on one seed."""

    seed: int
    topology: Topology
    dataset: FederatedDataset
    table: ModelTable
    """Of the scenario's model."""
    device_classes: tuple[str, ...]
    """Of each sensor, in order."""
    class_tables: Mapping[str, ModelTable]
    """Of device classes of some sensor that have a model of their own, by class."""
    trained: Mapping[str, ModelTable]
    """What the clients of the scenario's protocols train: these models as they are, or adapted; by digest."""

    @cached_property
    def client_tables(self) -> tuple[ModelTable, ...]:
        """Each client's model in the scenario, in order."""
        return tuple(self.class_tables.get(name, self.table) for name in self.device_classes)

    @property
    def tables(self) -> tuple[ModelTable, ...]:
        """The scenario's own, each once."""
        return tuple({table.digest: table for table in (self.table, *self.class_tables.values())}.values())

    def data_for(self, protocol: Protocol) -> FederatedDataset:
        """The data set as the clients of *protocol* have it."""
        return holding_back(self.dataset, protocol.held_back, self.seed)

    def table_for(self, protocol: Protocol, table: ModelTable) -> ModelTable:
        """What the clients of *protocol* train first in place of *table*; equal ones are one object."""
        return self.models_for(protocol, table)[0]

    def models_for(self, protocol: Protocol, table: ModelTable) -> tuple[ModelTable, ...]:
        """All that they train, one after the other."""
        made = protocol.models(table, self.client_tables)
        return tuple(self.trained.get(one.digest, one) for one in made)

    def by_protocol(self, protocols: Iterable[Protocol]) -> dict[str, ByProtocol]:
        """What each trains, by title."""
        return {
            protocol.title: ByProtocol(self.models_for(protocol, self.table), protocol.trains_alone)
            for protocol in protocols
        }


LearnerFactory = Callable[[Materials, Protocol, TrainingSettings], Learner]


def gather_materials(scenario: Scenario, seed: int) -> Materials:
    """Topology, data and model table of a scenario on one seed.

    Raises `UserError` when they do not fit each other.
    """
    with scenario.about("topology"):
        topology = scenario.topology.build()
    dataset = _load_data(scenario, seed, topology)
    table = _table(scenario, dataset, scenario.model, "model")
    by_digest, names = {table.digest: table}, {table.digest: scenario.model.name}
    class_tables = {}
    with scenario.about():
        classes = tuple(_device_class(scenario, topology, name) for name in topology.sensors)
    for name, kind in scenario.devices.classes.items():
        if kind.model is not None:
            own = _table(scenario, dataset, kind.model, "devices", "classes", name, "model")
            if name in classes:  # nobody trains the model of a class that no sensor is of
                class_tables[name] = by_digest.setdefault(own.digest, own)
                names.setdefault(own.digest, kind.model.name)
    with scenario.about():
        check_that_learning_fits(scenario, dataset, tables=len(by_digest))
    of_clients = tuple(class_tables.get(name, table) for name in classes)
    trained: dict[str, ModelTable] = {}
    for protocol in scenario.protocols:
        with scenario.about(*scenario.place_of(protocol)):
            for one in tuple(by_digest.values()):
                for made in _made_of(names[one.digest], one, protocol, of_clients):
                    trained.setdefault(made.digest, by_digest.get(made.digest, made))
    return Materials(seed, topology, dataset, table, classes, class_tables, trained)


def _table(scenario: Scenario, dataset: FederatedDataset, model: ModelSettings, *key: str) -> ModelTable:
    """The table of the model under a key."""
    with scenario.about(*key):
        check_samples(model, dataset)
        table = model.table(dataset.sample_shape, dataset.outputs)
        check_table(model, dataset, table, learn=scenario.learn)
    return table


def _made_of(name: str, table: ModelTable, protocol: Protocol, clients: Sequence[ModelTable]) -> tuple[ModelTable, ...]:
    """The models that *protocol* makes of the *table* of the model called *name*."""
    try:
        return protocol.models(table, clients)
    except Misfit as misfit:
        raise Misfit(f"model {name!r}: {misfit.problem}", *misfit.key) from None


def _load_data(scenario: Scenario, seed: int, topology: Topology) -> FederatedDataset:
    """The data of a scenario on one seed. Raises `UserError` when there is too little for so many clients."""
    streams = Streams(seed)

    def generator(purpose: str) -> np.random.Generator:
        return streams(purpose).generator()

    with scenario.about("data"):
        sensors = topology.sensors
        return scenario.data.load(Clients(len(sensors), factories(topology), names=sensors), generator)


def build_world(
    scenario: Scenario,
    protocol: Protocol,
    materials: Materials,
    learner_for: LearnerFactory,
    on_round: Callable[[Round], None] = lambda _: None,
) -> World:
    """A world at time zero. Raises `UserError` when parts of the scenario do not fit each other."""
    env, trace, streams = Clock(), Trace(), Streams(materials.seed)
    classes = materials.device_classes
    with scenario.about():
        kind_of = device_kinds(scenario, materials)
    with scenario.about("network"):
        wires = Wires(env, materials.topology, scenario.network, streams, kind_of)
        _check_weights(scenario)
    with scenario.about(*scenario.place_of(protocol)):
        dataset = materials.data_for(protocol)
    with scenario.about():
        clients = _clients(scenario, protocol, materials, wires, classes)
    network = Network(env, trace, streams, wires.links, scenario.network.transport)
    with scenario.about("faults"):
        outages = Outages(env, streams, scenario.faults, materials.topology, wires, network)
    with scenario.about("network"):
        wires.let_rates_change(network, outages.tell)
    training = protocol.training or scenario.training
    learner = learner_for(materials, protocol, training)
    loop = RunLoop(
        env,
        trace,
        network,
        learner,
        stop=protocol.stop or scenario.stop,
        evaluate=scenario.evaluate,
        learning_rates=protocol.learning_rates,
        on_round=on_round,
    )
    loop.device_classes = classes if len(set(classes)) > 1 or not scenario.learn else ()
    cloud = scenario.devices.cloud
    world = World(
        env=env,
        trace=trace,
        streams=streams,
        network=network,
        wires=wires,
        clients=clients,
        cloud=Cloud(cloud.compute if cloud else None, scenario.devices.aggregation_s),
        dataset=dataset,
        models=materials.models_for(protocol, materials.table),
        training=training,
        learner=learner,
        loop=loop,
        outages=outages,
        forgetful=scenario.faults.device_memory == "lost",
        cancel_late=scenario.network.late_transfers == "cancel",
        newcomers=scenario.newcomers.clients if scenario.newcomers else 0,
    )
    check_protocol(scenario, protocol, world)
    return world


def check_protocol(scenario: Scenario, protocol: Protocol, world: World) -> None:
    """Raise `UserError`, with its key, when *protocol* cannot run in *world*, or makes nothing to score as asked."""
    if scenario.newcomers:
        with scenario.about("newcomers"):
            scenario.newcomers.check_number(len(world.clients))
    with scenario.about(*scenario.place_of(protocol)):
        protocol.check(world)
        if scenario.newcomers:
            protocol.check_newcomers(world, scenario.newcomers)
        if scenario.learn:
            protocol.check_tests(world, scenario.evaluate.on)


def _clients(
    scenario: Scenario, protocol: Protocol, materials: Materials, wires: Wires, classes: Sequence[str]
) -> tuple[Client, ...]:
    common = materials.table_for(protocol, materials.table)
    own = {name: materials.table_for(protocol, table) for name, table in materials.class_tables.items()}
    dataset, known_size = materials.data_for(protocol), materials.dataset.sample_bytes is not None
    held = dataset.client_samples.tolist()
    raw_bytes = {samples: dataset.raw_bytes(index) for index, samples in enumerate(held)} if known_size else {}
    return tuple(
        Client(
            index=index,
            name=name,
            samples=held[index],
            raw_bytes=raw_bytes.get(held[index]),
            compute=scenario.devices.classes[classes[index]].compute,
            model=own.get(classes[index], common),
            attachment=wires.attachments[index],
            stream=None if dataset.stream is None else StreamBuffer(dataset.stream),
        )
        for index, name in enumerate(materials.topology.sensors)
    )


def _check_weights(scenario: Scenario) -> None:
    """Weights are by device class: each must be one."""
    classes = scenario.devices.classes
    cells = {("cell",): scenario.network.cell} | {("cells", key): cell for key, cell in scenario.network.cells.items()}
    for place, cell in cells.items():
        for named in cell.discipline.weights if isinstance(cell.discipline, Fair) else ():
            if named not in classes:
                near = nearest(named, classes)
                problem = f"{named!r} is no device class{near} (classes: {', '.join(classes)})"
                raise Misfit(problem, *place, "discipline", "weights", named)


def device_kinds(scenario: Scenario, materials: Materials) -> Callable[[int], DeviceKind]:
    """What the network has to know of the n-th sensor."""
    kinds = {
        name: DeviceKind(name, kind.duplex, kind.place or ANYWHERE) for name, kind in scenario.devices.classes.items()
    }
    classes = materials.device_classes
    return lambda index: kinds[classes[index]]


def _device_class(scenario: Scenario, topology: Topology, sensor: str) -> str:
    classes = scenario.devices.classes
    named: str | None = topology.graph.nodes[sensor]["device"] or scenario.devices.default_class
    if named is None:
        raise Misfit(
            f"sensor {sensor!r} has no device class; name one in the topology, or set devices.default to one of: "
            f"{', '.join(classes)}",
            "devices",
            "default",
        )
    if named not in classes:
        raise Misfit(
            f"sensor {sensor!r} is of device class {named!r}, which devices.classes does not have"
            f"{nearest(named, classes)} (classes: {', '.join(classes)})",
            "topology",
            *scenario.topology.key_of(sensor),
        )
    return named
