"""One step of SGD, which its client's station works out later, together with those of all others in the same iteration.

On the clock it is a training like any other. What comes home is the mini-batch: a station whose clients have all begun
with its model, and take one step each, has the mean of their models from one step on all their mini-batches
(`fedsim.learning.joint_steps`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedsim.data.captures import Capture
from fedsim.learning.joint_steps import JointStep, Piece
from fedsim.learning.learner import Trained
from fedsim.learning.rules.update import Update
from fedsim.protocols.message import Message
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World

__all__ = ["SingleStep", "joint_step"]


@dataclass(frozen=True, slots=True)
class SingleStep(Task):
    """To make one step on the next mini-batch."""

    captures: dict[int, Capture] = field(default_factory=dict)
    """By client, once the step is made."""

    def begin(self, world: World, client: Client, capture: Capture | None) -> Trained | None:
        """Nothing: its size is declared."""
        return None

    def learn(self, world: World, client: Client, capture: Capture | None, begun: Trained | None) -> Message:
        """The mini-batch is noted, and an empty model sent that is as large as the real one."""
        assert capture is not None
        self.captures[client.index] = capture
        return Message({"model": {}}, self.up_bytes)


def joint_step(updates: Sequence[Update], captures: Mapping[int, Capture]) -> JointStep:
    """The step of all who have sent *updates*, on what they have captured."""
    senders = sorted(update.sender for update in updates)
    return tuple(Piece(sender, captures[sender]) for sender in senders)
