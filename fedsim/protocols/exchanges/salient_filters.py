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
from fedsim.learning.selections.selection import MeasuredSelection, NoSelection, Selecting, Selection
from fedsim.models.convolutions import skeleton_of
from fedsim.models.table import EXTRACTOR, ModelTable
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.extractor import Extractor, WithOwnClassifier
from fedsim.protocols.exchanges.kept_filters import kept_columns
from fedsim.protocols.site import Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import World
from fedsim.settings import OneOf

__all__ = ["SalientFilters"]


class SalientFilters(Extractor):
    """Some filters of the extractor are sent back, chosen anew in each update (SPATL)."""

    name: Literal["salient_filters"] = "salient_filters"  # type: ignore[assignment]
    selection: Annotated[Selection, OneOf("selections")] = NoSelection()
    """Which filters of the trained extractor a client sends."""
    classifier: Literal["private", "shared"] = "private"
    """Whether each client keeps the classifier, which SPATL calls predictor, to itself, or sends it as in FedAvg."""

    @property
    def shared(self) -> str | None:
        """The extractor, where classifiers are private."""
        return EXTRACTOR if self.classifier == "private" else None

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
        return ("selection", "declared_keep") if self.selection.reads_learning else ()

    @property
    def declared_size(self) -> tuple[str, ...]:
        """That of a selection that measures otherwise."""
        measures = isinstance(self.selection, MeasuredSelection)
        return ("selection", "declared_keep") if measures and not self.measured_size else ()

    def is_whole(self, interval: int) -> bool:
        """Where nothing stays with the client; what is left out of an update stands there as it was received."""
        return self.classifier == "shared"

    def always_sends(self, part: str | None, interval: int) -> bool:
        """The extractor, or all of it."""
        return part == EXTRACTOR or (part is None and self.is_whole(interval))

    def check(self, world: World) -> None:
        """The model must have both parts, and convolutions to choose from."""
        super().check(world)
        with within("selection"):
            if self.selection.selects and not skeleton_of(world.model).convolutions:
                raise Misfit(
                    f"{self.selection.name!r} chooses filters of convolutions, and fedsim knows none in this model's "
                    "extractor; choose a model with convolutions, such as small_cnn or resnet, or {name: none}"
                )
            self.selection.check(skeleton_of(world.model), world.dataset)

    def check_beside(self, objective: Objective, codec: Codec) -> None:
        """No objective may need the server's whole model where it is none, and no codec may write the rest."""
        if self.keeps_parts:
            super().check_beside(objective, codec)
        elif self.selects and not codec.exact:
            raise Misfit(f"{codec.name!r} would write filters that are not sent; choose float32", "codec")

    def kept_bytes(self, model: ModelTable, clients: Sequence[ModelTable]) -> float:
        """The classifier, where it is private."""
        return super().kept_bytes(model, clients) if self.keeps_parts else 0.0

    def remembered_bytes(self, model: ModelTable) -> float:
        """What the selection remembers."""
        return self.selection.kept_bytes(skeleton_of(model))

    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """Train the whole model, and send some filters."""
        kind = WithOwnClassifier if self.keeps_parts else Task
        task = site.task(at.number, objective, codec, part=self.shared, kind=kind)
        selection, table = self.selection, site.table
        if not selection.selects:
            return task
        left_out = table.bytes(EXTRACTOR) - selection.size(skeleton_of(table), table.bytes(EXTRACTOR))
        return replace(
            task,
            up_bytes=task.up_bytes - left_out,
            selecting=Selecting(selection, EXTRACTOR, selection.learns_in(at.number), selection.basis),
        )

    def columns(self, world: World) -> dict[str, float]:
        """What clients have chosen last."""
        return kept_columns(world, self.selection.tells)
