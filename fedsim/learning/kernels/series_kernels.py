"""Convolution of series as products of windows: channels last, a window's numbers lie side by side.

A library takes longer to begin such a convolution than to compute it, where series are short and mini-batches small.
"""

from __future__ import annotations

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.loops import SomeSamples, in_tiles, some_samples
from fedsim.learning.kernels.shapes import LANES, Machine, Windows

__all__ = ["emit_sums_of_windows", "emit_window_products"]


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
                    e.add_products(sums, (e.broadcast(x.load(row, number)) for row in rows), columns)
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
    windows, total = e.count("windows"), e.array("total", (about.outputs, 1))
    with some_samples(e, windows) as some:

        def tile(first: Value, size: int, some: SomeSamples = some) -> None:
            numbers = [e.index_sum((first, 1), (i, 1)) for i in range(size)]
            with e.loop(about.outputs // (about.together * LANES)) as block:
                places = [e.index_sum((block, about.together * LANES), (v, LANES)) for v in range(about.together)]
                sums = e.sums(size, about.together)
                with e.loop(some.number) as sample:
                    at = e.index_sum((some.begin, 1), (sample, 1))
                    x = e.array("x", (1,)).at(e.build.mul(at, e.count("length")), strides=(about.step, 1))
                    dy = e.array("dy", (about.outputs,)).at(e.build.mul(at, windows), strides=(about.outputs, 1))
                    with e.loop(windows) as window:
                        columns = [dy.load_vector(window, place) for place in places]
                        e.add_products(sums, (e.broadcast(x.load(window, number)) for number in numbers), columns)
                for number, of_number in zip(numbers, sums, strict=True):
                    for place, one in zip(places, of_number, strict=True):
                        total.add(one.value, number, place, anew=some.are_first)

        in_tiles(e, e.index(about.numbers), about.together, tile)
    e.finish()
