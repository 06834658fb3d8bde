"""Products with a shared matrix in machine code of our own: the same as PyTorch's, and every row by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tiers import drawn, mostly_long

from fedsim.learning.executors import matrix as matrix_module
from fedsim.learning.executors.matrix import LARGE, Matrix, kernels_for
from fedsim.learning.kernels import machine_code
from fedsim.learning.kernels.machine_code import ENOUGH_HELD, ProductKernels
from fedsim.learning.kernels.products import TERMS
from fedsim.learning.kernels.shapes import Machine, MatrixShape

EXACT = 1e-12
SHAPES = [(256, 256), (260, 272), (128, 800), (63, 1088)]
"""Of every number of vectors that are added to together, with a last part that is shorter, and with rows that fill no
block."""


HELD = 14
"""As on a processor with many registers, wherever the tests run: for float64."""
MANY_HELD = 28
"""For float32: more is multiplied at once."""


def made_for(held: int, *, amd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another processor, without tiles."""
    monkeypatch.setattr(
        machine_code, "host_machine", lambda dtype: Machine("double" if dtype == torch.float64 else "float", held)
    )
    monkeypatch.setattr(machine_code, "is_amd", lambda: amd)
    monkeypatch.setattr(machine_code, "has_tiles", lambda: False)
    monkeypatch.setattr(matrix_module, "product_kernels", kernels_made_for(held, amd))


@cache
def kernels_made_for(held: int, amd: bool) -> Callable[..., Any]:
    """A cache of machine code for each such processor: making it takes longer than what is then computed with it."""
    return cache(machine_code.product_kernels.__wrapped__)


@pytest.fixture(autouse=True)
def many_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere products are left to PyTorch."""
    made_for(HELD, amd=True, monkeypatch=monkeypatch)


many_rows = st.one_of(st.integers(1, 60), st.sampled_from([128, 129, 257]))
cases = st.tuples(st.sampled_from(SHAPES), many_rows, st.integers(0, 2**31))
few = drawn(30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tensors(case: tuple[tuple[int, int], int, int], dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    """A matrix (outputs, inputs), and rows of inputs and of outputs."""
    (outputs, inputs), rows, seed = case
    generator = torch.Generator().manual_seed(seed)
    shapes = [(outputs, inputs), (rows, inputs), (rows, outputs)]
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)


def far(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, relative to the largest number."""
    assert one.shape == other.shape
    return float((one - other).abs().max() / other.abs().max())


@pytest.mark.parametrize("held", mostly_long([HELD, MANY_HELD], now=[HELD]))
@few
@given(cases)
def test_products_are_pytorchs(held: int, case: tuple[tuple[int, int], int, int]) -> None:
    with pytest.MonkeyPatch.context() as here:
        made_for(held, amd=True, monkeypatch=here)
        check_products(*tensors(case))


def check_products(weight: torch.Tensor, h: torch.Tensor, d: torch.Tensor) -> None:
    matrix = Matrix(weight, None)
    assert far(matrix.times_transposed(h), h @ weight.t()) <= EXACT
    assert far(matrix.times(d), d @ weight) <= EXACT
    assert far(matrix.sum_of_products(d, h), d.t() @ h) <= EXACT


@few
@given(cases, st.integers(1, 59))
def test_a_row_does_not_feel_the_others(case: tuple[tuple[int, int], int, int], first: int) -> None:
    """Bit for bit: so numbers do not depend on who else is in a wave."""
    weight, h, d = tensors(case, torch.float32)
    matrix, some = Matrix(weight, None), slice(min(first, len(h) - 1), None)
    assert torch.equal(matrix.times_transposed(h)[some], matrix.times_transposed(h[some]))
    assert torch.equal(matrix.times(d)[some], matrix.times(d[some]))


