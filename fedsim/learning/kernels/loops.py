"""Ways through rows and samples: as many at a time as have their sums in registers, or as are added up alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.shapes import MOST_TOGETHER, Machine

__all__ = ["TERMS", "SomeSamples", "in_parts", "in_tiles", "some_samples", "width_of"]

TERMS = 128
"""Terms that are added up by themselves, so that what they are made of stays in the cache and rounding errors stay
small. A change moves the last bit."""


def in_parts(e: Emitter, rows: Value, sizes: Sequence[int], some: Callable[[Value, int], None]) -> None:
    """Go through *rows*, the first of *sizes* at a time, then what is left, the next at a time, and so on.

    *some* is told where a part begins, and its size.
    """
    first = e.index(0)
    for size in sizes:
        number = e.build.sdiv(e.build.sub(rows, first), e.index(size))
        with e.loop(number) as at:
            some(e.index_sum((first, 1), (at, size)), size)
        first = e.index_sum((first, 1), (number, size))


def in_tiles(e: Emitter, rows: Value, width: int, tile: Callable[[Value, int], None]) -> None:
    """Go through *rows*, first as many at a time as have their sums in registers, *width* of them each, then fewer."""
    most = max(1, e.machine.vectors_held // width - 1)
    in_parts(e, rows, [most, *(fewer for fewer in (16, 8, 4, 2, 1) if fewer < most)], tile)


def width_of(machine: Machine, whole: int) -> int:
    """How many of the *whole* go together: a square of sums has to stay in registers."""
    fitting = [number for number in (MOST_TOGETHER, 2) if whole % number == 0 and number**2 <= machine.vectors_held]
    return fitting[0] if fitting else 1


class SomeSamples(NamedTuple):
    """Samples that follow each other."""

    begin: Value
    number: Value
    are_first: Value


@contextmanager
def some_samples(e: Emitter, places: Value) -> Iterator[SomeSamples]:
    """Go through the samples, as many at a time as have `TERMS` *places* together, or one."""
    most = e.larger(e.build.sdiv(e.index(TERMS), e.larger(places, e.index(1))), e.index(1))
    with e.loop(e.build.sdiv(e.index_sum((e.samples, 1), (most, 1), (-1, 1)), most)) as part:
        begin = e.build.mul(part, most)
        number = e.smaller(most, e.index_sum((e.samples, 1), (begin, -1)))
        yield SomeSamples(begin, number, e.build.icmp_signed("==", part, e.index(0)))
