"""What learns for one protocol on one seed, wherever its values come from."""

from __future__ import annotations

from fedsim.kernel.streams import Streams
from fedsim.learning.graph import Graph
from fedsim.learning.graph_learner import Finals, GraphLearner, Values
from fedsim.learning.training import TrainingSettings
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials

__all__ = ["graph_learner"]


def graph_learner(
    materials: Materials,
    protocol: Protocol,
    training: TrainingSettings,
    graph: Graph,
    forcer: Values,
    store: Finals,
) -> GraphLearner:
    """The learner of *protocol* on the seed of *materials*, from its beginning: its nodes are those of *graph*."""
    return GraphLearner(
        graph=graph,
        forcer=forcer,
        store=store,
        table=materials.table_for(protocol, materials.table),
        dataset=materials.data_for(protocol),
        training=training,
        streams=Streams(materials.seed),
        tags={"protocol": protocol.title, "seed": materials.seed},
    )
