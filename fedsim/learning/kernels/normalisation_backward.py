"""The backward pass of normalisation, and of what comes right behind it: sums over rows, and then one pass more."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter, Index
from fedsim.learning.kernels.loops import in_parts
from fedsim.learning.kernels.normalisation import (
    Coefficients,
    Sums,
    as_number,
    for_channels,
    group_mean,
    groups,
    made,
    rows_made,
    second_is_larger,
    values,
)
from fedsim.learning.kernels.shapes import LANES, MOST_TOGETHER, Machine, Normalisation

__all__ = ["emit_backward"]


def emit_backward(module: ir.Module, about: Normalisation, machine: Machine) -> None:
    """``backward(samples, rows, dy, x, y, weight, bias, means, inverses, dx, d_other, d_weight, d_bias, room)``.

    *y* is read, and *d_other* written, if something was added. *d_weight* and *d_bias* are zeros before. *room* is for
    two numbers of each channel.
    """
    pointers = ("dy", "x", "y", "weight", "bias", "means", "inverses", "dx", "d_other", "d_weight", "d_bias", "room")
    e = Emitter(module, "backward", pointers, machine, ("samples", "rows"))
    if about.groups is None:
        for_channels(e, about, lambda block: _batch_backward(e, about, block))
    else:
        with e.loop(e.samples) as sample:
            for_channels(e, about, lambda block: _sample_sums(e, about, sample, block))
            _group_sums_joined(e, about, sample)
            for_channels(e, about, lambda block: _sample_backward(e, about, sample, block))
    e.finish()


def _batch_backward(e: Emitter, about: Normalisation, block: Value) -> None:
    sums = Sums(e, about.together)
    with e.loop(e.samples) as sample:
        _gradient_sums(e, about, sample, block, e.index(0), sums)
    count = as_number(e, e.build.mul(e.samples, e.count("rows")))
    share = e.broadcast(e.build.fdiv(ir.Constant(e.number_type, 1.0), count))
    has, pulls = Coefficients(e, about, block, e.index(0)), []
    for v, (total, with_x) in enumerate(sums.rounded()):
        at = e.index_sum((block, 1), (v * LANES, 1))
        e.array("d_bias", (1,)).store(total, at)
        by_deviation = e.build.fmul(with_x, has.inverse(v))
        e.array("d_weight", (1,)).store(by_deviation, at)
        pull = e.build.fmul(e.build.fmul(by_deviation, has.inverse(v)), share)
        pulls.append((e.variable(has.scale(v)), e.variable(e.build.fmul(total, share)), e.variable(pull)))

    def gradient(g: Value, apart: Value, v: int) -> Value:
        scale, mean, pull = (variable.value for variable in pulls[v])
        less = e.build.fsub(g, mean)
        return e.build.fmul(scale, e.build.fsub(less, e.build.fmul(apart, pull)))

    with e.loop(e.samples) as sample:
        _write_gradients(e, about, sample, block, e.index(0), gradient)


def _sample_sums(e: Emitter, about: Normalisation, sample: Value, block: Value) -> None:
    """Of a sample's channels, times the weights, to *room*; its share of the gradients of weights is added."""
    sums = Sums(e, about.together)
    _gradient_sums(e, about, sample, block, sample, sums)
    has = Coefficients(e, about, block, sample)
    for v, (total, with_x) in enumerate(sums.rounded()):
        at = e.index_sum((block, 1), (v * LANES, 1))
        by_deviation = e.build.fmul(with_x, has.inverse(v))
        for name, value in (("d_bias", total), ("d_weight", by_deviation)):
            e.array(name, (1,)).add(value, at)
        weight, room = e.array("weight", (1,)).load_vector(at), e.array("room", (about.channels, 1))
        room.store(e.build.fmul(total, weight), 0, at)
        room.store(e.build.fmul(by_deviation, weight), 1, at)


def _group_sums_joined(e: Emitter, about: Normalisation, sample: Value) -> None:
    """What a channel's gradients are pulled by: the group's means over channels and rows."""
    room, inverses = e.array("room", (about.channels, 1)), e.array("inverses", (about.channels, 1)).at(sample)
    share = e.broadcast(e.build.fdiv(ir.Constant(e.number_type, 1.0), as_number(e, e.count("rows"))))
    for vectors in groups(about):
        places = [vector * LANES for vector in vectors]
        mean, pull = (
            e.build.fmul(group_mean(e, about, [room.load_vector(kind, at) for at in places]), share) for kind in (0, 1)
        )
        for at in places:
            room.store(mean, 0, at)
            room.store(e.build.fmul(pull, inverses.load_vector(at)), 1, at)


