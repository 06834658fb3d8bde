"""Corners of training clients together, each against the plain loop: layers that leave their factors, geometries,
neighbours that diverge, sums of some parts, captures of streams, several recipes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import pytest
from batched_cases import (
    CLASSES,
    EVERYTHING,
    EXACT,
    GEOMETRIES,
    RECIPES,
    SGD,
    Link,
    Stacked,
    dataset,
    disagreement,
    distance,
    linear,
    model,
    outputs,
    wave,
)
from pushed import Pushed

from fedsim.data.captures import Capture
from fedsim.data.stream.drift import Recurring
from fedsim.data.stream.settings import Augmentation, StreamSettings
from fedsim.learning.executors.batched import low_rank
from fedsim.learning.executors.batched.dense import Dense
from fedsim.learning.executors.batched.low_rank import rows_that_pay
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.matrix import LARGE
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.objectives.objective import Given, Objective, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.models.layers import Flatten, Linear, ReLU
from fedsim.models.table import LayerTable


def dense(*, bias: bool = True) -> LayerTable:
    """Of four layers, two just large enough to be kept in factors, the last one among them."""
    return LayerTable(
        input_shape=(1, 4, 4),
        extractor=(
            Flatten("flatten"),
            Linear("fc1", 16, 30, bias=bias),
            ReLU("relu1"),
            Linear("fc2", 30, 260, bias=bias),
            Linear("fc3", 260, 260, bias=bias),
            ReLU("relu3"),
        ),
        classifier=(Linear("fc4", 260, 260, bias=bias),),
    )


PUSHED: dict[str, tuple[dict[str, Any], Objective]] = {
    "plain": (SGD, Pushed(strength=0.1)),
    "momentum and decay": (SGD | EVERYTHING, Pushed(strength=0.1)),
    "all together": (SGD | EVERYTHING, Pushed(strength=0.1, mu=0.3)),
}


def rows_of_unfolded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each layer that turns from factors into matrices from now on: how many rows it had."""
    rows: list[int] = []
    unfold = Dense._unfold

    def watched(self: Dense, factors: Any) -> None:
        rows.append(factors.rows)
        unfold(self, factors)

    monkeypatch.setattr(Dense, "_unfold", watched)
    return rows


