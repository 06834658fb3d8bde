"""What a client is asked in one round: what is sent to it, what it does, and what it sends back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from fedsim.data.captures import Capture
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.learner import NOTHING, LocalTraining, Model, Rows, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.update import Update
from fedsim.learning.selections.selection import Selecting
from fedsim.models.table import FORWARDS_PER_TRAINING_STEP, ModelTable
from fedsim.protocols.message import Message
from fedsim.protocols.world import Client, World

__all__ = ["GLOBAL", "Task"]

GLOBAL = "global"
"""The further model that an objective receives when it looks at the round's whole global model."""


KEEPERS = ("objective", "codec", "selection")
"""Who remembers something of a training, as `fedsim.protocols.world.Client.kept` calls them."""


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
    selecting: Selecting | None = None
    """Which filters of what is trained are sent; None: all."""

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
        effort = samples * (1 + passes / FORWARDS_PER_TRAINING_STEP) if passes else samples
        if self.selecting is not None:
            rated = self.selecting.selection.rated(self.round_number, world.held_back(client))
            effort += rated / FORWARDS_PER_TRAINING_STEP
        return effort

    def steps(self, world: World, client: Client, samples: int) -> int:
        """Of SGD, one for each mini-batch."""
        return world.training.epochs * -(-samples // world.training.batch_size)

    def start(self, world: World, client: Client) -> Model:
        """What *client* begins its training with: as a rule, what was sent to it."""
        return self.model

    def begin(self, world: World, client: Client, capture: Capture | None) -> Trained | None:
        """What the client is about to learn, where its size is measured: so all sizes of a round are made together."""
        return self._train(world, client, capture) if self._measures else None

    @property
    def _measures(self) -> bool:
        """Whether the size of what comes back is known only once it was learned."""
        return self.codec.reads_learning or (self.selecting is not None and self.selecting.selection.reads_learning)

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
            selecting=self.selecting,
        )
        kept = client.kept
        state = {name: handle for keeper in KEEPERS for name, handle in kept.get(keeper, {}).items()} if kept else {}
        return world.learner.train(asked, begin, state=state, further=self.down.models)

    def _message(self, client: Client, trained: Trained) -> Message:
        """What *client* sends of what it has learned; it keeps the rest."""
        sent, state = {**trained.beside, "model": trained.model}, trained.state
        if state:
            by_codec = {name: handle for name, handle in state.items() if name in self.codec.remembers}
            chosen = self.selecting.selection.remembers if self.selecting else ()
            by_selection = {name: handle for name, handle in state.items() if name in chosen}
            by_objective = {name: handle for name, handle in state.items() if name not in {*by_codec, *by_selection}}
            every = dict(zip(KEEPERS, (by_objective, by_codec, by_selection), strict=True))
            client.kept.update({keeper: kept for keeper, kept in every.items() if kept})
        if trained.selected is not None:
            client.kept["selected"] = trained.selected
        return Message(sent, self.up_bytes, trained.bytes if self._measures else None)
