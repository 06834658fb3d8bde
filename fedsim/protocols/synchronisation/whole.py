"""The whole model in every round, as in FedAvg (McMahan et al., AISTATS 2017)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

from fedsim.learning.learner import Model
from fedsim.learning.objectives import Objective
from fedsim.models.table import ModelTable
from fedsim.protocols.block import Alternation, BlockRound
from fedsim.protocols.journey import Task
from fedsim.protocols.synchronisation.settings import SynchronisedPart
from fedsim.protocols.world import Client, World

__all__ = ["Whole"]


class Whole(SynchronisedPart):
    """The whole model is trained, sent and averaged in every round."""

    name: Literal["whole"] = "whole"

    def task(self, world: World, place: BlockRound, model: Model, objective: Objective) -> Task:
        """Train all of it."""
        return Task(place.number, model, objective, world.model.bytes(), world.model.bytes(), model)

    def spread(
        self, world: World, place: BlockRound, model: Model, clients: Sequence[Client], deadline_s: float | None
    ) -> Generator[Any, Any, None]:
        """Nothing."""
        yield from ()

    def alternation(self, interval: int, model: ModelTable) -> Alternation:
        """In each."""
        return Alternation()
