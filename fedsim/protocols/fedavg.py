"""Federated averaging (McMahan et al., *Communication-efficient learning of deep networks from decentralized data*,
AISTATS 2017, algorithm 1).

Leaves out nothing of the algorithm; deadlines and over-selection follow Bonawitz et al. (MLSys 2019).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import Annotated, Any, Literal

from simpy import Event

from fedsim.errors import within
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import ServerRule
from fedsim.models.table import ModelTable
from fedsim.protocols.block import Alternation
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.rounds import Rounds
from fedsim.protocols.selection import CohortSettings, RandomCohort
from fedsim.protocols.world import World
from fedsim.settings import Count, OneOf, Positive

__all__ = ["Averaging", "FedAvg"]


class Averaging(Protocol, CohortSettings):
    """The keys of protocols that average the models of a cohort."""

    deadline_s: Positive | None = None
    """A round ends at the latest after so many seconds; what arrives exactly then still counts.

    Times are sums of binary fractions: leave a hair of room where decimal seconds should meet exactly.
    """
    weighting: Literal["samples", "uniform"] = "samples"
    """Weights of the updates: by training samples, or all equal."""

    interval: Count = 1
    """T: rounds in a block; the cohort is drawn when a block begins, and takes part in all of it."""
    exchange: Annotated[Exchange, OneOf("exchanges")] = Whole()
    """What of the model is sent, trained and sent back in which round of a block."""
    server: Annotated[ServerRule, OneOf("rules")] = Mean()
    """How updates become the next model."""

    @abstractmethod
    def local_objective(self) -> Objective:
        """What clients minimise."""

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Rounds of clients in parallel, with this objective."""
        schedule = Rounds(
            RandomCohort(self),
            self.exchange,
            self.local_objective(),
            self.weighting,
            self.interval,
            self.deadline_s,
            rule=self.server,
        )
        yield from schedule.run(world)

    @property
    def rounds_are_alike(self) -> bool:
        """Not where a block has a round of another kind."""
        return self.interval == 1 or isinstance(self.exchange, Whole)

    def check(self, world: World) -> None:
        """Every client needs a compute time, and each part what it needs."""
        super().check(world)
        with within("exchange"):
            self.exchange.check(world)
        with within("objective"):
            self.local_objective().check(world.dataset)

    def columns(self, world: World) -> dict[str, float]:
        """Those of the exchange."""
        return self.exchange.columns(world)

    def cohort_size(self, clients: int) -> float:
        """``fraction * clients``, or ``clients``."""
        return self.mean_size(clients)

    def alternation(self, model: ModelTable) -> Alternation:
        """As the exchange has it."""
        return self.exchange.alternation(self.interval, model)


class FedAvg(Averaging):
    """Federated averaging: a random cohort trains by SGD in parallel, and the cloud averages its models."""

    name: Literal["fedavg"] = "fedavg"
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def local_objective(self) -> Objective:
        """As the scenario names it."""
        return self.objective