@pytest.mark.parametrize("bias", [True, False], ids=["biases", "no biases"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_factors_may_become_matrices_in_the_middle_of_a_training(
    recipe: str, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain that is over, one in its second training, with parts that began anew before and after, and one alone."""
    table = dense(bias=bias)
    assert LARGE <= 260 * 260
    data = dataset(table, [33, 40, 1, 38])
    rows = rows_of_unfolded(monkeypatch)
    chains = (
        [Link(2)],
        [Link(0), Link(1, restarts=("classifier",)), Link(3, restarts=("classifier",))],
        [Link(3), Link(0, restarts=("extractor",)), Link(0)],
        [Link(1)],
    )
    assert disagreement(BatchedTrainer, table, data, chains, [RECIPES[recipe]]) <= EXACT
    assert rows and all(2 * 40 < number <= rows_that_pay(260, 260) for number in rows), "in the second training"


@pytest.mark.parametrize(
    ("epochs", "chained", "unfolded"), [(1, False, []), (4, False, [124, 124]), (2, True, [42, 42])]
)
@pytest.mark.parametrize("recipe", PUSHED)
def test_factors_with_a_push_become_matrices_when_they_are_full_or_another_push_comes(
    recipe: str, epochs: int, chained: bool, unfolded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others are in the middle of their training, and one has ended; or not at all."""
    rows = rows_of_unfolded(monkeypatch)
    table = dense()
    data = dataset(table, [21, 40, 1, 38])
    training, objective = PUSHED[recipe]
    given = training | {"epochs": epochs}
    first = [Link(0), Link(3)] if chained else [Link(0)]
    chains = (first, [Link(1)], [Link(2)], [Link(3)])
    assert disagreement(BatchedTrainer, table, data, chains, [(given, objective)]) <= EXACT
    assert rows == unfolded


@pytest.mark.parametrize("by", ["machine code, if there is some", "pytorch"])
def test_a_part_in_factors_that_begins_anew_forgets_all_that_it_saw(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All within as many samples as pay."""
    if by == "pytorch":
        monkeypatch.setattr(low_rank, "correction_kernel", lambda *_: None)
    table = dense()
    data = dataset(table, [8, 9, 5])
    chains = ([Link(0), Link(1, restarts=("extractor",)), Link(2)], [Link(2), Link(0, restarts=("classifier",))])
    for recipe in (*RECIPES.values(), *PUSHED.values()):
        assert disagreement(BatchedTrainer, table, data, chains, [recipe]) <= EXACT


class TellsSize(Objective):
    """Local SGD, and how large the weights are in the end is sent."""

    name: Literal["tells_size"] = "tells_size"
    tells: ClassVar[tuple[str, ...]] = ("size",)

    @property
    def pull(self) -> float:
        return 0.0

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        return {"size": {"size": sum(weight.square().sum() for weight in weights.values())}}


@pytest.mark.parametrize("table", [dense(), linear()], ids=["factors", "matrices"])
def test_a_number_of_the_weights_is_told_as_in_the_plain_loop(table: LayerTable) -> None:
    data = dataset(table, [8, 9])
    given = wave(data, table.parts, ([Link(0)], [Link(1)]), [(SGD, TellsSize())], table.parts)
    given = replace(given, trainings=tuple(replace(training, wanted=("size",)) for training in given.trainings))
    values = [part for seed in (1, 2) for part in model(table, "float64", seed=seed).values()]
    found, expected = (
        kind(table, data, "cpu", "float64").train(given, values) for kind in (BatchedTrainer, PlainTrainer)
    )
    assert distance(found, expected) <= EXACT


@pytest.mark.parametrize("kind", [BatchedTrainer, Stacked])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_convolutions_of_any_geometry_are_the_plain_loops(geometry: str, kind: type[Trainer]) -> None:
    """Of clients with one sample, a few, and more mini-batches of other sizes than others have."""
    table = GEOMETRIES[geometry]
    data = dataset(table, [1, 9, 16, 6])
    chains = ([Link(0)], [Link(1), Link(2, restarts=("classifier",))], [Link(3)], [Link(2)])
    options = SGD | EVERYTHING | {"batch_size": 4, "epochs": 1}
    for recipe in ((SGD, Plain()), (options, Proximal(mu=0.3)), (options, Pushed(strength=0.1, mu=0.3))):
        assert disagreement(kind, table, data, chains, [recipe]) <= EXACT


@pytest.mark.parametrize("kind", [BatchedTrainer, Stacked])
@pytest.mark.parametrize("table", [dense(), GEOMETRIES["one after the other"]], ids=["dense", "images"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_client_whose_training_diverges_spoils_no_other_one(
    table: LayerTable, kind: type[Trainer], recipe: str
) -> None:
    """Its samples are finite, but squares of them are not. It has more samples than some, and fewer than others."""
    samples, chains = [7, 12, 3, 20], [[Link(client)] for client in range(4)]
    (alone, spoilt) = (
        outputs(kind, table, dataset(table, samples, scale), chains, [RECIPES[recipe]], precision="float32")
        for scale in ({}, {1: 1e37})
    )
    assert not all(bool(tensor.isfinite().all()) for part in spoilt[1].values() for tensor in part.values())
    for client in (0, 2, 3):
        assert distance([spoilt[client]], [alone[client]]) <= 1e-5


@pytest.mark.parametrize("summed", [("classifier",), ("extractor",)])
def test_a_sum_of_some_parts_from_another_model(summed: tuple[str, ...]) -> None:
    for table in (linear(), dense()):
        data = dataset(table, [5, 8, 3])
        chains = ([Link(0)], [Link(1), Link(2)], [Link(2)])
        assert disagreement(BatchedTrainer, table, data, chains, [(SGD, Plain())], summed=summed) <= EXACT


def test_every_chain_of_a_wave_follows_its_own_recipe() -> None:
    """They differ in one thing each, so every one is a group of its own."""
    recipes = [
        (SGD, Plain()),
        (SGD | {"learning_rate": 0.01}, Plain()),
        (SGD | {"momentum": 0.5}, Plain()),
        (SGD | {"weight_decay": 0.1}, Plain()),
        (SGD | {"batch_size": 3}, Plain()),
        (SGD, Proximal(mu=0.3)),
        (SGD, Proximal(mu=0.9)),
    ]
    table = linear()
    chains = [[Link(0), Link(1)] for _ in recipes]
    assert disagreement(BatchedTrainer, table, dataset(table, [5, 8]), chains, recipes) <= EXACT


@pytest.mark.parametrize("kind", [BatchedTrainer, Stacked])
@pytest.mark.parametrize("augmentation", [None, Augmentation()], ids=["as they are", "augmented"])
@pytest.mark.parametrize("drift", [None, Recurring(length=1.0)], ids=["steady", "drifting"])
def test_captures_of_streams_are_as_long_as_they_are(
    kind: type[Trainer], augmentation: Augmentation | None, drift: Recurring | None
) -> None:
    """Shorter and longer than what the client has, and from anywhere."""
    table = GEOMETRIES["squares of one"]
    stream = StreamSettings(samples=4, augmentation=augmentation, drift=drift)
    data = replace(dataset(table, [6, 9, 1]), stream=stream)
    mixture = None if drift is None else (0.3, 0.7)
    chains = (
        [Link(0, capture=Capture(4, 17, mixture)), Link(1, capture=Capture(0, 2, mixture))],
        [Link(2, capture=Capture(3, 5, mixture))],
        [Link(1)],
    )
    assert disagreement(kind, table, data, chains, [(SGD, Plain())]) <= EXACT


@pytest.mark.parametrize("kind", [BatchedTrainer, Stacked])
def test_numbers_are_told_as_in_the_plain_loop(kind: type[Trainer]) -> None:
    table = LayerTable(
        input_shape=(1, 4, 4), extractor=(Flatten("flatten"), Linear("fc1", 16, 5)), classifier=(Linear("fc2", 5, 1),)
    )
    data = dataset(table, [1, 9, 4], regression=True)
    chains = ([Link(0)], [Link(1), Link(2)], [Link(2)])
    for recipe in RECIPES.values():
        assert disagreement(kind, table, data, chains, [recipe]) <= EXACT


@pytest.mark.parametrize("kind", [PlainTrainer, BatchedTrainer])
def test_a_part_without_tensors_is_among_the_outputs_of_trainings_and_of_the_sum(kind: type[Trainer]) -> None:
    table = LayerTable(input_shape=(1, 4, 4), extractor=(Flatten("flatten"),), classifier=(Linear("fc", 16, CLASSES),))
    found = outputs(kind, table, dataset(table, [5, 8]), [[Link(0)], [Link(1)]], [(SGD, Plain())])
    assert [set(one) for one in found] == [{"extractor", "classifier"}] * 3
