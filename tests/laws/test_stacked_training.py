"""Training with stacked convolutions and samples on the device obeys the law of executors, on whatever device it is.

On the CPU the batched trainer works so only here. Where there is a CUDA device, the executor is held there against the
plain loop on the CPU. That no tensor strays to another device is shown by torch's fake tensors, which have a device and
a shape and no numbers: operations between devices raise.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
import torch
from random_waves import Comparison, World, disagreement, errors, outcome, random_wave, world
from stacked import MODELS, OnMeta, Stacked, StackedTrainer, each_place
from tiers import FULL, examples, mostly_long
from torch._subclasses.fake_tensor import FakeTensorMode

from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.torch_executor import TorchExecutor

MOST_WITH_LARGE_DENSE_LAYERS, MOST_ELSEWHERE, MOST_OF_ONE_WAVE = 1.0, 1.5, 3.0
EXACT = 1e-12
WAVES = 12

each_kind_of_layers = pytest.mark.parametrize("model", mostly_long(MODELS, now=["large dense layers"]))


def place_of(model: str, seed: int) -> World:
    return world(MODELS[model](), seed=seed, regression=model == "regression")


@pytest.mark.drawn
@each_place
@pytest.mark.parametrize(
    "model", mostly_long(MODELS, now=["one convolution", "two convolutions", "three convolutions", "regression"])
)
def test_in_float64_every_tensor_is_the_plain_loops(executor: type[TorchExecutor], model: str) -> None:
    for seed in range(examples(WAVES)):
        place = place_of(model, seed)
        assert disagreement(executor, place, random_wave(place, seed=seed)) <= EXACT


@pytest.mark.drawn
@each_place
@each_kind_of_layers
def test_updates_and_sums_are_as_near_to_float64_as_the_plain_loops(executor: type[TorchExecutor], model: str) -> None:
    ratios = []
    for seed in range(WAVES if FULL else 8):
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
    with pytest.MonkeyPatch.context() as patch, FakeTensorMode(allow_non_fake_inputs=True):
        patch.setattr(torch.Tensor, "__float__", lambda tensor: 1.5)  # which is asked for now and then
        return outcome(executor(place.table, place.dataset), place, wave)


@pytest.mark.drawn
@pytest.mark.parametrize("model", mostly_long(MODELS, now=["two convolutions"]))
def test_nothing_strays_to_another_device(model: str) -> None:
    for seed in range(3 if FULL else 1):
        place = place_of(model, seed)
        assert {f"sum.{part}" for part in place.table.parts} <= shapes(OnMeta, place, seed).keys()


@pytest.mark.parametrize("stray", mostly_long(["x", "y"], now=["x"]))
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


@pytest.mark.drawn
def test_bfloat16_rounds_the_factors_of_products() -> None:
    """Three digits are left of an update, not seven: the rest is the choice of whoever asks for it."""
    for seed in range(4 if FULL else 1):
        place = place_of("three convolutions", seed)
        wave = random_wave(place, seed=seed)
        true = outcome(Serial(place.table, place.dataset, precision="float64"), place, wave)
        rounded = errors(outcome(Stacked(place.table, place.dataset, precision="bfloat16"), place, wave), true)
        assert 1e-4 < rounded.total < 0.05
