"""Machine code, made once in each process for each shape, at first use."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import llvmlite.binding as llvm
import torch
from llvmlite import ir

from fedsim.learning.executors.batched.compiled.arithmetic import Element, Machine
from fedsim.learning.executors.batched.compiled.corrections import emit_add_correction
from fedsim.learning.executors.batched.compiled.forward import emit_arrange, emit_forward
from fedsim.learning.executors.batched.compiled.geometry import LANES, Geometry
from fedsim.learning.executors.batched.compiled.gradients import emit_backward, emit_first_backward
from fedsim.learning.executors.batched.compiled.products import (
    MatrixShape,
    emit_sum_of_products,
    emit_times,
    emit_times_transposed,
)
from fedsim.learning.executors.batched.compiled.tiled_forward import (
    emit_tiled_arrange,
    emit_tiled_forward,
    tiled_room,
    tiled_weights,
)
from fedsim.learning.executors.batched.compiled.tiled_products import (
    FEW_ROWS,
    FEW_TERMS,
    Cut,
    emit_tiled_product,
    tiled_product_room,
)
from fedsim.learning.executors.batched.compiled.tiles import EXACT, ROUNDED
from fedsim.learning.executors.processor import has_tiles, is_amd

__all__ = [
    "ENOUGH_HELD",
    "ConvolutionKernels",
    "Kernel",
    "ProductKernels",
    "Program",
    "TiledProductKernels",
    "convolution_kernels",
    "correction_kernel",
    "host_machine",
    "product_kernels",
]

_ELEMENTS: dict[torch.dtype, Element] = {torch.float32: "float", torch.float64: "double"}
ENOUGH_HELD = 12
"""Vectors held in registers from which on products may be quicker than PyTorch's; of float32 28 are with AVX-512, 7
with AVX2 or Neon."""

Kernel = Callable[..., None]
"""Takes counts and addresses."""


class Program:
    """Functions in machine code, made for this processor."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._engine = _compiled(module)

    def kernel(self, name: str) -> Kernel:
        """One of them; the interpreter's lock is free while it runs."""
        kinds = (argument.type for argument in self._module.get_global(name).args)
        signature = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p if kind.is_pointer else ctypes.c_int64 for kind in kinds))
        function = signature(self._engine.get_function_address(name))
        function.program = self  # type: ignore[attr-defined]  # as long as somebody has the function, the code is there
        return function


class ConvolutionKernels:
    """The kernels of one convolution, and what room `forward` needs."""

    def __init__(self, geometry: Geometry, machine: Machine, terms: int | None = None) -> None:
        """*terms* of each float32 number are multiplied on tiles, where it is not the first one; None: no tiles."""
        module = ir.Module()
        if terms is not None and not geometry.first:
            emit_tiled_arrange(module, geometry, machine, terms)
            emit_tiled_forward(module, geometry, machine, terms)
            self.arranged_bytes, self.room_bytes = tiled_weights(geometry, terms), tiled_room(geometry, terms)
        else:
            emit_arrange(module, geometry, machine)
            emit_forward(module, geometry, machine)
            size = 4 if machine.element == "float" else 8
            self.arranged_bytes, self.room_bytes = size * geometry.outputs * geometry.weights_per_output, 0
        (emit_first_backward if geometry.first else emit_backward)(module, geometry, machine)
        self._program = Program(module)
        self.arrange = self._program.kernel("arrange")
        self.forward = self._program.kernel("forward")
        self.backward = self._program.kernel("backward")


class ProductKernels:
    """Products with a matrix of one shape."""

    def __init__(self, shape: MatrixShape, machine: Machine) -> None:
        module = ir.Module()
        emit_times_transposed(module, shape, machine)
        emit_times(module, shape, machine)
        emit_sum_of_products(module, shape, machine)
        self._program = Program(module)
        self.times_transposed = self._program.kernel("times_transposed")
        self.times = self._program.kernel("times")
        self.sum_of_products = self._program.kernel("sum_of_products")


