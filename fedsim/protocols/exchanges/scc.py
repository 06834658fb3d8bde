"""SCC, semantic compression and compensation (Zeng et al., *HFedMS*, IEEE TCC 2023, section III-D, algorithm 4).

A client forgets its samples and remembers their *semantics*: what the extractor made of them, with their labels. When a
new extractor has come, what it remembers of each class is moved by as much as the mean of that class's new samples
differs between the new extractor and the old one, which it kept for that (Eqs. 13 to 15). The classifier is calibrated
on the new semantics and the remembered ones (Eq. 16). At the end of a block the rows nearest to their class's mean are
kept (Eqs. 17 and 18).

What the paper leaves open: a class that has no new sample is not moved; the class mean of Eq. 18 is that of all rows
there are to choose from; the first batch of a block is extracted once the block's extractor has come.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from fedsim.data.captures import classes_seen
from fedsim.errors import Misfit
from fedsim.learning.operations.compensate import Compensate
from fedsim.learning.operations.extract import SEMANTICS
from fedsim.learning.operations.keep import Keep
from fedsim.models.table import BYTES_PER_PARAMETER
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.memory import Memory, Semantics, extracted
from fedsim.protocols.world import Client, World
from fedsim.settings import Count, Settings

__all__ = ["SCC"]


class SCC(Settings):
    """A client's memory of data semantics."""

    capacity: Count = 200
    """Q: rows that a client keeps from block to block, of all classes together."""
    compensation: Literal["per_class", "mean", "none"] = "per_class"
    """Remembered rows are moved by the drift of their class (Eqs. 13 to 15), by that of all new samples (Eq. 12), or
    not at all."""
    absent: Literal["stays", "mean"] = "stays"
    """A remembered class without new samples stays as it is, or is moved by the drift of all new samples."""
    keep: Literal["semantics", "samples"] = "semantics"
    """Keep semantics, or the raw samples and extract them anew with each extractor: the yardstick that needs no
    compensation."""
    storage: Literal["nearest", "random"] = "nearest"
    """Which rows are kept: the nearest to the mean of their class, or any, as the authors' public code does."""
    quota: Literal["none", "per_class"] = "none"
    """Whether the capacity is dealt evenly among the classes there are, or goes to the nearest rows of any class."""
    first_extractor: Literal["scattered", "local"] = "scattered"
    """What extracts a block's first batch: the scattered extractor, or the one that the client has just trained, as in
    the authors' public code."""
    without_history: Literal["calibrate", "skip"] = "calibrate"
    """A client that remembers nothing calibrates on its new samples, or not at all, as in the authors' public code."""

    def check(self, world: World) -> None:
        """There must be classes; an even share of them needs labels."""
        if world.dataset.regression:
            raise Misfit(
                f"scc remembers by classes, and data set {world.dataset.name!r} has numbers to predict; set scc to null"
            )
        if self.quota == "per_class" and world.dataset.y is None:
            raise Misfit(
                f"quota='per_class' needs labels, and data set {world.dataset.name!r} declares numbers only; choose "
                "another data set, or leave quota out",
                "quota",
            )

    @property
    def compensates(self) -> bool:
        """Whether a database is moved when a new extractor comes, for which the old one has to be kept."""
        return self.keep == "semantics" and self.compensation != "none"

    def row_bytes(self, world: World) -> float:
        """Bytes of a remembered row on the device; nan where the model or the data does not say."""
        numbers = world.model.feature_numbers()
        row = math.nan if numbers is None else float(BYTES_PER_PARAMETER * (numbers + 1))
        if self.keep == "samples":
            row += math.nan if world.dataset.sample_bytes is None else world.dataset.sample_bytes
        return row

    def extracted(self, memory: Memory, samples: int) -> int:
        """Samples that pass through an extractor in the client's next calibration, beside its *samples* new ones."""
        more = 0
        if not memory.seen and memory.first_batch_of_block is not None:
            more += memory.first_batch_of_block.samples
        if memory.outdated and memory.database is not None:
            if self.keep == "samples":
                more += memory.database.rows
            elif self.compensates:
                more += samples
        return more

    def recalled(self, world: World, client: Client, now: Semantics, round_number: int) -> Semantics | None:
        """What the client remembers of earlier blocks, fit for this block's extractor; None when it is nothing."""
        memory = Memory.of(client)
        if memory.database is not None and memory.outdated:
            renewed = self._renewed(world, client, memory, memory.database, now, round_number)
            memory.fit(renewed, keeps_backup=self.compensates)
        return memory.database

    def _renewed(
        self, world: World, client: Client, memory: Memory, database: Semantics, now: Semantics, round_number: int
    ) -> Semantics:
        """The database as the block's extractor would have it (Eqs. 13 to 15)."""
        renewed = database.learned
        if self.keep == "samples":
            renewed = extracted(
                world,
                client,
                memory.extractor,
                remembered=database.learned,
                with_samples=True,
                round_number=round_number,
            )
        elif self.compensation != "none":
            before = extracted(
                world, client, memory.backup, capture=now.capture, with_samples=False, round_number=round_number
            )
            renewed = world.learner.apply(
                Compensate(self.compensation, self.absent),
                {"remembered": database.learned, "now": now.learned, "before": before},
                [SEMANTICS],
                round_number=round_number,
                client=client.index,
            )
        return database._replace(learned=renewed)

    def remember(self, world: World, client: Client, now: Semantics, at: BlockRound) -> None:
        """A round's semantics join those of the block; in its last round, the database is made anew (Eq. 17)."""
        memory = Memory.of(client)
        if not memory.seen and (first := self._first(world, client, memory, at)) is not None:
            memory.seen.append(first)
        if all(some.capture != now.capture for some in memory.seen):  # samples may stay for a whole block
            memory.seen.append(now)
        memory.note()
        if at.last:
            self._store(world, client, memory, at)

    def _first(self, world: World, client: Client, memory: Memory, at: BlockRound) -> Semantics | None:
        """The semantics of the block's full round, if the client took part in it."""
        batch = memory.first_batch_of_block
        if batch is None:
            return None
        local = self.first_extractor == "local"
        learned = extracted(
            world,
            client,
            batch.local_extractor if local else memory.extractor,
            capture=batch.capture,
            with_samples=self.keep == "samples",
            round_number=at.number,
            soon=local,
        )
        memory.first_batch = None
        return Semantics(learned, batch.samples, batch.capture)

    def _store(self, world: World, client: Client, memory: Memory, at: BlockRound) -> None:
        """Keep the rows that represent their classes best (Eqs. 17 and 18); of equally good ones, the newest."""
        newest_first = [*reversed(memory.seen), *([memory.database] if memory.database else [])]
        quotas = self._quotas(world, client, newest_first)
        rows = min(self.capacity, sum(some.rows for some in newest_first)) if quotas is None else sum(quotas)
        at_random = self.storage == "random"
        learned = world.learner.apply(
            Keep(rows, quotas),
            {"rows": [some.learned for some in newest_first]},
            [SEMANTICS],
            round_number=at.number,
            client=client.index,
            stream=world.streams("semantics/kept", client.index, at.block) if at_random else None,
        )
        database = Semantics(learned, rows, None, quotas)
        memory.fit(database, keeps_backup=self.compensates)
        memory.seen = []

    def _quotas(self, world: World, client: Client, candidates: list[Semantics]) -> tuple[int, ...] | None:
        """Rows of each class to keep, when the capacity is shared out: evenly, and no more than there are."""
        if self.quota == "none":
            return None
        there = np.zeros(world.dataset.classes or 0, np.int64)
        for some in candidates:
            if some.classes is not None:
                there += some.classes
            else:
                there += classes_seen(world.dataset, client.index, some.capture, world.streams)
        present = np.flatnonzero(there)
        shares = np.zeros_like(there)
        whole, rest = divmod(self.capacity, len(present))
        shares[present] = whole + (np.arange(len(present)) < rest)
        return tuple(np.minimum(shares, there).tolist())
