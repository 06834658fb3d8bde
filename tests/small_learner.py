"""Real training on next to nothing: a few clients with a few samples of four numbers, and a linear model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from learned import mean_of, train, update

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Streams
from fedsim.learning.executors.executor import Executor
from fedsim.learning.executors.serial import Serial
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.graph_learner import GraphLearner
from fedsim.learning.learner import LocalTraining, Model, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.models.softmax import Softmax
from fedsim.models.table import LayerTable, ModelTable

CLIENTS, SAMPLES, CLASSES, SHAPE = 3, 6, 3, (1, 2, 2)
TRAINING = TrainingSettings(learning_rate=0.1, batch_size=4, epochs=2)


def data() -> FederatedDataset:
    """Three clients with six training and two test samples each, and six global test samples."""
    rng = np.random.default_rng(1)
    held = SAMPLES + 2
    ids = np.arange(CLIENTS * held).reshape(CLIENTS, held)
    samples = CLIENTS * held + 6
    return FederatedDataset(
        name="random",
        classes=CLASSES,
        sample_shape=SHAPE,
        sample_bytes=5.0,
        client_samples=np.full(CLIENTS, SAMPLES, np.int64),
        stored=rng.standard_normal((samples, *SHAPE)).astype(np.float32),
        y=rng.integers(CLASSES, size=samples),
        train_ids=tuple(ids[:, :SAMPLES]),
        test_ids=np.arange(CLIENTS * held, samples),
        client_test_ids=tuple(ids[:, SAMPLES:]),
    )


def table() -> LayerTable:
    return Softmax().table(SHAPE, CLASSES)


class Fragile(Serial):
    """Dies at its so manyth training."""

    def __init__(self, *arguments: object, kill_at: float = math.inf) -> None:
        super().__init__(*arguments)
        self.kill_at = kill_at
        self.trainings = 0

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, object]]:
        self.trainings += sum(node.operation.name == "train" for node in chunk)
        if self.trainings >= self.kill_at:
            raise KeyboardInterrupt
        return super().compute(chunk)


class OfTheLinearModel(GraphLearner):
    """It trains that one, whatever model of declared sizes a world has."""

    def initial_model(self, table: ModelTable | None = None, client: int = 0) -> Model:
        return super().initial_model()

    def train(self, task: LocalTraining, model: Model, *, state: Model, further: Mapping[str, Model]) -> Trained:
        return super().train(task._replace(table=None), model, state=state, further=further)


@dataclass
class Small:
    """A learner, and what is behind it."""

    learner: GraphLearner
    executor: Executor
    store: Store


def small(folder: Path, *, checkpoint_every_s: float = math.inf, executor: Executor | None = None) -> Small:
    """A learner of the linear model on the random samples; the store is the caller's to close."""
    executor = executor or Serial(table(), data())
    store = Store(folder, "run", executor, label="protocol/1")
    graph = Graph(executor.family)
    learner = OfTheLinearModel(
        graph=graph,
        forcer=Forcer(graph, executor, store, checkpoint_interval_s=checkpoint_every_s),
        store=store,
        table=table(),
        dataset=data(),
        training=TRAINING,
        streams=Streams(1),
        tags={},
    )
    return Small(learner, executor, store)


def averaged_rounds(learner: GraphLearner, objective: Objective, rounds: int) -> tuple[Model, list[Model]]:
    """Everybody trains in each round, remembers, and is averaged; the last model, and what each one remembers."""
    model = learner.initial_model()
    memories: list[Model] = [{}] * CLIENTS
    for use in range(rounds):
        updates = []
        for client in range(CLIENTS):
            trained = train(learner, model, client, objective, use=use, round_number=use + 1, state=memories[client])
            memories[client] = trained.state
            updates.append(update(client, trained.model, SAMPLES))
        model = mean_of(learner, model, updates, round_number=use + 1)
        learner.evaluate(model, "global", round_number=use + 1)
    return model, memories


def tensors(handles: dict[str, Handle] | Model) -> dict[str, torch.Tensor]:
    """The tensors of a model whose handles have their values, by ``part.name``."""
    return {f"{part}.{name}": tensor for part, handle in handles.items() for name, tensor in handle.value.items()}
