"""Training in several processes comes to the bytes of one, in any number of workers."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from learned import mean_of, train, update
from small_learner import CLASSES, CLIENTS, SAMPLES, SHAPE, TRAINING, data, small, table, tensors
from test_objectives import Drifting, drifting
from tiers import FULL, mostly_long

from fedsim.kernel.streams import Streams
from fedsim.learning.executors.executor import Executor
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.graph_learner import GraphLearner
from fedsim.learning.learner import Model
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.store import Store
from fedsim.models.layers import BatchNorm2d, Conv2d, Dropout, Flatten, Linear, ReLU
from fedsim.models.table import LayerTable

__all__ = ["drifting"]  # the fixture

LAYERS = LayerTable(
    input_shape=SHAPE,
    extractor=(Conv2d("conv", 1, 3, kernel=1), BatchNorm2d("bn", 3), ReLU("relu"), Flatten("flatten")),
    classifier=(Linear("fc1", 12, 20), Dropout("dropout", 0.5), Linear("fc2", 20, CLASSES)),
)
DATA = replace(data(), unseen_test_ids=(data().test_ids[:4], data().test_ids[4:]))


def outcome(folder: Path, executor: Executor, objective: Objective) -> dict[str, Any]:
    """Of two rounds with waves, chains, models that are held, memories and all test sets."""
    store = Store(folder, "run", executor, label="protocol/1")
    graph = Graph("one family, to compare")
    forcer = Forcer(graph, executor, store, checkpoint_interval_s=math.inf)
    learner = GraphLearner(
        graph=graph,
        forcer=forcer,
        store=store,
        table=LAYERS,
        dataset=DATA,
        training=TRAINING,
        streams=Streams(1),
        tags={},
    )
    found: dict[str, Any] = {}
    model = learner.initial_model()
    memories: list[Model] = [{}] * CLIENTS
    for round_number in (1, 2):
        held, updates = [], []
        for number in range(12):
            client, use = number % CLIENTS, 10 * round_number + number // CLIENTS
            step = partial(train, learner, client=client, objective=objective, round_number=round_number)
            trained = step(model, use=2 * use, state=memories[client])
            memories[client] = trained.state
            if number % 4 == 1:  # two in sequence
                trained = step(trained.model, use=2 * use + 1, state=trained.state)
            if number % 4 == 2:  # and one who sends its classifier only, and changes no more
                trained = step({"classifier": model["classifier"]} | trained.model, use=99)
            if number % 5 == 0:
                held.append(trained.model)
            updates.append(update(client, trained.model, SAMPLES + number))
        model = mean_of(learner, model, updates, round_number=round_number)
        for on in ("global", "clients", "unseen"):
            found[f"{round_number} {on}"] = learner.evaluate(model, on, round_number=round_number)
        for name, parts in {"model": model, **{str(n): one for n, one in enumerate(held)}}.items():
            for handle in parts.values():
                forcer.force(handle)
            found |= {f"{round_number} {name}.{key}": tensor for key, tensor in tensors(parts).items()}
    for client, memory in enumerate(memories):
        for handle in memory.values():
            forcer.force(handle)
        found |= {f"{client}.{name}": tensor for name, tensor in tensors(memory).items()}
    store.close()
    executor.close()
    return found


ALL_MEMORIES, MU = ("float32", Drifting(strength=0.5)), ("float64", Proximal(mu=0.1))


@pytest.mark.drawn
@pytest.mark.parametrize(("precision", "objective"), mostly_long([ALL_MEMORIES, MU], now=[ALL_MEMORIES]))
def test_any_number_of_workers_gives_the_bytes_of_the_serial_executor(
    tmp_path: Path, drifting: Drifting, precision: str, objective: Objective
) -> None:
    expected = outcome(tmp_path / "serial", Serial(LAYERS, DATA, precision=precision), objective)
    assert len(expected) > 50
    for workers in (1, 2, 3) if FULL else (2,):
        found = outcome(
            tmp_path / str(workers), Processes(LAYERS, DATA, precision=precision, workers=workers), objective
        )
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == found[name].dtype == getattr(torch, precision)
                assert torch.equal(found[name], value), name
            else:
                assert found[name] == value, name


def test_no_output_shares_memory_with_an_input_and_no_input_changes(tmp_path: Path) -> None:
    executor = Processes(table(), data(), workers=2)
    run = small(tmp_path, executor=executor)
    learner, force = run.learner, run.learner._forcer.force
    model = learner.initial_model()
    trained = [train(learner, model, client, Plain()).model for client in range(CLIENTS)]
    mean = mean_of(learner, model, [update(c, m, SAMPLES) for c, m in enumerate(trained)])
    again = train(learner, mean, 0, Plain(), use=1, round_number=2).model
    force(model["classifier"])
    before = {name: tensor.clone() for name, tensor in tensors(model).items()}
    for one in trained:
        force(one["classifier"])
    copies = [{name: tensor.clone() for name, tensor in tensors(one).items()} for one in trained]
    force(again["classifier"])
    learner.evaluate(again, "global", round_number=2)
    run.store.close()
    executor.close()
    pointers = [tensor.data_ptr() for one in (model, *trained, again) for tensor in tensors(one).values()]
    assert len(set(pointers)) == len(pointers)
    for one, copy in zip([model, *trained], [before, *copies], strict=True):
        assert all(torch.equal(tensors(one)[name], tensor) for name, tensor in copy.items())
