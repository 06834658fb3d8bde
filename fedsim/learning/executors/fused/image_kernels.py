"""Convolution of images with kernels of 3 x 3 and as many zeros around as keep their size, channels last.

A library takes as long to begin such a convolution as to compute it, where images are small and mini-batches too, and
it fills its registers badly with sixteen channels. Nothing is copied: what lies outside of an image is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llvmlite import ir

from fedsim.learning.executors.compiled.arithmetic import Machine, Value
from fedsim.learning.executors.compiled.emitter import Emitter
from fedsim.learning.executors.compiled.geometry import LANES

__all__ = ["KERNEL", "Places", "emit_convolution", "emit_weight_gradient"]

KERNEL = 3
MIDDLE = KERNEL // 2
MOST_TOGETHER = 4
"""Vectors of channels that are made together."""


@dataclass(frozen=True)
class Places:
    """What is convolved."""

    width: int
    """Of an image."""
    inputs: int
    """Channels, a multiple of `LANES`."""
    outputs: int
    """Channels, a multiple of `LANES`."""
    biased: bool = False
    """Whether something is added to each channel of what is made."""

    @property
    def reversed(self) -> Places:
        """Of what is made, for the gradient of what was taken."""
        return Places(self.width, self.outputs, self.inputs)

    @property
    def together(self) -> int:
        """Vectors of outputs that are made together."""
        vectors = self.outputs // LANES
        return next(number for number in (MOST_TOGETHER, 2, 1) if vectors % number == 0)

    def tiles(self, machine: Machine) -> Iterator[range]:
        """The places of a line, cut evenly into as many as have their sums in registers."""
        most = max(1, (machine.vectors_held - self.together - 1) // self.together)
        number = -(-self.width // most)
        for at in range(number):
            yield range(at * self.width // number, (at + 1) * self.width // number)

    def inputs_together(self, machine: Machine) -> int:
        """Of which the weights have their sums in registers, for `together` vectors of outputs."""
        most = max(1, (machine.vectors_held - self.together - 1) // self.together)
        return next(number for number in (16, 8, 4, 2, 1) if number <= most)


def emit_convolution(module: ir.Module, about: Places, machine: Machine) -> None:
    """``convolution(samples, height, x, weights, bias, y)``.

    *x* is (samples, height, width, inputs), *weights* (3, 3, inputs, outputs), *bias* (outputs,), *y* (samples, height,
    width, outputs).
    """
    e = Emitter(module, "convolution", ("x", "weights", "bias", "y"), machine, ("samples", "height"))
    height, vectors = e.count("height"), range(about.together)
    with e.loop(e.samples) as sample, e.loop(height) as line:
        lines = e.build.mul(sample, height)
        first, number = _rows_inside(e, line)
        x = e.array("x", (about.width * about.inputs,)).at(lines, strides=(about.width * about.inputs, about.inputs, 1))
        y = e.array("y", (about.width * about.outputs,)).at(
            e.build.add(lines, line), strides=(about.outputs, about.together * LANES, LANES)
        )
        with e.loop(about.outputs // (about.together * LANES)) as block:
            weights = e.array("weights", (1,)).at(
                e.index_sum((block, about.together * LANES)),
                strides=(KERNEL * about.inputs * about.outputs, about.inputs * about.outputs, about.outputs, LANES),
            )
            bias = e.array("bias", (about.together * LANES, LANES))
            for tile in about.tiles(machine):
                begin = [bias.load_vector(block, v) if about.biased else e.zeros for v in vectors]
                sums = {(place, v): e.variable(begin[v]) for place in tile for v in vectors}
                with e.loop(number) as some:
                    row = e.index_sum((first, 1), (some, 1))
                    taken = x.at(e.index_sum((line, 1), (row, 1), (-MIDDLE, 1)), strides=(about.inputs, 1))
                    for column in range(KERNEL):
                        inside = [place for place in tile if 0 <= place + column - MIDDLE < about.width]
                        with e.loop(about.inputs if inside else 0) as channel:
                            of_channel = [weights.load_vector(row, column, channel, v) for v in vectors]
                            for place in inside:
                                value = e.broadcast(taken.load(place + column - MIDDLE, channel))
                                for v in vectors:
                                    total = sums[place, v]
                                    total.value = e.multiply_add(total.value, value, of_channel[v])
                for (place, v), total in sums.items():
                    y.store(total.value, place, block, v)
    e.finish()


def emit_weight_gradient(module: ir.Module, about: Places, machine: Machine) -> None:
    """``weight_gradient(samples, height, x, dy, total)``: (3, 3, inputs, outputs), added up sample by sample."""
    e = Emitter(module, "weight_gradient", ("x", "dy", "total"), machine, ("samples", "height"))
    height, vectors, channels = e.count("height"), range(about.together), about.inputs_together(machine)
    with e.loop(e.samples) as sample:
        is_first = e.build.icmp_signed("==", sample, e.index(0))
        lines = e.build.mul(sample, height)
        x = e.array("x", (about.width * about.inputs,)).at(lines, strides=(about.width * about.inputs, about.inputs, 1))
        dy = e.array("dy", (about.width * about.outputs,)).at(
            lines, strides=(about.width * about.outputs, about.outputs, LANES)
        )
        with e.loop(KERNEL) as row:
            away = e.index_sum((row, 1), (-MIDDLE, 1))  # from a place that is made to one that it is made of
            begin = e.larger(e.index_sum((away, -1)), e.index(0))
            end = e.smaller(height, e.index_sum((height, 1), (away, -1)))
            number = e.index_sum((end, 1), (begin, -1))
            for column in range(KERNEL):
                start, stop = max(0, MIDDLE - column), min(about.width, about.width + MIDDLE - column)
                total = e.array("total", (KERNEL * about.inputs * about.outputs,)).at(
                    row, strides=(about.inputs * about.outputs, about.outputs, about.together * LANES, LANES)
                )
                with (
                    e.loop(about.inputs // channels) as some_channels,
                    e.loop(about.outputs // (about.together * LANES)) as block,
                ):
                    first = e.index_sum((some_channels, channels))
                    places = [e.index_sum((first, 1), (c, 1)) for c in range(channels)]
                    sums = {(c, v): e.variable(e.zeros) for c in range(channels) for v in vectors}
                    with e.loop(number) as at:
                        line = e.index_sum((begin, 1), (at, 1))
                        taken = x.at(e.index_sum((line, 1), (away, 1)), strides=(about.inputs, 1))
                        made = dy.at(line, strides=(about.outputs, about.together * LANES, LANES))
                        with e.loop(max(0, stop - start)) as place:
                            here = e.index_sum((place, 1), (start, 1))
                            of_place = [made.load_vector(here, block, v) for v in vectors]
                            there = e.index_sum((place, 1), (start + column - MIDDLE, 1))
                            for c in range(channels):
                                value = e.broadcast(taken.load(there, places[c]))
                                for v in vectors:
                                    one = sums[c, v]
                                    one.value = e.multiply_add(one.value, value, of_place[v])
                    for (c, v), one in sums.items():
                        before = e.build.select(is_first, e.zeros, total.load_vector(column, places[c], block, v))
                        total.store(e.build.fadd(before, one.value), column, places[c], block, v)
    e.finish()


def _rows_inside(e: Emitter, line: Value) -> tuple[Value, Value]:
    """Which rows of the kernel meet the image where *line* is made: the first, and how many."""
    first = e.larger(e.index_sum((MIDDLE, 1), (line, -1)), e.index(0))
    behind = e.smaller(e.index(KERNEL), e.index_sum((e.count("height"), 1), (MIDDLE, 1), (line, -1)))
    return first, e.index_sum((behind, 1), (first, -1))
