"""What every protocol is: settings from the scenario, and one process on the simulated clock."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field
from simpy import Event

from fedsim.errors import Misfit
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable
from fedsim.protocols.newcomers import NewcomersSettings
from fedsim.protocols.run_loop import Stop
from fedsim.protocols.world import World
from fedsim.settings import Component

__all__ = ["Protocol"]


def _printable(label: str) -> str:
    if not label.isprintable():
        raise ValueError(f"{label!r} must be text on one line, for tables and figures")
    return label


class Protocol(Component):
    """What is registered under "protocols"."""

    label: Annotated[str, AfterValidator(_printable)] | None = Field(default=None, min_length=1, max_length=60)
    """Its name in results, when one scenario has the same protocol twice."""
    stop: Stop | None = None
    """When this protocol's run ends, instead of the scenario's ``stop``."""
    training: TrainingSettings | None = None
    """How clients train under this protocol, instead of the scenario's ``training``."""

    reads_learning: ClassVar[bool] = False
    """Whether it decides on learned values, so that its trace depends on training."""

    @property
    def needs_learning(self) -> bool:
        """Whether its trace depends on training, for that reason or another."""
        return self.reads_learning

    @property
    def measured_size(self) -> tuple[str, ...]:
        """The key that would declare the size of an update, where that is measured on what was learned; else empty."""
        return ()

    @property
    def held_back(self) -> int:
        """How many of its training samples each client holds back and does not train on, at most."""
        return 0

    @property
    def trains_alone(self) -> bool:
        """Whether its clients train in the plain loop, one by one, as their objective needs it."""
        return False

    @property
    def last_model_from(self) -> int:
        """The round from which on the last of its `models` is trained."""
        return 1

    @property
    def rounds_are_alike(self) -> bool:
        """Whether all rounds but the first take and send about the same, so that few of them tell of a run."""
        return True

    @property
    def learning_rates(self) -> tuple[str, ...]:
        """The keys of its learning rates: where training makes a model worse, a smaller one may help, the first first.

        As a rule, that of local training.
        """
        return ("training.learning_rate",)

    @property
    def times_finetuning(self) -> bool:
        """Whether its rounds can include the fine-tuning before an evaluation."""
        return False

    @property
    def title(self) -> str:
        """Its name in results."""
        return self.label or self.name

    @abstractmethod
    def run(self, world: World) -> Generator[Event, Any, None]:
        """The protocol as a process: a loop over ``world.loop.rounds()``."""

    def models(self, table: ModelTable, clients: Sequence[ModelTable]) -> tuple[ModelTable, ...]:
        """The models that clients train, one after the other, made of a *table* of the scenario; *clients* has theirs.

        As a rule, that one. Raises `UserError` when none can be made of it.
        """
        return (table,)

    def check(self, world: World) -> None:
        """Raise `UserError` when the protocol cannot run in this world, before anything runs.

        By default: every client needs a compute time.
        """
        world.check_compute_times()

    def check_newcomers(self, world: World, newcomers: NewcomersSettings) -> None:
        """Raise `UserError` when it learns nothing that *newcomers* could be given."""
        raise Misfit(f"{self.name} has no rounds after which newcomers could join; leave newcomers out")

    def check_tests(self, world: World, on: Sequence[str]) -> None:
        """Raise `UserError` when it makes no model that could be scored *on* all of these test sets."""
        return

    def columns(self, world: World) -> dict[str, float]:
        """More columns of the summary of a run that has ended in *world*."""
        return {}
