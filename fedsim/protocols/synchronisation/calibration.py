"""The two tasks of LASP: training all of the model once in a block, and calibrating its classifier in between.

(Zeng et al., *HFedMS*, IEEE TCC 2023, section III-D, algorithm 4.)
"""

from __future__ import annotations

from dataclasses import dataclass

from fedsim.data.stream.captures import Capture
from fedsim.learning.learner import CalibrationSet, Model
from fedsim.models.table import FORWARDS_PER_TRAINING_STEP
from fedsim.protocols.block import BlockRound
from fedsim.protocols.journey import Task
from fedsim.protocols.synchronisation.memory import Batch, Memory, Semantics
from fedsim.protocols.synchronisation.scc import SCC
from fedsim.protocols.world import Client, World

__all__ = ["Calibration", "FullTraining"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FullTraining(Task):
    """Train the whole model; the batch is kept until the extractor comes that makes semantics of it."""

    block: int
    keeps_extractor: bool
    """Whether the extractor is kept too, as the client has trained it."""

    def learn(self, world: World, client: Client, capture: Capture | None) -> Model:
        """The trained model."""
        model = super(FullTraining, self).learn(world, client, capture)
        extractor = {part: model[part] for part in model if self.keeps_extractor and part == "extractor"}
        samples = client.samples if capture is None else capture.samples
        memory = Memory.of(client)
        if memory.first_batch is None or memory.first_batch.block <= self.block:  # a late one may end after the next
            memory.first_batch = Batch(self.block, samples, capture, extractor, self.keeps_extractor)
        return model


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Task):
    """Train the classifier on semantics: of the new batch, and of what is remembered; the extractor is frozen."""

    place: BlockRound
    epochs: int
    scc: SCC | None

    def suits(self, client: Client) -> bool:
        """Whether it has the extractor of this block."""
        return Memory.of(client).block == self.place.block

    def passes(self, world: World, client: Client, samples: int) -> int:
        """New samples and remembered rows, each once in every epoch."""
        remembered = self._remembered(client)
        return 0 if remembered is None else (samples + remembered) * self.epochs

    def effort(self, world: World, client: Client, samples: int) -> float:
        """Passes of the frozen extractor forward, and of the classifier in training."""
        if not client.compute.takes_time:
            return 0.0
        table, memory = world.model, Memory.of(client)
        extracted = samples + (self.scc.extracted(memory, samples) if self.scc else 0)
        trained = FORWARDS_PER_TRAINING_STEP * self.passes(world, client, samples)
        flops = extracted * table.part_flops("extractor") + trained * table.part_flops("classifier")
        return flops / table.training_flops_per_sample

    def learn(self, world: World, client: Client, capture: Capture | None) -> Model:
        """The calibrated classifier; as it came, when there is nothing to calibrate on."""
        memory = Memory.of(client)
        handle = world.learner.extract(
            memory.extractor,
            client.index,
            capture=capture,
            with_samples=self.scc is not None and self.scc.keep == "samples",
            round_number=self.round_number,
        )
        now = Semantics(handle, client.samples if capture is None else capture.samples, capture)
        remembered = self.scc.recalled(world, client, now, self.round_number) if self.scc else None
        skips = self._remembered(client) is None
        rows = [now] if remembered is None else [now, remembered]
        model = self.model if skips else self._trained(world, client, rows)
        if self.scc is not None:
            self.scc.remember(world, client, now, self.place)
        return model

    def _trained(self, world: World, client: Client, rows: list[Semantics]) -> Model:
        trained = world.learner.train(
            self.model,
            client.index,
            objective=self.objective,
            use=client.trainings,
            round_number=self.round_number,
            calibration_set=CalibrationSet(
                tuple(some.handle for some in rows if some.handle is not None),
                sum(some.rows for some in rows),
                self.epochs,
            ),
        )
        return trained.model

    def _remembered(self, client: Client) -> int | None:
        """Rows that are calibrated on beside the new ones; None when nothing is calibrated at all."""
        if self.scc is None:
            return 0
        database = Memory.of(client).database
        if database is None:
            return 0 if self.scc.without_history == "calibrate" else None
        return database.rows
