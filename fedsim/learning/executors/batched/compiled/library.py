"""Machine code, made once in each process for each shape, at first use."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import torch
from llvmlite import ir

from fedsim.learning.executors.batched.compiled.emitter import Element
from fedsim.learning.executors.batched.compiled.forward import emit_arrange, emit_forward
from fedsim.learning.executors.batched.compiled.geometry import Geometry
from fedsim.learning.executors.batched.compiled.gradients import emit_backward, emit_first_backward
from fedsim.learning.executors.batched.compiled.products import (
    MatrixShape,
    emit_sum_of_products,
    emit_times,
    emit_times_transposed,
)

__all__ = ["ConvolutionKernels", "Kernel", "ProductKernels", "convolution_kernels", "element_of", "product_kernels"]

Kernel = Callable[..., None]
"""Takes the number of samples and addresses."""


class Program:
    """Functions in machine code, made for this processor."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._engine = _compiled(module)

    def kernel(self, name: str) -> Kernel:
        """One of them; the interpreter's lock is free while it runs."""
        _, *pointers = self._module.get_global(name).args
        signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * len(pointers))
        return signature(self._engine.get_function_address(name))


class ConvolutionKernels:
    """The kernels of one convolution."""

    def __init__(self, geometry: Geometry, element: Element) -> None:
        module = ir.Module()
        emit_arrange(module, geometry, element)
        emit_forward(module, geometry, element)
        (emit_first_backward if geometry.first else emit_backward)(module, geometry, element)
        self._program = Program(module)
        self.arrange = self._program.kernel("arrange")
        self.forward = self._program.kernel("forward")
        self.backward = self._program.kernel("backward")


class ProductKernels:
    """Products with a matrix."""

    def __init__(self, shape: MatrixShape, element: Element) -> None:
        module = ir.Module()
        emit_times_transposed(module, shape, element)
        emit_times(module, shape, element)
        emit_sum_of_products(module, shape, element)
        self._program = Program(module)
        self.times_transposed = self._program.kernel("times_transposed")
        self.times = self._program.kernel("times")
        self.sum_of_products = self._program.kernel("sum_of_products")


def element_of(dtype: torch.dtype) -> Element:
    """What numbers of a tensor are called in machine code."""
    return {torch.float32: "float", torch.float64: "double"}[dtype]  # type: ignore[return-value]


@cache
def convolution_kernels(geometry: Geometry, element: Element) -> ConvolutionKernels:
    """The kernels of a convolution."""
    return ConvolutionKernels(geometry, element)


@cache
def product_kernels(shape: MatrixShape, element: Element) -> ProductKernels:
    """The kernels of products with a matrix of weights."""
    return ProductKernels(shape, element)


def _compiled(module: ir.Module) -> Any:
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = _machine()
    passes = llvm.create_new_module_pass_manager()
    # Variables into registers, and little else: loops are written as they should run.
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine


def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
