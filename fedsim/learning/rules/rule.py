"""What a server rule is: how updates become the next model, and what the server remembers for it.

A rule handles no tensors: it names operations on handles, so what it remembers is kept and resumed with the graph.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from fedsim.learning.learner import Learner, Model
from fedsim.learning.rules.update import Update
from fedsim.settings import Component

__all__ = ["ServerRule", "State"]

State = Mapping[str, Model]
"""What a server has, by name: its "model", and what its rule remembers."""


class ServerRule(Component):
    """Registered under "rules"."""

    @abstractmethod
    def apply(self, learner: Learner, state: State, updates: Sequence[Update], *, round_number: int) -> State:
        """The server's next state. There is an update at least; of some models they may have some parts only."""
