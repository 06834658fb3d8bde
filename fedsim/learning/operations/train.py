"""Local training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.learning.batches import BatchSizes, Seen
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.joint_steps import JointSizes, SeenTogether
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.operations.operation import Operation
from fedsim.learning.selections.selection import Selecting
from fedsim.learning.training import TrainingSettings

__all__ = ["BYTES", "KEPT", "SELECTED", "Train", "TrainPartly", "TrainSelecting", "sent_as", "state_as"]

BYTES = "bytes"
"""Its output that is a number: how large the update is on the wire, by a codec that is not exact, or by a selection."""
KEPT = "kept"
"""Its output that says which filters a selection has kept: (filters,) truth values by the name of each convolution."""
SELECTED = "selected"
"""Its output that tells of a selection in numbers."""


def state_as(name: str) -> str:
    """Its output for what the client keeps under *name*."""
    return f"state.{name}"


def sent_as(name: str, part: str) -> str:
    """Its output for *part* of what goes up under *name* beside the model."""
    return f"sent.{name}.{part}"


@dataclass(frozen=True)
class Train(Operation):
    """SGD on a client's samples, or on rows of semantics.

    Inputs: the "model"; what the client remembers, "state", by name; each further model that the objective reads, in
    the role of its name; and "rows". Outputs: the model's parts, ``state.NAME`` for what the client remembers,
    ``sent.NAME.PART`` for what it sends, and ``NAME`` for a number that it tells.
    """

    name: ClassVar[str] = "train"
    scalars: ClassVar[frozenset[str]] = frozenset({BYTES})
    model: str
    """The table's digest."""
    training: TrainingSettings
    objective: Objective
    codec: Codec
    """What is handed on is the model as it is read from the wire."""
    seen: Seen | SeenTogether
    rows: int | None = None
    """How many rows of semantics it trains on; None: on the samples that are *seen*."""

    @property
    def sizes(self) -> BatchSizes | JointSizes:
        """How many samples, or rows, are in each mini-batch."""
        if isinstance(self.seen, SeenTogether):
            return self.seen.sizes
        samples = self.seen.samples if self.rows is None else self.rows
        return BatchSizes(samples, self.training.batch_size, self.training.epochs)

    def writes(self, name: str) -> bool:
        """Whether the codec writes the tensor called ``part.name``."""
        return True


@dataclass(frozen=True)
class TrainPartly(Train):
    """The same where the codec writes some parts only, and the client keeps the others as they are."""

    written: tuple[str, ...] = ()
    """Names of parts, or of single tensors, ``part.name``."""

    def writes(self, name: str) -> bool:
        """Whether it is one of them."""
        return name in self.written or name.partition(".")[0] in self.written


@dataclass(frozen=True)
class TrainSelecting(Train):
    """The same where a client sends some filters of the model only.

    What is handed on of the part that is chosen from is what the server makes of it: whatever is not sent is as the
    client has received it. What the objective sends and the server rebuilds is zero there. Further outputs: "bytes" of
    that part on the wire, "kept", and "selected".
    """

    scalars: ClassVar[frozenset[str]] = frozenset({BYTES, SELECTED})
    selecting: Selecting | None = None
