"""Convolutions in machine code of our own come to the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from conv_stack_waves import EXACT, MORE_ROWS, ConvStackWave, conv_stack_of, far, train, waves_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import FULL, mostly_long

from fedsim.learning.executors.batched.compiled_scoring import compiled_features
from fedsim.learning.executors.batched.conv_stacks import ConvStackKind, conv_stack_kind, new_conv_stack
from fedsim.learning.executors.batched.geometries import geometries
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock, architecture
from fedsim.learning.kernels import machine_code, processor
from fedsim.learning.kernels.shapes import Machine
from fedsim.learning.objectives.plain import Plain
from fedsim.models.fedgs_cnn import FedgsCnn
from fedsim.models.layers import Conv2d, MaxPool2d, Shape
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.small_cnn import SmallCnn

FEW = pytest.mark.drawn(settings(max_examples=25 if FULL else 3, deadline=None))
"""Each example makes machine code of its own, which takes a tenth of a second, or seconds if it is of much."""
MOST_CONVOLUTIONS, MOST_KERNEL, OUTPUTS = (2, 5, [16, 6, 32, 20]) if FULL else (1, 2, [16, 6])


def block_of(shape: Shape, outputs: int, *, first: bool = True, **layer: int) -> ConvolutionBlock:
    """A convolution with pooling."""
    convolution = Conv2d("c" if first else f"c{shape[0]}", shape[0], outputs, **layer)
    after = MaxPool2d("p", 2).output_shape(convolution.output_shape(shape))
    return ConvolutionBlock("extractor", convolution, True, 2, shape, after, first)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[ConvolutionBlock, ...]:
    """One or two convolutions for which there is machine code."""
    shape = draw(st.integers(1, 4)), draw(st.integers(8, 17)), draw(st.integers(8, 17))
    found: list[ConvolutionBlock] = []
    for number in range(draw(st.integers(1, MOST_CONVOLUTIONS))):
        kernel = draw(st.integers(1, min(MOST_KERNEL, *shape[1:])))
        layer = Conv2d(
            f"c{number}",
            shape[0],
            draw(st.sampled_from(OUTPUTS)),
            kernel=kernel,
            padding=draw(st.integers(0, kernel)),
            bias=draw(st.booleans()),
        )
        before, shape = shape, layer.output_shape(shape)
        if min(shape[1:]) < 2:
            break
        shape = MaxPool2d("p", 2).output_shape(shape)
        found.append(ConvolutionBlock("extractor", layer, draw(st.booleans()), 2, before, shape, not found))
    return tuple(found)


@FEW
@given(waves_of(blocks()))
def test_compiled_convolutions_are_pytorchs(wave: ConvStackWave) -> None:
    assert far(train(conv_stack_of(wave, "compiled"), wave), train(conv_stack_of(wave, "pytorch"), wave)) <= EXACT


@pytest.fixture
def registers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Tells how many vectors registers hold, for kernels that are made from then on."""

    def hold(vectors: int) -> None:
        machine_code.convolution_kernels.cache_clear()
        monkeypatch.setattr(machine_code, "host_machine", lambda dtype: Machine("double", vectors))

    yield hold
    machine_code.convolution_kernels.cache_clear()


@pytest.mark.parametrize("held", mostly_long([1, 4, 7, 14], now=[4]))
def test_few_registers_change_nothing_but_the_order_of_additions(held: int, registers: Callable[[int], None]) -> None:
    """As on other processors: features to the last bit."""
    blocks = (
        block_of((3, 15, 17), 32, kernel=5, padding=2),
        block_of((32, 7, 8), 16, kernel=3, padding=1, first=False),
    )
    wave = ConvStackWave(blocks, Recipe(0.1, 0.0, 0.0, Plain()), ((3, 2),), 4)
    found = []
    for vectors in (28, held):
        registers(vectors)
        found.append(train(conv_stack_of(wave, "compiled"), wave))
    many, few = found
    clients = 2
    assert all(torch.equal(one, other) for one, other in zip(many[:clients], few[:clients], strict=True))
    assert far(many, few) <= EXACT


@FEW
@given(waves_of(blocks()))
def test_rows_that_stand_for_no_sample_move_no_bit(wave: ConvStackWave) -> None:
    longer = train(conv_stack_of(wave, "compiled"), wave, more_rows=MORE_ROWS)
    for one, other in zip(longer, train(conv_stack_of(wave, "compiled"), wave), strict=True):
        assert torch.equal(one, other)


