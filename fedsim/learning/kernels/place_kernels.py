"""Convolution place by place, channels last: of small images that keep their height, and of series, as rows.

A library takes as long to begin such a convolution as to compute it, where images are small and mini-batches too, and
it fills its registers badly with sixteen channels. No image is copied into a larger one: zeros around it are left out
of sums.
"""

from __future__ import annotations

from itertools import product

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Array, Emitter
from fedsim.learning.kernels.loops import SomeSamples, some_samples
from fedsim.learning.kernels.shapes import LANES, Machine, Places

__all__ = ["emit_convolution", "emit_turned_weights", "emit_weight_gradient"]


def emit_convolution(module: ir.Module, about: Places, machine: Machine) -> None:
    """``convolution(samples, height, x, weights, bias, y)``.

    *x* is (samples, height, width, inputs), *weights* (rows, columns, inputs, outputs), *bias* (outputs,), *y*
    (samples, height, made, outputs).
    """
    e = Emitter(module, "convolution", ("x", "weights", "bias", "y"), machine, ("samples", "height"))
    height, vectors, some_outputs = e.count("height"), range(about.together), about.together * LANES
    with e.loop(e.samples) as sample, e.loop(height) as line:
        first, number = _rows_inside(e, about, line)
        x = _lines(e, "x", about.width, about.inputs, sample, height)
        y = _lines(e, "y", about.made, about.outputs, sample, height).at(line, strides=(about.outputs, 1))
        with e.loop(about.outputs // some_outputs) as block:
            at = [e.index_sum((block, some_outputs), (v, LANES)) for v in vectors]
            begin = [e.array("bias", (1,)).load_vector(at[v]) if about.biased else e.zeros for v in vectors]
            for tile, alike in about.tiles(machine):
                with e.loop(alike) as further:
                    sums = {place: [e.variable(begin[v]) for v in vectors] for place in tile}
                    with e.loop(number) as some:
                        row = e.index_sum((first, 1), (some, 1))
                        above = e.index_sum((line, 1), (row, 1), (-(about.rows // 2), 1))
                        shifted = e.index_sum((further, len(tile)), (-about.padding, 1))
                        taken = x.at(above, shifted, strides=(about.inputs, 1))
                        for column in range(about.columns):
                            inside = [place for place in tile if place in about.inside(column)]
                            weights = _weights(e, about, row, column)
                            with e.loop(about.inputs if inside else 0) as channel:
                                factors = [weights.load_vector(channel, at[v]) for v in vectors]
                                values = (e.broadcast(taken.load(place + column, channel)) for place in inside)
                                e.add_products([sums[place] for place in inside], values, factors)
                    for place, v in product(tile, vectors):
                        y.store(sums[place][v].value, e.index_sum((further, len(tile)), (place, 1)), at[v])
    e.finish()


def emit_weight_gradient(module: ir.Module, about: Places, machine: Machine) -> None:
    """``weight_gradient(samples, height, x, dy, total, of_bias)``.

    *x* and *dy* lie as in `emit_convolution`, *total* and *of_bias* as its weights and its bias. They are added up over
    the places of some samples, and then over these.
    """
    e = Emitter(module, "weight_gradient", ("x", "dy", "total", "of_bias"), machine, ("samples", "height"))
    with some_samples(e, e.build.mul(e.count("height"), e.index(about.made))) as some:
        with e.loop(about.rows) as row:
            for column in range(about.columns):
                _emit_gradient_of_place(e, about, row, column, some)
        if about.biased:
            _emit_bias_gradient(e, about, some)
    e.finish()


def _emit_gradient_of_place(e: Emitter, about: Places, row: Value, column: int, some: SomeSamples) -> None:
    """Of the weights at one place of the kernel."""
    height, vectors, some_outputs = e.count("height"), range(about.together), about.together * LANES
    channels = next(size for size in (16, 8, 4, 2, 1) if size <= about.beside(e.machine))
    away = e.index_sum((row, 1), (-(about.rows // 2), 1))  # from a line that is made to one that it is made of
    first = e.larger(e.index_sum((away, -1)), e.index(0))
    lines = e.index_sum((e.smaller(height, e.index_sum((height, 1), (away, -1))), 1), (first, -1))
    places, total = about.inside(column), _of_place(e, about, "total", row, column)
    with e.loop(about.inputs // channels) as tile, e.loop(about.outputs // some_outputs) as block:
        at = [e.index_sum((block, some_outputs), (v, LANES)) for v in vectors]
        which = [e.index_sum((tile, channels), (c, 1)) for c in range(channels)]
        sums = e.sums(channels, about.together)
        with e.loop(some.number) as one_of_them, e.loop(lines) as further:
            sample, line = e.index_sum((some.begin, 1), (one_of_them, 1)), e.index_sum((first, 1), (further, 1))
            above = e.index_sum((line, 1), (away, 1))
            taken = _lines(e, "x", about.width, about.inputs, sample, height).at(above, strides=(about.inputs, 1))
            made = _lines(e, "dy", about.made, about.outputs, sample, height).at(line, strides=(about.outputs, 1))
            with e.loop(len(places)) as place:
                factors = [made.load_vector(e.index_sum((place, 1), (places.start, 1)), at[v]) for v in vectors]
                there = e.index_sum((place, 1), (places.start + column - about.padding, 1))
                e.add_products(sums, (e.broadcast(taken.load(there, channel)) for channel in which), factors)
        for c, v in product(range(channels), vectors):
            total.add(sums[c][v].value, which[c], at[v], anew=some.are_first)


def _emit_bias_gradient(e: Emitter, about: Places, some: SomeSamples) -> None:
    height, some_outputs = e.count("height"), about.together * LANES
    with e.loop(about.outputs // some_outputs) as block:
        at = [e.index_sum((block, some_outputs), (v, LANES)) for v in range(about.together)]
        sums = [e.variable(e.zeros) for _ in at]
        made = _lines(e, "dy", about.made, about.outputs, some.begin, height).at(strides=(about.outputs, 1))
        with e.loop(e.build.mul(e.build.mul(some.number, height), e.index(about.made))) as place:
            for one, channels in zip(sums, at, strict=True):
                one.value = e.build.fadd(one.value, made.load_vector(place, channels))
        for one, channels in zip(sums, at, strict=True):
            e.array("of_bias", (1,)).add(one.value, channels, anew=some.are_first)


def emit_turned_weights(module: ir.Module, about: Places, machine: Machine) -> None:
    """``turned_weights(weights, turned)``: (rows, columns, outputs, inputs) of (rows, columns, inputs, outputs)."""
    e = Emitter(module, "turned_weights", ("weights", "turned"), machine, ())
    with (
        e.loop(about.rows * about.columns) as place,
        e.loop(about.inputs // LANES) as some,
        e.loop(about.outputs // LANES) as others,
    ):
        size = about.inputs * about.outputs
        here = e.array("weights", (size, LANES * about.outputs, LANES)).at(
            place, some, others, strides=(about.outputs,)
        )
        there = e.array("turned", (size, LANES, LANES * about.inputs)).at(place, some, others, strides=(about.inputs,))
        for lane, vector in enumerate(e.transposed([here.load_vector(lane) for lane in range(LANES)])):
            there.store(vector, lane)
    e.finish()


def _lines(e: Emitter, name: str, places: int, channels: int, sample: Value, height: Value) -> Array:
    """(lines, places, channels) of a sample."""
    line = places * channels
    return e.array(name, (line,)).at(e.build.mul(sample, height), strides=(line, channels, 1))


def _rows_inside(e: Emitter, about: Places, line: Value) -> tuple[Value, Value]:
    """Which rows of the kernel meet the image where *line* is made: the first, and how many."""
    above = about.rows // 2
    first = e.larger(e.index_sum((above, 1), (line, -1)), e.index(0))
    behind = e.smaller(e.index(about.rows), e.index_sum((e.count("height"), 1), (above, 1), (line, -1)))
    return first, e.index_sum((behind, 1), (first, -1))


def _weights(e: Emitter, about: Places, row: Value, column: int) -> Array:
    """(inputs, outputs) of a place of the kernel."""
    if about.mirrored:
        row, column = e.index_sum((about.rows - 1, 1), (row, -1)), about.columns - 1 - column
    return _of_place(e, about, "weights", row, column)


def _of_place(e: Emitter, about: Places, name: str, row: Value, column: int) -> Array:
    size = about.inputs * about.outputs
    return e.array(name, (about.columns * size, size)).at(row, column, strides=(about.outputs, 1))
