"""Models for training with stacked convolutions, and executors that train so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import random_waves
import torch

from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.graph import Node
from fedsim.learning.operations.operation import Value
from fedsim.models.extractors import convolutional_extractor
from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU
from fedsim.models.mlp import Mlp
from fedsim.models.table import LayerTable

CLASSES = random_waves.CLASSES


def ending_in_scores(shape: tuple[int, int, int], *layers: Layer) -> LayerTable:
    """The layers, and a fully connected one behind them."""
    inputs: tuple[int, ...] = shape
    for layer in layers:
        inputs = layer.output_shape(inputs)
    flat = Flatten("flatten")
    return LayerTable(
        input_shape=shape,
        extractor=(*layers, flat),
        classifier=(Linear("fc", flat.output_shape(inputs)[0], CLASSES),),
    )


def one_convolution() -> LayerTable:
    """Pooled in threes, which leaves a row and two columns over; without biases."""
    return ending_in_scores(
        (2, 10, 11), Conv2d("c", 2, 4, kernel=3, padding=1, bias=False), ReLU("r"), MaxPool2d("p", 3)
    )


def two_convolutions() -> LayerTable:
    """In strides, the second one with a row and a column that no patch reaches; not pooled, not all rectified."""
    return ending_in_scores(
        (1, 12, 10),
        Conv2d("c1", 1, 3, kernel=4, stride=2, padding=2),
        Conv2d("c2", 3, 5, kernel=2, stride=3),
        ReLU("r"),
    )


def three_convolutions() -> LayerTable:
    """Pooled before, behind and without a rectifier; one of them looks at single pixels."""
    return ending_in_scores(
        (2, 13, 11),
        Conv2d("c1", 2, 3, kernel=3, padding=1),
        MaxPool2d("p1", 2),
        ReLU("r1"),
        Conv2d("c2", 3, 4, kernel=1, bias=False),
        ReLU("r2"),
        Conv2d("c3", 4, 3, kernel=5, padding=2),
        MaxPool2d("p3", 3),
    )


def large_dense_layers() -> LayerTable:
    """hfedms_cnn on smaller images: 128-512 and 512-100 behind two convolutions."""
    shape = (1, 16, 16)
    extractor = (*convolutional_extractor(shape, channels=(4, 8), hidden=512), Linear("fc2", 512, 100), ReLU("r"))
    return LayerTable(input_shape=shape, extractor=extractor, classifier=(Linear("fc3", 100, CLASSES),))


MODELS: dict[str, Callable[[], LayerTable]] = {
    "one convolution": one_convolution,
    "two convolutions": two_convolutions,
    "three convolutions": three_convolutions,
    "large dense layers": large_dense_layers,
    "no convolution": lambda: Mlp(hidden=(32, 16)).table((1, 8, 8), CLASSES),
    "regression": lambda: Mlp(hidden=(32,)).table((1, 8, 8), 1),
}


class StackedTrainer(BatchedTrainer):
    stacked = True


class Stacked(Batched):
    """As on a CUDA device, on the CPU."""

    trainer = StackedTrainer


class Elsewhere(Batched):
    """Takes values from the CPU, computes on another torch device, and gives them back."""

    trainer = StackedTrainer
    place = "cuda"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, self.place, **options)

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Value]]:
        for handle in {id(handle): handle for node in chunk for handle in node.inputs.values()}.values():
            if handle.computed:
                handle.value = {name: tensor.to(self.place) for name, tensor in handle.value.items()}
        return [self.brought_back(made) for made in super().compute(chunk)]

    def brought_back(self, made: dict[str, Value]) -> dict[str, Value]:
        assert {tensor.device.type for value in made.values() for tensor in value.values()} <= {self.place}
        return {name: {key: self.numbers(tensor) for key, tensor in value.items()} for name, value in made.items()}

    def numbers(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.cpu()


class OnMeta(Elsewhere):
    """Computes on a device that is not the CPU, and has no numbers."""

    place = "meta"

    def numbers(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.zeros(tensor.shape)


def on_cuda(test: Any) -> Any:
    """Runs it where there is a CUDA device."""
    return pytest.mark.cuda(WHERE_CUDA_IS(test))


WHERE_CUDA_IS = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
PLACES = [pytest.param(Stacked, id="cpu"), pytest.param(Elsewhere, id="cuda", marks=[pytest.mark.cuda, WHERE_CUDA_IS])]
each_place = pytest.mark.parametrize("executor", PLACES)
