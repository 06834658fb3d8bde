"""What a client keeps between the rounds of LASP: the block's extractor, and the semantics of what it has seen.

The clock knows how much it is; what it holds are handles, or nothing where nothing is learned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fedsim.data.captures import Capture
from fedsim.learning.batches import Seen
from fedsim.learning.learner import Model
from fedsim.learning.operations.extract import SEMANTICS, Extract
from fedsim.protocols.world import Client, World

__all__ = ["Batch", "Memory", "Semantics", "extracted"]

KEPT = "semantics"
"""Under which a client keeps it."""


class Batch(NamedTuple):
    """Samples that a client has trained the whole model on."""

    block: int
    """In whose full round that was."""
    samples: int
    capture: Capture | None
    """Where they stand in its stream; None: they are all of its own."""
    local_extractor: Model
    """The extractor as the client trained it; empty when nobody needs it."""
    keeps_extractor: bool = False
    """Whether somebody needs it."""


class Semantics(NamedTuple):
    """Rows of features, each with its label."""

    learned: Model
    """The rows themselves; empty without learning."""
    rows: int
    capture: Capture | None
    """Whose rows they are, in their order; None of all of a client's own samples, and in a database."""
    classes: tuple[int, ...] | None = None
    """Rows of each class, in a database that is shared out among them."""


@dataclass(slots=True)
class Memory:
    """One client's memory."""

    block: int = 0
    """Whose extractor it has; 0: none."""
    extractor: Model = field(default_factory=dict)
    """As scattered: frozen until the block ends."""
    first_batch: Batch | None = None
    """Of a full round, until semantics are made of it."""
    seen: list[Semantics] = field(default_factory=list)
    """Of the block's batches so far."""
    database: Semantics | None = None
    """What is remembered of earlier blocks."""
    backup: Model = field(default_factory=dict)
    """The extractor that the database fits, where it is needed again."""
    backup_block: int = 0
    """Whose extractor that is; 0: there is no database."""
    keeps_backup: bool = False
    """Whether the backup is needed again."""
    most_rows: int = 0
    """The most rows that it has held at a time."""
    most_extractors: int = 0
    """The most extractors that it has held at a time."""

    @staticmethod
    def of(client: Client) -> Memory:
        """The memory of *client*, which may be new."""
        memory: Memory | None = client.kept.get(KEPT)
        if memory is None:
            memory = client.kept[KEPT] = Memory()
        return memory

    @staticmethod
    def held_by(client: Client) -> Memory | None:
        """The memory of *client*, if there is one."""
        return client.kept.get(KEPT)

    @property
    def outdated(self) -> bool:
        """Whether the database is of another extractor than the block's."""
        return self.backup_block != self.block

    @property
    def first_batch_of_block(self) -> Batch | None:
        """The batch of this block's full round, if there is one."""
        return self.first_batch if self.first_batch is not None and self.first_batch.block == self.block else None

    def receive(self, block: int, extractor: Model) -> None:
        """A block's extractor has come."""
        self.block, self.extractor, self.seen = block, extractor, []
        self.note()

    def end_block(self) -> None:
        """The block is over: nothing of it is needed again but what was stored, not by a group that is late either."""
        self.block, self.extractor, self.first_batch, self.seen = 0, {}, None, []

    def fit(self, database: Semantics, *, keeps_backup: bool) -> None:
        """The database is one of this block's extractor now."""
        self.database, self.backup_block, self.keeps_backup = database, self.block, keeps_backup
        self.backup = self.extractor if keeps_backup else {}

    def note(self) -> None:
        """Remember how much is held now."""
        rows = sum(some.rows for some in self.seen) + (self.database.rows if self.database else 0)
        self.most_rows = max(self.most_rows, rows)
        own = self.first_batch_of_block is not None and self.first_batch_of_block.keeps_extractor
        self.most_extractors = max(self.most_extractors, 1 + (self.keeps_backup and self.outdated) + own)


def extracted(
    world: World,
    client: Client,
    extractor: Model,
    *,
    round_number: int,
    with_samples: bool,
    capture: Capture | None = None,
    remembered: Model | None = None,
    soon: bool = False,
) -> Model:
    """What *extractor*, frozen, makes of a client's samples: rows of semantics; nothing when nothing is learned.

    The samples are those of *capture* (None: all of its own), or the raw ones in *remembered*. *with_samples* says
    whether the raw samples are kept beside their semantics, and *soon* whether the extractor is of no other use.
    """
    if not extractor:
        return {}
    return world.learner.apply(
        Extract(client.model.digest, Seen.of(world.dataset, client.index, capture), with_samples),
        {"model": extractor} | ({} if remembered is None else {"remembered": remembered}),
        [SEMANTICS],
        round_number=round_number,
        client=client.index,
        stream=world.streams("semantics", client.index),
        soon=soon,
    )
