"""Convolutions in machine code: as near to float64 as PyTorch's own modules in float32.

Of outputs and all gradients each error is at most 1.5 times PyTorch's in the median over shapes and seeds, and that of
all of a case together nowhere more than 3 times. For the gradient of what a convolution takes, plain sums count as
PyTorch's where their error is larger.
"""

from __future__ import annotations

import copy

import pytest
import torch
from layer_errors import Rounding, Sides, broken, draw, numbers, numbers_as_they_lie, seeded, started, wanting
from tiers import FULL
from torch import nn

from fedsim.learning.executors.fused import rounding
from fedsim.learning.executors.fused.images import MANY_WEIGHTS, ChannelsFirstConvolution, SmallConvolution
from fedsim.learning.executors.fused.series import (
    ENOUGH_ROUNDED,
    ENOUGH_SAMPLES,
    ConvolutionOfSeries,
    ImageConvolutionOfSeries,
    LargestOfSeries,
    PointwiseConvolutionOfSeries,
    PoolingOfSeries,
)
from fedsim.learning.kernels.processor import has_bfloat16
from fedsim.models.torch_layers import KMaxPoolModule

CONVOLUTIONS = (
    (nn.Conv1d(1, 16, 64, 16, 24), 5, 1024),
    (nn.Conv1d(16, 32, 3, 1, 1), 10, 32),
    (nn.Conv1d(64, 64, 3), 64, 4),
    (nn.Conv1d(32, 64, 3, 1, 1), 1, 17),
    (nn.Conv1d(3, 16, 7, 2, 3), 4, 50),
    (nn.Conv1d(16, 16, 1), 130, 9),
    (nn.Conv1d(2, 48, 8, 1, 3), 3, 80),
    (nn.Conv1d(16, 16, 3, 1, 2), 1, 1),
    (nn.Conv1d(64, 64, 3, 1, 1), 40, 40),
    (nn.Conv1d(48, 32, 5, 1, 4), 2, 9),
    (nn.Conv1d(15, 16, 4, 3, 9), 3, 9),
    (nn.Conv1d(1, 16, 1), 1, 1),
)
"""Of samples, and their length."""


# -- convolutions of series -------------------------------------------------------------------------------------------


def convolution(layer: nn.Conv1d, kind: type[ConvolutionOfSeries | ImageConvolutionOfSeries], seed: int = 0) -> Sides:
    own = started(layer, seed)
    fused = kind.of(copy.deepcopy(own))
    assert fused is not None
    return Sides(own, fused)


def taken_one_after_the_other(layer: nn.Module, length: int, d: torch.Tensor) -> torch.Tensor:
    """The gradient of what a convolution of stride 1 takes: a plain sum over the kernel's places and the outputs."""
    assert isinstance(layer, nn.Conv1d)
    (outputs, inputs, kernel), padding = layer.weight.shape, int(layer.padding[0])
    wide = nn.functional.pad(d, (kernel - 1, kernel - 1))
    total = torch.zeros(len(d), inputs, length)
    for place in range(kernel):
        there = wide[..., padding + kernel - 1 - place :][..., :length]
        for output in range(outputs):
            total += layer.weight.detach()[output, :, place, None] * there[:, output, None]
    return total


@pytest.mark.drawn
@pytest.mark.parametrize("kind", [ConvolutionOfSeries, ImageConvolutionOfSeries])
@pytest.mark.parametrize("mean", [0.0, 10.0])
@pytest.mark.parametrize("inside", [True, False])
def test_errors_of_convolutions_are_pytorchs(
    kind: type[ConvolutionOfSeries | ImageConvolutionOfSeries], mean: float, inside: bool
) -> None:
    """With and without a gradient of what they take."""
    ratios = []
    for seed, (layer, samples, length) in enumerate(CONVOLUTIONS * (3 if FULL else 1)):
        if (layer.in_channels >= 16) == inside:
            generator, sides = seeded(seed), convolution(layer, kind, seed)
            x = draw(generator, samples, layer.in_channels, length, mean=mean).requires_grad_(inside)
            d = draw(generator, *sides.pytorchs(x).shape)
            plain = {"d_input0": taken_one_after_the_other(sides.pytorchs, length, d)} if inside else None
            ratios.append(sides.ratios([x], d, plain=plain))
    assert broken(ratios) == {}


