"""The best choice by constraint programming: OR-Tools' CP-SAT, which stops when it has proven it, or after its time.

|A x - y|^2 is the sum over the classes f of s_f^2 - 2 y_f s_f + y_f^2, where s_f is the number of samples. As s_f is
whole, its square is the smallest q_f with q_f >= (2 v + 1) s_f - v (v + 1) for all whole v: the chords between the
points of the parabola. So all is linear. What is better than a choice at a distance of d has s_f between y_f - d and
y_f + d, which leaves few chords. y is rounded to multiples of 2^-30, or of larger powers of two where numbers are
large.

Time is OR-Tools' deterministic time, which counts work, in units that are about seconds. There is one worker, and its
seed is fixed. So the result depends on the problem and on the version of OR-Tools, not on the machine or its load.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.subset.gbp_cs import gbp_cs
from fedsim.grouping.subset.pair_swap import descended
from fedsim.grouping.subset.selector import Chosen, Matrix, Quadratic, SubsetSelector, distance
from fedsim.settings import Positive

__all__ = ["CPSAT", "Solved", "solved"]

LARGEST = 2**50
"""Of the whole numbers that the solver adds up."""
FINEST = 30
"""Binary digits of y after the point, at most."""


class Solved(NamedTuple):
    """What the solver has found in its time."""

    chosen: Chosen
    proven: bool
    """Whether there is none better."""


class CPSAT(SubsetSelector):
    """The best of all choices by OR-Tools' CP-SAT, or the best that it finds in its time."""

    name: Literal["cp_sat"] = "cp_sat"
    time_limit_s: Positive = 10.0
    """OR-Tools' deterministic seconds, which count work: about seconds, and the same on every machine."""

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """What is found in time, and never worse than GBP-CS and best swaps from there."""
        return solved(rows, target, size, self.time_limit_s).chosen


def solved(rows: Matrix, target: Matrix, size: int, time_limit_s: float) -> Solved:
    """The best *size* of *rows* to add up to *target*. Raises `ValueError` unless rows are whole numbers from 0 on."""
    from ortools.sat.python import cp_model

    if not ((rows >= 0) & (rows == np.rint(rows))).all():
        raise ValueError("cp_sat needs counts, whole numbers from 0 on")
    good = _good(rows, target, size)
    lowest, highest = _bounds(rows, target, good)
    scale = _scale(highest, target)
    model = cp_model.CpModel()
    takes = [model.new_bool_var("") for _ in good]
    model.add(sum(takes) == size)
    costs: list[Any] = []
    for of_class, low, high, goal in zip(rows.T, lowest, highest, np.rint(2 * scale * target), strict=True):
        total, square = model.new_int_var(low, high, ""), model.new_int_var(low**2, high**2, "")
        model.add(total == cp_model.LinearExpr.weighted_sum(takes, of_class.astype(np.int64).tolist()))
        for v in range(low, high):
            model.add(square >= (2 * v + 1) * total - v * (v + 1))
        costs.append(scale * square - int(goal) * total)
    model.minimize(sum(costs))
    for take, hint in zip(takes, good.tolist(), strict=True):
        model.add_hint(take, hint)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = time_limit_s
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        good = np.array([solver.boolean_value(take) for take in takes])
    return Solved(np.flatnonzero(good), status == cp_model.OPTIMAL)


def _good(rows: Matrix, target: Matrix, size: int) -> NDArray[np.bool_]:
    """A choice that is not bad."""
    mask = np.zeros((1, len(rows)), dtype=np.bool_)
    mask[0, gbp_cs(rows, target, size).chosen] = True
    found: NDArray[np.bool_] = descended(Quadratic.of(rows, target), mask)[0]
    return found


def _bounds(rows: Matrix, target: Matrix, good: NDArray[np.bool_]) -> tuple[list[int], list[int]]:
    """The least and the most samples of each class in what is not worse than *good*."""
    most = np.sort(rows, axis=0)[-np.count_nonzero(good) :].sum(axis=0)
    far = distance(rows, target, np.flatnonzero(good)) + 1
    low, high = np.floor(np.maximum(target - far, 0)), np.ceil(np.minimum(target + far, most))
    return [int(number) for number in low], [int(number) for number in high]


def _scale(highest: list[int], target: Matrix) -> int:
    """A power of two: in how many parts a sample is cut, so that *target* is in whole numbers."""
    largest = sum(high * (high + 2 * abs(goal)) for high, goal in zip(highest, target.tolist(), strict=True))
    digits = min(FINEST, math.floor(math.log2(LARGEST / largest))) if largest else FINEST
    if digits < 0:
        raise ValueError(f"cp_sat has no room for squared distances of {largest:g}")
    return int(2**digits)
