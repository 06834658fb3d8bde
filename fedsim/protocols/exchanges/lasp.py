"""LASP, the layer-wise alternative synchronisation protocol (Zeng et al., *HFedMS*, IEEE TCC 2023, section III-E).

The first round of a block of T rounds is a *full* one: the whole model is trained, sent and averaged, and the mean is
scattered to the clients of the block. The T - 1 rounds that follow are *calibration* rounds: the extractor stays as it
was scattered, and only the classifier is trained, on what the extractor makes of new samples, and sent.

With T = 1 every round is a full one, nothing is scattered, and LASP is plain synchronisation.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

from pydantic import Field

from fedsim.errors import within
from fedsim.kernel.gather import give_up
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.learner import Model
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.models.table import CLASSIFIER, EXTRACTOR, ModelTable
from fedsim.protocols.block import Alternation, BlockRound
from fedsim.protocols.exchanges.calibration import Calibration, FullTraining
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.memory import Memory
from fedsim.protocols.exchanges.scc import SCC
from fedsim.protocols.message import Message
from fedsim.protocols.site import Site
from fedsim.protocols.task import GLOBAL, Task
from fedsim.protocols.world import Client, World
from fedsim.settings import Count

__all__ = ["LASP"]


class LASP(Exchange):
    """HFedMS's alternation: one round of the whole model, then rounds of its classifier alone."""

    name: Literal["lasp"] = "lasp"
    calibration_epochs: Count = 1
    """Passes over a calibration set in a round; the authors' public code makes 3 where the paper has 1."""
    scc: SCC | None = Field(default_factory=SCC)
    """Semantic compression and compensation, by its keys; `null` to calibrate on new samples only."""

    def is_whole(self, interval: int) -> bool:
        """Where a block is one round."""
        return interval == 1

    def always_trains(self, interval: int) -> bool:
        """Where nobody without history skips its calibration."""
        return interval == 1 or self.scc is None or self.scc.without_history == "calibrate"

    def check(self, world: World) -> None:
        """The model must have both parts, and devices that take time need its operations part by part."""
        self.check_that_it_is_divided(world.model)
        world.model.check_that_parts_run_alone()
        if any(client.compute.takes_time for client in world.clients):
            world.model.part_flops(CLASSIFIER)
        if self.scc is not None:
            with within("scc"):
                self.scc.check(world)

    def columns(self, world: World) -> dict[str, float]:
        """The most that any client has kept between rounds: ``semantics_bytes`` and ``extractor_bytes``.

        Numbers and labels of semantics have 4 bytes, kept samples as many as on the wire. Both are nan where a size is
        not known.
        """
        memories = [memory for client in world.clients if (memory := Memory.held_by(client)) is not None]
        extractors = max((memory.most_extractors for memory in memories), default=0)
        columns = {"extractor_bytes": extractors * world.model.bytes(EXTRACTOR)}
        if self.scc is not None:
            rows = max((memory.most_rows for memory in memories), default=0)
            columns["semantics_bytes"] = rows * self.scc.row_bytes(world) if rows else 0.0
        return columns

    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """Train all of the model, or calibrate its classifier."""
        if at.first:
            if at.interval == 1 or self.scc is None:
                return site.task(at.number, objective, codec)
            local = self.scc.first_extractor == "local"
            return site.task(at.number, objective, codec, kind=FullTraining, block=at.block, keeps_extractor=local)
        if GLOBAL in objective.receives:  # the authors' code distils in full rounds only
            objective = Plain()
        return site.task(
            at.number,
            objective,
            codec,
            part=CLASSIFIER,
            kind=Calibration,
            at=at,
            epochs=self.calibration_epochs,
            scc=self.scc,
        )

    def spread(
        self, site: Site, at: BlockRound, clients: Sequence[Client], deadline_s: float | None
    ) -> Generator[Any, Any, None]:
        """After a full round that calibration rounds follow, the whole model goes to those who can be reached.

        Who does not get it, lost or late, sits the block's calibration rounds out. After the last one clients let go
        of what they hold for the block, but those who are late and still at it.
        """
        if at.last:
            for client in clients:
                if not client.busy and (memory := Memory.held_by(client)) is not None:
                    memory.end_block()
        if not at.first or at.interval == 1:
            return
        world, model = site.world, site.state["model"]
        extractor = {part: handle for part, handle in model.items() if part == EXTRACTOR}
        message = Message({"model": model}, site.table.bytes())
        trips = [
            world.start(client, _scatter(site, client, at, message, extractor))
            for client in clients
            if site.reaches(client) and not client.busy
        ]
        gathered = yield from world.gather(trips, deadline_s=deadline_s, at=site.backbone)
        if world.cancel_late:
            give_up(gathered.late, "its round is over")

    def alternation(self, interval: int, model: ModelTable) -> Alternation:
        """In the first of a block; the classifier is sent in the others."""
        return Alternation(interval, model.bytes(CLASSIFIER))


def _scatter(
    site: Site, client: Client, at: BlockRound, message: Message, extractor: Model
) -> Generator[Any, Any, None]:
    """The whole model goes down to a client, who keeps its extractor."""
    down, _ = site.way(client)
    yield site.world.send(client.index, client.downlink if down is None else down, message)
    Memory.of(client).receive(at.block, extractor)
