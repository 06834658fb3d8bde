"""Exponential functions of vectors: within a few units of the last place of float64's, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.functions import LARGEST, LEAST, exponential, hyperbolic_tangent, logistic
from fedsim.learning.kernels.machine_code import host_machine
from fedsim.learning.kernels.program import Program
from fedsim.learning.kernels.shapes import LANES, Kernel

Written = Callable[[Emitter, Value], Value]


@cache
def kernel(function: Written) -> Kernel:
    """It computes the function of vectors, one after the other."""
    module = ir.Module()
    e = Emitter(module, "applied", ("x", "y"), host_machine(torch.float32))
    x, y = (e.array(name, (LANES,)) for name in ("x", "y"))
    with e.loop(e.samples) as vector:
        y.store(function(e, x.load_vector(vector)), vector)
    e.finish()
    return Program(module).kernel("applied")


def applied(function: Written, x: torch.Tensor) -> torch.Tensor:
    """Filled up with zeros to whole vectors."""
    whole = torch.cat([x, x.new_zeros(-len(x) % LANES)])
    made = torch.empty_like(whole)
    kernel(function)(len(whole) // LANES, whole.data_ptr(), made.data_ptr())
    return made[: len(x)]


def everywhere() -> torch.Tensor:
    """Dense where the functions bend, and of every size down to the smallest number there is."""
    sizes = torch.exp2(torch.linspace(-149, 6, 2**16))
    lines = [torch.linspace(-1, 1, 2**17), torch.linspace(-20, 20, 2**17), torch.linspace(LEAST, LARGEST, 2**18)]
    return torch.cat([*lines, sizes, -sizes])


def last_places(found: torch.Tensor, true: torch.Tensor) -> float:
    """The largest error, in units of the last place of float32."""
    unit = torch.from_numpy(np.spacing(true.abs().float().numpy())).double()
    return float(((found.double() - true).abs() / unit).max())


@pytest.mark.parametrize(
    ("function", "true", "most"),
    [(exponential, torch.exp, 1.1), (logistic, torch.sigmoid, 2.5), (hyperbolic_tangent, torch.tanh, 1.5)],
)
def test_errors_are_a_few_units_of_the_last_place(
    function: Written, true: Callable[[torch.Tensor], torch.Tensor], most: float
) -> None:
    """PyTorch's logistic function too is off by 2.4."""
    x = everywhere()
    assert last_places(applied(function, x), true(x.double())) <= most


FAR = torch.tensor([100.0, 3e38, torch.inf])


def test_far_away_they_are_what_they_tend_to() -> None:
    ones, zeros = torch.ones(3), torch.zeros(3)
    assert torch.equal(applied(logistic, FAR), ones)
    assert torch.allclose(applied(logistic, -FAR), zeros, atol=1e-38)
    assert torch.equal(applied(hyperbolic_tangent, FAR), ones)
    assert torch.equal(applied(hyperbolic_tangent, -FAR), -ones)
    assert applied(exponential, FAR).isfinite().all()
    assert torch.allclose(applied(exponential, -FAR), zeros, atol=2e-38)


@pytest.mark.parametrize("function", [exponential, logistic, hyperbolic_tangent])
def test_what_is_no_number_stays_none_whatever_its_bits(function: Written) -> None:
    kinds = torch.tensor([0x7FC00000, 0x7FFFFFFF, 0x7F800001, 0x7FC00001, -1, -(2**22)], dtype=torch.int32)
    assert applied(function, kinds.view(torch.float32)).isnan().all()


def test_the_hyperbolic_tangent_of_the_opposite_is_the_opposite() -> None:
    x = everywhere()
    assert torch.equal(applied(hyperbolic_tangent, -x), -applied(hyperbolic_tangent, x))
