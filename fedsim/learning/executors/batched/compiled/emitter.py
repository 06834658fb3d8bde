"""A few words in which kernels are written: numbers, vectors of `LANES` numbers, arrays, loops.

A kernel's Python runs once and writes a program. A Python ``for`` writes its body again and again (the loop is
unrolled); ``with e.loop(times) as index`` writes a loop that runs later; a `Variable` is what changes in it, and stays
in a register where there is room. For an array ``a = e.array(name, strides)`` ``a.load_vector(i, j)`` are the `LANES`
numbers from ``i strides[0] + j strides[1]`` on.

Products are added up by fused multiply-add and in the order written here; the compiler chooses none.

>>> import torch
>>> from fedsim.learning.executors.batched.compiled.machine_code import Program
>>> module = ir.Module()
>>> e = Emitter(module, "doubled", ("x", "y"), Machine("float", vectors_held=28))
>>> x, y = (e.array(name, strides=(LANES,)) for name in ("x", "y"))
>>> with e.loop(e.samples) as vector:
...     y.store(e.build.fadd(x.load_vector(vector), x.load_vector(vector)), vector)
>>> e.finish()
>>> x, y = torch.arange(32.0), torch.zeros(32)
>>> Program(module).kernel("doubled")(2, x.data_ptr(), y.data_ptr())
>>> bool((y == 2 * x).all())
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from llvmlite import ir

from fedsim.learning.executors.batched.compiled.geometry import LANES

__all__ = ["Array", "Element", "Emitter", "Index", "Machine", "Value", "Variable"]

Element = Literal["float", "double"]
Value = Any
"""A value of the program that is made; llvmlite has no types of its own."""
Index = Any
"""A `Value` that counts something, or a number known when the program is made."""

_INDEX, _OFFSET, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_BYTES = ir.VectorType(_BYTE, LANES)


@dataclass(frozen=True)
class Machine:
    """What is written for: a type of numbers, and registers."""

    element: Element
    vectors_held: int
    """Vectors that may stay in registers, at least 1, beside those in passing. It decides how much is done at once, and
    so the order in which gradients of images are added up; nothing else."""


class Emitter:
    """Writes one function of a module: ``void name(int64 counts..., pointers...)``; pointers never overlap."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        pointers: Sequence[str],
        machine: Machine,
        counts: Sequence[str] = ("samples",),
    ) -> None:
        self.module = module
        self.machine = machine
        self.number_type = ir.FloatType() if machine.element == "float" else ir.DoubleType()
        self.vector_type = ir.VectorType(self.number_type, LANES)
        kinds = [_INDEX] * len(counts) + [ir.PointerType()] * len(pointers)
        self._function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
        arguments = dict(zip((*counts, *pointers), self._function.args, strict=True))
        self._counts = {count: arguments[count] for count in counts}
        self._pointers = {pointer: arguments[pointer] for pointer in pointers}
        for argument in self._pointers.values():
            argument.add_attribute("noalias")
        self._variables = ir.IRBuilder(self._function.append_basic_block())
        self._first = self._function.append_basic_block()
        self.build = ir.IRBuilder(self._first)

    def finish(self) -> None:
        """No more code follows."""
        self.build.ret_void()
        self._variables.branch(self._first)

    def count(self, name: str) -> Value:
        """One of the function's counts."""
        return self._counts[name]

    @property
    def samples(self) -> Value:
        """The count of that name."""
        return self.count("samples")

    # -- numbers and vectors ------------------------------------------------------------------------------------------

    @property
    def zero(self) -> Value:
        """The number 0."""
        return ir.Constant(self.number_type, 0.0)

    @property
    def zeros(self) -> Value:
        """The vector 0."""
        return ir.Constant(self.vector_type, [0.0] * LANES)

    def same_bytes(self, value: int) -> Value:
        """A vector of bytes, all alike."""
        return ir.Constant(_BYTES, [value] * LANES)

    def broadcast(self, number: Value) -> Value:
        """A vector of *number*."""
        undefined = ir.Constant(self.vector_type, ir.Undefined)
        one = self.build.insert_element(undefined, number, ir.Constant(_OFFSET, 0))
        return self._shuffled(one, undefined, [0] * LANES)

    def vector_of(self, numbers: Sequence[Value]) -> Value:
        """A vector of `LANES` numbers."""
        vector = ir.Constant(self.vector_type, ir.Undefined)
        for lane, number in enumerate(numbers):
            vector = self.build.insert_element(vector, number, ir.Constant(_OFFSET, lane))
        return vector

    def lanes(self, vector: Value) -> list[Value]:
        """Its numbers."""
        return [self.build.extract_element(vector, ir.Constant(_OFFSET, lane)) for lane in range(LANES)]

    def transposed(self, vectors: Sequence[Value]) -> list[Value]:
        """`LANES` vectors of the first numbers of each, of the second ones, and so on."""
        rows, width = list(vectors), LANES
        while width > 1:
            width //= 2
            for first in (row for row in range(LANES) if not row & width):
                pair = rows[first], rows[first + width]
                for row, keeps in ((first, 0), (first + width, width)):
                    lanes = [lane + LANES - width if lane & width else lane for lane in range(LANES)]
                    rows[row] = self._shuffled(*pair, [lane + keeps for lane in lanes])
        return rows

    def _shuffled(self, one: Value, other: Value, lanes: Sequence[int]) -> Value:
        return self.build.shuffle_vector(one, other, ir.Constant(ir.VectorType(_OFFSET, len(lanes)), list(lanes)))

    def sum_of_lanes(self, vector: Value) -> Value:
        """The sum of its numbers: each half onto the other, again and again."""
        return self.build.extract_element(self.sums_of_lanes([vector]), ir.Constant(_OFFSET, 0))

    def sums_of_lanes(self, vectors: Sequence[Value]) -> Value:
        """The sum of each one's numbers, as a vector of so many: 1, 2, 4, 8 or 16 of them.

        Each half is added onto the other, again and again, as by `sum_of_lanes`, but for several at once.
        """
        sums, parts, size = list(vectors), 1, LANES // 2
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=True)
            sums = [self._halves_added(one, other, parts, size) for one, other in pairs]
            parts, size = 2 * parts, size // 2
        (total,) = sums
        while size:
            total = self._halves_added(total, None, parts, size)
            size //= 2
        return total

    def _halves_added(self, one: Value, other: Value | None, parts: int, size: int) -> Value:
        """Of one or two vectors, each in so many *parts* of twice that *size*: the two halves of each part added."""
        both = parts if other is None else 2 * parts
        firsts = [2 * size * part + lane for part in range(both) for lane in range(size)]
        pair = one, one if other is None else other
        return self.build.fadd(*(self._shuffled(*pair, [begin + lane for lane in firsts]) for begin in (0, size)))

    def multiply_add(self, total: Value, x: Value, y: Value) -> Value:
        """``total + x y``, rounded once."""
        name = f"llvm.fma.v{LANES}{'f32' if self.machine.element == 'float' else 'f64'}"
        return self.call(name, self.vector_type, x, y, total)

    def rectified(self, d: Value, y: Value) -> Value:
        """*d* where *y* is positive (or not a number), and 0 elsewhere."""
        zero = self.zero if y.type == self.number_type else self.zeros
        return self.build.select(self.build.fcmp_ordered("<=", y, zero), zero, d)

    def call(self, name: str, result: ir.Type, *arguments: Value) -> Value:
        """What LLVM's function *name* makes of *arguments*."""
        signature = ir.FunctionType(result, [argument.type for argument in arguments])
        known = self.module.globals.get(name) or ir.Function(self.module, signature, name)
        return self.build.call(known, arguments)

    # -- arrays -------------------------------------------------------------------------------------------------------

    def array(self, name: str, strides: Sequence[int], start: int = 0) -> Array:
        """The numbers at a pointer."""
        return Array(self, self._pointers[name], self.number_type, tuple(strides), start)

    def byte_array(self, name: str, strides: Sequence[int], start: int = 0) -> Array:
        """The bytes at a pointer."""
        return Array(self, self._pointers[name], _BYTE, tuple(strides), start)

    def offset_array(self, name: str) -> Array:
        """The offsets, of 32 bits, at a pointer."""
        return Array(self, self._pointers[name], _OFFSET, (1,), 0)

    def prefetch(self, address: Value, *, level: int = 1) -> None:
        """Have what lies there brought into the cache of that *level*."""
        read, near, data = (ir.Constant(_OFFSET, value) for value in (0, 4 - level, 1))
        self.call("llvm.prefetch.p0", ir.VoidType(), address, read, near, data)

    # -- control and indices ------------------------------------------------------------------------------------------

    def variable(self, value: Value) -> Variable:
        """Something that changes, *value* to begin with."""
        return Variable(self, value, self._variables.alloca(value.type))

    @contextmanager
    def loop(self, times: Index) -> Iterator[Value]:
        """Do what is written within it so many times; yields 0, 1, ..."""
        build = self.build
        counter = self.variable(ir.Constant(_INDEX, 0))
        head, body, end = (self._function.append_basic_block() for _ in range(3))
        build.branch(head)
        build.position_at_end(head)
        count = counter.value
        build.cbranch(build.icmp_signed("<", count, self.index(times)), body, end)
        build.position_at_end(body)
        yield count
        counter.value = build.add(count, ir.Constant(_INDEX, 1))
        build.branch(head)
        build.position_at_end(end)

    def index(self, value: Index) -> Value:
        """*value*, as one of the program."""
        return ir.Constant(_INDEX, value) if isinstance(value, int) else value

    def index_sum(self, *terms: tuple[Index, int]) -> Value:
        """The sum of indices, each times a factor."""
        total = self.index(sum(value * factor for value, factor in terms if isinstance(value, int)))
        for value, factor in terms:
            if not isinstance(value, int):
                total = self.build.add(total, self.build.mul(value, self.index(factor)))
        return total

    def ceil_div(self, whole: Value, most: int) -> Value:
        """How many parts of at most so much *whole* has."""
        return self.build.sdiv(self.index_sum((whole, 1), (most - 1, 1)), self.index(most))

    def smaller(self, one: Value, other: Value) -> Value:
        """The smaller one of two indices."""
        return self.build.select(self.build.icmp_signed("<", one, other), one, other)

    def larger(self, one: Value, other: Value) -> Value:
        """The larger one of two indices."""
        return self.build.select(self.build.icmp_signed(">", one, other), one, other)

    def first_lanes(self, number: Value) -> Value:
        """Which lanes are the first *number*, of which there may be none or more than there are lanes."""
        build, all_lanes = self.build, ir.Constant(_OFFSET, 2**LANES - 1)
        few = self.narrowed(self.smaller(number, self.index(LANES)))
        some = build.sub(
            build.shl(ir.Constant(_OFFSET, 1), build.and_(few, ir.Constant(_OFFSET, 31))), ir.Constant(_OFFSET, 1)
        )
        bits = build.select(
            build.icmp_signed(">", few, ir.Constant(_OFFSET, 0)), build.and_(some, all_lanes), ir.Constant(_OFFSET, 0)
        )
        return build.bitcast(build.trunc(bits, ir.IntType(LANES)), ir.VectorType(ir.IntType(1), LANES))

    def widened(self, value: Value) -> Value:
        """A byte, an offset or a truth value, as an index."""
        return self.build.zext(value, _INDEX)

    def narrowed(self, value: Value) -> Value:
        """An index as an offset of 32 bits."""
        return self.build.trunc(value, _OFFSET)


