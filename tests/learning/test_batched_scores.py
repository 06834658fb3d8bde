"""Scores of clients together are those of the plain loop, whatever is not finite, and in any number of workers."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from batched_cases import EXACT, GEOMETRIES, Stacked, dataset, linear, model

from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.batched.scoring import CHUNK
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.graph import Graph
from fedsim.learning.operations.evaluate import Evaluate
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Slot
from fedsim.models.table import LayerTable


@pytest.mark.parametrize("kind", [BatchedTrainer, Stacked])
@pytest.mark.parametrize("table", [linear(), *GEOMETRIES.values()], ids=["linear", *GEOMETRIES])
def test_scores_are_the_plain_loops(table: LayerTable, kind: type[Trainer]) -> None:
    """Of more images than go through the convolutions together, and of one."""
    data = dataset(table, [CHUNK + 7, 1])
    given = model(table, "float64", seed=1)
    found, expected = (one(table, data, "cpu", "float64").score(given, data.train_ids) for one in (kind, PlainTrainer))
    assert [score.correct for score in found] == [score.correct for score in expected]
    assert [score.loss for score in found] == pytest.approx([score.loss for score in expected], rel=EXACT)
    assert 0 < expected[0].correct < CHUNK + 7


@pytest.mark.skipif(sys.platform != "linux", reason="several worker processes need Linux")
@pytest.mark.parametrize("odd", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("kind", [PlainTrainer, BatchedTrainer, Stacked])
@pytest.mark.parametrize("table", [linear(), *GEOMETRIES.values()], ids=["linear", *GEOMETRIES])
def test_one_score_that_is_not_finite_makes_the_loss_infinite(
    table: LayerTable, kind: type[Trainer], odd: float
) -> None:
    """A class that nobody has, and that is ruled out for all, leaves the cross-entropy finite."""
    data = dataset(table, [3, 1])
    given = model(table, "float64", seed=1)
    next(value for name, value in given["classifier"].items() if name.endswith("bias"))[0] = odd
    found = kind(table, data, "cpu", "float64").score(given, data.train_ids)
    assert [score.loss for score in found] == [torch.inf] * 2


def test_each_test_sets_scores_are_its_own_in_any_number_of_workers() -> None:
    """Five sets of different sizes, one of which takes two batches: shares of the sets do not fall on their borders."""
    table, sizes = linear(), (3, 260, 1, 40, 7)
    whole = dataset(table, [1 + size for size in sizes])
    data = replace(
        whole,
        client_samples=np.ones(len(sizes), np.int64),
        train_ids=tuple(ids[:1] for ids in whole.train_ids),
        client_test_ids=tuple(ids[1:] for ids in whole.train_ids),
    )
    found = []
    for workers in (1, 2, 3):
        executor = Batched(table, data, workers=workers)
        graph = Graph(executor.family)
        inputs = {}
        for part, tensors in model(table, "float32", seed=1).items():
            inputs[Slot("model", part=part)] = graph.node(Init("model"), {}).output(part)
            inputs[Slot("model", part=part)].value = tensors
        found += executor.compute([graph.node(Evaluate(table.digest, "data", "clients"), inputs)])
        executor.close()
    assert found[1] == found[0]
    assert found[2] == found[0]