@pytest.mark.parametrize(
    ("shape", "rows", "held"),
    mostly_long(
        product(SHAPES, [40, 300], [HELD, MANY_HELD]),
        now=[(SHAPES[1], 300, HELD), (SHAPES[2], 40, HELD), (SHAPES[3], 300, MANY_HELD)],
    ),
)
def test_float32_is_as_near_to_float64_as_pytorchs(
    shape: tuple[int, int], rows: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_for(held, amd=True, monkeypatch=monkeypatch)
    weight, h, d = tensors((shape, rows, 1))
    single = [tensor.float() for tensor in (weight, h, d)]
    mine, (w, x, y) = Matrix(single[0], None), single
    for found, theirs, exact in (
        (mine.times_transposed(x), x @ w.t(), x.double() @ w.double().t()),
        (mine.times(y), y @ w, y.double() @ w.double()),
        (mine.sum_of_products(y, x), y.t() @ x, y.double().t() @ x.double()),
    ):
        assert float((found - exact).norm()) <= 1.5 * float((theirs - exact).norm())


@pytest.mark.parametrize(
    ("held", "shape"),
    mostly_long(
        product([1, 3, 7, MANY_HELD], SHAPES), now=[(1, SHAPES[0]), (3, SHAPES[1]), (7, SHAPES[2]), (7, SHAPES[3])]
    ),
)
def test_registers_move_no_bit(held: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor with few of them a library is asked; what would be computed is the same."""
    weight, h, d = tensors((shape, 23, 8))
    few, own = ProductKernels(MatrixShape(*shape), Machine("double", held)), Matrix(weight, None)
    monkeypatch.setattr(matrix_module, "product_kernels", lambda shape, dtype, products: few)
    other = Matrix(weight, None)
    assert torch.equal(own.times_transposed(h), other.times_transposed(h))
    assert torch.equal(own.times(d), other.times(d))
    assert torch.equal(own.sum_of_products(d, h), other.sum_of_products(d, h))


own_kernels = cache(ProductKernels)


@pytest.mark.parametrize("rows", [1, 23, TERMS, TERMS + 1, 2 * TERMS + 44])
@pytest.mark.parametrize(
    ("shape", "held"), mostly_long(product(SHAPES, [7, MANY_HELD]), now=[(SHAPES[1], 7), (SHAPES[3], MANY_HELD)])
)
def test_products_of_whole_numbers_are_exact(shape: tuple[int, int], held: int, rows: int) -> None:
    """Of any number of terms. What is added is added to all that stands there, and once."""
    weight, h, d = (torch.round(3 * one).float() for one in tensors((shape, rows, 4)))
    ours = own_kernels(MatrixShape(*shape), Machine("float", held))
    for kernel, some, other, made, expected in (
        (ours.times_transposed, h, weight, torch.full_like(d, 7.0), h @ weight.t()),
        (ours.times, d, weight, torch.full_like(h, 7.0), d @ weight),
        (ours.sum_of_products, d, h, torch.full_like(weight, 7.0), d.t() @ h),
        (ours.added_products, d, h, weight.clone(), weight + d.t() @ h),
    ):
        kernel(rows, some.data_ptr(), other.data_ptr(), made.data_ptr())
        assert torch.equal(made, expected)


def test_of_no_row_there_is_no_sum() -> None:
    weight, h, d = tensors((SHAPES[0], 1, 8))
    assert not Matrix(weight, None).sum_of_products(d[:0], h[:0]).any()
    ours, made = own_kernels(MatrixShape(*SHAPES[0]), Machine("double", HELD)), weight.clone()
    for kernel in (ours.sum_of_products, ours.added_products):
        kernel(0, *[made.data_ptr()] * 3)
        assert torch.equal(made, weight)


def test_rows_keep_their_shape() -> None:
    """Clients and samples in front, whatever lies how in memory."""
    weight, h, d = tensors((SHAPES[0], 12, 3))
    matrix = Matrix(weight, None)
    assert torch.equal(matrix.times_transposed(h.view(3, 4, -1)), matrix.times_transposed(h).view(3, 4, -1))
    assert torch.equal(matrix.times(d.t().contiguous().t().view(12, -1)), matrix.times(d))
    transposed = Matrix(weight.t().contiguous().t(), None)
    assert torch.equal(transposed.times(d), matrix.times(d))
    assert torch.equal(transposed.sum_of_products(d, h), matrix.sum_of_products(d, h))


def test_other_shapes_are_left_to_pytorch() -> None:
    """Rows that do not fill vectors."""
    assert MatrixShape(255, 272).fits
    assert not MatrixShape(256, 270).fits
    weight, h, _ = tensors(((256, 270), 5, 1))
    assert weight.numel() >= LARGE
    assert torch.equal(Matrix(weight, None).times_transposed(h), h @ weight.t())


@pytest.mark.parametrize(
    ("held", "amd", "ours"), [(ENOUGH_HELD - 1, True, False), (ENOUGH_HELD, True, True), (ENOUGH_HELD, False, False)]
)
def test_where_pytorchs_products_are_as_quick_they_are_taken(
    held: int, amd: bool, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few registers, and on the processors for which its library was written."""
    made_for(held, amd=amd, monkeypatch=monkeypatch)
    assert (kernels_for((256, 256), torch.float32) is not None) == ours


def test_rows_of_another_type_or_width_are_refused() -> None:
    """As PyTorch refuses them: a kernel would read whatever lies behind them."""
    weight, h, d = tensors((SHAPES[1], 3, 1))
    matrix = Matrix(weight, None)
    for wrong in (h.float(), h[:, :-1], d):
        with pytest.raises(ValueError, match="and a matrix of"):
            matrix.times_transposed(wrong)
    with pytest.raises(ValueError, match="and a matrix of"):
        matrix.times(h)
    with pytest.raises(ValueError, match="and a matrix of"):
        matrix.sum_of_products(d, h.float())
