"""Any combination of parts, by their own names and keys."""

from __future__ import annotations

from typing import Annotated, Literal

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.cohorts.cohort import Cohort
from fedsim.protocols.combination import Combination
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.rounds import Rounds
from fedsim.protocols.schedules.schedule import Schedule
from fedsim.settings import OneOf

__all__ = ["Composed"]


class Composed(Combination):
    """A protocol of your own: any cohort, schedule, exchange, objective, codec and server rule together."""

    name: Literal["composed"] = "composed"
    cohort: Annotated[Cohort, OneOf("cohorts")]
    """Who takes part."""
    schedule: Annotated[Schedule, OneOf("schedules")] = Rounds()
    """Who waits for whom."""
    exchange: Annotated[Exchange, OneOf("exchanges")] = Whole()
    """What of the model is sent, trained and sent back in which round of a block."""
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def who(self) -> Cohort:
        """As the scenario names it."""
        return self.cohort

    def when(self) -> Schedule:
        """As the scenario names it."""
        return self.schedule

    def what(self) -> tuple[Exchange, Objective]:
        """As the scenario names them."""
        return self.exchange, self.objective