@pytest.mark.parametrize(("layer", "samples", "length"), CONVOLUTIONS)
@pytest.mark.parametrize("kind", [ConvolutionOfSeries, ImageConvolutionOfSeries])
def test_convolutions_of_whole_numbers_are_exact(
    layer: nn.Conv1d, samples: int, length: int, kind: type[ConvolutionOfSeries | ImageConvolutionOfSeries]
) -> None:
    generator, sides = seeded(6), convolution(layer, kind)
    with torch.no_grad():
        for one in (sides.pytorchs, sides.fused):
            for number, parameter in enumerate(one.parameters()):
                parameter.copy_(torch.randint(-3, 4, parameter.shape, generator=seeded(number)))
    x = torch.randint(-3, 4, (samples, layer.in_channels, length), generator=generator).float()
    x.requires_grad_(layer.in_channels >= 16)
    d = torch.randint(-3, 4, sides.pytorchs(x).shape, generator=generator).float()
    theirs, mine = sides.numbers([x], d)
    assert all(torch.equal(mine[name], one) for name, one in theirs.items())


@pytest.mark.parametrize(("samples", "rounded"), [(21, False), (22, True)])
def test_a_small_convolution_of_many_places_rounds_as_pytorchs(samples: int, rounded: bool) -> None:
    """Under autocast, if there is so much to multiply; else it is what it is without."""
    generator, sides = seeded(4), convolution(nn.Conv1d(64, 64, 3, 1, 1), ConvolutionOfSeries)
    assert (samples * 255 * 64 * 64 * 3 >= ENOUGH_ROUNDED) == rounded
    rounded = rounded and has_bfloat16()
    x, d = wanting(draw(generator, samples, 64, 255)), draw(generator, samples, 64, 255)
    exact = numbers(sides.fused, x, d)
    theirs, mine = Sides(Rounding(sides.pytorchs), Rounding(sides.fused)).numbers(x, d)
    far = {name: float((mine[name] - one).norm() / one.norm()) for name, one in exact.items()}
    if rounded:
        assert max(far.values()) > 1e-3
        torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-2)
    else:
        assert set(far.values()) == {0.0}


