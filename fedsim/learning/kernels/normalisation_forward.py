"""The forward pass of normalisation, and what comes right behind it, in one pass over memory after that for moments.

The variance is that of the distances from the first row.
"""

from __future__ import annotations

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter, Index
from fedsim.learning.kernels.loops import in_parts
from fedsim.learning.kernels.normalisation import (
    DOUBLE,
    DOUBLES,
    MOMENTUM,
    Coefficients,
    Sums,
    as_number,
    for_channels,
    group_mean,
    groups,
    inverse_deviation,
    made,
    rows_made,
    second_is_larger,
    values,
)
from fedsim.learning.kernels.shapes import LANES, MOST_TOGETHER, Machine, Normalisation

__all__ = ["emit_apply", "emit_forward"]


def emit_forward(module: ir.Module, about: Normalisation, machine: Machine) -> None:
    """``forward(samples, rows, x, other, weight, bias, y, means, inverses, running_mean, running_var)``.

    *means* and *inverses*, of the deviation, are (units, channels), for `emit_backward`: there is one unit, or one for
    each sample with groups. *other* is read if something is added, and the running statistics are moved without groups.
    """
    pointers = ("x", "other", "weight", "bias", "y", "means", "inverses", "running_mean", "running_var")
    e = Emitter(module, "forward", pointers, machine, ("samples", "rows"))
    if about.groups is None:
        for_channels(e, about, lambda block: _batch_forward(e, about, block))
    else:
        with e.loop(e.samples) as sample:
            for_channels(e, about, lambda block: _sample_moments(e, about, sample, block))
            _groups_joined(e, about, sample)
            for_channels(e, about, lambda block: _applied(e, about, sample, block, unit=sample))
    e.finish()


def emit_apply(module: ir.Module, about: Normalisation, machine: Machine) -> None:
    """``apply(samples, rows, x, other, weight, bias, y, means, inverses)``: with (1, channels) that are given."""
    pointers = ("x", "other", "weight", "bias", "y", "means", "inverses")
    e = Emitter(module, "apply", pointers, machine, ("samples", "rows"))
    with e.loop(e.samples) as sample:
        for_channels(e, about, lambda block: _applied(e, about, sample, block, unit=e.index(0)))
    e.finish()


def _batch_forward(e: Emitter, about: Normalisation, block: Value) -> None:
    moments = _Moments(e, about, block, e.index(0))
    with e.loop(e.samples) as sample:
        moments.take(sample)
    number = e.build.mul(e.samples, e.count("rows"))
    unbiased_share = e.build.fdiv(as_number(e, number), as_number(e, e.index_sum((number, 1), (-1, 1))))
    for v, (mean, variance) in enumerate(moments.found(number)):
        at = e.index_sum((block, 1), (v * LANES, 1))
        e.array("means", (1,)).store(mean, at)
        e.array("inverses", (1,)).store(inverse_deviation(e, variance), at)
        unbiased = e.build.fmul(variance, e.broadcast(unbiased_share))
        for name, value in (("running_mean", mean), ("running_var", unbiased)):
            running = e.array(name, (1,))
            kept = e.build.fmul(running.load_vector(at), e.constant(1 - MOMENTUM))
            running.store(e.multiply_add(kept, value, e.constant(MOMENTUM)), at)
    with e.loop(e.samples) as sample:
        _applied(e, about, sample, block, unit=e.index(0))


def _sample_moments(e: Emitter, about: Normalisation, sample: Value, block: Value) -> None:
    """Of each channel of a sample; they lie where its means and inverses will."""
    moments = _Moments(e, about, block, sample)
    moments.take(sample)
    for v, (mean, variance) in enumerate(moments.found(e.count("rows"))):
        at = e.index_sum((block, 1), (v * LANES, 1))
        e.array("means", (about.channels, 1)).store(mean, sample, at)
        e.array("inverses", (about.channels, 1)).store(variance, sample, at)


def _groups_joined(e: Emitter, about: Normalisation, sample: Value) -> None:
    """Means and variances of channels become the mean and the inverse deviation of their group."""
    means, inverses = (e.array(name, (about.channels, 1)).at(sample) for name in ("means", "inverses"))
    for vectors in groups(about):
        places = [vector * LANES for vector in vectors]
        found = [means.load_vector(at) for at in places]
        mean = group_mean(e, about, found)
        apart = [e.build.fsub(one, mean) for one in found]
        spread = [e.multiply_add(inverses.load_vector(at), d, d) for at, d in zip(places, apart, strict=True)]
        inverse = inverse_deviation(e, group_mean(e, about, spread))
        for at in places:
            means.store(mean, at)
            inverses.store(inverse, at)


def _applied(e: Emitter, about: Normalisation, sample: Value, block: Value, *, unit: Value) -> None:
    """``y = (x - mean) scale + bias``, and what comes behind."""
    has = Coefficients(e, about, block, unit)
    x, y, other = values(e, about, "x", sample, block), made(e, about, "y", sample, block), None
    if about.added:
        other = made(e, about, "other", sample, block)

    def one(row: Index, v: int) -> Value:
        return has.normalised(x.load_vector(row, v), v)

    def some(first: Value, number: int) -> None:
        for i in range(number):
            row = e.index_sum((first, 1), (i, 1))
            for v in range(about.together):
                if about.pooled:
                    pair = [one(e.index_sum((row, 2), (half, 1)), v) for half in (0, 1)]
                    value = e.build.select(second_is_larger(e, *pair), pair[1], pair[0])
                else:
                    value = one(row, v)
                if other is not None:
                    value = e.build.fadd(value, other.load_vector(row, v))
                y.store(e.rectified(value, value) if about.rectified else value, row, v)

    in_parts(e, rows_made(e, about), (MOST_TOGETHER // about.together, 1), some)


class _Moments:
    """Sums of some channels' distances from their first row, and of their squares."""

    def __init__(self, e: Emitter, about: Normalisation, block: Value, first_sample: Value) -> None:
        self._e, self._about, self._block = e, about, block
        first = values(e, about, "x", first_sample, block)
        self._shifts = [e.variable(first.load_vector(0, v)) for v in range(about.together)]
        self._sums = Sums(e, about.together)

    def take(self, sample: Value) -> None:
        """Add the rows of a sample."""
        x = values(self._e, self._about, "x", sample, self._block)

        def terms(row: Value, v: int) -> tuple[Value, Value]:
            apart = self._e.build.fsub(x.load_vector(row, v), self._shifts[v].value)
            return apart, apart

        self._sums.add(self._e.count("rows"), terms)

    def found(self, count: Value) -> list[tuple[Value, Value]]:
        """The mean and the variance of each vector of channels, of so many rows."""
        e, made = self._e, []
        number = e.broadcast(e.build.sitofp(count, DOUBLE))
        for shift, (total, squares) in zip(self._shifts, self._sums.totals, strict=True):
            mean = e.build.fdiv(total.value, number)
            variance = e.build.fsub(e.build.fdiv(squares.value, number), e.build.fmul(mean, mean))
            none = ir.Constant(DOUBLES, [0.0] * LANES)
            variance = e.build.select(e.build.fcmp_ordered("<", variance, none), none, variance)
            mean = e.build.fadd(mean, e.build.fpext(shift.value, DOUBLES))
            made.append((e.build.fptrunc(mean, e.vector_type), e.build.fptrunc(variance, e.vector_type)))
        return made
