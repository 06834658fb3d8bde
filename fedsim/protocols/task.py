"""What a client is asked in one round: what is sent to it, what it does, and what it sends back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from fedsim.data.captures import Capture
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.learner import NOTHING, LocalTraining, Model, Rows, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.update import Update
from fedsim.models.table import FORWARDS_PER_TRAINING_STEP, ModelTable
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
    table: ModelTable
    """Of the model that is trained."""

    @property
    def model(self) -> Model:
        """What of the model travels."""
        return self.down.models["model"]

    @property
    def written(self) -> tuple[str, ...] | None:
        """The parts that the codec writes, where others stay with the client; None: all."""
        return None

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
        passes, samples = self.objective.forward_passes(self.table), samples * world.training.epochs
        return samples * (1 + passes / FORWARDS_PER_TRAINING_STEP) if passes else samples

    def steps(self, world: World, client: Client, samples: int) -> int:
        """Of SGD, one for each mini-batch."""
        return world.training.epochs * -(-samples // world.training.batch_size)

    def start(self, world: World, client: Client) -> Model:
        """What *client* begins its training with: as a rule, what was sent to it."""
        return self.model

    def begin(self, world: World, client: Client, capture: Capture | None) -> Trained | None:
        """What the client is about to learn, where its size is measured: so all sizes of a round are made together."""
        return self._train(world, client, capture) if self.codec.reads_learning else None

    def learn(self, world: World, client: Client, capture: Capture | None, begun: Trained | None) -> Message:
        """What comes back. Called once, when the device has done the work."""
        return self._message(client, begun or self._train(world, client, capture))

    def _train(self, world: World, client: Client, capture: Capture | None, rows: Rows | None = None) -> Trained:
        begin, objective, codec = self.start(world, client), self.objective, self.codec
        if not begin:
            return NOTHING  # without learning there are no models
        asked = LocalTraining(
            self.round_number,
            client.index,
            client.trainings,
            objective,
            codec,
            capture,
            rows,
            self.table.digest,
            written=self.written,
        )
        kept = client.kept
        state = {**kept.get("objective", {}), **kept.get("codec", {})} if kept else {}
        return world.learner.train(asked, begin, state=state, further=self.down.models)

    def _message(self, client: Client, trained: Trained) -> Message:
        """What *client* sends of what it has learned; it keeps the rest."""
        sent, state = {**trained.beside, "model": trained.model}, trained.state
        if state:
            by_codec = {name: handle for name, handle in state.items() if name in self.codec.remembers}
            by_objective = {name: handle for name, handle in state.items() if name not in by_codec}
            both = {"objective": by_objective, "codec": by_codec}
            client.kept.update({keeper: kept for keeper, kept in both.items() if kept})
        measured = None if trained.bytes is None or not self.codec.reads_learning else trained.bytes
        return Message(sent, self.up_bytes, measured)
