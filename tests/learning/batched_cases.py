"""Chains of trainings of small models, by clients together and by the plain loop, and how far they are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from nodes import training_of

from fedsim.data.captures import Capture
from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.trainer import TensorDict, Trainer
from fedsim.learning.executors.wave import Made, Source, Training, Wave, WeightedSum
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.operation import Slot
from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU, through
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
