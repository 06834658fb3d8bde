"""The gradients of a convolution with pooling and rectifier.

A square of 2 x 2 places hands its gradient to one of them, and to none where the rectifier is shut. So of four products
of the usual way at least three are with zero. `emit_backward` leaves them out; `emit_first_backward`, whose lanes are
output channels, multiplies zeros where a channel's gradient goes elsewhere. The sums are the same, as long as what is
multiplied with zero is finite. Each sample's are made by themselves and then added, which keeps rounding errors small.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Array, Emitter
from fedsim.learning.kernels.shapes import LANES, Geometry, Machine

__all__ = ["emit_backward", "emit_first_backward"]

_Kind = TypeVar("_Kind")


def emit_backward(module: ir.Module, g: Geometry, machine: Machine) -> None:
    """``backward(samples, x, weights, y, d, where, dx, dw, db, offsets, values)``.

    *d*, the gradient of *y*, lies like *y*. To *dx*, which lies like *x*, *dw* and *db* the gradients are added. For
    each sample and output channel ::

        (offset, value) for every square whose gradient is not 0
        dx[offset + tap] += value w[tap]
        dw[tap] += value x[offset + tap]

    *offsets* and *values* are room for the squares of an image.
    """
    names = ("x", "weights", "y", "d", "where", "dx", "dw", "db", "offsets", "values")
    e = Emitter(module, "backward", names, machine)
    y, d = (e.array(name, (*g.made_strides, 1), g.made_start) for name in ("y", "d"))
    where = e.byte_array("where", (*g.where_strides, 1))
    image, row, column = g.taken_strides
    x, dx = e.array("x", (image, LANES)), e.array("dx", (image, LANES))
    own = g.weights_per_output
    weights, dw, db = e.array("weights", (own, LANES)), e.array("dw", (own, LANES)), e.array("db", (1,))
    taps = [_Tap(i * row + j * column, (i * g.kernel + j) * g.inputs) for i, j in _places(g)]
    passed = _Passed(e)
    with e.loop(e.samples) as sample, e.loop(g.outputs) as channel:
        bias = e.variable(e.zero)
        passed.forget()
        with e.loop(g.rows) as r, e.loop(g.columns) as c:
            value = d.load(sample, r, c, channel)
            if g.rectified:
                value = e.rectified(value, y.load(sample, r, c, channel))
            passed.append(_offset(e, g, r, c, where.load(sample, r, c, channel)), value)
            bias.value = e.build.fadd(bias.value, value)
        db.store(e.build.fadd(db.load(channel), bias.value), channel)
        with e.loop(g.inputs // LANES) as in_block:
            for group in _groups(machine, taps):
                _add_to_image(passed, dx.at(sample, in_block), weights.at(channel, in_block), group)
                _add_to_weights(passed, dw.at(channel, in_block), x.at(sample, in_block), group)
    e.finish()


class _Tap(NamedTuple):
    """A place of the kernel."""

    pixel: int
    """Its offset in an image."""
    weight: int
    """Its offset among a channel's weights."""


