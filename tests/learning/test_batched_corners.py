"""Corners of training clients together, each against the plain loop: layers that leave their factors, geometries,
neighbours that diverge, sums of some parts, captures of streams, several recipes at once.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pytest
import torch
from nodes import training_of
from pushed import Pushed

from fedsim.data.captures import Capture
from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.drift import Recurring
from fedsim.data.stream.settings import Augmentation, StreamSettings
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.batched import low_rank
from fedsim.learning.executors.batched.dense import Dense
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.batched.low_rank import rows_that_pay
from fedsim.learning.executors.batched.scoring import CHUNK
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.matrix import LARGE
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.trainer import TensorDict, Trainer
from fedsim.learning.executors.wave import Made, Source, Training, Wave, WeightedSum
from fedsim.learning.executors.worker_pool import TrainJob
from fedsim.learning.executors.workers import Workers
from fedsim.learning.graph import Graph
from fedsim.learning.kernels import machine_code
from fedsim.learning.objectives.objective import Given, Objective, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.evaluate import Evaluate
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Slot
from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU, through
from fedsim.models.small_cnn import SmallCnn
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import initial_parameters

EXACT = 1e-9
CLASSES = 5
SGD: dict[str, Any] = {"learning_rate": 0.05, "batch_size": 7, "epochs": 2, "momentum": 0.0, "weight_decay": 0.0}
EVERYTHING = {"momentum": 0.5, "weight_decay": 0.1}


class Stacked(BatchedTrainer):
    """As on a GPU."""

    stacked = True


class Link(NamedTuple):
    """One training of a chain."""

    client: int
    restarts: tuple[str, ...] = ()
    capture: Capture | None = None


def dataset(
    table: LayerTable, samples: Sequence[int], scale: Mapping[int, float] | None = None, *, regression: bool = False
) -> FederatedDataset:
    """Random samples, those of some clients times a number."""
    rng = np.random.default_rng(7)
    total = sum(samples) + 1
    ids = np.split(np.arange(total - 1), np.cumsum(samples)[:-1])
    x = rng.random((total, *table.input_shape), dtype=np.float32)
    for client, factor in (scale or {}).items():
        x[ids[client]] *= np.float32(factor)
    return FederatedDataset(
        name="random",
        classes=None if regression else table.outputs,
        sample_shape=table.input_shape,
        sample_bytes=1.0,
        client_samples=np.array(samples),
        stored=x,
        y=rng.standard_normal(total).astype(np.float32) if regression else rng.integers(table.outputs, size=total),
        train_ids=tuple(ids),
        test_ids=np.arange(total - 1, total),
        client_test_ids=tuple(one[:0] for one in ids),
    )


def wave(
    data: FederatedDataset,
    parts: Sequence[str],
    chains: Sequence[Sequence[Link]],
    recipes: Sequence[tuple[Mapping[str, Any], Objective]],
    summed: Sequence[str],
) -> Wave:
    """Chains, each by the recipe of its place (or the last one); the sum starts from a model of its own."""
    trainings: list[Training] = []
    ends: list[int] = []
    for place, chain in enumerate(chains):
        training, objective = recipes[min(place, len(recipes) - 1)]
        for number, link in enumerate(chain):
            inputs: dict[Slot, Source] = {}
            for at, part in enumerate(parts):
                handed_on = number > 0 and part not in link.restarts
                inputs[Slot("model", part=part)] = Made(len(trainings) - 1, part) if handed_on else at
            about = training_of(data, link.client, training, objective, capture=link.capture)
            stream = Stream(1, "batches", link.client, len(trainings))
            trainings.append(Training(about, stream, inputs, tuple(parts)))
        ends.append(len(trainings) - 1)
    shares = np.arange(1, len(ends) + 1) / sum(range(len(ends) + 1))
    base = {part: len(parts) + at for at, part in enumerate(parts) if part in summed}
    return Wave(tuple(trainings), (WeightedSum(tuple(shares.tolist()), tuple(base), base, tuple(ends)),))


def model(table: LayerTable, precision: str, *, seed: int) -> dict[str, TensorDict]:
    """With biases, in the middle of its training."""
    generator = torch.Generator().manual_seed(seed)
    return {
        part: {
            name: (one + 0.05 * torch.randn(one.shape, generator=generator)).to(getattr(torch, precision))
            for name, one in tensors.items()
        }
        for part, tensors in initial_parameters(table, np.random.default_rng(seed)).items()
    }


def outputs(
    kind: type[Trainer],
    table: LayerTable,
    data: FederatedDataset,
    chains: Sequence[Sequence[Link]],
    recipes: Sequence[tuple[Mapping[str, Any], Objective]],
    *,
    summed: Sequence[str] | None = None,
    precision: str = "float64",
) -> list[dict[str, TensorDict]]:
    """Of each training, then of the sum."""
    values = [part for seed in (1, 2) for part in model(table, precision, seed=seed).values()]
    what = wave(data, table.parts, chains, recipes, table.parts if summed is None else summed)
    return kind(table, data, "cpu", precision).train(what, values)


def distance(found: Sequence[dict[str, TensorDict]], expected: Sequence[dict[str, TensorDict]]) -> float:
    """The largest relative error of a tensor."""
    assert [one.keys() for one in found] == [one.keys() for one in expected]
    return max(
        float((mine[part][name] - tensor).norm() / tensor.norm())
        for mine, theirs in zip(found, expected, strict=True)
        for part, tensors in theirs.items()
        for name, tensor in tensors.items()
    )


def disagreement(kind: type[Trainer], *arguments: Any, **options: Any) -> float:
    """Of *kind* and the plain loop, in float64."""
    return distance(outputs(kind, *arguments, **options), outputs(PlainTrainer, *arguments, **options))


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


def linear() -> LayerTable:
    """An extractor and a classifier of small layers."""
    return LayerTable(
        input_shape=(1, 4, 4),
        extractor=(Flatten("flatten"), Linear("fc1", 16, 9), ReLU("relu1")),
        classifier=(Linear("fc2", 9, CLASSES),),
    )


RECIPES: dict[str, tuple[dict[str, Any], Objective]] = {
    "plain": (SGD, Plain()),
    "momentum and decay": (SGD | EVERYTHING, Plain()),
    "all together": (SGD | EVERYTHING, Proximal(mu=0.3)),
}
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


def image_model(shape: tuple[int, ...], *conv_stack: Layer) -> LayerTable:
    """Convolutions and what is behind them, and one fully connected layer."""
    layers = (*conv_stack, Flatten("flatten"))
    (features,) = through(layers, shape)
    return LayerTable(input_shape=shape, extractor=layers, classifier=(Linear("fc", features, CLASSES),))


GEOMETRIES = {
    "odd images, edges of three": image_model((1, 9, 12), Conv2d("c", 1, 3, kernel=3, padding=3), MaxPool2d("p", 2)),
    "in strides, incomplete squares": image_model(
        (3, 13, 10), Conv2d("c", 3, 4, kernel=5, stride=2, padding=2), ReLU("r"), MaxPool2d("p", 3)
    ),
    "neither pooled nor rectified": image_model((1, 8, 7), Conv2d("c", 1, 2, kernel=3, stride=3, bias=False)),
    "squares of one": image_model((1, 6, 6), Conv2d("c", 1, 2, kernel=1), MaxPool2d("p", 1), ReLU("r")),
    "many weights": image_model((3, 11, 11), Conv2d("c", 3, 2, kernel=7, padding=1, bias=False), ReLU("r")),
    "one after the other": image_model(
        (1, 14, 11),
        Conv2d("c1", 1, 3, kernel=5, padding=1),
        ReLU("r1"),
        Conv2d("c2", 3, 4, kernel=3, stride=2, padding=2, bias=False),
        MaxPool2d("p2", 2),
        Conv2d("c3", 4, 2, kernel=1),
        MaxPool2d("p3", 2),
        ReLU("r3"),
    ),
}


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


@pytest.mark.parametrize("kind", [PlainTrainer, BatchedTrainer])
def test_a_part_without_tensors_is_among_the_outputs_of_trainings_and_of_the_sum(kind: type[Trainer]) -> None:
    table = LayerTable(input_shape=(1, 4, 4), extractor=(Flatten("flatten"),), classifier=(Linear("fc", 16, CLASSES),))
    found = outputs(kind, table, dataset(table, [5, 8]), [[Link(0)], [Link(1)]], [(SGD, Plain())])
    assert [set(one) for one in found] == [{"extractor", "classifier"}] * 3


def test_what_is_prepared_is_all_that_training_and_scoring_need() -> None:
    """So workers, which are forked behind it, make no machine code of their own."""
    table = SmallCnn(hidden=512).table((1, 12, 12), CLASSES)
    data = dataset(table, [9, 4])
    caches = machine_code.convolution_kernels, machine_code.product_kernels, machine_code.correction_kernel
    for cache in caches:
        cache.cache_clear()
    BatchedTrainer.prepare(table, "cpu", "float32")
    made = [cache.cache_info().misses for cache in caches]
    assert made == [2, 1, 2]
    arguments = table, data, [[Link(0)], [Link(1)]], [RECIPES["plain"]]
    _, _, total = outputs(BatchedTrainer, *arguments, precision="float32")
    BatchedTrainer(table, data, "cpu", "float32").score(total, [np.arange(3)])
    assert [cache.cache_info().misses for cache in caches] == made


def test_workers_are_forked_behind_what_is_prepared() -> None:
    """Once, whatever there is to do."""
    table = linear()
    data, prepared = dataset(table, [9]), []
    pool = Workers(
        lambda _: BatchedTrainer(table, data, "cpu", "float32"), 2, [table], torch.float32, partial(prepared.append, 1)
    )
    assert not prepared
    values = list(model(table, "float32", seed=1).values()) * 2
    job = TrainJob(wave(data, table.parts, [[Link(0)]], [RECIPES["plain"]], table.parts), values)
    for _ in range(2):
        pool.finish(pool.begin(job))
    pool.close()
    assert prepared == [1]
