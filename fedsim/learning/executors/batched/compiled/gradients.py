"""The gradients of a convolution with pooling and rectifier, at the price of what pooling and rectifier let through.

A square of 2 x 2 places hands its gradient to one of them, and to none where the rectifier is shut. So of four products
of the usual way at least three are with zero, and are left out here; the sums are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from llvmlite import ir

from fedsim.learning.executors.batched.compiled.emitter import Array, Emitter, Target, Value
from fedsim.learning.executors.batched.compiled.forward import places, square, start_of
from fedsim.learning.executors.batched.compiled.geometry import LANES, Geometry

__all__ = ["emit_backward", "emit_first_backward"]

_Kind = TypeVar("_Kind")


def emit_backward(module: ir.Module, g: Geometry, target: Target) -> None:
    """``backward(samples, x, weights, y, d, where, dx, dw, db, offsets, values)``.

    *d*, the gradient of *y*, lies like *y*. To *dx*, which lies like *x*, *dw* and *db* the gradients are added.
    *offsets* and *values* are room for one channel's.
    """
    names = ("x", "weights", "y", "d", "where", "dx", "dw", "db", "offsets", "values")
    e = Emitter(module, "backward", names, target)
    image, *_ = square(g)
    channel_by_channel = (*places(g)[:3], 1)
    y, d = (e.array(name, channel_by_channel, start_of(g)) for name in ("y", "d"))
    where = e.byte_array("where", (g.rows * g.columns * g.outputs, g.columns * g.outputs, g.outputs, 1))
    x, dx = e.array("x", (image, 1)), e.array("dx", (image, 1))
    own = g.kernel * g.kernel * g.inputs
    weights, dw, db = e.array("weights", (own, LANES)), e.array("dw", (own, LANES)), e.array("db", (1,))
    offsets, values = e.offset_array("offsets"), e.array("values", (1,))
    taps = [_Tap((i * g.taken[1] + j) * g.inputs, (i * g.kernel + j) * g.inputs) for i, j in _taps(g)]
    with e.loop(e.samples) as sample, e.loop(g.outputs) as channel:
        passed, bias = e.variable(e.index(0)), e.variable(db.number(channel))
        with e.loop(g.rows) as r, e.loop(g.columns) as c:
            value = d.number(sample, r, c, channel)
            if g.rectified:
                value = e.rectified(value, y.number(sample, r, c, channel))
            offsets.put(_offset(e, g, (r, c), where.number(sample, r, c, channel)), passed.value)
            values.put(value, passed.value)
            passes = e.build.fcmp_unordered("!=", value, e.nothing)
            passed.value = e.build.add(passed.value, e.widened(passes))
            bias.value = e.build.fadd(bias.value, value)
        db.put(bias.value, channel)
        for some, group in product(range(g.inputs // LANES), _groups(e, taps)):
            held, sums = (array.at(channel, some) for array in (weights, dw))
            kept = [held.vector(tap.weight) for tap in group]
            with e.loop(passed.value) as number:
                to, value = _passed(e, dx.at(sample, some * LANES), offsets, values, number)
                for tap, weight in zip(group, kept, strict=True):
                    to.put(e.multiply_add(to.vector(tap.place), value, weight), tap.place)
            totals = [e.variable(sums.vector(tap.weight)) for tap in group]
            with e.loop(passed.value) as number:
                of, value = _passed(e, x.at(sample, some * LANES), offsets, values, number)
                for tap, total in zip(group, totals, strict=True):
                    total.value = e.multiply_add(total.value, value, of.vector(tap.place))
            for tap, total in zip(group, totals, strict=True):
                sums.put(total.value, tap.weight)
    e.finish()


class _Tap(NamedTuple):
    """A place of the kernel."""

    place: int
    """Its offset in an image."""
    weight: int
    """Its offset among a channel's weights."""