@FEW
@given(waves_of(blocks()))
def test_scores_come_from_the_same_features_as_training(wave: ConvStackWave) -> None:
    """Bit for bit, however many images there are."""
    conv_stack, (block, *_) = conv_stack_of(wave, "compiled"), wave.blocks
    x = torch.randn(3 * 11, *block.input_shape, dtype=torch.float64, generator=torch.Generator().manual_seed(wave.seed))
    model = {"extractor": {}}
    for each, layer in zip(wave.blocks, conv_stack.convolutions, strict=True):
        model["extractor"] |= {f"{each.layer.name}.{kind}": tensor for kind, tensor in layer.state(0).items()}
    scored = compiled_features(wave.blocks, model, x)
    samples = max(map(max, wave.samples))
    for first in range(0, len(x), samples):
        some = x[first : first + samples]
        features = torch.zeros(1, len(some), scored.shape[1], dtype=torch.float64)
        conv_stack.forward([some], features)
        assert torch.equal(features[0], scored[first : first + samples])


def trained_once(
    kind: ConvStackKind, *, dtype: torch.dtype, x: torch.Tensor, weights: float = 1.0
) -> tuple[torch.Tensor, ...]:
    """Features, and weights after a step; the second convolution tells where the first one's gradients went.

    *weights* is the size of the first one's weights.
    """
    blocks = (
        block_of((1, 8, 8), 16, kernel=3, padding=1),
        block_of((16, 4, 4), 16, kernel=3, padding=1, first=False),
    )
    generator = torch.Generator().manual_seed(5)
    base = {
        "extractor": {
            f"{block.layer.name}.{name}": torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
            for block in blocks
            for name, shape in block.layer.parameter_shapes.items()
        }
    }
    base["extractor"]["c.weight"] *= weights
    conv_stack = new_conv_stack(kind, Recipe(0.1, 0.0, 0.0, Plain()), blocks, base, 1, len(x))
    features = torch.zeros(1, len(x), 64, dtype=dtype)
    conv_stack.forward([x.to(dtype)], features)
    conv_stack.backward(torch.ones_like(features), [len(x)])
    return (features, *(tensor for layer in conv_stack.convolutions for tensor in layer.state(0).values()))


