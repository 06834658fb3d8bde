"""Newcomers: when the rounds are over, clients that never took part get what was learned, and train for themselves.

(SPATL: Yu et al., SC 2022, section IV-A, Eq. 4, and Table III, which calls this transfer.) They download the extractor,
in whatever way it was learned, and train a classifier from the common initial one: on the extractor's features, which
is frozen, or all of the model. The clock runs on, and what is sent counts. Nothing goes up.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from simpy import Event

from fedsim.errors import Misfit
from fedsim.kernel.gather import gather
from fedsim.learning.learner import LocalTraining, Model, OwnModel, Rows
from fedsim.learning.objectives.plain import Plain
from fedsim.models.table import CLASSIFIER, EXTRACTOR, FORWARDS_PER_TRAINING_STEP
from fedsim.network.hop import Direction
from fedsim.protocols.exchanges.memory import extracted
from fedsim.protocols.outside_rounds import train_outside_rounds
from fedsim.protocols.world import Client, World
from fedsim.settings import Count, NonNegativeInt, Settings

__all__ = ["Joining", "NewcomersSettings"]


class NewcomersSettings(Settings):
    """What clients that never took part do when the rounds are over."""

    clients: NonNegativeInt = 0
    """So many clients, the last ones of the topology, are asked in no round. (A ``fraction`` is still of all.)"""
    epochs: Count
    """Passes over its own training samples that each of them makes."""
    trains: Literal["classifier", "all"] = "classifier"
    """classifier: on features of the extractor, which stays as it came; all: the whole model."""

    def check_number(self, clients: int) -> None:
        """Raise `Misfit` unless some of all *clients* take part."""
        if self.clients >= clients:
            raise Misfit(f"{self.clients} must be below {clients}, or none of the sensors takes part", "clients")

    def check(self, world: World, *, several_models: bool, at_stations: bool) -> None:
        """Raise `UserError` unless all clients have one model, of an extractor and a classifier.

        The protocol trains *several_models*, or asks clients *at_stations*.
        """
        if several_models or any(client.model is not world.model for client in world.clients):
            raise Misfit("newcomers get the one model that all have, and here are several; leave newcomers out")
        if set(world.model.parts) != {EXTRACTOR, CLASSIFIER}:
            raise Misfit("newcomers get an extractor, and this model has none; choose another, such as resnet")
        if self.clients and at_stations:
            raise Misfit("stations ask all clients that they have; leave newcomers.clients out")
        if self.trains == "classifier":
            world.model.check_that_parts_run_alone()
            if any(client.compute.takes_time for client in world.clients):
                world.model.part_flops(CLASSIFIER)


@dataclass
class Joining:
    """The newcomers of *world*, and what becomes of them."""

    world: World
    settings: NewcomersSettings
    newcomers: Sequence[Client] = ()
    """Those who were reached, and have trained."""
    seconds: float = 0.0
    """From the end of the last round to that of the last one's training."""
    bytes: float = 0.0
    """That came down to them, on their own hops."""
    models: dict[int, Model] = field(default_factory=dict)
    """Of each of them."""

    def run(self) -> Generator[Event, Any, None]:
        """All at the same time."""
        world, begin_s = self.world, self.world.env.now
        if not world.loop.rounds_done:
            return  # nothing was learned
        sent = world.network.access_bytes[Direction.DOWNLINK]
        free = [client for client in world.clients if client.attachment.reachable and not client.busy]
        asked = [client for client in free if not client.attempts]
        trips = [world.start(client, self._journey(client)) for client in asked]
        yield gather(world.env, trips)
        self.newcomers = [client for client in asked if client.index in self.models]
        self.seconds = world.env.now - begin_s
        self.bytes = world.network.access_bytes[Direction.DOWNLINK] - sent

    def _journey(self, client: Client) -> Generator[Any, Any, None]:
        world, epochs, table = self.world, self.settings.epochs, client.model
        passes = client.samples * epochs
        effort = float(passes)
        if self.settings.trains == "classifier" and client.compute.takes_time:
            trained = FORWARDS_PER_TRAINING_STEP * passes * table.part_flops(CLASSIFIER)
            flops = client.samples * table.part_flops(EXTRACTOR) + trained
            effort = flops / table.training_flops_per_sample
        stream = world.streams("newcomers/compute", client.index)
        yield from train_outside_rounds(world, client, table.bytes(EXTRACTOR), effort, passes, stream)
        self.models[client.index] = self._learn(client)

    def _learn(self, client: Client) -> Model:
        """Its own model, trained; nothing where nothing is learned."""
        world, number = self.world, len(self.world.loop.rounds_done)
        begin = {**world.learner.initial_model(client.model)}
        if not begin:
            return {}
        extractor = {part: handle for part, handle in world.loop.model.items() if part == EXTRACTOR}
        about: dict[str, Any] = {"table": client.model.digest, "stream": "newcomers"}
        if self.settings.trains == "all":
            task = LocalTraining(number, client.index, 0, Plain(), epochs=self.settings.epochs, **about)
            return world.learner.train(task, {**begin, **extractor}, state={}, further={}).model
        features = extracted(world, client, extractor, round_number=number, with_samples=False)
        rows = Rows((features,), client.samples, self.settings.epochs)
        task = LocalTraining(number, client.index, 0, Plain(), rows=rows, **about)
        classifier = {part: handle for part, handle in begin.items() if part == CLASSIFIER}
        return {**extractor, **world.learner.train(task, classifier, state={}, further={}).model}

    def columns(self) -> dict[str, float]:
        """Of a run's summary: how many there were, how long it took, what was sent, and how good their models are.

        ``newcomers_accuracy`` (``newcomers_rmse`` of numbers, and the same in their unit if that is known) is the mean
        over clients with tests of their own, each counted once; it is not there if nobody has any.
        """
        world, target = self.world, self.world.dataset.target
        scores = ("rmse", *([target.rmse] if target else [])) if world.dataset.regression else ("accuracy",)
        facts: dict[str, float] = {
            "newcomers": len(self.newcomers),
            "newcomers_s": self.seconds,
            "newcomers_bytes": self.bytes,
        }
        own = [OwnModel(client.index, client.model.digest, self.models[client.index]) for client in self.newcomers]
        number = len(world.loop.rounds_done)
        found = world.learner.evaluate_own(own, round_number=number) if own and all(one.model for one in own) else {}
        for score in scores:
            values = [float(each[score]) for each in (found or {}).values() if each.get(score) is not None]
            if values:
                facts[f"newcomers_{score}"] = sum(values) / len(values)
        return facts
