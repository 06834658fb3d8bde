"""Layers that clients' models have in common are averaged, each over those who have it; the rest stays with the client.

(FlexiFed: Wang et al., *FlexiFed: Personalized federated learning for edge clients with heterogeneous model
architectures*, WWW 2023, algorithms 1 to 3.)

A client trains its whole model: the common layers as it was sent them, and its own as it has them. What it has, and
what is scored as its own model, are the layers of its own as its last training has left them, and the means of the last
round in which it has arrived. Whoever has nothing in common with anybody sends nothing, and is sent nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from fedsim.errors import Misfit
from fedsim.grouping.common_layers import RULES
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import ServerRule
from fedsim.models.segmented import segmented
from fedsim.models.table import ModelTable
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.layer_server import LayerServer, LayerTask
from fedsim.protocols.message import Message
from fedsim.protocols.sharing import CommonSettings, Group, Sharing
from fedsim.protocols.site import Site
from fedsim.protocols.task import GLOBAL, Task
from fedsim.protocols.world import Client, World

__all__ = ["CommonLayers", "CommonSettings"]


class CommonLayers(Exchange, CommonSettings):
    """Layers that models have in common are averaged, each over those who have it; clients' models may differ."""

    name: Literal["common_layers"] = "common_layers"
    several_models: ClassVar[bool] = True
    strategy: Literal["max", "clustered", "basic", "identical", "nobody"] = "max"
    """max: each layer over all whose models begin with the same layers up to it; basic: the layers that all have in
    common; clustered: these, and what is behind over those who have the same model; identical: all layers over those
    who have the same model (Clustered-FL); nobody: no layer (Standalone)."""

    @property
    def keeps_parts(self) -> bool:
        """Whether clients with the same model keep some of it to themselves."""
        return self.strategy == "nobody" or not self.share_fc or self.layers is not None

    def adapted(self, table: ModelTable, clients: Sequence[ModelTable]) -> ModelTable:
        """The model in segments, where it begins as another one does."""
        return segmented(table, clients, connected_apart=not self.share_fc, layers=self.layers)

    def check_rule(self, rule: ServerRule, world: World) -> None:
        """It must go tensor by tensor, and needs a model to begin with."""
        if not rule.by_tensor:
            problem = f"server rule {rule.name!r} compares whole models, and clients have some layers in common only"
            raise Misfit(f"{problem}; choose server: {{name: mean}}", "server")
        if rule.bytes_beside(world.model)[0]:
            problem = f"server rule {rule.name!r} sends something beside a whole model"
            raise Misfit(f"{problem}, and here layers are sent; choose server: {{name: mean}}", "server")
        for key, value, why in (
            ("init", "own", "clients do not start from one model"),
            ("common", "round", "what is common differs from round to round"),
        ):
            if getattr(self, key) == value and not isinstance(rule, Mean):
                problem = f"server rule {rule.name!r} steps from the server's model, and with {key}: {value} {why}"
                raise Misfit(f"{problem}; choose server: {{name: mean}}", "server")

    def check_tests(self, world: World, on: Sequence[str]) -> None:
        """There is one model for all only if they have all of it in common, from the beginning."""
        one = self.sharing([client.model for client in world.clients]).is_one_model
        if tuple(on) != ("own",) and not (one and self.common == "run" and self.init == "common"):
            others = ", ".join(name for name in on if name != "own")
            problem = f"clients have models of their own, and there is no single one to score on {others}"
            raise Misfit(f"{problem}; set evaluate.on to [own]")

    def check_beside(self, objective: Objective, codec: Codec) -> None:
        """No objective may need the server's whole model: there is none."""
        if GLOBAL in objective.receives:
            raise Misfit(
                f"{objective.name!r} needs the whole global model, and with exchange 'common_layers' there is none; "
                "choose another objective",
                "objective",
            )

    def sharing(self, clients: Sequence[ModelTable]) -> Sharing:
        """What is common to these *clients*."""
        return Sharing(clients, RULES[self.strategy], share_fc=self.share_fc, layers=self.layers)

    def kept_bytes(self, model: ModelTable, clients: Sequence[ModelTable]) -> float:
        """The layers that nobody shares with it."""
        shared = self.sharing(clients).segments(model)
        return sum(model.bytes(part) for part in model.parts if part not in shared)

    def means_bytes(self, clients: Sequence[ModelTable], in_round: float) -> float:
        """Each mean once for each round that somebody who has it was last in."""
        sharing, members = self.sharing(clients), Counter[Group]()
        for table in clients:
            members.update(sharing.of(table))
        share = min(in_round / len(clients), 1.0)
        return sum(
            _versions(number, share) * sum(sharing.first_table(group).bytes(part) for part in group.segments)
            for group, number in members.items()
        )

    def site(self, world: World, rule: ServerRule) -> LayerServer:
        """A server that has a mean of each layer, or of several."""
        return LayerServer(world, rule, self, self.sharing)

    def fine_tuned_bytes(self, site: Site, client: Client) -> float:
        """The layers that it has in common."""
        assert isinstance(site, LayerServer)
        return sum(client.model.bytes(segment) for segment in site.sharing.segments(client.model))

    def asked(
        self, site: Site, at: BlockRound, clients: Sequence[Client], objective: Objective, codec: Codec
    ) -> Callable[[Client], Task]:
        """Each trains its whole model, and sends all of it or what is common."""
        assert isinstance(site, LayerServer)
        sharing = site.begin_round(clients)
        ups = {table.digest: self._up_bytes(table, sharing, codec) for table in sharing.tables}
        beside = site.bytes_beside(objective)

        def task(client: Client) -> Task:
            table, shared = client.model, sharing.segments(client.model)
            begin, down_bytes = site.start(client)
            down = Message({"model": begin}, down_bytes + (beside[0] if shared else 0.0))
            up_bytes = ups[table.digest] + (beside[1] if shared else 0.0)
            return LayerTask(at.number, site.version, down, objective, codec, up_bytes, table, site=site, shared=shared)

        return task

    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """Clients are asked for different things."""
        raise AssertionError("ask for each client's")

    def _up_bytes(self, table: ModelTable, sharing: Sharing, codec: Codec) -> float:
        """Of what a client sends; what nobody shares is sent as it is."""
        shared = sharing.segments(table)
        if not shared:
            return 0.0
        rest = [part for part in table.parts if part not in shared] if self.upload == "whole" else []
        if not rest and len(shared) == len(table.parts):
            return codec.size(table)
        coded = sum(codec.size(table, segment) for segment in shared)
        if codec.declared_bytes is not None and not codec.reads_learning:
            coded -= (len(shared) - 1) * codec.declared_bytes  # they are of the update, not of each segment
        return coded + sum(table.bytes(part) for part in rest)


def _versions(clients: int, share: float) -> float:
    """How many means of a layer that *clients* have are still somebody's, where a *share* of them is drawn each round.

    That is, rounds that some client took part in last: the cohort of one, of k clients, is gone once the last of them
    was drawn again, on average after ``1/share (1 + 1/2 + ... + 1/k)`` rounds.
    """
    if share >= 1.0:
        return 1.0
    in_round = max(round(clients * share), 1)
    return min(float(clients), sum(1 / number for number in range(1, in_round + 1)) / share)
