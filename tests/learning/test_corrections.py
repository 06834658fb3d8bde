"""What each client's own change adds to a shared product, in machine code of our own: the same as PyTorch's."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import ir
from tiers import drawn

from fedsim.learning.kernels import machine_code
from fedsim.learning.kernels.corrections import emit_add_correction
from fedsim.learning.kernels.machine_code import ENOUGH_HELD, Program, correction_kernel
from fedsim.learning.kernels.shapes import Element, Kernel, Machine

EXACT = 1e-12
SIZES = [(16, 64), (272, 62), (62, 272), (784, 128), (5, 3), (100, 96)]
"""Numbers taken and made: whole vectors or not, and fewer than one."""


class Case(NamedTuple):
    """What a kernel is given."""

    sizes: tuple[int, int]
    clients: int
    samples: int
    rows: int
    spare: int
    seed: int


cases = st.builds(
    Case,
    st.sampled_from(SIZES),
    st.integers(1, 4),
    st.integers(1, 14),
    st.integers(1, 21),
    st.integers(0, 3),
    st.integers(0, 2**31),
)


class Tensors(NamedTuple):
    """Those of a case, in the kernel's order."""

    x: torch.Tensor
    left: torch.Tensor
    right: torch.Tensor
    coefficients: torch.Tensor
    y: torch.Tensor


@cache
def kernel(sizes: tuple[int, int], element: Element = "double", held: int = 14) -> Kernel:
    module = ir.Module()
    emit_add_correction(module, *sizes, Machine(element, held))
    return Program(module).kernel("add_correction")


def tensors(case: Case, dtype: torch.dtype = torch.float64) -> Tensors:
    """Rows beyond those in use hold what is no number."""
    (taken, made), capacity = case.sizes, case.rows + case.spare
    generator = torch.Generator().manual_seed(case.seed)
    shapes = [(case.samples, taken), (capacity, taken), (capacity, made), (capacity,), (case.samples, made)]
    drawn = Tensors(*(torch.randn(case.clients, *shape, generator=generator, dtype=dtype) for shape in shapes))
    for factor in (drawn.left, drawn.right, drawn.coefficients):
        factor[:, case.rows :] = torch.nan
    return drawn


def corrected(run: Kernel, case: Case, given: Tensors) -> torch.Tensor:
    """What becomes of ``y``."""
    y = given.y.clone()
    room = y.new_full((case.samples * case.rows,), torch.nan)
    pointers = [tensor.data_ptr() for tensor in (*given[:4], y, room)]
    run(case.clients, case.samples, case.rows, case.rows + case.spare, *pointers)
    return y


def by_pytorch(case: Case, given: Tensors) -> torch.Tensor:
    left, right, coefficients = (factor[:, : case.rows] for factor in given[1:4])
    return given.y + (given.x @ left.transpose(1, 2) * coefficients[:, None]) @ right


@drawn(100)
@given(cases)
def test_corrections_are_pytorchs(case: Case) -> None:
    given = tensors(case)
    found, expected = corrected(kernel(case.sizes), case, given), by_pytorch(case, given)
    assert float((found - expected).abs().max() / expected.abs().max()) <= EXACT


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_float32_is_as_near_to_float64_as_pytorchs(sizes: tuple[int, int], rows: int) -> None:
    case = Case(sizes, clients=8, samples=5, rows=rows, spare=2, seed=1)
    given = tensors(case, torch.float32)
    exact = by_pytorch(case, Tensors(*(tensor.double() for tensor in given)))
    found, theirs = corrected(kernel(sizes, "float", 28), case, given), by_pytorch(case, given)
    assert float((found - exact).norm()) <= 1.5 * float((theirs - exact).norm())


@drawn(30)
@given(cases)
def test_a_client_and_a_sample_do_not_feel_the_others(case: Case) -> None:
    """Bit for bit: so numbers do not depend on who else is in a wave."""
    given = tensors(case, torch.float32)
    together = corrected(kernel(case.sizes, "float", 28), case, given)
    alone, last = case._replace(clients=1, samples=1), slice(case.clients - 1, None)
    x, left, right, coefficients, y = (tensor[last] for tensor in given)
    some = Tensors(x[:, -1:], left, right, coefficients, y[:, -1:])
    assert torch.equal(corrected(kernel(case.sizes, "float", 28), alone, some), together[last, -1:])


@pytest.mark.parametrize("held", [1, 3, 7, 28])
@pytest.mark.parametrize("sizes", SIZES)
def test_registers_move_no_bit(sizes: tuple[int, int], held: int) -> None:
    case = Case(sizes, clients=2, samples=9, rows=11, spare=1, seed=4)
    given = tensors(case)
    assert torch.equal(corrected(kernel(sizes, "double", held), case, given), corrected(kernel(sizes), case, given))


def test_nothing_beyond_a_tensor_is_written() -> None:
    case = Case((62, 35), clients=2, samples=3, rows=5, spare=0, seed=5)
    given = tensors(case)
    larger = torch.cat([given.y, torch.full_like(given.y[:1], 7.0)])
    room = torch.full((case.samples * case.rows + 16,), 7.0, dtype=torch.float64)
    pointers = [tensor.data_ptr() for tensor in (*given[:4], larger, room)]
    kernel(case.sizes)(case.clients, case.samples, case.rows, case.rows, *pointers)
    assert bool((larger[-1] == 7).all())
    assert bool((room[-16:] == 7).all())
    assert torch.equal(larger[:-1], corrected(kernel(case.sizes), case, given))


@pytest.mark.parametrize(
    ("held", "amd", "ours"), [(ENOUGH_HELD - 1, True, False), (ENOUGH_HELD, True, True), (ENOUGH_HELD, False, False)]
)
def test_where_pytorchs_products_may_be_as_quick_they_are_taken(
    held: int, amd: bool, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "host_machine", lambda dtype: Machine("float", held))
    monkeypatch.setattr(machine_code, "is_amd", lambda: amd)
    assert (correction_kernel.__wrapped__(64, 32, torch.float32) is not None) == ours
