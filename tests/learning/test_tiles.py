"""Products of float32 numbers on tiles are as near to the exact ones as PyTorch's."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import ir

from fedsim.learning.executors import matrix as matrix_module
from fedsim.learning.executors.batched.compiled_scoring import compiled_features
from fedsim.learning.executors.batched.conv_stacks import ConvStackKind, new_conv_stack
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.executors.matrix import Matrix
from fedsim.learning.kernels import processor
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.machine_code import Program, TiledProductKernels
from fedsim.learning.kernels.processor import has_tiles
from fedsim.learning.kernels.shapes import LANES, Machine
from fedsim.learning.kernels.tiles import EXACT, ROUNDED, Tiles
from fedsim.learning.objectives.plain import Plain
from fedsim.models.layers import Conv2d, MaxPool2d, Shape

needs_tiles = pytest.mark.skipif(not has_tiles(), reason="this processor has no tiles")
FEW = settings(max_examples=25)
MOST, MOST_OF_ONE_ROW = 1.0, 1.1
"""Times PyTorch's error; one row it multiplies in another way, with shorter sums."""


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    assert found.shape == exact.shape
    return float((found - exact).norm())


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# -- numbers in terms, on any processor -------------------------------------------------------------------------------


def in_terms(x: torch.Tensor, number: int) -> list[torch.Tensor]:
    """The terms of 16 numbers, by a kernel."""
    module = ir.Module()
    e = Emitter(module, "terms", ("x", "found"), Machine("float", 28), ())
    for at, term in enumerate(Tiles(e, number).terms(e.array("x", (1,)).load_vector())):
        e.array("found", (LANES,)).store(term, at)
    e.finish()
    found = torch.empty(number, LANES)
    Program(module).kernel("terms")(x.data_ptr(), found.data_ptr())
    return list(found)


sixteen = st.lists(st.floats(2**-60, 2**60, width=32), min_size=LANES, max_size=LANES)


@FEW
@given(sixteen, st.sampled_from([-1, 1]))
def test_a_number_is_the_sum_of_its_terms(numbers: list[float], sign: int) -> None:
    """To the last bit, and each is one of bfloat16."""
    x = sign * torch.tensor(numbers)
    terms = in_terms(x, EXACT)
    assert torch.equal(sum(term.double() for term in terms), x.double())
    assert all(torch.equal(term.bfloat16().float(), term) for term in terms)


@FEW
@given(sixteen, st.sampled_from([-1, 1]))
def test_of_one_term_it_is_the_nearest(numbers: list[float], sign: int) -> None:
    x = sign * torch.tensor(numbers)
    assert torch.equal(in_terms(x, ROUNDED)[0], x.bfloat16().float())


