"""What a protocol may ask of learning. Nothing is computed when it asks: it gets handles, and the clock runs on.

A model is a mapping part -> handle (``{"extractor": …, "classifier": …}``), so a protocol can send or train one part.
Learning never sees the simulated clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.captures import Capture
from fedsim.kernel.streams import Streams
from fedsim.learning.batches import stream_parameters
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.objectives import Objective
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable

__all__ = [
    "PARTIAL_SUM",
    "SUMMATION",
    "Contribution",
    "GraphLearner",
    "Learner",
    "Model",
    "NoLearner",
    "Trained",
    "partial_sums",
]

Model = Mapping[str, Handle]

PARTIAL_SUM = 8
"""Contributions in one partial sum of a mean, at most. It decides the order of additions, so the family has it."""

SUMMATION = f"even-sums{PARTIAL_SUM}"
"""What the rule of `partial_sums` is called in the numeric family."""


def partial_sums(contributions: int) -> list[slice]:
    """Which contributions are in which partial sum: an even number of sums (or one), as equal as can be.

    Even, so that two workers, or four, have the same to do. A function of the number alone, never of the workers.

    >>> [some.stop - some.start for some in partial_sums(30)], [some.stop - some.start for some in partial_sums(1)]
    ([8, 8, 7, 7], [1])
    """
    sums = min(contributions, 2 * math.ceil(contributions / (2 * PARTIAL_SUM)))
    size, longer = divmod(contributions, sums)
    ends = [number * size + min(number, longer) for number in range(sums + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


class Trained(NamedTuple):
    """What local training yields: a model, and what the client remembers."""

    model: Model
    state: Model


class Contribution(NamedTuple):
    """One client's part in a mean; weights are normalised by the mean."""

    client: int
    model: Model
    weight: float


NOTHING = Trained({}, {})
"""What comes of training when nothing is learned."""


class Learner(ABC):
    """Initial model, local training, mean, evaluation."""

    @abstractmethod
    def initial_model(self) -> Model:
        """The model that everybody starts from."""

    @abstractmethod
    def train(
        self,
        model: Model,
        client: int,
        *,
        objective: Objective,
        use: int,
        round_number: int,
        state: Model | None = None,
        capture: Capture | None = None,
    ) -> Trained:
        """Local training of *client* (or `fedsim.learning.batches.POOL`), starting from *model*.

        *use* counts the client's trainings so far; *state* is what it remembers of them. *capture* says which samples
        of its stream it sees; None: all of its own.
        """

    @abstractmethod
    def mean(self, base: Model, contributions: Sequence[Contribution], *, round_number: int) -> Model:
        """``base + sum of w_i (model_i - base)``, ``w_i = weight_i / sum of weights``, in the precision of models.

        Contributions are added in the order of client indices, in `partial_sums`, and the partial sums in their order.
        """

    @abstractmethod
    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any] | None:
        """Metrics of *model* now: this forces the graph. None when nothing is learned."""

    @abstractmethod
    def keep_final(self, model: Model) -> dict[str, str]:
        """Keep the model at the end of a run for ever; returns part -> file."""


class NoLearner(Learner):
    """For network studies: nothing is learned, and evaluations yield nothing."""

    def initial_model(self) -> Model:
        """An empty model."""
        return {}

    def train(
        self,
        model: Model,
        client: int,
        *,
        objective: Objective,
        use: int,
        round_number: int,
        state: Model | None = None,
        capture: Capture | None = None,
    ) -> Trained:
        """Nothing."""
        return NOTHING

    def mean(self, base: Model, contributions: Sequence[Contribution], *, round_number: int) -> Model:
        """Nothing."""
        return {}

    def evaluate(self, model: Model, on: str, *, round_number: int) -> None:
        """Nothing to evaluate."""
        return

    def keep_final(self, model: Model) -> dict[str, str]:
        """Nothing to keep."""
        return {}


