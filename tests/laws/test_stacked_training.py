"""Training with stacked convolutions and samples on the device obeys the law of executors, on whatever device it is.

On the CPU the batched trainer works so only here. Where there is a CUDA device, the executor is held there against the
plain loop on the CPU. That no tensor strays to another device is shown by torch's fake tensors, which have a device and
a shape and no numbers: operations between devices raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import pytest
import random_waves
import torch
from random_waves import Comparison, World, disagreement, errors, objectives_of_these_tests, outcome, random_wave, world
from torch._subclasses.fake_tensor import FakeTensorMode

from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.graph import Node, Value
from fedsim.models.extractors import convolutional_extractor
from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU
from fedsim.models.mlp import Mlp
from fedsim.models.table import LayerTable

MOST_WITH_LARGE_DENSE_LAYERS, MOST_ELSEWHERE, MOST_OF_ONE_WAVE = 1.0, 1.5, 3.0
EXACT = 1e-12
CLASSES, WAVES = random_waves.CLASSES, 12


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
each_model = pytest.mark.parametrize("model", MODELS)


def place_of(model: str, seed: int) -> World:
    return world(MODELS[model](), seed=seed, regression=model == "regression")


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


PLACES = [
    pytest.param(Stacked, id="cpu"),
    pytest.param(
        Elsewhere,
        id="cuda",
        marks=[
            pytest.mark.cuda,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here"),
        ],
    ),
]
each_place = pytest.mark.parametrize("executor", PLACES)


@each_place
@each_model
def test_in_float64_every_tensor_is_the_plain_loops(executor: type[TorchExecutor], model: str) -> None:
    for seed in range(WAVES):
        place = place_of(model, seed)
        assert disagreement(executor, place, random_wave(place, seed=seed)) <= EXACT


@each_place
@each_model
def test_updates_and_sums_are_as_near_to_float64_as_the_plain_loops(executor: type[TorchExecutor], model: str) -> None:
    ratios = []
    for seed in range(WAVES):
        place = place_of(model, seed)
        ratios.append(Comparison(executor, place).ratios(random_wave(place, seed=seed)))
    most = MOST_WITH_LARGE_DENSE_LAYERS if model == "large dense layers" else MOST_ELSEWHERE
    for what in ("clients", "total"):
        numbers = [number for ratio in ratios if (number := getattr(ratio, what)) is not None]
        assert median(numbers) <= most
        assert max(numbers) <= MOST_OF_ONE_WAVE


@each_place
def test_the_same_wave_gives_the_same_bits_again(executor: type[TorchExecutor]) -> None:
    place = place_of("three convolutions", 3)
    with objectives_of_these_tests():
        for seed in range(4):
            wave = random_wave(place, seed=seed)
            first, second = (outcome(executor(place.table, place.dataset), place, wave) for _ in range(2))
            assert all(
                torch.equal(first[output][name], tensor)
                for output, tensors in second.items()
                for name, tensor in tensors.items()
            )


def shapes(executor: type[TorchExecutor], place: World, seed: int) -> dict[str, dict[str, torch.Tensor]]:
    """What *executor* makes of a wave, without numbers."""
    wave = random_wave(place, seed=seed)
    with objectives_of_these_tests(), pytest.MonkeyPatch.context() as patch, FakeTensorMode(allow_non_fake_inputs=True):
        patch.setattr(torch.Tensor, "__float__", lambda tensor: 1.5)  # which is asked for now and then
        return outcome(executor(place.table, place.dataset), place, wave)


@each_model
def test_nothing_strays_to_another_device(model: str) -> None:
    for seed in range(3):
        place = place_of(model, seed)
        assert {f"sum.{part}" for part in place.table.parts} <= shapes(OnMeta, place, seed).keys()


@pytest.mark.parametrize("stray", ["x", "y"])
def test_a_tensor_that_strays_is_seen(stray: str) -> None:
    class Straying(StackedTrainer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            own = self._samples.mini_batches
            move = {"x": lambda x, y: (x.to("cpu"), y), "y": lambda x, y: (x, y.to("cpu"))}[stray]
            self._samples.mini_batches = lambda *about: (move(*batch) for batch in own(*about))

    executor = type("StrayingOnMeta", (OnMeta,), {"trainer": Straying})
    with pytest.raises(RuntimeError, match="same device"):
        shapes(executor, place_of("two convolutions", 1), 1)


def test_bfloat16_rounds_the_factors_of_products() -> None:
    """Three digits are left of an update, not seven: the rest is the choice of whoever asks for it."""
    for seed in range(4):
        place = place_of("three convolutions", seed)
        wave = random_wave(place, seed=seed)
        with objectives_of_these_tests():
            true = outcome(Serial(place.table, place.dataset, precision="float64"), place, wave)
            rounded = errors(outcome(Stacked(place.table, place.dataset, precision="bfloat16"), place, wave), true)
        assert 1e-4 < rounded.total < 0.05
