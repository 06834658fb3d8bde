"""What a synchronised part decides on, for any schedule: the task of a round, and what follows its mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from typing import Any

from fedsim.learning.learner import Model
from fedsim.learning.objectives import Objective
from fedsim.models.table import ModelTable
from fedsim.protocols.block import Alternation, BlockRound
from fedsim.protocols.journey import Task
from fedsim.protocols.world import Client, World
from fedsim.settings import Component

__all__ = ["SynchronisedPart"]


class SynchronisedPart(Component):
    """What is registered under "synchronised_parts"."""

    def check(self, world: World) -> None:
        """Raise `UserError` when the model, the data or the devices of *world* cannot do it."""
        return

    def columns(self, world: World) -> dict[str, float]:
        """More columns of the summary of a run that has ended in *world*."""
        return {}

    @abstractmethod
    def task(self, world: World, place: BlockRound, model: Model, objective: Objective) -> Task:
        """What clients do in a round that begins with the whole *model*."""

    @abstractmethod
    def spread(
        self, world: World, place: BlockRound, model: Model, clients: Sequence[Client], deadline_s: float | None
    ) -> Generator[Any, Any, None]:
        """What is sent to the block's *clients* at the end of a round whose whole model is *model*."""

    @abstractmethod
    def alternation(self, interval: int, model: ModelTable) -> Alternation:
        """In which rounds the whole *model* is sent when blocks have *interval* rounds, for closed-form costs."""
