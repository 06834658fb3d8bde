"""What a server rule is: how updates become the next model, and what the server remembers for it.

A rule handles no tensors: it names operations on handles, so what it remembers is kept and resumed with the graph.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from fedsim.learning.learner import Learner, Model
from fedsim.learning.rules.update import Update
from fedsim.models.table import ModelTable
from fedsim.settings import Component

__all__ = ["Aggregation", "ServerRule", "State"]

State = Mapping[str, Model]
"""What a server has, by name: its "model", and what its rule remembers."""


class Aggregation(NamedTuple):
    """What a rule may know beside the updates."""

    round_number: int
    table: ModelTable
    """Of the model."""
    clients: int
    """N: all clients that there are, whether or not they take part."""
    classes: int | None = None
    """Of the data set; None where it has numbers to predict."""

    def statistics(self, parts: Iterable[str]) -> tuple[str, ...]:
        """``part.name`` of the running statistics in *parts*: rules average them, and step what is trained."""
        return tuple(f"{part}.{name}" for part in parts for name in self.table.statistics_names(part))


class ServerRule(Component):
    """Registered under "rules"."""

    provides: ClassVar[tuple[str, ...]] = ()
    """Names of what the server has beside its model, which an objective may receive."""

    by_tensor: ClassVar[bool] = True
    """Whether what becomes of a tensor depends on that tensor in the updates alone, and on the updates' weights."""

    part: ClassVar[str | None] = None
    """The part of the model that what it provides is about; None: all of it."""

    @property
    def looks_at(self) -> tuple[str, ...]:
        """Names of what it takes from an update beside the model, if it is there."""
        return ()

    def check(self, table: ModelTable) -> None:
        """Raise `Misfit` when a server cannot have it with a model of *table*."""
        return

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of what an objective must send beside the model."""
        return ()

    def begin(self, learner: Learner, state: State, table: ModelTable) -> State:
        """What the server has before the first round; *state* is its model, of *table*, without learning empty."""
        return state

    def bytes_beside(self, table: ModelTable, part: str | None = None) -> tuple[float, float]:
        """The bytes (down, up) that this rule sends beside each model and each update, whatever the objective sends.

        What is exchanged is a *part* of the model, or all of it.
        """
        return 0.0, 0.0

    def kept_bytes(self, table: ModelTable) -> float:
        """Bytes, in float32, that the server keeps for it beside the model."""
        return 0.0

    def held_bytes(self, table: ModelTable) -> float:
        """Bytes of each update that stay in memory until all of a round are there; the mean takes them as they come."""
        return 0.0

    @abstractmethod
    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """The server's next state. There is an update at least; of some models they may have some parts only."""
