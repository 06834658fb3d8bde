"""What a client is asked in one round: what is sent to it, what it does, and what it sends back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from fedsim.data.captures import Capture
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.learner import LocalTraining, Model, Rows, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.rule import State
from fedsim.learning.rules.update import Update
from fedsim.protocols.message import Message
from fedsim.protocols.world import Client, World

__all__ = ["GLOBAL", "Task"]

GLOBAL = "global"
"""The further model that an objective receives when it looks at the round's whole global model."""


@dataclass(frozen=True, slots=True)
class Task:
    """To train the model that is sent."""

    round_number: int
    version: int
    """Which of the server's models it is."""
    down: Message
    objective: Objective
    codec: Codec
    """How the update is written."""
    up_bytes: float
    """Of what comes back, as declared; a codec may measure more."""

    @classmethod
    def of(
        cls,
        world: World,
        number: int,
        version: int,
        objective: Objective,
        codec: Codec,
        *,
        state: State,
        part: str | None = None,
        **fields: Any,
    ) -> Self:
        """Of a round that begins with a server's *state*: to train all of its model, or one *part*.

        What the objective receives and sends travels beside it. The global model itself needs no sending where it is
        the one to begin with. *fields* are those of a subclass.
        """
        table, whole = world.model, state["model"]
        further = {name: whole if name == GLOBAL else state.get(name, {}) for name in objective.receives}
        begin = whole if part is None else {name: handle for name, handle in whole.items() if name == part}
        beside = sum(objective.bytes_of(name, table) for name in objective.receives if name != GLOBAL)
        down = Message({**further, "model": begin}, table.bytes(part) + beside)
        up_bytes = codec.size(table, part) + sum(objective.bytes_of(name, table) for name in objective.sends)
        return cls(number, version, down, objective, codec, up_bytes, **fields)

    @property
    def model(self) -> Model:
        """What of the model travels."""
        return self.down.models["model"]

    def handed_on(self, update: Update, more_bytes: float) -> Self:
        """The same for the next client of a chain, which goes on from *update*; *more_bytes* go along with it."""
        models = {**self.down.models, "model": update.model}
        return replace(self, down=Message(models, self.down.bytes + more_bytes))

    def may_begin(self, client: Client) -> bool:
        """Whether *client* can be reached, is free, and has what this needs."""
        return client.attachment.reachable and not client.busy and self.suits(client)

    def suits(self, client: Client) -> bool:
        """Whether *client* has what it needs beside what it is sent."""
        return True

    def passes(self, world: World, client: Client, samples: int) -> int:
        """Samples that pass through the model, *samples* new ones among them: each once in every epoch."""
        return samples * world.training.epochs

    def effort(self, world: World, client: Client, samples: int) -> float:
        """How many samples the device could train on once with as many operations as this takes."""
        return samples * world.training.epochs

    def steps(self, world: World, client: Client, samples: int) -> int:
        """Of SGD, one for each mini-batch."""
        return world.training.epochs * -(-samples // world.training.batch_size)

    def begin(self, world: World, client: Client, capture: Capture | None) -> Trained | None:
        """What the client is about to learn, where its size is measured: so all sizes of a round are made together."""
        return self._train(world, client, capture) if self.codec.reads_learning else None

    def learn(self, world: World, client: Client, capture: Capture | None, begun: Trained | None) -> Message:
        """What comes back. Called once, when the device has done the work."""
        return self._message(client, begun or self._train(world, client, capture))

    def _train(self, world: World, client: Client, capture: Capture | None, rows: Rows | None = None) -> Trained:
        objective, codec = self.objective, self.codec
        asked = LocalTraining(self.round_number, client.index, client.trainings, objective, codec, capture, rows)
        state = {**client.kept.get("objective", {}), **client.kept.get("codec", {})}
        return world.learner.train(asked, self.model, state=state, further=self.down.models)

    def _message(self, client: Client, trained: Trained) -> Message:
        """What *client* sends of what it has learned; it keeps the rest."""
        by_codec = {name: handle for name, handle in trained.state.items() if name in self.codec.remembers}
        by_objective = {name: handle for name, handle in trained.state.items() if name not in by_codec}
        client.kept |= {keeper: kept for keeper, kept in (("objective", by_objective), ("codec", by_codec)) if kept}
        sent = {name: {name: trained.state[name]} for name in self.objective.sends if name in trained.state}
        return Message(
            {**sent, "model": trained.model}, self.up_bytes, trained.bytes if self.codec.reads_learning else None
        )