class TiledProductKernels:
    """The same on tiles, of float32 numbers and for any shape."""

    def __init__(self, shape: MatrixShape, terms: int) -> None:
        """*terms* of each number are multiplied."""
        self._shape, self._terms = shape, terms
        self._kernels = _tiled_products(terms)

    def times_transposed(self, rows: int, h: int, weights: int, y: int) -> None:
        """See `emit_times_transposed`."""
        self._run("times_transposed", FEW_ROWS, (rows, self._shape.outputs, self._shape.inputs), h, weights, y)

    def times(self, rows: int, d: int, weights: int, before: int) -> None:
        """See `emit_times`."""
        self._run("times", FEW_ROWS, (rows, self._shape.inputs, self._shape.outputs), d, weights, before)

    def sum_of_products(self, rows: int, d: int, h: int, total: int) -> None:
        """See `emit_sum_of_products`."""
        self._run("sum_of_products", FEW_TERMS, (self._shape.outputs, self._shape.inputs, rows), d, h, total)

    def _run(self, name: str, cut: Cut, sizes: tuple[int, int, int], *addresses: int) -> None:
        room = torch.empty(tiled_product_room(cut, sizes[0], self._terms), dtype=torch.uint8)
        self._kernels[name](*sizes, *addresses, room.data_ptr())


@cache
def convolution_kernels(
    geometry: Geometry, dtype: torch.dtype, products: torch.dtype | None = None
) -> ConvolutionKernels:
    """The kernels of a convolution; *products* is the type in which factors may be rounded on tiles."""
    return ConvolutionKernels(geometry, host_machine(dtype), _terms(dtype, products))


@cache
def product_kernels(
    shape: MatrixShape, dtype: torch.dtype, products: torch.dtype | None = None
) -> ProductKernels | TiledProductKernels | None:
    """The kernels of products with a matrix of weights, on tiles if there are some; None where PyTorch's are as good.

    Without tiles PyTorch's are taken with few registers, on Intel's processors, for whose library earlier kernels here
    were no match, and with factors that are rounded to *products*.
    """
    terms = _terms(dtype, products)
    if terms is not None:
        return TiledProductKernels(shape, terms)
    machine = host_machine(dtype)
    ours = products is None and shape.fits and machine.vectors_held >= ENOUGH_HELD and is_amd()
    return ProductKernels(shape, machine) if ours else None


@cache
def correction_kernel(taken: int, made: int, dtype: torch.dtype) -> Kernel | None:
    """See `emit_add_correction`; None where PyTorch's products may be as good: with few registers, and not on AMD's."""
    machine = host_machine(dtype)
    if machine.vectors_held < ENOUGH_HELD or not is_amd():
        return None
    module = ir.Module()
    emit_add_correction(module, taken, made, machine)
    return Program(module).kernel("add_correction")


def _terms(dtype: torch.dtype, products: torch.dtype | None) -> int | None:
    """How many terms of each number are multiplied on tiles; None: there are no tiles for it."""
    if dtype != torch.float32 or not has_tiles():
        return None
    return ROUNDED if products == torch.bfloat16 else EXACT


@cache
def _tiled_products(terms: int) -> dict[str, Kernel]:
    """Products of matrices of any shape."""
    module, emit = ir.Module(), partial(emit_tiled_product, machine=host_machine(torch.float32), terms_of_each=terms)
    emit(module, "times_transposed", cut=FEW_ROWS, right_lies_transposed=True)
    emit(module, "times", cut=FEW_ROWS)
    emit(module, "sum_of_products", cut=FEW_TERMS, left_lies_transposed=True)
    program = Program(module)
    return {name: program.kernel(name) for name in ("times_transposed", "times", "sum_of_products")}


def host_machine(dtype: torch.dtype) -> Machine:
    """This processor, for float32 or float64; an eighth of its registers is left for what is in passing."""
    registers, size = _registers()
    held = (registers - registers // 8) * size // (LANES * dtype.itemsize)
    return Machine(_ELEMENTS[dtype], max(1, held))


def _registers() -> tuple[int, int]:
    """Vector registers, and bytes of each."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 32, 64
    if features.get("avx"):
        return 16, 32
    return (32, 16) if features.get("neon") else (16, 16)


def _compiled(module: ir.Module) -> Any:
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = _target_machine()
    passes = llvm.create_new_module_pass_manager()
    # Variables into registers, and little else: loops are written as they should run.
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine


def _target_machine() -> Any:
    """LLVM's idea of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
