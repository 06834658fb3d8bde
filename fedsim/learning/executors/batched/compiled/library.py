"""Machine code for a convolution: made once in each process, at first use."""

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

__all__ = ["Kernel", "Kernels", "element_of", "kernels"]

Kernel = Callable[..., None]
"""Takes the number of samples and addresses."""


class Kernels:
    """The kernels of one convolution."""

    def __init__(self, g: Geometry, element: Element) -> None:
        module = ir.Module()
        emit_arrange(module, g, element)
        emit_forward(module, g, element)
        (emit_first_backward if g.first else emit_backward)(module, g, element)
        self._engine = _compiled(module)
        self.arrange = self._kernel(module, "arrange")
        self.forward = self._kernel(module, "forward")
        self.backward = self._kernel(module, "backward")

    def _kernel(self, module: ir.Module, name: str) -> Kernel:
        """Without the interpreter's lock while it runs."""
        _, *pointers = module.get_global(name).args
        signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * len(pointers))
        return signature(self._engine.get_function_address(name))


def element_of(dtype: torch.dtype) -> Element:
    """What numbers of a tensor are called in machine code."""
    return {torch.float32: "float", torch.float64: "double"}[dtype]  # type: ignore[return-value]


@cache
def kernels(g: Geometry, element: Element) -> Kernels:
    """The kernels of a convolution, in machine code for this processor."""
    return Kernels(g, element)


def _compiled(module: ir.Module) -> Any:
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = _machine()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    # The loops are written as they should run; the compiler's own idea of vectors would only cost time.
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
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
