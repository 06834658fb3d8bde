"""What an exchange decides on, for any schedule: the task of a round, and what follows its mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar

from fedsim.errors import Misfit
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.rule import ServerRule
from fedsim.models.table import CLASSIFIER, EXTRACTOR, ModelTable
from fedsim.protocols.block import Alternation, BlockRound
from fedsim.protocols.site import Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World
from fedsim.settings import Component

__all__ = ["Exchange"]


class Exchange(Component):
    """Registered under "exchanges"."""

    several_models: ClassVar[bool] = False
    """Whether clients' models may differ, as their device classes have it."""

    @property
    def shared(self) -> str | None:
        """The part of the model that clients have in common; each keeps what is left to itself. None: all of it."""
        return None

    @property
    def keeps_parts(self) -> bool:
        """Whether clients keep a part of the model to themselves."""
        return self.shared is not None

    def adapted(self, table: ModelTable, clients: Sequence[ModelTable]) -> ModelTable:
        """How a model of *table* is sent where *clients* have these: as a rule, as it is."""
        return table

    def is_whole(self, interval: int) -> bool:
        """Whether the whole model is trained and sent in each round, where blocks have *interval* rounds."""
        return False

    def always_sends(self, part: str | None, interval: int) -> bool:
        """Whether *part* of the model, or all of it, is trained and sent in each round."""
        return self.is_whole(interval)

    @property
    def held_back(self) -> int:
        """How many training samples each client has to hold back for it, at most."""
        return 0

    @property
    def selects(self) -> bool:
        """Whether a client may leave out some of what it has trained."""
        return False

    def remembered_bytes(self, model: ModelTable) -> float:
        """Bytes, in float32, that a client keeps for it beside its *model* between trainings."""
        return 0.0

    @property
    def measured_size(self) -> tuple[str, ...]:
        """The key of its own that would declare the size of an update, where that is measured; else empty."""
        return ()

    @property
    def declared_size(self) -> tuple[str, ...]:
        """The key of its own that declares the size of an update, where it is given and could be measured."""
        return ()

    def always_trains(self, interval: int) -> bool:
        """Whether each client that takes part in a round trains in it, where blocks have *interval* rounds."""
        return True

    def check_that_it_is_divided(self, model: ModelTable) -> None:
        """Raise `Misfit` unless the *model* has an extractor and a classifier, and nothing else."""
        if set(model.parts) != {EXTRACTOR, CLASSIFIER}:
            raise Misfit(
                f"exchange {self.name!r} needs a model of an extractor and a classifier, and this one is not divided; "
                "choose another, such as hfedms_cnn, or declare model.classifier_parameters"
            )

    def check(self, world: World) -> None:
        """Raise `UserError` when the model, the data or the devices of *world* cannot do it."""
        return

    def check_beside(self, objective: Objective, codec: Codec) -> None:
        """Raise `Misfit` when it does not go together with *objective* or *codec*."""
        return

    def kept_bytes(self, model: ModelTable, clients: Sequence[ModelTable]) -> float:
        """Bytes of a *model* that a client keeps to itself between trainings, in float32: as a rule, none.

        All *clients* have these models.
        """
        return 0.0

    def means_bytes(self, clients: Sequence[ModelTable], in_round: float) -> float:
        """Bytes of all means of layers that are still somebody's, where there is no single model: as a rule, there is.

        The *clients* have these models, and so many are *in_round*.
        """
        return 0.0

    def columns(self, world: World) -> dict[str, float]:
        """More columns of the summary of a run that has ended in *world*."""
        return {}

    def check_rule(self, rule: ServerRule, world: World) -> None:
        """Raise `Misfit` when it does not go together with the server's *rule*."""
        return

    def check_tests(self, world: World, on: Sequence[str]) -> None:
        """Raise `Misfit` when no model could be scored *on* all of these test sets."""
        return

    def site(self, world: World, rule: ServerRule) -> Site:
        """The cloud, before the first round."""
        return Site(world, rule=rule)

    def fine_tuned_bytes(self, site: Site, client: Client) -> float:
        """Of what *client* is sent before it fine-tunes: of the model, what all have in common."""
        return site.table.bytes(self.shared)

    def asked(
        self, site: Site, at: BlockRound, clients: Sequence[Client], objective: Objective, codec: Codec
    ) -> Callable[[Client], Task]:
        """What each of the *clients* of a round does: as a rule, all do the same."""
        task = self.task(site, at, objective, codec)
        return lambda _: task

    @abstractmethod
    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """What clients do in a round that begins with the state of *site*."""

    def spread(
        self, site: Site, at: BlockRound, clients: Sequence[Client], deadline_s: float | None
    ) -> Generator[Any, Any, None]:
        """What is sent to the block's *clients* when *site* has made its next model: as a rule, nothing."""
        yield from ()

    def alternation(self, interval: int, model: ModelTable) -> Alternation:
        """In which rounds the whole *model* is sent when blocks have *interval* rounds: as a rule, in each."""
        return Alternation()
