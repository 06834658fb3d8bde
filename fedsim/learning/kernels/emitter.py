"""A few words in which kernels are written: numbers, vectors of `LANES` numbers, arrays, loops.

A kernel's Python runs once and writes a program. A Python ``for`` writes its body again and again (the loop is
unrolled); ``with e.loop(times) as index`` writes a loop that runs later; a `Variable` is what changes in it, and stays
in a register where there is room. For an array ``a = e.array(name, strides)`` ``a.load_vector(i, j)`` are the `LANES`
numbers from ``i strides[0] + j strides[1]`` on.

Products are added up by fused multiply-add and in the order written here; the compiler chooses none.

>>> import torch
>>> from fedsim.learning.kernels.program import Program
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

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import OFFSET, Arithmetic, Value
from fedsim.learning.kernels.shapes import LANES, Machine

__all__ = ["Array", "Emitter", "Index", "Variable"]

Index = Any
"""A `Value` that counts something, or a number known when the program is made."""

_INDEX, _SHORT, _BYTE = ir.IntType(64), ir.IntType(16), ir.IntType(8)


class Emitter(Arithmetic):
    """Writes one function of a module: ``void name(int64 counts..., pointers...)``; pointers never overlap."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        pointers: Sequence[str],
        machine: Machine,
        counts: Sequence[str] = ("samples",),
    ) -> None:
        kinds = [_INDEX] * len(counts) + [ir.PointerType()] * len(pointers)
        self._function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
        arguments = dict(zip((*counts, *pointers), self._function.args, strict=True))
        self._counts = {count: arguments[count] for count in counts}
        self._pointers = {pointer: arguments[pointer] for pointer in pointers}
        for argument in self._pointers.values():
            argument.add_attribute("noalias")
        self._variables = ir.IRBuilder(self._function.append_basic_block())
        self._first = self._function.append_basic_block()
        super().__init__(module, machine, ir.IRBuilder(self._first))

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

    # -- arrays -------------------------------------------------------------------------------------------------------

    def array(self, name: str, strides: Sequence[int], start: int = 0) -> Array:
        """The numbers at a pointer."""
        return Array(self, self._pointers[name], self.number_type, tuple(strides), start)

    def byte_array(self, name: str, strides: Sequence[int], start: int = 0) -> Array:
        """The bytes at a pointer."""
        return Array(self, self._pointers[name], _BYTE, tuple(strides), start)

    def short_array(self, name: str, strides: Sequence[int], start: int = 0) -> Array:
        """The whole numbers, of 16 bits, at a pointer."""
        return Array(self, self._pointers[name], _SHORT, tuple(strides), start)

    def word_array(self, name: str, strides: Sequence[int] = (1,)) -> Array:
        """What lies at a pointer in 32 bits each: offsets, or two numbers of 16 bits."""
        return Array(self, self._pointers[name], OFFSET, tuple(strides), 0)

    def prefetch(self, address: Value, *, level: int = 1) -> None:
        """Have what lies there brought into the cache of that *level*."""
        read, near, data = (ir.Constant(OFFSET, value) for value in (0, 4 - level, 1))
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
        build, all_lanes = self.build, ir.Constant(OFFSET, 2**LANES - 1)
        few = self.narrowed(self.smaller(number, self.index(LANES)))
        some = build.sub(
            build.shl(ir.Constant(OFFSET, 1), build.and_(few, ir.Constant(OFFSET, 31))), ir.Constant(OFFSET, 1)
        )
        bits = build.select(
            build.icmp_signed(">", few, ir.Constant(OFFSET, 0)), build.and_(some, all_lanes), ir.Constant(OFFSET, 0)
        )
        return build.bitcast(build.trunc(bits, ir.IntType(LANES)), ir.VectorType(ir.IntType(1), LANES))

    def widened(self, value: Value) -> Value:
        """A byte, an offset or a truth value, as an index."""
        return self.build.zext(value, _INDEX)

    def narrowed(self, value: Value) -> Value:
        """An index as an offset of 32 bits."""
        return self.build.trunc(value, OFFSET)

    # -- sums of products ---------------------------------------------------------------------------------------------

    def sums(self, rows: int, vectors: int) -> list[list[Variable]]:
        """So many rows of so many vectors, all 0."""
        return [[self.variable(self.zeros) for _ in range(vectors)] for _ in range(rows)]

    def add_products(
        self,
        sums: Iterable[Sequence[Variable]],
        factors: Iterable[Value],
        vectors: Sequence[Value],
        multiply_add: Callable[[Value, Value, Value], Value] | None = None,
    ) -> None:
        """To each row of *sums* add its factor's products with the *vectors*; a factor is asked for when it is used."""
        for row, factor in zip(sums, factors, strict=True):
            for total, vector in zip(row, vectors, strict=True):
                total.value = (multiply_add or self.multiply_add)(total.value, factor, vector)


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
        self._align = 4 if kind in (OFFSET, ir.FloatType()) else 8 if kind == ir.DoubleType() else 1

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

    def add(self, value: Value, *indices: Index, anew: Value | None = None) -> None:
        """Add a vector to what lies from there on; where *anew* is true, that counts as 0."""
        e, before = self._emitter, self.load_vector(*indices)
        before = before if anew is None else e.build.select(anew, e.zeros, before)
        self.store(e.build.fadd(before, value), *indices)

    def load_lanes(self, lanes: Value, *indices: Index) -> Value:
        """Some lanes of the vector from there on; the others are 0, and nothing need be there."""
        e, align = self._emitter, ir.Constant(OFFSET, self._align)
        return e.call(f"llvm.masked.load.{e.suffix}.p0", e.vector_type, self.address(indices), align, lanes, e.zeros)

    def store_lanes(self, lanes: Value, value: Value, *indices: Index) -> None:
        """Write some lanes of a vector from there on, and nothing else."""
        e, align = self._emitter, ir.Constant(OFFSET, self._align)
        e.call(f"llvm.masked.store.{e.suffix}.p0", ir.VoidType(), value, self.address(indices), align, lanes)

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
