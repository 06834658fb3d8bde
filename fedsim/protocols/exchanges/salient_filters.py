"""Only some filters of the extractor come up; the classifier stays with its client, or travels as in FedAvg.

(SPATL: Yu et al., *SPATL: salient parameter aggregation and transfer learning for heterogeneous federated learning*,
SC 2022, section IV.)

Down goes all of the extractor. A client trains its whole model, chooses filters, and sends these with their numbers.
What the server has of the others is what it sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from fedsim.errors import Misfit, within
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.selections.selection import NoSelection, Selecting, Selection, bytes_kept
from fedsim.models.convolutions import skeleton
from fedsim.models.table import EXTRACTOR, ModelTable
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.chosen import chosen_columns
from fedsim.protocols.exchanges.extractor import Extractor, WithOwnClassifier
from fedsim.protocols.site import Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import World
from fedsim.settings import OneOf, Settings

__all__ = ["SalientFilters", "SalientSettings"]


class SalientSettings(Settings):
    """The keys of what is sent of a trained model."""

    selection: Annotated[Selection, OneOf("selections")] = NoSelection()
    """Which filters of the trained extractor a client sends."""
    predictor: Literal["private", "shared"] = "private"
    """Whether each client keeps the classifier, which SPATL calls predictor, to itself, or sends it as in FedAvg."""


class SalientFilters(Extractor, SalientSettings):
    """Some filters of the extractor are sent back, chosen anew in each update (SPATL)."""

    name: Literal["salient_filters"] = "salient_filters"  # type: ignore[assignment]

    @property
    def keeps_parts(self) -> bool:
        """Clients keep the classifier where it is private."""
        return self.predictor == "private"

    @property
    def selects(self) -> bool:
        """As its selection does."""
        return self.selection.selects

    @property
    def held_back(self) -> int:
        """What the selection needs."""
        return self.selection.held_back

    @property
    def measured_size(self) -> tuple[str, ...]:
        """That of the selection."""
        return ("selection",) if self.selection.reads_learning else ()

    def is_whole(self, interval: int) -> bool:
        """Where nothing stays with the client; what is left out of an update stands there as it was received."""
        return self.predictor == "shared"

    def always_sends(self, part: str | None, interval: int) -> bool:
        """The extractor, or all of it."""
        return part == EXTRACTOR or (part is None and self.is_whole(interval))

    def check(self, world: World) -> None:
        """The model must have both parts, and convolutions to choose from."""
        super().check(world)
        with within("selection"):
            if self.selection.selects and not skeleton(world.model).convolutions:
                raise Misfit(
                    f"{self.selection.name!r} chooses filters of convolutions, and fedsim knows none in this model's "
                    "extractor; choose a model with convolutions, such as small_cnn or resnet, or {name: none}"
                )
            self.selection.check(world.dataset)

    def check_beside(self, objective: Objective, codec: Codec) -> None:
        """No objective may need the server's whole model where it is none, and no codec may write the rest."""
        if self.keeps_parts or not codec.exact:
            super().check_beside(objective, codec)

    def kept_bytes(self, model: ModelTable, clients: Sequence[ModelTable]) -> float:
        """The classifier, where it is private."""
        return super().kept_bytes(model, clients) if self.keeps_parts else 0.0

    def remembered_bytes(self, model: ModelTable) -> float:
        """What the selection remembers."""
        return self.selection.kept_bytes(skeleton(model))

    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """Train the whole model, and send some filters."""
        part, kind = (EXTRACTOR, WithOwnClassifier) if self.keeps_parts else (None, Task)
        task = site.task(at.number, objective, codec, part=part, kind=kind)
        selection, table = self.selection, site.table
        if not selection.selects:
            return task
        bones, whole = skeleton(table), table.bytes(EXTRACTOR)
        size = 0.0 if selection.reads_learning else bytes_kept(bones, whole, selection.kept(bones))
        return replace(
            task,
            up_bytes=task.up_bytes - whole + size,
            selecting=Selecting(selection, EXTRACTOR, selection.learns_in(at.number), selection.basis),
        )

    def columns(self, world: World) -> dict[str, float]:
        """What clients have chosen last."""
        return chosen_columns(world, self.selection.tells)
