"""What normalisation is in machine code, and what its kernels have in common.

Values lie with channels last: (samples, rows, channels), where a row is a pixel, or a place in a series. A few channels
go through all rows at a time, so that what belongs to them stays in registers. Sums over rows are taken in float32 for
a few rows, and from there on in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import WORDS, Value
from fedsim.learning.kernels.emitter import Emitter, Index, Variable
from fedsim.learning.kernels.loops import in_parts
from fedsim.learning.kernels.shapes import EPSILON, LANES, MOST_TOGETHER, Normalisation

__all__ = [
    "DOUBLE",
    "DOUBLES",
    "MOMENTUM",
    "Coefficients",
    "Sums",
    "as_number",
    "for_channels",
    "group_mean",
    "groups",
    "inverse_deviation",
    "made",
    "rows_made",
    "second_is_larger",
    "values",
]

MOMENTUM = 0.1
"""The share of a batch in running statistics, as in PyTorch."""
KINDS = 2
"""Sums that are taken in one pass: of numbers, and of their products with others."""
IN_FLOAT32 = 8
"""Steps whose sums are taken in float32: more would not be faster, and have larger rounding errors."""

DOUBLE = ir.DoubleType()
DOUBLES = ir.VectorType(DOUBLE, LANES)


class Coefficients:
    """Of some channels: the mean, the inverse deviation, and what scales and moves them then."""

    def __init__(self, e: Emitter, about: Normalisation, block: Value, unit: Value) -> None:
        self._e = e
        self._held: list[tuple[Variable, Variable, Variable, Variable]] = []
        for v in range(about.together):
            at = e.index_sum((block, 1), (v * LANES, 1))
            mean, inverse = (e.array(name, (about.channels, 1)).load_vector(unit, at) for name in ("means", "inverses"))
            weight, bias = (e.array(name, (1,)).load_vector(at) for name in ("weight", "bias"))
            scale = e.build.fmul(inverse, weight)
            self._held.append((e.variable(mean), e.variable(inverse), e.variable(scale), e.variable(bias)))

    def mean(self, v: int) -> Value:
        """Of a vector of channels."""
        return self._held[v][0].value

    def inverse(self, v: int) -> Value:
        """Of the deviation of a vector of channels."""
        return self._held[v][1].value

    def scale(self, v: int) -> Value:
        """The weight times the inverse deviation."""
        return self._held[v][2].value

    def normalised(self, x: Value, v: int) -> Value:
        """A vector of values after scale and offset."""
        return self.from_apart(self._e.build.fsub(x, self.mean(v)), v)

    def from_apart(self, apart: Value, v: int) -> Value:
        """The same, from their distances from the mean."""
        return self._e.multiply_add(self._held[v][3].value, apart, self.scale(v))


class Sums:
    """Sums of some kinds of numbers over rows, of a few vectors of channels: float32 at first, then float64."""

    def __init__(self, e: Emitter, vectors: int) -> None:
        self._e, self._rows = e, MOST_TOGETHER // vectors
        none = ir.Constant(DOUBLES, [0.0] * LANES)
        self.totals = [[e.variable(none) for _ in range(KINDS)] for _ in range(vectors)]
        self._partial = [
            [[e.variable(e.zeros) for _ in range(KINDS)] for _ in range(vectors)] for _ in range(self._rows)
        ]

    def add(self, rows: Value, terms: Callable[[Value, int], tuple[Value, Value]]) -> None:
        """The first of the two *terms* of each row and vector, and its product with the second one."""
        e, long = self._e, IN_FLOAT32 * self._rows

        def some(first: Value, number: int) -> None:
            for i in range(number):
                row = e.index_sum((first, 1), (i, 1))
                for v, (total, products) in enumerate(self._partial[i]):
                    g, other = terms(row, v)
                    total.value = e.build.fadd(total.value, g)
                    products.value = e.multiply_add(products.value, g, other)

        with e.loop(e.ceil_div(rows, long)) as stretch:
            begin = e.index_sum((stretch, long))
            size = e.smaller(e.index(long), e.index_sum((rows, 1), (begin, -1)))
            in_parts(e, size, (self._rows, 1), lambda first, number: some(e.index_sum((begin, 1), (first, 1)), number))
            self._flush()

    def _flush(self) -> None:
        e = self._e
        for v, totals in enumerate(self.totals):
            for kind, total in enumerate(totals):
                for partial in self._partial:
                    value = partial[v][kind]
                    total.value = e.build.fadd(total.value, e.build.fpext(value.value, DOUBLES))
                    value.value = e.zeros

    def rounded(self) -> list[list[Value]]:
        """The totals in float32, by vector and kind."""
        e = self._e
        return [[e.build.fptrunc(total.value, e.vector_type) for total in totals] for totals in self.totals]


def for_channels(e: Emitter, about: Normalisation, body: Callable[[Value], None]) -> None:
    """Let *body* write what is done with a few channels, which begin at the one that it is given."""
    width = about.together * LANES
    with e.loop(about.channels // width) as number:
        body(e.index_sum((number, width)))


class Values:
    """(rows, vectors) of numbers, which may lie in bfloat16: the upper halves of those of float32."""

    def __init__(self, e: Emitter, about: Normalisation, name: str, first_row: Value, block: Value) -> None:
        self._e, self._reduced = e, about.reduced
        lies = (e.short_array if about.reduced else e.array)(name, (about.channels, 1))
        self._array = lies.at(first_row, block, strides=(about.channels, LANES))

    def load_vector(self, row: Index, v: int) -> Value:
        """A vector of channels of a row."""
        value = self._array.load_vector(row, v)
        if not self._reduced:
            return value
        bits = self._e.build.shl(self._e.build.zext(value, WORDS), self._e.same_words(16))
        return self._e.build.bitcast(bits, self._e.vector_type)

    def store(self, value: Value, row: Index, v: int) -> None:
        """Write one; in bfloat16 the nearest number, and of two the even one."""
        if self._reduced:
            value = self._e.halves(self._e.rounded_words(self._e.build.bitcast(value, WORDS)))
        self._array.store(value, row, v)


def values(e: Emitter, about: Normalisation, name: str, sample: Value, block: Value) -> Values:
    """(rows, vectors) of a sample, before pooling, from a channel on."""
    return Values(e, about, name, e.build.mul(sample, e.count("rows")), block)


def made(e: Emitter, about: Normalisation, name: str, sample: Value, block: Value) -> Values:
    """The same after pooling."""
    return Values(e, about, name, e.build.mul(sample, rows_made(e, about)), block)


def rows_made(e: Emitter, about: Normalisation) -> Value:
    """How many rows of a sample come out."""
    rows = e.count("rows")
    return e.build.sdiv(rows, e.index(2)) if about.pooled else rows


def second_is_larger(e: Emitter, first: Value, second: Value) -> Value:
    """Where pooling keeps the second one: of equal numbers it keeps the first, as PyTorch does."""
    return e.build.fcmp_ordered(">", second, first)


def groups(about: Normalisation) -> list[range]:
    """The vectors of each group of channels; groups that share a vector come together."""
    assert about.groups is not None
    vectors = max(1, about.channels // about.groups // LANES)
    return [range(first, first + vectors) for first in range(0, about.channels // LANES, vectors)]


def group_mean(e: Emitter, about: Normalisation, vectors: Sequence[Value]) -> Value:
    """The mean of each group of channels, in all of its lanes."""
    assert about.groups is not None
    total, *others = vectors
    for vector in others:
        total = e.build.fadd(total, vector)
    size, step = about.channels // about.groups, 1
    while step < min(size, LANES):
        total = e.build.fadd(total, e.swapped(total, step))
        step *= 2
    return e.build.fmul(total, e.constant(1 / size))


def inverse_deviation(e: Emitter, variance: Value) -> Value:
    """Of the deviation."""
    wider = e.build.fadd(variance, e.constant(EPSILON))
    root = e.call(f"llvm.sqrt.{e.suffix}", e.vector_type, wider)
    return e.build.fdiv(e.constant(1.0), root)


def as_number(e: Emitter, index: Value) -> Value:
    """An index as a number."""
    return e.build.sitofp(index, e.number_type)