def test_without_instructions_for_it_no_convolution_of_series_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would crawl."""
    monkeypatch.setattr(rounding, "has_bfloat16", lambda: False)
    layer = convolution(nn.Conv1d(64, 64, 3, 1, 1), ConvolutionOfSeries).fused
    x, d = wanting(draw(seeded(1), 22, 64, 255)), draw(seeded(2), 22, 64, 255)
    exact, found = (numbers(one, x, d) for one in (layer, Rounding(layer)))
    assert all(torch.equal(found[name], one) for name, one in exact.items())


def test_what_is_no_number_goes_on_through_convolutions() -> None:
    sides, x = convolution(nn.Conv1d(16, 32, 3, 1, 1), ConvolutionOfSeries), torch.ones(3, 16, 9)
    x[1, 4, 5] = torch.nan
    theirs, mine = sides.numbers(wanting(x), torch.ones(3, 32, 9))
    assert theirs["made"].isnan().any() and theirs["d_weight"].isnan().any()
    assert all(torch.equal(mine[name].isnan(), one.isnan()) for name, one in theirs.items())


KINDS = {
    "windows": lambda: (convolution(nn.Conv1d(16, 32, 3), ConvolutionOfSeries), 32, 7),
    "image": lambda: (convolution(nn.Conv1d(16, 32, 3), ImageConvolutionOfSeries), 32, 7),
    "pointwise": lambda: (convolution(nn.Conv1d(16, 32, 1), PointwiseConvolutionOfSeries), 32, 9),
}


@pytest.mark.parametrize("kind", KINDS)
def test_how_numbers_lie_in_memory_changes_no_bit(kind: str) -> None:
    sides, width, length = KINDS[kind]()
    first, *others = numbers_as_they_lie(sides.fused, draw(seeded(1), 3, 16, 9), draw(seeded(2), 3, width, length))
    assert all(torch.equal(other[name], one) for other in others for name, one in first.items())


@pytest.mark.parametrize(
    ("layer", "fits"),
    [
        *((layer, True) for layer, _, _ in CONVOLUTIONS),
        (nn.Conv1d(16, 24, 3), False),
        (nn.Conv1d(24, 16, 3), False),
        (nn.Conv1d(16, 16, 3, 2), False),
        (nn.Conv1d(16, 16, 3, 1, 3), False),
        (nn.Conv1d(16, 16, 3, bias=False), False),
        (nn.Conv1d(64, 128, 3), False),
        (nn.Conv2d(16, 16, 3), False),
    ],
)
def test_for_which_convolutions_there_is_machine_code(layer: nn.Module, fits: bool) -> None:
    assert (ConvolutionOfSeries.of(layer) is not None) == fits


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 3, 0), (3, 2, 1), (5, 1, 2)])
def test_pooling_of_series_is_pytorchs_with_ties_and_without_numbers(kernel: int, stride: int, padding: int) -> None:
    layer = nn.MaxPool1d(kernel, stride=stride, padding=padding)
    x, found = torch.randint(-2, 3, (3, 5, 17), generator=seeded(1)).float(), []
    x[0, 0, 3], x[0, 1, 4] = torch.nan, -torch.inf
    for pooling in (layer, PoolingOfSeries.of(layer)):
        given = x.clone().requires_grad_()
        made = pooling(given)
        made.backward(torch.arange(float(made.numel())).view(made.shape))
        found.append((made.detach(), given.grad))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


POINTWISE = ((1, 64, 512), (5, 48, 7), (15, 16, 13), (16, 16, 8), (3, 17, 40), (40, 33, 1))
"""Samples, channels and length."""


@pytest.mark.drawn
@pytest.mark.parametrize("bias", [True, False])
def test_errors_of_pointwise_convolutions_are_pytorchs(bias: bool) -> None:
    ratios = []
    for seed, (samples, channels, length) in enumerate(POINTWISE):
        own = started(nn.Conv1d(channels, 32, 1, bias=bias), seed)
        layer = PointwiseConvolutionOfSeries.of(copy.deepcopy(own))
        assert layer is not None
        generator = seeded(seed)
        x, d = draw(generator, samples, channels, length), draw(generator, samples, 32, length)
        ratios.append(Sides(own, layer).ratios(wanting(x), d))
    assert broken(ratios) == {}


@pytest.mark.parametrize(
    ("samples", "length", "seen"), [(5, 512, 20), (1, 32, 16), (3, 13, 39), (15, 7, 105), (16, 4, 16), (2, 17, 2)]
)
def test_a_few_samples_are_cut_into_enough_for_onednn(
    samples: int, length: int, seen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = PointwiseConvolutionOfSeries.of(nn.Conv1d(16, 16, 1))
    shapes, own = [], nn.functional.conv2d
    monkeypatch.setattr(nn.functional, "conv2d", lambda x, *others: (shapes.append(len(x)), own(x, *others))[1])
    assert layer is not None and layer(torch.ones(samples, 16, length)).shape == (samples, 16, length)
    assert shapes == [seen] and (seen >= ENOUGH_SAMPLES or length > ENOUGH_SAMPLES)


@pytest.mark.parametrize("layer", [nn.Conv1d(4, 4, 2), nn.Conv1d(4, 4, 1, stride=2), nn.Conv1d(4, 4, 1, padding=1)])
def test_other_convolutions_are_not_pointwise(layer: nn.Conv1d) -> None:
    assert PointwiseConvolutionOfSeries.of(layer) is None


LAYERS_OF_SERIES = {
    "windows": ConvolutionOfSeries.of(nn.Conv1d(3, 16, 5, 2, 1)),
    "places": ConvolutionOfSeries.of(nn.Conv1d(16, 32, 3, 1, 1)),
    "pointwise": PointwiseConvolutionOfSeries.of(nn.Conv1d(16, 32, 1)),
    "image": ImageConvolutionOfSeries.of(nn.Conv1d(16, 8, 3)),
    "pooling": PoolingOfSeries.of(nn.MaxPool1d(3, 2, 1)),
}


@pytest.mark.parametrize("name", LAYERS_OF_SERIES)
@pytest.mark.parametrize("samples", [1, 5])
def test_a_row_comes_out_of_a_row_and_a_series_of_a_series(name: str, samples: int) -> None:
    layer, x = LAYERS_OF_SERIES[name], draw(seeded(1), samples, 3 if name == "windows" else 16, 12)
    series, row = layer(x), layer(x.unsqueeze(2))
    assert series.dim() == 3 and row.dim() == 4
    assert torch.equal(series, row.squeeze(2))


# -- the largest values of series -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_largest_values_are_those_that_sorting_finds(k: int) -> None:
    """With ties, of which the first count, and with what is no number."""
    own, some = KMaxPoolModule(k), draw(seeded(1), 4, 5, 40)
    tied = torch.randint(-2, 3, (4, 5, 40), generator=seeded(2)).float()
    lost, infinite = some.clone(), some.clone()
    lost[1, 2, 7] = torch.nan
    several, tied_and_lost = some.clone(), tied.clone()
    several[1, 2, 5:15], tied_and_lost[0, 0, 9] = torch.nan, torch.nan
    infinite[0, 0, :20], infinite[0, 1, 3:9] = torch.inf, -torch.inf
    layer = LargestOfSeries.of(own)
    assert layer is not None
    for x in (some, tied, lost, several, tied_and_lost, infinite, torch.zeros(2, 3, 8)):
        found = []
        for pooling in (own, layer):
            given = x.clone().requires_grad_()
            made = pooling(given)
            made.backward(torch.arange(float(made.numel())).view(made.shape))
            found.append((made.detach(), given.grad))
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=0, equal_nan=True)


# -- convolutions of images -------------------------------------------------------------------------------------------


IMAGES = (
    (nn.Conv2d(16, 16, 3, padding=1, bias=False), 5, 32, 32),
    (nn.Conv2d(32, 32, 3, padding=1, bias=False), 3, 16, 16),
    (nn.Conv2d(64, 64, 3, padding=1), 10, 8, 8),
    (nn.Conv2d(48, 16, 3, padding=1), 1, 1, 1),
    (nn.Conv2d(16, 80, 3, padding=1), 2, 2, 3),
    (nn.Conv2d(16, 32, 3, padding=1, bias=False), 7, 5, 1),
    (nn.Conv2d(32, 16, 3, padding=1), 40, 1, 9),
    (nn.Conv2d(16, 16, 3, padding=1), 2, 3, 77),
)
"""Of samples, and their height and width."""


def small_convolution(layer: nn.Conv2d, seed: int = 0) -> Sides:
    own = started(layer, seed).to(memory_format=torch.channels_last)
    fused = SmallConvolution.of(copy.deepcopy(own))
    assert fused is not None
    return Sides(own, fused)


@pytest.mark.drawn
@pytest.mark.parametrize("mean", [0.0, 10.0])
def test_errors_of_small_convolutions_are_pytorchs(mean: float) -> None:
    ratios = []
    for seed, (layer, samples, *size) in enumerate(IMAGES * (3 if FULL else 1)):
        generator, sides = seeded(seed), small_convolution(layer, seed)
        x = draw(generator, samples, layer.in_channels, *size, mean=mean)
        ratios.append(sides.ratios(wanting(x), draw(generator, samples, layer.out_channels, *size)))
    assert broken(ratios) == {}


@pytest.mark.parametrize(("layer", "samples", "height", "width"), IMAGES)
def test_small_convolutions_of_whole_numbers_are_exact(layer: nn.Conv2d, samples: int, height: int, width: int) -> None:
    generator, sides = seeded(6), small_convolution(layer)
    with torch.no_grad():
        for one in (sides.pytorchs, sides.fused):
            for number, parameter in enumerate(one.parameters()):
                parameter.copy_(torch.randint(-3, 4, parameter.shape, generator=seeded(number)))
    x = torch.randint(-3, 4, (samples, layer.in_channels, height, width), generator=generator).float()
    d = torch.randint(-3, 4, (samples, layer.out_channels, height, width), generator=generator).float()
    theirs, mine = sides.numbers(wanting(x), d)
    assert all(torch.equal(mine[name], one) for name, one in theirs.items())


def test_what_is_no_number_goes_as_far_as_a_small_convolution_reaches() -> None:
    sides, x = small_convolution(nn.Conv2d(16, 32, 3, padding=1)), torch.ones(3, 16, 6, 7)
    x[1, 4, 0, 6] = torch.nan
    theirs, mine = sides.numbers(wanting(x), torch.ones(3, 32, 6, 7))
    assert 0 < theirs["made"].isnan().sum() < 32 * 6 * 7 and theirs["d_weight"].isnan().any()
    assert all(torch.equal(mine[name].isnan(), one.isnan()) for name, one in theirs.items())


def test_how_images_lie_in_memory_changes_no_bit_of_a_small_convolution() -> None:
    layer, found = small_convolution(nn.Conv2d(16, 32, 3, padding=1)).fused, []
    x, d = draw(seeded(1), 3, 16, 5, 6), draw(seeded(2), 3, 32, 5, 6)
    for lay in (
        lambda one: one.contiguous(),
        lambda one: one.contiguous(memory_format=torch.channels_last),
        lambda one: one.repeat_interleave(2, dim=3)[..., ::2],
    ):
        found.append(numbers(layer, wanting(lay(x).detach()), lay(d)))
    assert all(torch.equal(other[name], one) for other in found[1:] for name, one in found[0].items())


@pytest.mark.parametrize(
    ("layer", "fits"),
    [
        *((layer, True) for layer, *_ in IMAGES),
        (nn.Conv2d(16, 24, 3, padding=1), False),
        (nn.Conv2d(3, 16, 3, padding=1), False),
        (nn.Conv2d(16, 16, 3, stride=2, padding=1), False),
        (nn.Conv2d(16, 16, 3), False),
        (nn.Conv2d(16, 16, 1, padding=1), False),
        (nn.Conv2d(16, 16, (3, 5), padding=(1, 2)), False),
        (nn.Conv2d(16, 16, 3, padding=1, dilation=2), False),
        (nn.Conv2d(32, 32, 3, padding=1, groups=2), False),
        (nn.Conv2d(128, 64, 3, padding=1), False),
        (nn.Conv1d(16, 16, 3, padding=1), False),
    ],
)
def test_which_convolutions_are_small(layer: nn.Module, fits: bool) -> None:
    assert (SmallConvolution.of(layer) is not None) == fits


def test_a_second_gradient_of_a_small_convolution_is_refused() -> None:
    layer, x = small_convolution(nn.Conv2d(16, 16, 3, padding=1)).fused, draw(seeded(1), 2, 16, 4, 4).requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x).square().sum(), [x], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_a_convolution_with_many_weights_is_one_with_channels_first() -> None:
    layer = started(nn.Conv2d(512, 256, 3, padding=1), 1).to(memory_format=torch.channels_last)
    assert ChannelsFirstConvolution.of(nn.Conv2d(512, 227, 3)) is None and MANY_WEIGHTS > 512 * 227 * 9
    fused = ChannelsFirstConvolution.of(copy.deepcopy(layer))
    assert fused is not None
    sides, generator = Sides(layer, fused), seeded(3)
    ratios = [
        sides.ratios(wanting(draw(generator, samples, 512, *size)), draw(generator, samples, 256, *size))
        for samples, size in ((1, (4, 4)), (3, (2, 5)), (9, (1, 1)))
    ]
    assert broken(ratios) == {}