def _taps(g: Geometry) -> list[tuple[int, int]]:
    """Rows and columns of the kernel."""
    return [(tap // g.kernel, tap % g.kernel) for tap in range(g.kernel**2)]


def _groups(e: Emitter, taps: Sequence[_Kind]) -> list[Sequence[_Kind]]:
    """As many at a time as are held in registers."""
    most = max(1, e.held - 2)
    return [taps[first : first + most] for first in range(0, len(taps), most)]


def _offset(e: Emitter, g: Geometry, at: tuple[Value, Value], which: Value) -> Value:
    """Of the first weight's place in an image, for the place *which* of the square *at* row and column."""
    _, row, column, _ = square(g)
    place = e.widened(which)
    down, right = e.build.lshr(place, e.index(1)), e.build.and_(place, e.index(1))
    return e.narrowed(e.sum((at[0], row), (at[1], column), (down, row // 2), (right, column // 2)))


def _passed(e: Emitter, image: Array, offsets: Array, values: Array, number: Value) -> tuple[Array, Value]:
    """Where in *image* one gradient's patch begins, and the gradient."""
    return image.at(e.widened(offsets.number(number))), e.everywhere(values.number(number))


def emit_first_backward(module: ir.Module, g: Geometry, target: Target) -> None:
    """``backward(samples, x, y, d, where, dw, db, sums)``, where nobody asks for the gradient of *x*.

    To *dw* and *db* the gradients are added; *sums* is room for `LANES` channels' weights. Here the channels that come
    out fill the lanes: as each has its own place in a square, all four are gone through.
    """
    e = Emitter(module, "backward", ("x", "y", "d", "where", "dw", "db", "sums"), target)
    y, d = (e.array(name, places(g), start_of(g)) for name in ("y", "d"))
    where = e.byte_array("where", (g.rows * g.columns * g.outputs, g.columns * g.outputs, g.outputs, LANES))
    own = g.kernel * g.kernel * g.inputs
    x, sums = e.array("x", square(g)), e.array("sums", (g.inputs * LANES, LANES))
    dw, db = e.array("dw", (LANES * own, own, 1)), e.array("db", (LANES,))
    line = g.taken[1] * g.inputs

    def passed(*at: Value) -> Value:
        value = d.vector(*at)
        return e.rectified(value, y.vector(*at)) if g.rectified else value

    with e.loop(g.outputs // LANES) as some:
        bias = e.variable(db.vector(some))
        with e.loop(e.samples) as sample, e.loop(g.rows) as r, e.loop(g.columns) as c:
            bias.value = e.build.fadd(bias.value, passed(sample, r, c, some))
        db.put(bias.value, some)
        for group in _groups(e, _taps(g)):
            with e.loop(g.inputs) as channel:
                totals = {tap: e.variable(e.zeros) for tap in group}
                with e.loop(e.samples) as sample, e.loop(g.rows) as r, e.loop(g.columns) as c:
                    parts = _by_place(e, passed(sample, r, c, some), where.vector(sample, r, c, some))
                    below = x.at(sample, r, c, channel, strides=(line, g.inputs))
                    for i, j in product(range(g.kernel + 1), repeat=2):  # each number of the patch is fetched once
                        pixel = e.everywhere(below.number(i, j))
                        for (down, right), part in parts.items():
                            if (i - down, j - right) in totals:
                                total = totals[i - down, j - right]
                                total.value = e.multiply_add(total.value, pixel, part)
                for (i, j), total in totals.items():
                    sums.put(total.value, i * g.kernel + j, channel)
        with e.loop(own) as weight:
            for lane, number in enumerate(e.lanes(sums.at(strides=(LANES,)).vector(weight))):
                dw.put(e.build.fadd(dw.number(some, lane, weight), number), some, lane, weight)
    e.finish()


def _by_place(e: Emitter, value: Value, which: Value) -> dict[tuple[int, int], Value]:
    """For each (row, column) of a square the lanes of *value* that go there, and zeros."""
    return {
        (place // 2, place % 2): e.build.select(e.build.icmp_unsigned("==", which, e.bytes(place)), value, e.zeros)
        for place in range(4)
    }