class Variable:
    """A value that changes."""

    def __init__(self, emitter: Emitter, value: Value, pointer: Value) -> None:
        self._emitter, self._type, self._pointer = emitter, value.type, pointer
        self.value = value

    @property
    def value(self) -> Value:
        """What it is at this point of the program."""
        return self._emitter.build.load(self._pointer, typ=self._type)

    @value.setter
    def value(self, value: Value) -> None:
        self._emitter.build.store(value, self._pointer)


class Array:
    """What lies at a pointer, by indices; the last ones may be left out, and are then 0."""

    def __init__(self, emitter: Emitter, pointer: Value, kind: ir.Type, strides: tuple[int, ...], start: int) -> None:
        self._emitter, self._pointer, self._kind = emitter, pointer, kind
        self._strides, self._start = strides, start
        self._align = 4 if kind in (_OFFSET, ir.FloatType()) else 8 if kind == ir.DoubleType() else 1

    def at(self, *indices: Index, strides: Sequence[int] = (1,)) -> Array:
        """What begins at these indices, with *strides* of its own."""
        return Array(self._emitter, self.address(indices), self._kind, tuple(strides), 0)

    def load(self, *indices: Index) -> Value:
        """The number there."""
        return self._emitter.build.load(self.address(indices), typ=self._kind, align=self._align)

    def load_vector(self, *indices: Index, lanes: int = LANES) -> Value:
        """The numbers from there on, `LANES` if nothing is said."""
        return self._emitter.build.load(self.address(indices), typ=ir.VectorType(self._kind, lanes), align=self._align)

    def store(self, value: Value, *indices: Index) -> None:
        """Write a number, or a vector, from there on."""
        self._emitter.build.store(value, self.address(indices), align=self._align)

    def load_lanes(self, lanes: Value, *indices: Index) -> Value:
        """Some lanes of the vector from there on; the others are 0, and nothing need be there."""
        e = self._emitter
        align, name = ir.Constant(_OFFSET, self._align), f"v{LANES}{'f32' if e.machine.element == 'float' else 'f64'}"
        return e.call(f"llvm.masked.load.{name}.p0", e.vector_type, self.address(indices), align, lanes, e.zeros)

    def store_lanes(self, lanes: Value, value: Value, *indices: Index) -> None:
        """Write some lanes of a vector from there on, and nothing else."""
        e = self._emitter
        align, name = ir.Constant(_OFFSET, self._align), f"v{LANES}{'f32' if e.machine.element == 'float' else 'f64'}"
        e.call(f"llvm.masked.store.{name}.p0", ir.VoidType(), value, self.address(indices), align, lanes)

    def load_some(self, lanes: Value | None, *indices: Index) -> Value:
        """Some lanes, as by `load_lanes`; None: all of them."""
        return self.load_vector(*indices) if lanes is None else self.load_lanes(lanes, *indices)

    def store_some(self, lanes: Value | None, value: Value, *indices: Index) -> None:
        """Write some lanes, as by `store_lanes`; None: all of them."""
        if lanes is None:
            self.store(value, *indices)
        else:
            self.store_lanes(lanes, value, *indices)

    def prefetch(self, *indices: Index, level: int = 1) -> None:
        """Have what lies there brought into the cache of that *level*; there may be nothing."""
        self._emitter.prefetch(self.address(indices), level=level)

    def address(self, indices: Sequence[Index]) -> Value:
        """Where the number at these indices lies."""
        emitter = self._emitter
        offset = emitter.index_sum((self._start, 1), *zip(indices, self._strides[: len(indices)], strict=True))
        return emitter.build.gep(self._pointer, [offset], source_etype=self._kind)
