"""The learner that learns: every request becomes a node of the graph, and an evaluation forces what it needs."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.batches import Seen
from fedsim.learning.graph import Graph, Handle
from fedsim.learning.joint_steps import SeenTogether
from fedsim.learning.learner import Learner, LocalTraining, Model, OwnModel, Trained
from fedsim.learning.operations.evaluate import METRICS, Evaluate, EvaluateOwn
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Operation, Slot
from fedsim.learning.operations.train import (
    BYTES,
    KEPT,
    SELECTED,
    Train,
    TrainPartly,
    TrainSelecting,
    sent_as,
    state_as,
)
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable

__all__ = ["GraphLearner"]


class Values(Protocol):
    """Where values come from: a `fedsim.learning.forcing.Forcer`, or one that only recalls them."""

    def force(self, *handles: Handle, also: Sequence[Handle] = ()) -> bool:
        """Give each handle its value, and those that may be needed *also*; whether something was computed."""

    def look_up(self, *handles: Handle) -> None:
        """Give each its value if that is there; compute nothing."""

    def keep(self) -> None:
        """Put on disk what has been computed, as far as the run needs it to go on."""


class Finals(Protocol):
    """Where finished models are: a `fedsim.learning.store.Store`, or one that is only read."""

    def keep_final(self, model: Model) -> dict[str, str]:
        """Keep the finished model for ever; returns part -> path inside the store."""


class GraphLearner(Learner):
    """Builds the graph of keyed expressions, and forces it when metrics are asked for."""

    def __init__(
        self,
        *,
        graph: Graph,
        forcer: Values,
        store: Finals,
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
        self._training = training
        self._streams = streams
        self._tags = dict(tags)
        self._soon: list[weakref.ref[Handle]] = []
        """What holds something large that nobody else holds, which would live until somebody asks for it."""
        self._asked_next: list[weakref.ref[Handle]] = []
        """Numbers that the clock may ask for."""

    def initial_model(self, table: ModelTable | None = None, client: int = 0) -> Model:
        """Drawn by the layer table's initialisation from the stream ``model/init``."""
        table, stream = table or self._table, self._streams("model/init", client)
        node = self._graph.node(Init(table.digest), {}, stream=stream, tags=self._tags)
        return {part: node.output(part) for part in table.parts}

    def change_model(self, table: ModelTable) -> None:
        """The executor knows it."""
        self._table = table

    def train(self, task: LocalTraining, model: Model, *, state: Model, further: Mapping[str, Model]) -> Trained:
        """A node for one local training; batches come from ``batches/client/use``, or a stream of another name."""
        client, objective, rows = task.client, task.objective, task.rows
        epochs = task.epochs if rows is None else rows.epochs
        kind, more = _kind_of(task)
        operation: Train = kind(
            model=task.table or self._table.digest,
            training=self._training if epochs is None else self._training.model_copy(update={"epochs": epochs}),
            objective=objective,
            codec=task.codec,
            seen=(
                Seen.of(self._dataset, client, task.capture)
                if task.steps is None
                else SeenTogether.of(self._dataset, task.steps)
            ),
            rows=None if rows is None else rows.number,
            **more,
        )
        inputs: dict[str, Model | Sequence[Model]] = {"model": model, "state": state}
        inputs |= {name: further[name] for name in objective.receives}
        if rows is not None:
            inputs["rows"] = rows.rows
        node = self._graph.node(
            operation,
            _slots(inputs),
            stream=self._streams(task.stream, client, task.use),
            tags=self._tags | {"round": task.round_number, "client": client},
        )
        selection = task.selecting.selection if task.selecting else None
        names = (*objective.remembers, *task.codec.remembers, *(selection.remembers if selection else ()))
        size = None
        if not task.codec.exact or (selection and selection.reads_learning):
            size = node.output(BYTES)
        if size is not None:
            self._asked_next.append(weakref.ref(size))
        remembered = {name: node.output(state_as(name)) for name in names}
        self.compute_soon(remembered)  # the updates of a client that is always late would all wait, with their models
        about = [part for part in model if objective.part in (None, part)]
        beside = {name: {part: node.output(sent_as(name, part)) for part in about} for name in objective.sends}
        beside |= {name: {name: node.output(name)} for name in objective.tells}
        made = Trained({part: node.output(part) for part in model}, remembered, size, beside)
        if selection is None:
            return made
        return made._replace(beside={**beside, KEPT: {KEPT: node.output(KEPT)}}, selected=node.output(SELECTED))

    def apply(
        self,
        operation: Operation,
        inputs: Mapping[str, Model | Sequence[Model]],
        outputs: Iterable[str],
        *,
        round_number: int,
        client: int | None = None,
        stream: Stream | None = None,
        soon: bool = False,
    ) -> Model:
        """A node for it."""
        tags = self._tags | {"round": round_number} | ({} if client is None else {"client": client})
        node = self._graph.node(operation, _slots(inputs), stream=stream, tags=tags)
        made = {name: node.output(name) for name in outputs}
        if soon:
            self.compute_soon(made)
        self._asked_next += [weakref.ref(handle) for handle in made.values() if handle.scalar]
        return made

    def compute_soon(self, model: Model) -> None:
        """Notes it for the next evaluation."""
        self._soon += map(weakref.ref, model.values())

    def value(self, handle: Handle) -> float:
        """Forces it, and every number that is not known yet: so trainings of one instant run side by side."""
        pending = [held for number in self._asked_next if (held := number()) is not None and not held.computed]
        self._asked_next.clear()
        self._forcer.force(handle, also=pending)
        value: float = handle.value
        return value

    def facts(self, handle: Handle) -> Mapping[str, float]:
        """Forces them."""
        self._forcer.force(handle)
        facts: Mapping[str, float] = handle.value
        return facts

    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any]:
        """Metrics on the test set *on*: ``global``, ``clients`` or ``unseen``."""
        operation = Evaluate(self._table.digest, self._dataset.digest, on, target=self._dataset.target)
        (metrics,) = self._scored([(operation, model)], round_number)
        return metrics

    def evaluate_own(self, models: Sequence[OwnModel], *, round_number: int) -> dict[int, dict[str, Any]]:
        """A node for each client."""
        tests = self._dataset.client_test_ids
        tested = [one for one in models if len(tests[one.client])]
        digest, target = self._dataset.digest, self._dataset.target
        about = [(EvaluateOwn(one.table, digest, "own", one.client, target=target), one.model) for one in tested]
        return dict(zip((one.client for one in tested), self._scored(about, round_number), strict=True))

    def _scored(self, about: Sequence[tuple[Evaluate, Model]], round_number: int) -> list[dict[str, Any]]:
        """Metrics; what has been noted is computed behind them."""
        tags = self._tags | {"round": round_number}
        handles = [self._graph.node(each, _slots({"model": of}), tags=tags).output(METRICS) for each, of in about]
        new = self._forcer.force(*handles)
        large = [held for soon in self._soon if (held := soon()) is not None]
        if new:
            self._forcer.force(*large)
        else:  # what stood behind it may have been deleted since
            self._forcer.look_up(*large)
        self._soon.clear()
        found: list[dict[str, Any]] = [handle.value for handle in handles]
        return found

    def keep_for_later(self) -> None:
        """A checkpoint."""
        self._forcer.keep()

    def keep_final(self, model: Model) -> dict[str, str]:
        """Force the model's parts and keep them for ever."""
        for handle in model.values():
            self._forcer.force(handle)
        return self._store.keep_final(model)


def _kind_of(task: LocalTraining) -> tuple[type[Train], dict[str, Any]]:
    """What a local training is, and its further fields."""
    if task.selecting is not None:
        return TrainSelecting, {"selecting": task.selecting}
    if task.written is not None and not task.codec.exact:
        return TrainPartly, {"written": task.written}
    return Train, {}


def _slots(inputs: Mapping[str, Model | Sequence[Model]]) -> dict[Slot, Handle]:
    """Where each handle goes."""
    return {
        Slot(role, index, part): handle
        for role, given in inputs.items()
        for index, model in enumerate([given] if isinstance(given, Mapping) else given)
        for part, handle in model.items()
    }
