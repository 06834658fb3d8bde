"""All clients' convolutions as one stack come to the same as one client's after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedsim.learning.executors.batched.front import Front, faster_kind
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.stacked_front import StackedConvolution, StackedFront
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.objectives import Objective, Plain, Proximal
from fedsim.models.layers import Conv2d, MaxPool2d

EXACT = 1e-12


@dataclass(frozen=True)
class Watching(Objective):
    """Has to see the gradients, and doubles them."""

    name: ClassVar[str] = "watching"

    def add_gradient(self, gradients: Any, weights: Any, start: Any, state: Any) -> None:
        for gradient in gradients.values():
            gradient.mul_(2)


@dataclass(frozen=True)
class Wave:
    """Blocks, how to train them, and how many samples each client has at each step, in falling order of steps."""

    blocks: tuple[ConvolutionBlock, ...]
    recipe: Recipe
    samples: tuple[tuple[int, ...], ...]
    seed: int

    @property
    def clients(self) -> int:
        return len(self.samples[0])


@st.composite
def waves(draw: st.DrawFn) -> Wave:
    """One to three convolutions of any size, stride, padding and pooling that fit, with biases or without."""
    shape = draw(st.integers(1, 3)), draw(st.integers(5, 12)), draw(st.integers(5, 12))
    blocks: list[ConvolutionBlock] = []
    for number in range(draw(st.integers(1, 3))):
        kernel = draw(st.integers(1, min(5, *shape[1:])))
        layer = Conv2d(
            f"c{number}",
            shape[0],
            draw(st.integers(1, 4)),
            kernel=kernel,
            stride=draw(st.integers(1, 3)),
            padding=draw(st.integers(0, kernel // 2)),
            bias=draw(st.booleans()),
        )
        before, shape = shape, layer.output_shape(shape)
        pool = draw(st.integers(1, min(3, *shape[1:])))
        shape = MaxPool2d("p", pool).output_shape(shape)
        blocks.append(ConvolutionBlock("extractor", layer, draw(st.booleans()), pool, before, shape, not blocks))
    objective = draw(st.sampled_from([Plain(), Proximal(0.5), Watching()]))
    recipe = Recipe(0.1, draw(st.sampled_from([0.0, 0.9])), draw(st.sampled_from([0.0, 0.1])), objective)
    active = sorted(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)), reverse=True)
    samples = tuple(tuple(draw(st.integers(1, 4)) for _ in range(number)) for number in active)
    return Wave(tuple(blocks), recipe, samples, draw(st.integers(0, 2**31)))


def convolution(recipe: Recipe, block: ConvolutionBlock, *tensors_and_clients: Any) -> Any:
    """One client's after the other, of the kind that fits."""
    return faster_kind(block)(recipe, block, *tensors_and_clients)


def fronts(wave: Wave) -> tuple[Front, StackedFront]:
    """Both, from the same random weights."""
    rng = np.random.default_rng(wave.seed)
    tensors = [
        {kind: torch.from_numpy(rng.standard_normal(shape)) for kind, shape in block.layer.parameter_shapes.items()}
        for block in wave.blocks
    ]
    return tuple(
        front(
            [
                kind(wave.recipe, block, own["weight"], own.get("bias"), wave.clients)
                for block, own in zip(wave.blocks, tensors, strict=True)
            ]
        )
        for front, kind in ((Front, convolution), (StackedFront, StackedConvolution))
    )