def test_of_equal_pixels_the_first_one_gets_the_gradient() -> None:
    """As in PyTorch: without weights all scores are the bias, and the gradient tells which pixels were taken."""
    x = torch.randn(2, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = (trained_once(kind, dtype=torch.float64, x=x, weights=0.0) for kind in ("compiled", "pytorch"))
    assert far(*found) <= EXACT


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_what_is_no_number_is_the_largest_wherever_in_a_square(place: tuple[int, int]) -> None:
    wave = ConvStackWave((block_of((1, 4, 4), 16, kernel=1),), Recipe(0.1, 0.0, 0.0, Plain()), ((1,),), 1)
    x = torch.ones(1, 1, 4, 4, dtype=torch.float64)
    x[0, 0, 2 + place[0], place[1]] = torch.nan
    found = torch.zeros(1, 1, 16 * 2 * 2, dtype=torch.float64)
    conv_stack_of(wave, "compiled").forward([x], found)
    square = torch.tensor([[False, False], [True, False]])
    assert torch.equal(found.view(16, 2, 2).isnan(), square.expand(16, 2, 2))


def test_what_is_no_number_goes_on_through_pooling_and_rectifier() -> None:
    """A diverged model is seen to be one, though products with a gradient of zero are left out."""
    x = torch.zeros(1, 1, 8, 8, dtype=torch.float64)
    x[0, 0, 2, 2] = torch.nan
    mine, others = (trained_once(kind, dtype=torch.float64, x=x) for kind in ("compiled", "pytorch"))
    assert torch.equal(mine[0].isnan(), others[0].isnan())
    for one, other in zip(mine, others, strict=True):
        assert other.isnan()[one.isnan()].all()
    assert all(mine[at].isnan().any() for at in (0, 1))


def test_float32_is_as_near_to_float64_as_pytorchs() -> None:
    x = torch.randn(4, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    exact = trained_once("pytorch", dtype=torch.float64, x=x)
    errors = {
        kind: [
            float((one.double() - other).norm())
            for one, other in zip(trained_once(kind, dtype=torch.float32, x=x), exact, strict=True)
        ]
        for kind in ("compiled", "pytorch")
    }
    for mine, theirs in zip(errors["compiled"], errors["pytorch"], strict=True):
        assert mine <= 2 * theirs


@pytest.mark.parametrize(
    ("block", "fits"),
    [
        (block_of((1, 9, 9), 16, kernel=5, padding=2), True),
        (block_of((4, 9, 9), 48, kernel=1), True),
        (block_of((5, 9, 9), 16, kernel=5), False),
        (block_of((1, 9, 9), 6, kernel=5), True),
        (block_of((1, 9, 9), 24, kernel=5), True),
        (block_of((1, 16, 16), 16, kernel=6), False),
        (block_of((1, 16, 16), 16, kernel=5, stride=2), False),
        (ConvolutionBlock("e", Conv2d("c", 1, 16, kernel=3), True, 1, (1, 9, 9), (16, 7, 7), True), False),
        (ConvolutionBlock("e", Conv2d("c", 1, 16, kernel=3), True, 3, (1, 9, 9), (16, 2, 2), True), False),
    ],
)
def test_for_which_convolutions_there_is_machine_code(block: ConvolutionBlock, fits: bool) -> None:
    assert (geometries([block]) is not None) == fits
    assert conv_stack_kind([block], stacked=False) == ("compiled" if fits else "pytorch")


@pytest.mark.parametrize(
    ("model", "kind"), [(SmallCnn(), "compiled"), (FedgsCnn(), "compiled"), (LeafCnn(), "compiled")]
)
def test_which_models_are_compiled(model: SmallCnn | FedgsCnn | LeafCnn, kind: ConvStackKind) -> None:
    conv_stack = architecture(model.table((1, 28, 28), 62)).conv_stack
    assert conv_stack_kind(conv_stack, stacked=False) == kind
    assert conv_stack_kind(conv_stack, stacked=True) == "stacked"


def test_without_a_fused_multiply_add_everything_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_features", lambda: {"avx"})
    assert conv_stack_kind([block_of((1, 9, 9), 16, kernel=5)], stacked=False) == "pytorch"


@pytest.mark.parametrize(
    "wrong", [torch.zeros(16, 1, 5, 5, dtype=torch.float64), torch.zeros(16, 1, 3, 3), torch.zeros(32, 1, 5, 5)]
)
def test_tensors_of_another_type_or_shape_are_refused(wrong: torch.Tensor) -> None:
    """As PyTorch refuses them: a kernel would read whatever lies behind them."""
    blocks = (block_of((1, 9, 9), 16, kernel=5, bias=False),)
    with pytest.raises(ValueError, match=r"c\.weight is"):
        compiled_features(blocks, {"extractor": {"c.weight": wrong}}, torch.zeros(1, 1, 9, 9))


@pytest.mark.parametrize("samples", mostly_long([10, 100], now=[100]))
def test_float32_gradients_stay_near_to_float64_with_many_samples(samples: int) -> None:
    """Sums that only grow, where one long sum would be 10 and 35 units off, and single samples' sums are 1 to 3.

    Pixels and weights are multiples of 1/16, so that both find the same maxima.
    """
    block = block_of((1, 28, 28), 16, kernel=5, padding=2)
    generator = torch.Generator().manual_seed(3)
    shapes = (samples, 1, 28, 28), (16, 1, 5, 5)
    x, weight = (torch.randint(1, 17, shape, generator=generator) / 16 for shape in shapes)
    d = torch.rand(1, samples, 16 * 14 * 14, generator=generator) / 1000
    changes = []
    for dtype in (torch.float32, torch.float64):
        tensors = {"extractor": {"c.weight": weight.to(dtype), "c.bias": torch.zeros(16, dtype=dtype)}}
        conv_stack = new_conv_stack("compiled", Recipe(1.0, 0.0, 0.0, Plain()), (block,), tensors, 1, samples)
        conv_stack.forward([x.to(dtype)], torch.zeros(d.shape, dtype=dtype))
        conv_stack.backward(d.to(dtype), [samples])
        changes.append(conv_stack.convolutions[0].weighted_change([1.0]))
    for kind, exact in changes[1].items():
        error = float((changes[0][kind] - exact).norm() / exact.norm())
        assert error <= 5 * 2**-24, kind
