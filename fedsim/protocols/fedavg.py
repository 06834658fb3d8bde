"""Federated averaging (McMahan et al., *Communication-efficient learning of deep networks from decentralized data*,
AISTATS 2017, algorithm 1).

Leaves out nothing of the algorithm; deadlines and over-selection follow Bonawitz et al. (MLSys 2019).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated, Any, Literal

from simpy import Event

from fedsim.learning.objectives import Objective, Plain
from fedsim.models.table import ModelTable
from fedsim.protocols.block import Alternation
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.rounds import Rounds
from fedsim.protocols.selection import CohortSettings, RandomCohort
from fedsim.protocols.synchronisation.settings import SynchronisedPart
from fedsim.protocols.synchronisation.whole import Whole
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
    """Weights of the mean: by training samples, or all equal."""

    interval: Count = 1
    """T: rounds in a block; the cohort is drawn when a block begins, and takes part in all of it."""
    synchronise: Annotated[SynchronisedPart, OneOf("synchronised_parts")] = Whole()
    """What of the model is trained, sent and averaged in which round of a block."""

    def objective(self) -> Objective:
        """The clients' local objective."""
        return Plain()

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Rounds of clients in parallel, with this objective."""
        schedule = Rounds(
            RandomCohort(self), self.synchronise, self.objective(), self.weighting, self.interval, self.deadline_s
        )
        yield from schedule.run(world)

    @property
    def rounds_are_alike(self) -> bool:
        """Not where a block has a round of another kind."""
        return self.interval == 1 or isinstance(self.synchronise, Whole)

    def check(self, world: World) -> None:
        """Every client needs a compute time, and the synchronised part what it needs."""
        super().check(world)
        self.synchronise.check(world)

    def columns(self, world: World) -> dict[str, float]:
        """Those of the synchronised part."""
        return self.synchronise.columns(world)

    def cohort_size(self, clients: int) -> float:
        """``fraction * clients``, or ``clients``."""
        return self.mean_size(clients)

    def alternation(self, model: ModelTable) -> Alternation:
        """As the synchronised part has it."""
        return self.synchronise.alternation(self.interval, model)


class FedAvg(Averaging):
    """Federated averaging: a random cohort trains by SGD in parallel, and the cloud averages its models."""

    name: Literal["fedavg"] = "fedavg"
