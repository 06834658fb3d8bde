"""Trainings with every kind of layer, target and stream have yesterday's numbers, or the operation's version is new.

Models are as small as they can be with these layers, so that each number is kept: see ``training_numbers.json``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from workshop import Entry, Workshop, compare

from fedsim.data.captures import Capture
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine, Encoding, Ids
from fedsim.data.stream.drift import Gradual
from fedsim.data.stream.settings import Augmentation, StreamSettings
from fedsim.kernel.streams import Stream
from fedsim.learning.objectives.fusion import FeatureFusion
from fedsim.learning.objectives.mmd import Mmd
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.evaluate import Evaluate
from fedsim.learning.operations.init import Init
from fedsim.models.layers import (
    BatchNorm1d,
    BatchNorm2d,
    Block,
    Conv1d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAveragePool,
    Gru,
    KMaxPool,
    LastStep,
    Linear,
    Lstm,
    MaxPool1d,
    OneHot,
    PadShortcut,
    ReLU,
    Residual,
    Shape,
)
from fedsim.models.mlp import Mlp
from fedsim.models.table import LayerTable

GOLDEN = Path(__file__).with_name("training_numbers.json")
CLASSES, TOKENS, SAMPLES = 3, 4, 6

RESIDUAL = LayerTable(
    input_shape=(1, 4, 4),
    extractor=(
        Conv2d("conv1", 1, 2, kernel=3, padding=1, bias=False),
        BatchNorm2d("bn1", 2),
        ReLU("relu1"),
        Residual(
            "block1",
            body=(Conv2d("conv", 2, 3, kernel=3, stride=2, padding=1, bias=False), BatchNorm2d("bn", 3)),
            shortcut=(PadShortcut("pad", 2, 3, stride=2),),
        ),
        ReLU("relu2"),
        GlobalAveragePool("pool"),
    ),
    classifier=(Linear("fc", inputs=3, outputs=CLASSES),),
    initialisation="kaiming_normal",
)
GATED, REMEMBERING = (
    LayerTable(
        input_shape=(2, 5),
        extractor=(unit(f"{unit.kind}1", inputs=2, hidden=2), LastStep("last")),
        classifier=(Linear("fc", inputs=2, outputs=1),),
    )
    for unit in (Gru, Lstm)
)
CHARACTERS = LayerTable(
    input_shape=(6,),
    extractor=(
        Embedding("embedding", tokens=TOKENS, dimension=2),
        Conv1d("conv1", 2, 2, kernel=3, padding=1),
        Residual("block1", body=(Conv1d("conv", 2, 2, kernel=3, padding=1), BatchNorm1d("bn", 2))),
        MaxPool1d("pool1", kernel=3, stride=2, padding=1),
        KMaxPool("pool2", k=2),
        Flatten("flatten"),
    ),
    classifier=(Linear("fc", inputs=4, outputs=CLASSES),),
    initialisation="torch_default",
    takes_ids=True,
)
ONE_HOT = LayerTable(
    input_shape=(6,),
    extractor=(
        OneHot("one_hot", tokens=TOKENS),
        Block("conv1", (Conv1d("conv", TOKENS, 2, kernel=3), ReLU("relu"), MaxPool1d("pool", kernel=2, stride=2))),
        Flatten("flatten"),
    ),
    classifier=(Linear("fc1", 4, 4), ReLU("relu1"), Dropout("dropout1", rate=0.5), Linear("fc2", 4, CLASSES)),
    takes_ids=True,
)


def data(
    x: np.ndarray, shape: Shape, encoding: Encoding, *, values: bool = False, stream: StreamSettings | None = None
) -> FederatedDataset:
    """Two clients with six samples each, and three tests; classes in turn, or multiples of 1/8."""
    number = np.arange(len(x))
    return FederatedDataset(
        name="small",
        classes=None if values else CLASSES,
        sample_shape=shape,
        sample_bytes=1.0,
        client_samples=np.full(2, SAMPLES, np.int64),
        stored=x,
        y=(number * 5 % 8 / 8).astype(np.float32) if values else number % CLASSES,
        encoding=encoding,
        train_ids=(number[:SAMPLES], number[SAMPLES : 2 * SAMPLES]),
        test_ids=number[2 * SAMPLES :],
        client_test_ids=(number[:0], number[:0]),
        stream=stream,
    )


def numbers(*shape: int, below: int) -> np.ndarray:
    """Whole numbers that are spread like random ones, and are no random ones."""
    return (np.arange(15 * int(np.prod(shape))) * 37 % 101 % below).astype(np.uint8).reshape(15, *shape)


IMAGES = data(numbers(1, 4, 4, below=97), (1, 4, 4), Affine(1 / 96))
SERIES = data(numbers(2, 5, below=97), (2, 5), Affine(1 / 32, -1.5), values=True)
TEXTS = data(numbers(6, below=TOKENS + 1), (6,), Ids(TOKENS + 1))


def trained(title: str, table: LayerTable, dataset: FederatedDataset, **settings: Any) -> dict[str, Entry]:
    """The start of a model, one training of the second client, and a test of what comes out."""
    workshop = Workshop(table, dataset)
    start = workshop.make(f"{title}: init", Init(workshop.digest), stream=Stream(1, "model/init"))
    model = workshop.train(f"{title}: train", start, 1, Plain(), **settings)
    workshop.make(f"{title}: evaluate", Evaluate(workshop.digest, "data", "global"), model=model)
    return workshop.entries


def streamed(title: str, capture: Capture, **stream: Any) -> dict[str, Entry]:
    """A training on a capture of more samples than the client has."""
    dataset = replace(IMAGES, stream=StreamSettings(samples=capture.samples, **stream))
    return trained(title, Mlp(hidden=(2,)).table((1, 4, 4), CLASSES), dataset, capture=capture)


def of_two_streams(title: str, objective: Objective) -> dict[str, Entry]:
    """One training of the second client on what the first has made of the start, which is the global model."""
    workshop = Workshop(objective.adapted(Mlp(hidden=(2,)).table((1, 4, 4), CLASSES)), IMAGES)
    start = workshop.make(f"{title}: init", Init(workshop.digest), stream=Stream(1, "model/init"))
    moved = workshop.train(f"{title}: moved", start, 0, Plain())
    workshop.train(f"{title}: train", moved, 1, objective, further={"global": start})
    return workshop.entries


@pytest.fixture(scope="module")
def made() -> dict[str, Entry]:
    return {
        **trained("images, residual and normalised", RESIDUAL, IMAGES),
        **trained("series, recurrent, regression", GATED, SERIES, momentum=0.5),
        **trained("series, recurrent with a memory, regression", REMEMBERING, SERIES, momentum=0.5),
        **trained("characters, looked up", CHARACTERS, TEXTS),
        **trained("characters, one-hot, with dropout", ONE_HOT, TEXTS),
        **streamed("a stream, pass after pass", Capture(4, 9)),
        **streamed("a stream, augmented", Capture(4, 9), augmentation=Augmentation()),
        **of_two_streams("two streams, discrepancy", Mmd(coefficient=0.01)),
        **of_two_streams("two streams, convolution", FeatureFusion(operator="conv")),
        **of_two_streams("two streams, gates", FeatureFusion(operator="multi")),
        **streamed("a stream that drifts", Capture(4, 9, (0.25, 0.75)), drift=Gradual(begin=1, end=2, strength=0.8)),
    }


def test_numbers_are_yesterdays_or_versions_are_new(made: dict[str, Entry]) -> None:
    compare(GOLDEN, made)


def test_running_statistics_are_among_them_and_every_stream_is_another_training(made: dict[str, Entry]) -> None:
    normalised = made["images, residual and normalised: train"]["numbers"]
    assert {"extractor.bn1.running_mean", "extractor.block1.body.bn.running_var"} <= normalised.keys()
    trainings = [entry["numbers"] for title, entry in made.items() if title.startswith("a stream") and "train" in title]
    assert len(trainings) == 3
    assert all(trainings.count(one) == 1 for one in trainings)
