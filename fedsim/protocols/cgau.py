"""CGAU (Rieger, Hoegh and Hansen, *Client adaptation improves federated learning with simulated non-IID clients*,
arXiv:2007.04806), as FedGS compares with it: FedAvg, and then a classifier of conditional gated activation units.

In the first rounds the scenario's model is averaged as it is. Then its classifier gives way to units that know whose
sample they are given; they begin anew, and all of the model goes on being trained and averaged. Both phases are on the
clock. The last model of the first phase is evaluated; what is still under way then is given up. Leaves out dropout
between the units, as FedGS does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.learning.codecs.codec import Codec
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.models.gated import gated
from fedsim.models.settings import Width
from fedsim.models.table import EXTRACTOR, ModelTable
from fedsim.protocols.averaging import ParallelTraining
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.site import Site
from fedsim.protocols.task import Task
from fedsim.settings import Count

__all__ = ["CGAU"]


class CGAU(ParallelTraining):
    """FedAvg, and then FedAvg of a model whose classifier knows by a learned embedding whose sample it is given."""

    name: Literal["cgau"] = "cgau"
    pretraining_rounds: Count
    """Rounds in which the scenario's model is trained as it is."""
    layers: Annotated[int, Interval(ge=1, le=2)] = 1
    """Layers of gated units in the classifier."""
    units: Width = 256
    """Units in each of them."""

    def exchanged(self) -> Exchange:
        """The whole model, which changes when pre-training ends."""
        return ChangingModel(changes_in=self.last_model_from)

    def local_objective(self) -> Objective:
        """Local SGD."""
        return Plain()

    @property
    def last_model_from(self) -> int:
        """After pre-training."""
        return self.pretraining_rounds + 1

    @property
    def rounds_are_alike(self) -> bool:
        """No: both phases have models of their own."""
        return False

    def models(self, table: ModelTable, clients: Sequence[ModelTable]) -> tuple[ModelTable, ...]:
        """The scenario's, and then one with gated units."""
        return table, gated(table, layers=self.layers, units=self.units, clients=len(clients))


class ChangingModel(Whole):
    """The whole model in every round; it gets another classifier when the rounds of pre-training are over."""

    changes_in: int

    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """Train all of it."""
        if at.number == self.changes_in:
            self._change(site)
        return super().task(site, at, objective, codec)

    def _change(self, site: Site) -> None:
        """The extractor stays, and what the server's rule remembers of it."""
        world = site.world
        world.change_model(table := world.models[-1])
        model = world.learner.initial_model(table)
        state = {
            name: {part: handle for part, handle in kept.items() if part == EXTRACTOR}
            for name, kept in site.state.items()
        }
        site.change_model(table, {**state, "model": {**model, **state["model"]}})
