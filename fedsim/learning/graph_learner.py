"""The learner that learns: every request becomes a node of the graph, and an evaluation forces what it needs."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.captures import Capture
from fedsim.kernel.streams import Streams
from fedsim.learning.batches import stream_parameters
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import SEMANTICS, Graph, Handle, Node
from fedsim.learning.learner import CalibrationSet, Contribution, Learner, Model, Trained, partial_sums
from fedsim.learning.objectives import Objective
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable

__all__ = ["GraphLearner"]


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
        _ = dataset.digest  # samples are made now, so that workers, who are forked later, have them
        self._training = training.model_dump(mode="json")
        self._streams = streams
        self._tags = dict(tags)
        self._soon: list[weakref.ref[Handle]] = []
        """Semantics by an extractor that one client alone has, which would live until somebody asks for them."""

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
        calibration_set: CalibrationSet | None = None,
        teacher: Model | None = None,
    ) -> Trained:
        """A node for one local training; batches come from the stream ``batches/client/use``."""
        parameters = {
            "model": self._table.digest,
            "client": client,
            "training": self._training,
            "objective": objective.parameters(),
        }
        inputs = {f"model.{part}": handle for part, handle in model.items()}
        inputs |= {f"state.{name}": handle for name, handle in (state or {}).items()}
        if objective.reads_teacher:
            inputs |= {f"teacher.{part}": handle for part, handle in (teacher or {}).items()}
        if calibration_set is not None:
            parameters["rows"] = calibration_set.rows
            parameters["training"] = self._training | {"epochs": calibration_set.epochs}
            inputs |= {f"rows.{number}": handle for number, handle in enumerate(calibration_set.handles)}
        else:
            parameters |= self._samples(capture)
        node = self._graph.node(
            "train",
            parameters,
            inputs,
            stream=self._streams("batches", client, use),
            tags=self._tags | {"round": round_number, "client": client},
        )
        return Trained(self._outputs(node, model), {name: node.output(f"state.{name}") for name in objective.remembers})

    def extract(
        self,
        extractor: Model,
        client: int,
        *,
        round_number: int,
        capture: Capture | None = None,
        remembered: Handle | None = None,
        with_samples: bool = False,
    ) -> Handle:
        """A node for the extractor's forward pass; what is random about a capture comes from its own streams."""
        parameters = {"model": self._table.digest, "client": client, "with_samples": with_samples}
        inputs = {f"model.{part}": handle for part, handle in extractor.items()}
        if remembered is not None:
            inputs["remembered"] = remembered
        else:
            parameters |= self._samples(capture)
        node = self._graph.node(
            "extract",
            parameters,
            inputs,
            stream=self._streams("semantics", client),
            tags=self._tags | {"round": round_number, "client": client},
        )
        semantics = node.output(SEMANTICS)
        if any(handle.node.operation.name == "train" for handle in extractor.values()):
            self._soon.append(weakref.ref(semantics))
        return semantics

    def compensate(
        self,
        remembered: Handle,
        now: Handle,
        before: Handle,
        *,
        client: int,
        round_number: int,
        by: Literal["per_class", "mean"],
        absent: Literal["stays", "mean"],
    ) -> Handle:
        """A node for the drift of the means."""
        node = self._graph.node(
            "compensate",
            {"by": by, "absent": absent},
            {"remembered": remembered, "now": now, "before": before},
            tags=self._tags | {"round": round_number, "client": client},
        )
        return node.output(SEMANTICS)

    def keep(
        self,
        candidates: Sequence[Handle],
        *,
        client: int,
        use: int,
        round_number: int,
        rows: int,
        quotas: Sequence[int] | None,
        at_random: bool,
    ) -> Handle:
        """A node for the choice; a random one comes from the stream ``semantics/kept/client/use``."""
        node = self._graph.node(
            "keep",
            {"rows": rows, "quotas": quotas, "at_random": at_random},
            {f"rows.{number}": handle for number, handle in enumerate(candidates)},
            stream=self._streams("semantics/kept", client, use) if at_random else None,
            tags=self._tags | {"round": round_number, "client": client},
        )
        return node.output(SEMANTICS)

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
        new = self._forcer.force(handle)
        for semantics in [held for soon in self._soon if (held := soon()) is not None]:
            if new:
                self._forcer.force(semantics)
            else:  # what stood behind it may have been deleted since
                self._forcer.look_up(semantics)
        self._soon.clear()
        metrics: dict[str, Any] = handle.value
        return metrics

    def keep_final(self, model: Model) -> dict[str, str]:
        """Force the model's parts and keep them for ever."""
        for handle in model.values():
            self._forcer.force(handle)
        return self._store.keep_final(model)

    def _samples(self, capture: Capture | None) -> dict[str, Any]:
        """Which samples of a client: what a key has to hold of them."""
        data = {"data": self._dataset.digest}
        return data if capture is None else data | stream_parameters(self._dataset, capture)

    @staticmethod
    def _outputs(node: Node, parts: Iterable[str]) -> dict[str, Handle]:
        return {part: node.output(part) for part in parts}
