"""The two tasks of LASP: training all of the model once in a block, and calibrating its classifier in between.

(Zeng et al., *HFedMS*, IEEE TCC 2023, section III-D, algorithm 4.)
"""

from __future__ import annotations

from dataclasses import dataclass

from fedsim.data.captures import Capture
from fedsim.learning.learner import Rows, Trained
from fedsim.models.table import CLASSIFIER, EXTRACTOR, FORWARDS_PER_TRAINING_STEP
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.memory import Batch, Memory, Semantics, extracted
from fedsim.protocols.exchanges.scc import SCC
from fedsim.protocols.message import Message
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World

__all__ = ["Calibration", "FullTraining"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FullTraining(Task):
    """Train the whole model; the batch is kept until the extractor comes that makes semantics of it."""

    block: int
    keeps_extractor: bool
    """Whether the extractor is kept too, as the client has trained it."""

    def learn(self, world: World, client: Client, capture: Capture | None, begun: Trained | None) -> Message:
        """The trained model."""
        message = super(FullTraining, self).learn(world, client, capture, begun)
        model = message.models["model"]
        extractor = {part: model[part] for part in model if self.keeps_extractor and part == EXTRACTOR}
        samples = client.samples if capture is None else capture.samples
        memory = Memory.of(client)
        if memory.first_batch is None or memory.first_batch.block <= self.block:  # a late one may end after the next
            memory.first_batch = Batch(self.block, samples, capture, extractor, self.keeps_extractor)
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Task):
    """Train the classifier on semantics: of the new batch, and of what is remembered; the extractor is frozen."""

    at: BlockRound
    epochs: int
    scc: SCC | None

    def suits(self, client: Client) -> bool:
        """Whether it has the extractor of this block."""
        return Memory.of(client).block == self.at.block

    def passes(self, world: World, client: Client, samples: int) -> int:
        """New samples and remembered rows, each once in every epoch."""
        remembered = self._remembered(client)
        return 0 if remembered is None else (samples + remembered) * self.epochs

    def steps(self, world: World, client: Client, samples: int) -> int:
        """One for each mini-batch of a calibration set."""
        remembered = self._remembered(client)
        return 0 if remembered is None else self.epochs * -(-(samples + remembered) // world.training.batch_size)

    def effort(self, world: World, client: Client, samples: int) -> float:
        """Passes of the frozen extractor forward, and of the classifier in training."""
        if not client.compute.takes_time:
            return 0.0
        table, memory = client.model, Memory.of(client)
        extracted = samples + (self.scc.extracted(memory, samples) if self.scc else 0)
        trained = FORWARDS_PER_TRAINING_STEP * self.passes(world, client, samples)
        flops = extracted * table.part_flops(EXTRACTOR) + trained * table.part_flops(CLASSIFIER)
        return flops / table.training_flops_per_sample

    def begin(self, world: World, client: Client, capture: Capture | None) -> None:
        """Nothing: what is remembered is known when the work is done."""
        return

    def learn(self, world: World, client: Client, capture: Capture | None, begun: Trained | None) -> Message:
        """The calibrated classifier; as it came, when there is nothing to calibrate on."""
        memory = Memory.of(client)
        rows_now = extracted(
            world,
            client,
            memory.extractor,
            capture=capture,
            with_samples=self.scc is not None and self.scc.keep == "samples",
            round_number=self.round_number,
        )
        now = Semantics(rows_now, client.samples if capture is None else capture.samples, capture)
        remembered = self.scc.recalled(world, client, now, self.round_number) if self.scc else None
        skips = self._remembered(client) is None
        rows = [now] if remembered is None else [now, remembered]
        if skips:  # the classifier goes back as it came, in full
            coded, in_full = self.codec.size(self.table, CLASSIFIER), self.table.bytes(CLASSIFIER)
            message = Message({"model": self.model}, self.up_bytes - coded + in_full)
        else:
            learned = tuple(some.learned for some in rows if some.learned)
            calibration_set = Rows(learned, sum(some.rows for some in rows), self.epochs)
            message = self._message(client, self._train(world, client, None, calibration_set))
        if self.scc is not None:
            self.scc.remember(world, client, now, self.at)
        return message

    def _remembered(self, client: Client) -> int | None:
        """Rows that are calibrated on beside the new ones; None when nothing is calibrated at all."""
        if self.scc is None:
            return 0
        database = Memory.of(client).database
        if database is None:
            return 0 if self.scc.without_history == "calibrate" else None
        return database.rows
