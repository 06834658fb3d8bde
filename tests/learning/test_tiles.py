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

from fedsim.learning.executors.batched import shared
from fedsim.learning.executors.batched.compiled import machine_code
from fedsim.learning.executors.batched.compiled.emitter import Emitter, Machine
from fedsim.learning.executors.batched.compiled.geometry import LANES
from fedsim.learning.executors.batched.compiled.machine_code import Program, TiledProductKernels, has_tiles
from fedsim.learning.executors.batched.compiled.tiles import Tiles
from fedsim.learning.executors.batched.compiled_scoring import compiled_features
from fedsim.learning.executors.batched.fronts import new_front
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.shared import Shared
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.objectives import Plain
from fedsim.models.layers import Conv2d, MaxPool2d

needs_tiles = pytest.mark.skipif(not has_tiles(), reason="this processor has no tiles")
FEW = settings(max_examples=25)
MOST = 1.5
"""Times PyTorch's error, as of other kernels; with few terms its sums are nearly exact."""


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    assert found.shape == exact.shape
    return float((found - exact).norm())


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# -- numbers in terms, on any processor -------------------------------------------------------------------------------


def in_terms(x: torch.Tensor) -> list[torch.Tensor]:
    """The terms of 16 numbers, by a kernel."""
    module = ir.Module()
    e = Emitter(module, "terms", ("x", "found"), Machine("float", 28), ())
    for number, term in enumerate(Tiles(e).terms(e.array("x", (1,)).load_vector())):
        e.array("found", (LANES,)).store(term, number)
    e.finish()
    found = torch.empty(3, LANES)
    Program(module).kernel("terms")(x.data_ptr(), found.data_ptr())
    return list(found)


@FEW
@given(st.lists(st.floats(2**-60, 2**60, width=32), min_size=LANES, max_size=LANES), st.booleans())
def test_a_number_is_the_sum_of_its_terms(numbers: list[float], negative: bool) -> None:
    """To the last bit, and each is one of bfloat16."""
    x = torch.tensor(numbers) * (-1 if negative else 1)
    terms = in_terms(x)
    assert torch.equal(sum(term.double() for term in terms), x.double())
    assert all(torch.equal(term.bfloat16().float(), term) for term in terms)


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
    monkeypatch.setattr(machine_code.llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(sys, "platform", "darwin" if missing == "linux" else "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: System())
    assert not has_tiles()


@needs_tiles
def test_float32_takes_them_and_float64_does_not() -> None:
    assert isinstance(shared.kernels_for((256, 256), torch.float32), TiledProductKernels)
    assert not isinstance(shared.kernels_for((256, 256), torch.float64), TiledProductKernels)


# -- products ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices too."""
    monkeypatch.setattr(shared, "LARGE", 1)


@needs_tiles
@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("rows", [1, 16, 17, 40, 300])
@pytest.mark.parametrize(("outputs", "inputs"), [(3, 5), (37, 51), (62, 128), (128, 784), (600, 1100)])
def test_products_are_as_near_to_float64_as_pytorchs(outputs: int, inputs: int, rows: int) -> None:
    """Of any shape: with rows, columns and terms that fill no tile, several panels, and several parts."""
    weight, h, d = random(outputs, inputs, seed=1), random(rows, inputs, seed=2), random(rows, outputs, seed=3)
    matrix, exact = Shared(weight, None), weight.double()
    for found, theirs, truth in (
        (matrix.times_transposed(h), h @ weight.t(), h.double() @ exact.t()),
        (matrix.times(d), d @ weight, d.double() @ exact),
        (matrix.sum_of_products(d, h), d.t() @ h, d.double().t() @ h.double()),
    ):
        last_digit = 2**-24 * float(truth.norm())
        assert error(found, truth) <= max(MOST * error(theirs, truth), 2 * last_digit)


@needs_tiles
@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("rows", [1, 15, 33, 70])
def test_a_row_does_not_feel_the_others(rows: int) -> None:
    """Bit for bit, wherever it is."""
    weight, h, d = random(70, 600, seed=1), random(100, 600, seed=2), random(100, 70, seed=3)
    matrix = Shared(weight, None)
    y, before = matrix.times_transposed(h), matrix.times(d)
    for some in (slice(rows), slice(100 - rows, None)):
        assert torch.equal(matrix.times_transposed(h[some]), y[some])
        assert torch.equal(matrix.times(d[some]), before[some])


# -- convolutions -----------------------------------------------------------------------------------------------------


def two_convolutions(inputs: int, outputs: int, size: int, **layer: int) -> tuple[ConvolutionBlock, ...]:
    """The first is not on tiles, the second is."""
    blocks, shape = [], (1, 2 * size, 2 * size)
    for name, channels, options in (("c1", inputs, {"kernel": 3, "padding": 1}), ("c2", outputs, layer)):
        convolution = Conv2d(name, shape[0], channels, **options)
        after = MaxPool2d("p", 2).output_shape(convolution.output_shape(shape))
        blocks.append(ConvolutionBlock("extractor", convolution, name == "c1", 2, shape, after, not blocks))
        shape = after
    return tuple(blocks)


def model_of(blocks: tuple[ConvolutionBlock, ...]) -> dict[str, dict[str, torch.Tensor]]:
    tensors = {}
    for seed, block in enumerate(blocks):
        for kind, shape in block.layer.parameter_shapes.items():
            scale = block.layer.in_channels * block.layer.kernel**2 if kind == "weight" else 1
            tensors[f"{block.layer.name}.{kind}"] = random(*shape, seed=seed) / scale**0.5
    return {"extractor": tensors}


def features(
    kind: str, blocks: tuple[ConvolutionBlock, ...], x: torch.Tensor, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    model = {part: {name: value.to(dtype) for name, value in own.items()} for part, own in model_of(blocks).items()}
    front = new_front(kind, Recipe(0.1, 0.0, 0.0, Plain()), blocks, model, 1, len(x))  # type: ignore[arg-type]
    channels, height, width = blocks[-1].output_shape
    found = torch.zeros(1, len(x), channels * height * width, dtype=dtype)
    front.forward([x.to(dtype)], found)
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
def test_scores_come_from_the_same_features_as_training() -> None:
    """Bit for bit, however many images there are."""
    blocks = two_convolutions(16, 48, 9, kernel=5, padding=2)
    x = random(23, *blocks[0].input_shape, seed=4)
    scored = compiled_features(blocks, model_of(blocks), x)
    assert torch.equal(features("compiled", blocks, x[:7]), scored[:7])
    assert torch.equal(features("compiled", blocks, x[7:]), scored[7:])


@needs_tiles
def test_of_equal_places_the_first_one_is_the_largest() -> None:
    """In an image that is blank most squares have four equal places: a gradient goes where PyTorch's goes."""
    blocks = two_convolutions(16, 16, 8, kernel=3, padding=1)
    x = torch.zeros(2, *blocks[0].input_shape)
    x[:, :, :, 5] = 1
    found = []
    for kind in ("compiled", "pytorch"):
        front = new_front(kind, Recipe(0.1, 0.0, 0.0, Plain()), blocks, model_of(blocks), 1, len(x))  # type: ignore[arg-type]
        channels, height, width = blocks[-1].output_shape
        front.forward([x], torch.zeros(1, len(x), channels * height * width))
        front.backward(torch.ones(1, len(x), channels * height * width), [len(x)])
        found.append([tensor for layer in front.convolutions for tensor in layer.state(0).values()])
    for mine, theirs in zip(*found, strict=True):
        assert float((mine - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())
