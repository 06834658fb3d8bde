"""Models in which layers are fused: registered ones, small where they can be, and layers as no such model has them."""

from __future__ import annotations

from collections.abc import Callable

from fedsim import registry
from fedsim.models.fusion import fused as with_fusion
from fedsim.models.gated import gated
from fedsim.models.layers import (
    BatchNorm1d,
    BatchNorm2d,
    Conv1d,
    Conv2d,
    Flatten,
    GroupNorm1d,
    Gru,
    KMaxPool,
    LastStep,
    Linear,
    MaxPool1d,
    ReLU,
    Residual,
)
from fedsim.models.table import LayerTable


def registered(name: str, shape: tuple[int, ...], **settings: object) -> LayerTable:
    table = registry.load("models", name)(**settings).table(shape, 4 if len(shape) < 3 else 10)
    assert isinstance(table, LayerTable)
    return table


def mixed() -> LayerTable:
    """What no registered model has: sums with no rectifier behind them, and layers that have no machine code."""
    body = (Conv1d("conv", 16, 16, kernel=3, padding=1), GroupNorm1d("gn", 16))
    return LayerTable(
        input_shape=(3, 20),
        extractor=(
            Conv1d("conv1", 3, 16, kernel=3),
            Residual("normalised", body),
            Residual("plain", body[:1]),
            MaxPool1d("pool", kernel=3, stride=3),
            Conv1d("conv2", 16, 24, kernel=3),
            ReLU("relu2"),
            Conv1d("conv3", 24, 16, kernel=3),
            GroupNorm1d("gn", 16),
            Flatten("flatten"),
        ),
        classifier=(Linear("fc", 16 * 2, 4),),
    )


def summed() -> LayerTable:
    """The same with images."""
    body = (Conv2d("conv", 16, 16, kernel=3, padding=1, bias=False), BatchNorm2d("bn", 16))
    return LayerTable(
        input_shape=(1, 8, 8),
        extractor=(
            Conv2d("conv1", 1, 16, kernel=3),
            ReLU("relu1"),
            Residual("normalised", body),
            Residual("plain", body[:1]),
            ReLU("relu2"),
            Flatten("flatten"),
        ),
        classifier=(Linear("fc1", 576, 128), ReLU("relu3"), Linear("fc2", 128, 10)),
    )


def series_between() -> LayerTable:
    """Layers that take rows beside layers that take series alone, in residual blocks and out of them."""
    return LayerTable(
        input_shape=(16, 20),
        extractor=(
            Residual("first", (Conv1d("conv", 16, 16, kernel=3, padding=1),)),
            Residual("recurrent", (Gru("gru", inputs=16, hidden=16), ReLU("relu"))),
            GroupNorm1d("gn", 16),
            Conv1d("conv1", 16, 24, kernel=1),
            BatchNorm1d("bn", 24),
            ReLU("relu1"),
            KMaxPool("largest", k=8),
        ),
        classifier=(
            Residual("last", (Conv1d("conv", 24, 24, kernel=1),)),
            MaxPool1d("pool", kernel=2, stride=2),
            Gru("narrow", inputs=24, hidden=6),
            LastStep("last_step"),
            Linear("fc", 6, 4),
        ),
    )


SMALL = {"depth": 3, "dropout": 0.0}
TABLES: dict[str, Callable[[], LayerTable]] = {
    "resnet": lambda: registered("resnet", (3, 8, 8)),
    "resnet group projection": lambda: registered("resnet", (3, 8, 8), normalisation="group", shortcut="projection"),
    "resnet batch projection": lambda: registered("resnet", (3, 9, 9), shortcut="projection"),
    "resnet none": lambda: registered("resnet", (3, 8, 8), normalisation="none"),
    "resnet none projection": lambda: registered("resnet", (3, 8, 8), normalisation="none", shortcut="projection"),
    "vgg": lambda: registered("vgg", (3, 32, 32), head="narrow", dropout=0.0),
    "vgg batch": lambda: registered("vgg", (3, 32, 32), head="narrow", normalisation="batch", dropout=0.0),
    "conv1d": lambda: registered("conv1d", (2, 80), kernel=8, stride=1),
    "conv1d batch": lambda: registered("conv1d", (1, 1024), normalisation="batch"),
    "conv1d none": lambda: registered("conv1d", (2, 80), kernel=8, stride=1, normalisation="none"),
    "char_cnn": lambda: registered("char_cnn", (120,), **SMALL),
    "char_cnn batch": lambda: registered("char_cnn", (70, 120), normalisation="batch", **SMALL),
    "char_cnn group": lambda: registered("char_cnn", (120,), normalisation="group", **SMALL),
    "vdcnn": lambda: registered("vdcnn", (64,)),
    "vdcnn group": lambda: registered("vdcnn", (57,), normalisation="group"),
    "vdcnn none": lambda: registered("vdcnn", (64,), normalisation="none"),
    "gru": lambda: registered("gru", (3, 9), hidden=32),
    "gru of two layers": lambda: registered("gru", (3, 9), hidden=16, layers=2),
    "lstm": lambda: registered("lstm", (3, 9), hidden=48),
    "lstm of two layers": lambda: registered("lstm", (3, 9), hidden=16, layers=2),
    "narrow lstm": lambda: registered("lstm", (3, 9), hidden=8),
    "small_cnn": lambda: registered("small_cnn", (1, 12, 12)),
    "leaf_cnn": lambda: registered("leaf_cnn", (1, 28, 28)),
    "mlp": lambda: registered("mlp", (1, 28, 28), hidden=(128,)),
    "gated": lambda: gated(registered("conv1d", (2, 80), kernel=8, stride=1), layers=2, units=16, clients=3),
    "with fusion": lambda: with_fusion(registered("conv1d", (2, 80), kernel=8, stride=1), "multi"),
    "mixed": mixed,
    "summed": summed,
    "series between": series_between,
}