class GraphLearner(Learner):
    """Builds the graph of keyed expressions, and forces it when metrics are asked for."""

    def __init__(
        self,
        *,
        graph: Graph,
        forcer: Forcer,
        store: Store,
        table: ModelTable,
        dataset: FederatedDataset,
        training: TrainingSettings,
        streams: Streams,
        tags: Mapping[str, Any],
    ) -> None:
        self._graph = graph
        self._forcer = forcer
        self._store = store
        self._table = table
        self._dataset = dataset
        self._training = training.model_dump(mode="json")
        self._streams = streams
        self._tags = dict(tags)

    def initial_model(self) -> Model:
        """Drawn by the layer table's initialisation from the stream ``model/init``."""
        node = self._graph.node(
            "init", {"model": self._table.digest}, {}, stream=self._streams("model/init"), tags=self._tags
        )
        return self._outputs(node, self._table.parts)

    def train(
        self,
        model: Model,
        client: int,
        *,
        objective: Objective,
        use: int,
        round_number: int,
        state: Model | None = None,
        capture: Capture | None = None,
    ) -> Trained:
        """A node for one local training; batches come from the stream ``batches/client/use``."""
        parameters = {
            "model": self._table.digest,
            "data": self._dataset.digest,
            "client": client,
            "training": self._training,
            "objective": objective.parameters(),
        }
        if capture is not None:
            parameters |= stream_parameters(self._dataset, capture)
        inputs = {f"model.{part}": handle for part, handle in model.items()}
        inputs |= {f"state.{name}": handle for name, handle in (state or {}).items()}
        node = self._graph.node(
            "train",
            parameters,
            inputs,
            stream=self._streams("batches", client, use),
            tags=self._tags | {"round": round_number, "client": client},
        )
        return Trained(self._outputs(node, model), {name: node.output(f"state.{name}") for name in objective.remembers})

    def mean(self, base: Model, contributions: Sequence[Contribution], *, round_number: int) -> Model:
        """Partial sums of the weighted deltas, then their sum on top of *base*."""
        ordered = sorted(contributions, key=lambda contribution: contribution.client)
        total_weight = sum(contribution.weight for contribution in ordered)
        tags = self._tags | {"round": round_number}
        bases = {f"base.{part}": handle for part, handle in base.items()}
        total: Model = {}
        for some_of_them in partial_sums(len(ordered)):
            some = self._partial_sum(bases, ordered[some_of_them], total_weight, tags)
            total = self._add(total, some, tags) if total else some
        totals = {f"total.{part}": handle for part, handle in total.items()}
        return self._outputs(self._graph.node("mean", {}, bases | totals, tags=tags), base)

    def _partial_sum(
        self, bases: dict[str, Handle], some: Sequence[Contribution], total_weight: float, tags: Mapping[str, Any]
    ) -> Model:
        """The weighted deltas of a few contributions, added up in their order."""
        inputs = {
            f"{number}.{part}": handle
            for number, contribution in enumerate(some)
            for part, handle in contribution.model.items()
        }
        weights = [contribution.weight / total_weight for contribution in some]
        node = self._graph.node("partial_sum", {"weights": weights}, bases | inputs, tags=tags)
        return self._outputs(node, some[0].model)

    def _add(self, total: Model, some: Model, tags: Mapping[str, Any]) -> Model:
        inputs = {f"total.{part}": handle for part, handle in total.items()}
        inputs |= {f"some.{part}": handle for part, handle in some.items()}
        return self._outputs(self._graph.node("add", {}, inputs, tags=tags), total)

    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any]:
        """Metrics on the test set *on* (``global``, ``clients`` or ``unseen``)."""
        node = self._graph.node(
            "evaluate",
            {"model": self._table.digest, "data": self._dataset.digest, "on": on},
            {f"model.{part}": handle for part, handle in model.items()},
            tags=self._tags | {"round": round_number},
        )
        handle = node.output("metrics")
        self._forcer.force(handle)
        metrics: dict[str, Any] = handle.value
        return metrics

    def keep_final(self, model: Model) -> dict[str, str]:
        """Force the model's parts and keep them for ever."""
        for handle in model.values():
            self._forcer.force(handle)
        return self._store.keep_final(model)

    @staticmethod
    def _outputs(node: Node, parts: Iterable[str]) -> dict[str, Handle]:
        return {part: node.output(part) for part in parts}