class _Passed:
    """A list of the gradients that are not 0, and of where in an image the patch of each begins."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self._offsets, self._values = e.word_array("offsets"), e.array("values", (1,))
        self._number = e.variable(e.index(0))

    def forget(self) -> None:
        """Begin a new list."""
        self._number.value = self.e.index(0)

    def append(self, offset: Value, value: Value) -> None:
        """Write it behind the others; what is 0 will be written over."""
        e, number = self.e, self._number.value
        self._offsets.store(e.narrowed(offset), number)
        self._values.store(value, number)
        is_some = e.build.fcmp_unordered("!=", value, e.zero)
        self._number.value = e.build.add(number, e.widened(is_some))

    @property
    def number(self) -> Value:
        """How many there are."""
        return self._number.value

    def get(self, at: Value) -> tuple[Value, Value]:
        """The offset of one, and a vector of its value."""
        return self.e.widened(self._offsets.load(at)), self.e.broadcast(self._values.load(at))


def _add_to_image(passed: _Passed, image: Array, weights: Array, taps: Sequence[_Tap]) -> None:
    e, kept = passed.e, [weights.load_vector(tap.weight) for tap in taps]
    with e.loop(passed.number) as at:
        offset, value = passed.get(at)
        patch = image.at(offset)
        for tap, weight in zip(taps, kept, strict=True):
            patch.store(e.multiply_add(patch.load_vector(tap.pixel), value, weight), tap.pixel)


def _add_to_weights(passed: _Passed, sums: Array, image: Array, taps: Sequence[_Tap]) -> None:
    e, totals = passed.e, [passed.e.variable(passed.e.zeros) for _ in taps]
    with e.loop(passed.number) as at:
        offset, value = passed.get(at)
        patch = image.at(offset)
        for tap, total in zip(taps, totals, strict=True):
            total.value = e.multiply_add(total.value, value, patch.load_vector(tap.pixel))
    for tap, total in zip(taps, totals, strict=True):
        sums.add(total.value, tap.weight)


def _offset(e: Emitter, g: Geometry, r: Value, c: Value, which: Value) -> Value:
    """Where in an image the patch begins of place *which* of a square."""
    _, row, column = g.taken_strides
    place = e.widened(which)
    down, right = e.build.lshr(place, e.index(1)), e.build.and_(place, e.index(1))
    return e.index_sum((r, 2 * row), (c, 2 * column), (down, row), (right, column))


def _places(g: Geometry) -> list[tuple[int, int]]:
    """Rows and columns of the kernel."""
    return [(place // g.kernel, place % g.kernel) for place in range(g.kernel**2)]


def _groups(machine: Machine, things: Sequence[_Kind]) -> list[Sequence[_Kind]]:
    """As many at a time as stay in registers."""
    most = max(1, machine.vectors_held - 2)
    return [things[first : first + most] for first in range(0, len(things), most)]


def emit_first_backward(module: ir.Module, g: Geometry, machine: Machine) -> None:
    """``backward(samples, x, y, d, where, dw, db, sums)``, where nobody asks for the gradient of *x*.

    To *dw* and *db* the gradients are added; *sums* is room for the weights of `LANES` channels. Here the channels that
    come out fill the lanes: as each has its own place in a square, all four are gone through.
    """
    e = Emitter(module, "backward", ("x", "y", "d", "where", "dw", "db", "sums"), machine)
    y, d = (e.array(name, (*g.made_strides, LANES), g.made_start) for name in ("y", "d"))
    where = e.byte_array("where", (*g.where_strides, LANES))
    own = g.weights_per_output
    image, row, column = g.taken_strides
    x, sums = e.array("x", (image, 2 * row, 2 * column, 1)), e.array("sums", (g.inputs * LANES, LANES))
    dw, db = e.array("dw", (LANES * own, own, 1)), e.array("db", (LANES,))

    def gradient(*at: Value) -> Value:
        value = d.load_vector(*at)
        return e.rectified(value, y.load_vector(*at)) if g.rectified else value

    with e.loop(g.outputs // LANES) as out_block, e.loop(e.samples) as sample:
        bias = e.variable(e.zeros)
        with e.loop(g.rows) as r, e.loop(g.columns) as c:
            bias.value = e.build.fadd(bias.value, gradient(sample, r, c, out_block))
        db.add(bias.value, out_block)
        for group in _groups(machine, _places(g)):
            with e.loop(g.inputs) as in_channel:
                totals = {place: e.variable(e.zeros) for place in group}
                with e.loop(g.rows) as r, e.loop(g.columns) as c:
                    at = (sample, r, c, out_block)
                    parts = _by_place(e, gradient(*at), where.load_vector(*at))
                    patch = x.at(sample, r, c, in_channel, strides=(row, column))
                    for i, j in product(range(g.kernel + 1), repeat=2):  # each number of the patch is fetched once
                        pixel = e.broadcast(patch.load(i, j))
                        for (down, right), part in parts.items():
                            if (i - down, j - right) in totals:
                                total = totals[i - down, j - right]
                                total.value = e.multiply_add(total.value, pixel, part)
                for (i, j), total in totals.items():
                    sums.store(total.value, i * g.kernel + j, in_channel)
        with e.loop(own) as weight:
            for lane, number in enumerate(e.lanes(sums.at(strides=(LANES,)).load_vector(weight))):
                dw.store(e.build.fadd(dw.load(out_block, lane, weight), number), out_block, lane, weight)
    e.finish()


def _by_place(e: Emitter, value: Value, which: Value) -> dict[tuple[int, int], Value]:
    """For each (row, column) of a square the lanes of *value* that go there, and zeros."""
    return {
        (place // 2, place % 2): e.build.select(e.build.icmp_unsigned("==", which, e.same_bytes(place)), value, e.zeros)
        for place in range(4)
    }
