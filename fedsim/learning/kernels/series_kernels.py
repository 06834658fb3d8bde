"""Convolution of series as products of windows: channels last, a window's numbers lie side by side.

A library takes longer to begin such a convolution than to compute it, where series are short and mini-batches small.
"""

from __future__ import annotations

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.products import in_tiles
from fedsim.learning.kernels.shapes import LANES, Machine, Windows

__all__ = ["emit_sums_of_windows", "emit_window_products"]

TERMS = 128
"""Windows that are added up by themselves, so that rounding errors stay small. A change moves the last bit."""


def emit_window_products(module: ir.Module, about: Windows, machine: Machine) -> None:
    """``products(samples, windows, length, x, weights, bias, y)``.

    *x* is (samples, length) numbers, *weights* (numbers, outputs), *bias* (outputs,), *y* (samples, windows, outputs).
    """
    e = Emitter(module, "products", ("x", "weights", "bias", "y"), machine, ("samples", "windows", "length"))
    with e.loop(e.samples) as sample:
        x = e.array("x", (1,)).at(e.build.mul(sample, e.count("length")), strides=(about.step, 1))
        y = e.array("y", (about.outputs,)).at(e.build.mul(sample, e.count("windows")), strides=(about.outputs, 1))
        weights, bias = e.array("weights", (about.outputs, 1)), e.array("bias", (1,))

        def tile(first: Value, size: int, x: Value = x, y: Value = y) -> None:
            rows = [e.index_sum((first, 1), (i, 1)) for i in range(size)]
            with e.loop(about.outputs // (about.together * LANES)) as block:
                places = [e.index_sum((block, about.together * LANES), (v, LANES)) for v in range(about.together)]
                sums = [[e.variable(bias.load_vector(at)) for at in places] for _ in rows]
                with e.loop(about.numbers) as number:
                    columns = [weights.load_vector(number, at) for at in places]
                    for row, of_row in zip(rows, sums, strict=True):
                        value = e.broadcast(x.load(row, number))
                        for total, column in zip(of_row, columns, strict=True):
                            total.value = e.multiply_add(total.value, value, column)
                for row, of_row in zip(rows, sums, strict=True):
                    for at, total in zip(places, of_row, strict=True):
                        y.store(total.value, row, at)

        in_tiles(e, e.count("windows"), about.together, tile)
    e.finish()


def emit_sums_of_windows(module: ir.Module, about: Windows, machine: Machine) -> None:
    """``sums(samples, windows, length, x, dy, total)``: the gradient of the weights, (numbers, outputs).

    Added up over the windows of some samples, and then over these.
    """
    e = Emitter(module, "sums", ("x", "dy", "total"), machine, ("samples", "windows", "length"))
    windows = e.count("windows")
    some = e.larger(e.build.sdiv(e.index(TERMS), e.larger(windows, e.index(1))), e.index(1))
    chunks = e.build.sdiv(e.index_sum((e.samples, 1), (some, 1), (-1, 1)), some)
    total = e.array("total", (about.outputs, 1))
    with e.loop(chunks) as chunk:
        begin = e.build.mul(chunk, some)
        number_of_samples = e.smaller(some, e.index_sum((e.samples, 1), (begin, -1)))
        is_first = e.build.icmp_signed("==", chunk, e.index(0))

        def tile(
            first: Value, size: int, begin: Value = begin, count: Value = number_of_samples, is_first: Value = is_first
        ) -> None:
            numbers = [e.index_sum((first, 1), (i, 1)) for i in range(size)]
            with e.loop(about.outputs // (about.together * LANES)) as block:
                places = [e.index_sum((block, about.together * LANES), (v, LANES)) for v in range(about.together)]
                sums = [[e.variable(e.zeros) for _ in places] for _ in numbers]
                with e.loop(count) as sample:
                    at = e.index_sum((begin, 1), (sample, 1))
                    x = e.array("x", (1,)).at(e.build.mul(at, e.count("length")), strides=(about.step, 1))
                    dy = e.array("dy", (about.outputs,)).at(e.build.mul(at, windows), strides=(about.outputs, 1))
                    with e.loop(windows) as window:
                        columns = [dy.load_vector(window, place) for place in places]
                        for number, of_number in zip(numbers, sums, strict=True):
                            value = e.broadcast(x.load(window, number))
                            for one, column in zip(of_number, columns, strict=True):
                                one.value = e.multiply_add(one.value, value, column)
                for number, of_number in zip(numbers, sums, strict=True):
                    for place, one in zip(places, of_number, strict=True):
                        before = e.build.select(is_first, e.zeros, total.load_vector(number, place))
                        total.store(e.build.fadd(before, one.value), number, place)

        in_tiles(e, e.index(about.numbers), about.together, tile)
    e.finish()
