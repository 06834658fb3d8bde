"""What protocols have in common whose random cohort trains in parallel rounds: FedAvg without its objective."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.cohorts.random import CohortSettings, RandomCohort
from fedsim.protocols.combination import Combination, picked
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.rounds import Rounds, RoundsSettings
from fedsim.settings import OneOf

__all__ = ["Averaging", "FreeAveraging", "ParallelTraining"]


class ParallelTraining(Combination, RoundsSettings, CohortSettings):
    """The keys of a random cohort in rounds; each protocol says what is exchanged and what is minimised."""

    @abstractmethod
    def exchanged(self) -> Exchange:
        """What of the model is sent, trained and sent back."""

    @abstractmethod
    def local_objective(self) -> Objective:
        """What clients minimise."""

    def who(self) -> RandomCohort:
        """A random cohort."""
        return picked(RandomCohort, self)

    def when(self) -> Rounds:
        """Rounds in parallel."""
        return picked(Rounds, self)

    def what(self) -> tuple[Exchange, Objective]:
        """The protocol's exchange and objective."""
        return self.exchanged(), self.local_objective()


class Averaging(ParallelTraining):
    """The keys of protocols that average the models of a random cohort."""

    exchange: Annotated[Exchange, OneOf("exchanges")] = Whole()
    """What of the model is sent, trained and sent back in which round of a block."""

    def exchanged(self) -> Exchange:
        """As the scenario names it."""
        return self.exchange


class FreeAveraging(Averaging):
    """The same with any objective: protocols that do not say what clients minimise."""

    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def local_objective(self) -> Objective:
        """As the scenario names it."""
        return self.objective
