"""Only the extractor travels; each client keeps a classifier of its own (Arivazhagan et al., *Federated learning with
personalization layers*, arXiv:1912.00818).

The whole model is trained, from the server's extractor and the client's own classifier. A client that has not trained
yet, or whose device has lost its memory, has the classifier of the initial model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedsim.data.captures import Capture
from fedsim.errors import Misfit
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.learner import Model, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.models.table import CLASSIFIER, EXTRACTOR, ModelTable
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.message import Message
from fedsim.protocols.site import Site
from fedsim.protocols.task import GLOBAL, Task
from fedsim.protocols.world import Client, World

__all__ = ["Extractor"]


class Extractor(Exchange):
    """The extractor is sent, trained and sent back in every round; each client keeps a classifier of its own."""

    name: Literal["extractor"] = "extractor"

    @property
    def shared(self) -> str | None:
        """The extractor."""
        return EXTRACTOR

    def always_sends(self, part: str | None, interval: int) -> bool:
        """The extractor."""
        return part == EXTRACTOR

    def check(self, world: World) -> None:
        """The model must have both parts."""
        self.check_that_it_is_divided(world.model)

    def check_beside(self, objective: Objective, codec: Codec) -> None:
        """No objective may need the server's whole model, and what the client keeps may not be written by a codec."""
        if GLOBAL in objective.receives:
            raise Misfit(
                f"{objective.name!r} needs the whole global model, and with exchange {self.name!r} the server has "
                "no classifier that anybody has trained; choose another objective",
                "objective",
            )
        if not codec.exact:
            raise Misfit(
                f"{codec.name!r} would write the classifier too, which stays on the client with exchange "
                f"{self.name!r}; choose float32",
                "codec",
            )

    def kept_bytes(self, model: ModelTable, clients: Sequence[ModelTable]) -> float:
        """The classifier."""
        return model.bytes(CLASSIFIER)

    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """Train the extractor that is sent together with the client's own classifier."""
        return site.task(at.number, objective, codec, part=EXTRACTOR, kind=WithOwnClassifier)


@dataclass(frozen=True, slots=True)
class WithOwnClassifier(Task):
    """Train the whole model, send its extractor and keep its classifier."""

    def start(self, world: World, client: Client) -> Model:
        """The extractor that was sent, and the client's own classifier."""
        return {**world.learner.initial_model(self.table), **client.kept.get("private", {}), **self.model}

    def learn(self, world: World, client: Client, capture: Capture | None, begun: Trained | None) -> Message:
        """The trained extractor."""
        message = super(WithOwnClassifier, self).learn(world, client, capture, begun)
        trained = message.models["model"]
        client.kept["private"] = own = {part: handle for part, handle in trained.items() if part != EXTRACTOR}
        world.learner.compute_soon(own)
        extractor = {part: handle for part, handle in trained.items() if part == EXTRACTOR}
        return message._replace(models={**message.models, "model": extractor})