def test_of_two_as_near_terms_the_even_one_is_taken() -> None:
    x = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8] * (LANES // 2))
    assert torch.equal(in_terms(x, ROUNDED)[0], x.bfloat16().float())
    assert torch.equal(in_terms(x, ROUNDED)[0][:2], torch.tensor([1.0, 1 + 4 * 2**-8]))


@FEW
@given(st.integers(-3, 2 * LANES), st.integers(0, 2**31))
def test_lanes_beyond_a_count_are_neither_read_nor_written(number: int, seed: int) -> None:
    module = ir.Module()
    e = Emitter(module, "copied", ("x", "y"), Machine("float", 28), ("number",))
    lanes = e.first_lanes(e.count("number"))
    e.array("y", (1,)).store_lanes(lanes, e.array("x", (1,)).load_lanes(lanes))
    e.finish()
    x, y = random(LANES, seed=seed), torch.zeros(LANES)
    Program(module).kernel("copied")(number, x.data_ptr(), y.data_ptr())
    assert torch.equal(y, torch.where(torch.arange(LANES) < number, x, 0))


def test_vectors_are_transposed() -> None:
    module = ir.Module()
    e = Emitter(module, "flipped", ("x", "y"), Machine("double", 14), ())
    x, y = (e.array(name, (LANES,)) for name in ("x", "y"))
    for row, vector in enumerate(e.transposed([x.load_vector(row) for row in range(LANES)])):
        y.store(vector, row)
    e.finish()
    numbers, found = torch.arange(256.0, dtype=torch.float64).view(LANES, LANES), torch.empty(LANES, LANES).double()
    Program(module).kernel("flipped")(numbers.data_ptr(), found.data_ptr())
    assert torch.equal(found, numbers.t())


# -- where there are tiles --------------------------------------------------------------------------------------------


@pytest.fixture
def asked_again() -> Iterator[None]:
    """What a process knows of its processor is forgotten, before and after."""
    has_tiles.cache_clear()
    yield
    has_tiles.cache_clear()


@pytest.mark.parametrize("missing", ["amx-tile", "amx-bf16", "linux", "leave"])
@pytest.mark.usefixtures("asked_again")
def test_without_tiles_or_leave_to_use_them_there_are_none(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class System:
        def syscall(self, *words: int) -> int:
            return -1 if missing == "leave" else 0

    features = {name: name != missing for name in ("amx-tile", "amx-bf16")}
    monkeypatch.setattr(processor.llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(sys, "platform", "darwin" if missing == "linux" else "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: System())
    assert not has_tiles()


@needs_tiles
def test_float32_takes_them_and_float64_does_not() -> None:
    assert isinstance(matrix_module.kernels_for((256, 256), torch.float32), TiledProductKernels)
    assert not isinstance(matrix_module.kernels_for((256, 256), torch.float64), TiledProductKernels)


# -- products ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices too."""
    monkeypatch.setattr(matrix_module, "LARGE", 1)


@needs_tiles
@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("rows", [1, 16, 17, 40, 300])
@pytest.mark.parametrize(("outputs", "inputs"), [(3, 5), (37, 51), (62, 128), (128, 784), (600, 1100)])
def test_products_are_as_near_to_float64_as_pytorchs(outputs: int, inputs: int, rows: int) -> None:
    """Of any shape: with rows, columns and terms that fill no tile, several panels, and several parts."""
    weight, h, d = random(outputs, inputs, seed=1), random(rows, inputs, seed=2), random(rows, outputs, seed=3)
    matrix, exact = Matrix(weight, None), weight.double()
    for found, theirs, truth in (
        (matrix.times_transposed(h), h @ weight.t(), h.double() @ exact.t()),
        (matrix.times(d), d @ weight, d.double() @ exact),
        (matrix.sum_of_products(d, h), d.t() @ h, d.double().t() @ h.double()),
    ):
        most = MOST_OF_ONE_ROW if rows == 1 else MOST
        assert error(found, truth) <= max(most * error(theirs, truth), 2**-24 * float(truth.norm()))


@needs_tiles
@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("rows", [1, 15, 33, 70])
def test_a_row_does_not_feel_the_others(rows: int) -> None:
    """Bit for bit, wherever it is."""
    weight, h, d = random(70, 600, seed=1), random(100, 600, seed=2), random(100, 70, seed=3)
    matrix = Matrix(weight, None)
    y, before = matrix.times_transposed(h), matrix.times(d)
    for some in (slice(rows), slice(100 - rows, None)):
        assert torch.equal(matrix.times_transposed(h[some]), y[some])
        assert torch.equal(matrix.times(d[some]), before[some])


@needs_tiles
@pytest.mark.usefixtures("tiled")
def test_a_sum_over_no_rows_is_zero() -> None:
    total = Matrix(random(37, 51, seed=1), None).sum_of_products(torch.empty(0, 37), torch.empty(0, 51))
    assert torch.equal(total, torch.zeros(37, 51))


@needs_tiles
@pytest.mark.usefixtures("tiled")
def test_what_is_left_out_of_products_has_no_sign() -> None:
    """Sums of many positive products would tell."""
    left, right = random(200, 800, seed=1).abs(), random(60, 800, seed=2).abs()
    found, truth = Matrix(right, None).times_transposed(left), left.double() @ right.double().t()
    assert abs(float(((found - truth) / truth).mean())) <= 2**-28


@needs_tiles
@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("rows", [1, 40])
def test_factors_may_be_rounded(rows: int) -> None:
    """Then products are those of the rounded factors, to float32's last digits."""
    weight, h, d = random(37, 51, seed=1), random(rows, 51, seed=2), random(rows, 37, seed=3)
    matrix, (w, x, y) = Matrix(weight, torch.bfloat16), (tensor.bfloat16().double() for tensor in (weight, h, d))
    for found, truth in (
        (matrix.times_transposed(h), x @ w.t()),
        (matrix.times(d), y @ w),
        (matrix.sum_of_products(d, h), y.t() @ x),
    ):
        assert error(found, truth) <= 2**-22 * float(truth.norm())


# -- convolutions -----------------------------------------------------------------------------------------------------


def stacked_blocks(*layers: tuple[int, dict[str, int]], size: int = 16) -> tuple[ConvolutionBlock, ...]:
    """Convolutions by their outputs and options; all but the first are on tiles, all but the last rectified."""
    blocks: list[ConvolutionBlock] = []
    shape: Shape = (1, 2 * size, 2 * size)
    for number, (channels, options) in enumerate(layers):
        convolution = Conv2d(f"c{number}", shape[0], channels, **options)
        after = MaxPool2d("p", 2).output_shape(convolution.output_shape(shape))
        is_last = number == len(layers) - 1
        blocks.append(ConvolutionBlock("extractor", convolution, not is_last, 2, shape, after, not blocks))
        shape = after
    return tuple(blocks)


def two_convolutions(inputs: int, outputs: int, size: int, **layer: int) -> tuple[ConvolutionBlock, ...]:
    """The second one as asked for."""
    return stacked_blocks((inputs, {"kernel": 3, "padding": 1}), (outputs, layer), size=size)


def model_of(blocks: tuple[ConvolutionBlock, ...]) -> dict[str, dict[str, torch.Tensor]]:
    tensors = {}
    for seed, block in enumerate(blocks):
        for kind, shape in block.layer.parameter_shapes.items():
            scale = block.layer.in_channels * block.layer.kernel**2 if kind == "weight" else 1
            tensors[f"{block.layer.name}.{kind}"] = random(*shape, seed=seed) / scale**0.5
    return {"extractor": tensors}


def features(
    kind: ConvStackKind,
    blocks: tuple[ConvolutionBlock, ...],
    x: torch.Tensor,
    dtype: torch.dtype = torch.float32,
    products: torch.dtype | None = None,
) -> torch.Tensor:
    model = {part: {name: value.to(dtype) for name, value in own.items()} for part, own in model_of(blocks).items()}
    recipe = Recipe(0.1, 0.0, 0.0, Plain(), products)
    conv_stack = new_conv_stack(kind, recipe, blocks, model, 1, len(x))
    channels, height, width = blocks[-1].output_shape
    found = torch.zeros(1, len(x), channels * height * width, dtype=dtype)
    conv_stack.forward([x.to(dtype)], found)
    return found[0]


@needs_tiles
@pytest.mark.parametrize(
    ("inputs", "outputs", "size", "layer"),
    [
        (16, 32, 14, {"kernel": 5, "padding": 2}),
        (32, 64, 7, {"kernel": 5, "padding": 2}),
        (48, 16, 9, {"kernel": 3, "padding": 0}),
        (16, 48, 21, {"kernel": 4, "padding": 3}),
        (32, 16, 6, {"kernel": 1, "padding": 0}),
    ],
)
def test_convolutions_are_as_near_to_float64_as_pytorchs(
    inputs: int, outputs: int, size: int, layer: dict[str, int]
) -> None:
    """With lines that fill no step, a last handful of outputs, and more columns than a tile has rows."""
    blocks = two_convolutions(inputs, outputs, size, **layer)
    x = random(6, *blocks[0].input_shape, seed=4)
    exact = features("pytorch", blocks, x, torch.float64)
    assert error(features("compiled", blocks, x), exact) <= MOST * error(features("pytorch", blocks, x), exact)


@needs_tiles
@pytest.mark.parametrize("outputs", [16, 48])
def test_scores_come_from_the_same_features_as_training(outputs: int) -> None:
    """Bit for bit, however many images there are, and whatever a chunk or another convolution has left behind."""
    blocks = stacked_blocks(
        (16, {"kernel": 3, "padding": 1}), (outputs, {"kernel": 5, "padding": 2}), (16, {"kernel": 3})
    )
    x = random(53, *blocks[0].input_shape, seed=4)
    scored = compiled_features(blocks, model_of(blocks), x)
    assert torch.equal(features("compiled", blocks, x[:7]), scored[:7])
    assert torch.equal(features("compiled", blocks, x[7:]), scored[7:])
    with_a_hole = x.clone()
    with_a_hole[9] = torch.nan
    others = torch.arange(53) != 9
    found = compiled_features(blocks, model_of(blocks), with_a_hole)
    assert torch.equal(found[others], scored[others])
    assert found[9].isnan().any()


@needs_tiles
def test_convolutions_may_round_their_factors() -> None:
    """Training and scoring alike, and as near as PyTorch's in that type, which rounds what comes out, too."""
    blocks = two_convolutions(16, 32, 9, kernel=5, padding=2)
    x = random(6, *blocks[0].input_shape, seed=4)
    found, exact = (
        features("compiled", blocks, x, products=torch.bfloat16),
        features("pytorch", blocks, x, torch.float64),
    )
    theirs = features("pytorch", blocks, x, products=torch.bfloat16)
    assert 100 * error(features("compiled", blocks, x), exact) < error(found, exact) <= error(theirs, exact)
    assert torch.equal(found, compiled_features(blocks, model_of(blocks), x, torch.bfloat16))


@needs_tiles
def test_of_equal_places_the_first_one_is_the_largest() -> None:
    """In an image that is blank most squares have four equal places: a gradient goes where PyTorch's goes."""
    blocks = two_convolutions(16, 16, 8, kernel=3, padding=1)
    x = torch.zeros(2, *blocks[0].input_shape)
    x[:, :, :, 5] = 1
    found: list[list[torch.Tensor]] = []
    kinds: tuple[ConvStackKind, ...] = ("compiled", "pytorch")
    for kind in kinds:
        conv_stack = new_conv_stack(kind, Recipe(0.1, 0.0, 0.0, Plain()), blocks, model_of(blocks), 1, len(x))
        channels, height, width = blocks[-1].output_shape
        conv_stack.forward([x], torch.zeros(1, len(x), channels * height * width))
        conv_stack.backward(torch.ones(1, len(x), channels * height * width), [len(x)])
        found.append([tensor for layer in conv_stack.convolutions for tensor in layer.state(0).values()])
    for mine, theirs in zip(*found, strict=True):
        assert float((mine - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())
