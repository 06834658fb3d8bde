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

__all__ = ["Averaging", "FreeAveraging"]


class Averaging(Combination, RoundsSettings, CohortSettings):
    """The keys of protocols that average the models of a random cohort."""

    exchange: Annotated[Exchange, OneOf("exchanges")] = Whole()
    """What of the model is sent, trained and sent back in which round of a block."""

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
        """The exchange that the scenario names, and the protocol's objective."""
        return self.exchange, self.local_objective()


class FreeAveraging(Averaging):
    """The same with any objective: protocols that do not say what clients minimise."""

    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def local_objective(self) -> Objective:
        """As the scenario names it."""
        return self.objective
