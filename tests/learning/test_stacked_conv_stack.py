"""All clients' convolutions as one stack come to the same as one client's after the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conv_stack_waves import EXACT, MORE_ROWS, ConvStackWave, conv_stack_of, far, train, waves_of
from hypothesis import given
from hypothesis import strategies as st

from fedsim.learning.executors.batched.client_conv_stack import faster_kind
from fedsim.learning.executors.batched.conv_stacks import ConvStackKind, new_conv_stack
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.stacked_conv_stack import StackedConvolution
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.objectives.plain import Plain
from fedsim.models.layers import Conv2d, MaxPool2d


@st.composite
def blocks(draw: st.DrawFn) -> tuple[ConvolutionBlock, ...]:
    """One to three convolutions of any size, stride, padding and pooling that fit, with biases or without."""
    shape = draw(st.integers(1, 3)), draw(st.integers(5, 12)), draw(st.integers(5, 12))
    found: list[ConvolutionBlock] = []
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
        found.append(ConvolutionBlock("extractor", layer, draw(st.booleans()), pool, before, shape, not found))
    return tuple(found)


@given(waves_of(blocks()))
def test_stacked_convolutions_are_each_clients_own(wave: ConvStackWave) -> None:
    assert far(train(conv_stack_of(wave, "stacked"), wave), train(conv_stack_of(wave, "pytorch"), wave)) <= EXACT


@given(waves_of(blocks()))
def test_rows_that_stand_for_no_sample_change_nothing(wave: ConvStackWave) -> None:
    """Their gradient is exactly zero, so only the order of additions may differ."""
    longer = train(conv_stack_of(wave, "stacked"), wave, more_rows=MORE_ROWS)
    assert far(longer, train(conv_stack_of(wave, "stacked"), wave)) <= EXACT


@pytest.mark.parametrize("kind", ["pytorch", "stacked"])
def test_of_equal_pixels_the_first_one_gets_the_gradient(kind: ConvStackKind) -> None:
    """As in PyTorch's own pooling: behind equal pixels, weights of the layer before change by where it went."""
    blocks = (
        ConvolutionBlock("e", Conv2d("a", 1, 1, kernel=1, bias=False), False, 1, (1, 4, 4), (1, 4, 4), True),
        ConvolutionBlock("e", Conv2d("b", 1, 1, kernel=1, bias=False), False, 2, (1, 4, 4), (1, 2, 2), False),
    )
    weight, places = torch.zeros(1, 1, 1, 1, dtype=torch.float64), torch.arange(16.0, dtype=torch.float64)
    base = {"e": {"a.weight": weight, "b.weight": weight + 1}}
    conv_stack = new_conv_stack(kind, Recipe(1.0, 0.0, 0.0, Plain()), blocks, base, 1, 1)
    conv_stack.forward([places.view(1, 1, 4, 4)], torch.empty(1, 1, 4, dtype=torch.float64))
    conv_stack.backward(torch.ones(1, 1, 4, dtype=torch.float64), [1])
    assert float(conv_stack.convolutions[0].state(0)["weight"]) == -(0.0 + 2 + 8 + 10)


def by_client(recipe: Recipe, block: ConvolutionBlock, *tensors_and_clients: Any) -> Any:
    """One client's after the other, of the kind that fits."""
    return faster_kind(block)(recipe, block, *tensors_and_clients)


@pytest.mark.parametrize("kind", [by_client, StackedConvolution])
def test_weights_are_sent_in_the_shape_of_the_table(kind: Any) -> None:
    block = ConvolutionBlock("e", Conv2d("c", 2, 3, kernel=3), True, 1, (2, 5, 5), (3, 3, 3), True)
    weight = torch.arange(54.0).view(3, 2, 3, 3)
    layer = kind(Recipe(0.1, 0.0, 0.0, Plain()), block, weight, None, 2)
    assert torch.equal(layer.state(1)["weight"], weight)
