"""The same steps of random clients through any stack of convolutions, and how far two of them are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from hypothesis import strategies as st

from fedsim.learning.executors.batched.conv_stack import ConvStack
from fedsim.learning.executors.batched.conv_stacks import ConvStackKind, new_conv_stack
from fedsim.learning.executors.batched.convolution import Convolution
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.objectives.control_variates import ControlVariates
from fedsim.learning.objectives.objective import Given, Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.training import TrainingSettings

EXACT = 1e-12
NOTHING = Given({}, {}, {}, TrainingSettings(learning_rate=0.1, batch_size=1), 0)
MORE_ROWS = 3
"""Rows that stand for no sample, at most."""


class Watching(Objective):
    """Has to see the gradients, and doubles them."""

    name: Literal["watching"] = "watching"

    def add_gradient(self, gradients: Any, weights: Any, given: Given) -> None:
        for gradient in gradients.values():
            gradient.mul_(2)


@dataclass(frozen=True)
class ConvStackWave:
    """Blocks, how to train them, and how many samples each client has at each step, in falling order of steps."""

    blocks: tuple[ConvolutionBlock, ...]
    recipe: Recipe
    samples: tuple[tuple[int, ...], ...]
    seed: int

    @property
    def clients(self) -> int:
        return len(self.samples[0])


@st.composite
def waves_of(draw: st.DrawFn, blocks: st.SearchStrategy[tuple[ConvolutionBlock, ...]]) -> ConvStackWave:
    """Clients with one to four samples in each of some steps; every kind of recipe."""
    objective = draw(st.sampled_from([Plain(), Proximal(mu=0.5), ControlVariates(), Watching()]))
    recipe = Recipe(0.1, draw(st.sampled_from([0.0, 0.9])), draw(st.sampled_from([0.0, 0.1])), objective)
    active = sorted(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)), reverse=True)
    samples = tuple(tuple(draw(st.integers(1, 4)) for _ in range(number)) for number in active)
    return ConvStackWave(draw(blocks), recipe, samples, draw(st.integers(0, 2**31)))


def conv_stack_of(wave: ConvStackWave, kind: ConvStackKind) -> ConvStack[Convolution]:
    """A stack with random weights, the same for every kind."""
    rng = np.random.default_rng(wave.seed)
    tensors = {
        f"{block.layer.name}.{name}": torch.from_numpy(rng.standard_normal(shape))
        for block in wave.blocks
        for name, shape in block.layer.parameter_shapes.items()
    }
    most = max(max(samples) for samples in wave.samples)
    return new_conv_stack(kind, wave.recipe, wave.blocks, {"extractor": tensors}, wave.clients, most + MORE_ROWS)


def step(
    conv_stack: ConvStack[Convolution], wave: ConvStackWave, number: int, *, more_rows: int = 0
) -> list[torch.Tensor]:
    """One step on random images and gradients; returns each client's features."""
    samples, rng = (
        wave.samples[number],
        np.random.default_rng([wave.seed, number, 1]),
    )  # with seed 0, [0, 0] would draw the weights again
    shape, width = wave.blocks[-1].output_shape, max(samples) + more_rows
    xs = [torch.from_numpy(rng.standard_normal((own, *wave.blocks[0].input_shape))) for own in samples]
    features = torch.zeros(len(xs), width, int(np.prod(shape)), dtype=torch.float64)
    d = torch.zeros_like(features)
    for client, own in enumerate(samples):
        d[client, :own] = torch.from_numpy(rng.standard_normal((own, features.shape[2])))
    conv_stack.forward(xs, features)
    found = [features[client, :own].clone() for client, own in enumerate(samples)]
    conv_stack.backward(d, samples)
    if not wave.recipe.linear:
        for layer in conv_stack.convolutions:
            for client in range(len(samples)):
                held = {kind: gradients[client] for kind, gradients in layer.gradients().items()}
                wave.recipe.objective.add_gradient(held, layer.views(client), NOTHING)
            layer.release()
    return found


def push(conv_stack: ConvStack[Convolution], wave: ConvStackWave) -> None:
    """By random numbers, the same for every kind."""
    rng = np.random.default_rng([wave.seed, 2])
    for client in range(wave.clients):
        for layer in conv_stack.convolutions:
            shapes = {kind: tensor.shape for kind, tensor in layer.views(client).items()}
            drawn = {kind: torch.from_numpy(rng.standard_normal(shapes[kind])) for kind in sorted(shapes)}
            layer.set_push(client, drawn)


def train(conv_stack: ConvStack[Convolution], wave: ConvStackWave, **options: int) -> list[torch.Tensor]:
    """All steps; one client begins anew before the last one, another from the base."""
    found = []
    if wave.recipe.pushes:
        push(conv_stack, wave)
    for number in range(len(wave.samples)):
        if number and number == len(wave.samples) - 1:
            for layer in conv_stack.convolutions:
                layer.restart(0)
                layer.begin(0)
                layer.begin(wave.clients - 1)
        found += step(conv_stack, wave, number, **options)
    for layer in conv_stack.convolutions:
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