def _sample_backward(e: Emitter, about: Normalisation, sample: Value, block: Value) -> None:
    has, held = Coefficients(e, about, block, sample), []
    for v in range(about.together):
        at = e.index_sum((block, 1), (v * LANES, 1))
        weight = e.array("weight", (1,)).load_vector(at)
        pulls = (e.array("room", (about.channels, 1)).load_vector(kind, at) for kind in (0, 1))
        held.append([e.variable(value) for value in (weight, *pulls, has.inverse(v))])

    def gradient(g: Value, apart: Value, v: int) -> Value:
        weight, mean, pull, inverse = (variable.value for variable in held[v])
        less = e.build.fsub(e.build.fmul(g, weight), mean)
        return e.build.fmul(inverse, e.build.fsub(less, e.build.fmul(apart, pull)))

    _write_gradients(e, about, sample, block, sample, gradient)


def _gradient_sums(e: Emitter, about: Normalisation, sample: Value, block: Value, unit: Value, sums: Sums) -> None:
    """Of what comes to the normalisation from behind, and of that times the distance from the mean."""
    came = _Came(e, about, sample, block, unit)
    sums.add(rows_made(e, about), lambda row, v: came.at(row, v, keep=True))


def _write_gradients(
    e: Emitter,
    about: Normalisation,
    sample: Value,
    block: Value,
    unit: Value,
    gradient: Callable[[Value, Value, int], Value],
) -> None:
    came = _Came(e, about, sample, block, unit)
    dx = values(e, about, "dx", sample, block)

    def some(first: Value, number: int) -> None:
        for i in range(number):
            row = e.index_sum((first, 1), (i, 1))
            for v in range(about.together):
                if not about.pooled:
                    dx.store(gradient(*came.kept(row, v), v), row, v)
                    continue
                for half, (g, apart) in enumerate(came.both(row, v)):
                    dx.store(gradient(g, apart, v), e.index_sum((row, 2), (half, 1)), v)

    in_parts(e, rows_made(e, about), (MOST_TOGETHER // about.together, 1), some)
    if about.pooled:
        made = rows_made(e, about)
        with e.loop(e.index_sum((e.count("rows"), 1), (made, -2))):  # the last row of an odd number fills no pair
            row = e.index_sum((made, 2))
            for v in range(about.together):
                dx.store(gradient(e.zeros, came.apart(row, v), v), row, v)


class _Came:
    """What comes from behind to some channels of a sample, and how far their values are from the mean."""

    def __init__(self, e: Emitter, about: Normalisation, sample: Value, block: Value, unit: Value) -> None:
        self._e, self._about = e, about
        self._x, self._dy = values(e, about, "x", sample, block), made(e, about, "dy", sample, block)
        if about.added:
            self._y, self._d_other = (made(e, about, name, sample, block) for name in ("y", "d_other"))
        self._has = Coefficients(e, about, block, unit)

    def apart(self, row: Index, v: int) -> Value:
        """A value's distance from the mean."""
        return self._e.build.fsub(self._x.load_vector(row, v), self._has.mean(v))

    def at(self, row: Value, v: int, *, keep: bool) -> tuple[Value, Value]:
        """What comes to a row, or to the one of a pair that was kept, and its distance from the mean."""
        e, about, g = self._e, self._about, self._dy.load_vector(row, v)
        if about.pooled:
            aparts = [self.apart(e.index_sum((row, 2), (half, 1)), v) for half in (0, 1)]
            values = [self._has.from_apart(apart, v) for apart in aparts]
            second = second_is_larger(e, *values)
            apart, value = (e.build.select(second, pair[1], pair[0]) for pair in (aparts, values))
            return (e.rectified(g, value) if about.rectified else g), apart
        apart = self.apart(row, v)
        if about.added:
            g = e.rectified(g, self._y.load_vector(row, v)) if about.rectified else g
            if keep:
                self._d_other.store(g, row, v)
        elif about.rectified:
            g = e.rectified(g, self._has.from_apart(apart, v))
        return g, apart

    def kept(self, row: Value, v: int) -> tuple[Value, Value]:
        """The same once more."""
        if self._about.added:
            return self._d_other.load_vector(row, v), self.apart(row, v)
        return self.at(row, v, keep=False)

    def both(self, row: Value, v: int) -> list[tuple[Value, Value]]:
        """Of both rows of a pair."""
        e = self._e
        g = self._dy.load_vector(row, v)
        aparts = [self.apart(e.index_sum((row, 2), (half, 1)), v) for half in (0, 1)]
        values = [self._has.from_apart(apart, v) for apart in aparts]
        second = second_is_larger(e, *values)
        if self._about.rectified:
            g = e.rectified(g, e.build.select(second, values[1], values[0]))
        return [
            (e.build.select(second, e.zeros, g), aparts[0]),
            (e.build.select(second, g, e.zeros), aparts[1]),
        ]