def step(front: Front | StackedFront, wave: Wave, number: int, *, more_rows: int = 0) -> list[torch.Tensor]:
    """One step on random images and gradients; returns each client's features."""
    samples, rng = wave.samples[number], np.random.default_rng([wave.seed, number])
    shape, width = wave.blocks[-1].output_shape, max(samples) + more_rows
    xs = [torch.from_numpy(rng.standard_normal((own, *wave.blocks[0].input_shape))) for own in samples]
    features = torch.zeros(len(xs), width, int(np.prod(shape)), dtype=torch.float64)
    d = torch.zeros_like(features)
    for client, own in enumerate(samples):
        d[client, :own] = torch.from_numpy(rng.standard_normal((own, features.shape[2])))
    front.forward(xs, features)
    found = [features[client, :own].clone() for client, own in enumerate(samples)]
    front.backward(d, samples)
    if not wave.recipe.linear:
        for layer in front.convolutions:
            for client in range(len(samples)):
                held = {kind: gradients[client] for kind, gradients in layer.gradients().items()}
                wave.recipe.objective.add_gradient(held, layer.views(client), layer.starts(client), {})
            layer.release()
    return found


def train(front: Front | StackedFront, wave: Wave, **options: int) -> list[torch.Tensor]:
    """All steps; one client begins anew before the last one, another from the base."""
    found = []
    for number in range(len(wave.samples)):
        if number and number == len(wave.samples) - 1:
            for layer in front.convolutions:
                layer.restart(0)
                layer.begin(0)
                layer.begin(wave.clients - 1)
        found += step(front, wave, number, **options)
    for layer in front.convolutions:
        found += [tensor for client in range(wave.clients) for tensor in layer.state(client).values()]
        found += layer.weighted_change([0.5 + client for client in range(wave.clients)]).values()
    return found


def far(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """The largest difference, relative to the largest number of its tensor, or to 1: terms of every sum are about 1."""
    assert [tensor.shape for tensor in one] == [tensor.shape for tensor in other]
    return max(
        float((mine - others).abs().max() / others.abs().max().clamp(min=1))
        for mine, others in zip(one, other, strict=True)
    )


@given(waves())
def test_stacked_convolutions_are_each_clients_own(wave: Wave) -> None:
    single, stacked = fronts(wave)
    assert far(train(stacked, wave), train(single, wave)) <= EXACT


@given(waves())
def test_rows_that_stand_for_no_sample_change_nothing(wave: Wave) -> None:
    """Their gradient is exactly zero, so only the order of additions may differ."""
    assert far(train(fronts(wave)[1], wave, more_rows=3), train(fronts(wave)[1], wave)) <= EXACT


def test_of_equal_pixels_the_first_one_gets_the_gradient() -> None:
    """As in PyTorch's own pooling: behind equal pixels, weights of the layer before change by where it went."""
    blocks = (
        ConvolutionBlock("e", Conv2d("a", 1, 1, kernel=1), False, 1, (1, 4, 4), (1, 4, 4), True),
        ConvolutionBlock("e", Conv2d("b", 1, 1, kernel=1), False, 2, (1, 4, 4), (1, 2, 2), False),
    )
    kinds = [(Front, convolution), (StackedFront, StackedConvolution)]
    weight, places = torch.zeros(1, 1, 1, 1, dtype=torch.float64), torch.arange(16.0, dtype=torch.float64)
    found = []
    for front, kind in kinds:
        recipe = Recipe(1.0, 0.0, 0.0, Plain())
        layers = [kind(recipe, block, weight + number, None, 1) for number, block in enumerate(blocks)]
        made = front(layers)
        made.forward([places.view(1, 1, 4, 4)], torch.empty(1, 1, 4, dtype=torch.float64))
        made.backward(torch.ones(1, 1, 4, dtype=torch.float64), [1])
        found.append(float(layers[0].state(0)["weight"]))
    assert found == [-(0.0 + 2 + 8 + 10)] * 2


@pytest.mark.parametrize("kind", [convolution, StackedConvolution])
def test_weights_are_sent_in_the_shape_of_the_table(kind: Any) -> None:
    block = ConvolutionBlock("e", Conv2d("c", 2, 3, kernel=3), True, 1, (2, 5, 5), (3, 3, 3), True)
    weight = torch.arange(54.0).view(3, 2, 3, 3)
    layer = kind(Recipe(0.1, 0.0, 0.0, Plain()), block, weight, None, 2)
    assert torch.equal(layer.state(1)["weight"], weight)
