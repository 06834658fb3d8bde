"""Machine code, made for each shape at its first use in a process, or taken from what an earlier process has kept."""

from __future__ import annotations

from functools import cache, partial

import llvmlite.binding as llvm
import torch

from fedsim.learning.kernels.arithmetic import Element, Machine
from fedsim.learning.kernels.corrections import emit_add_correction
from fedsim.learning.kernels.forward import emit_arrange, emit_forward
from fedsim.learning.kernels.gradients import emit_backward, emit_first_backward
from fedsim.learning.kernels.processor import has_tiles, is_amd
from fedsim.learning.kernels.products import (
    MatrixShape,
    emit_added_products,
    emit_sum_of_products,
    emit_times,
    emit_times_transposed,
)
from fedsim.learning.kernels.program import Kernel, Part, Program
from fedsim.learning.kernels.shapes import LANES, Geometry
from fedsim.learning.kernels.tiled_forward import (
    emit_tiled_arrange,
    emit_tiled_forward,
    tiled_room,
    tiled_weights,
)
from fedsim.learning.kernels.tiled_products import (
    FEW_ROWS,
    FEW_TERMS,
    Cut,
    emit_tiled_product,
    tiled_product_room,
)
from fedsim.learning.kernels.tiles import EXACT, ROUNDED

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


class ConvolutionKernels:
    """The kernels of one convolution, and what room `forward` needs."""

    def __init__(self, geometry: Geometry, machine: Machine, terms: int | None = None) -> None:
        """*terms* of each float32 number are multiplied on tiles, where it is not the first one; None: no tiles."""
        if terms is not None and not geometry.first:
            forward = [Part(emit, geometry, machine, terms) for emit in (emit_tiled_arrange, emit_tiled_forward)]
            self.arranged_bytes, self.room_bytes = tiled_weights(geometry, terms), tiled_room(geometry, terms)
        else:
            forward = [Part(emit, geometry, machine) for emit in (emit_arrange, emit_forward)]
            size = 4 if machine.element == "float" else 8
            self.arranged_bytes, self.room_bytes = size * geometry.outputs * geometry.weights_per_output, 0
        backward = Part(emit_first_backward if geometry.first else emit_backward, geometry, machine)
        self._program = Program(*forward, backward)
        self.arrange = self._program.kernel("arrange")
        self.forward = self._program.kernel("forward")
        self.backward = self._program.kernel("backward")


class ProductKernels:
    """Products with a matrix of one shape."""

    def __init__(self, shape: MatrixShape, machine: Machine) -> None:
        emitters = emit_times_transposed, emit_times, emit_sum_of_products, emit_added_products
        self._program = Program(*(Part(emit, shape, machine) for emit in emitters))
        self.times_transposed = self._program.kernel("times_transposed")
        self.times = self._program.kernel("times")
        self.sum_of_products = self._program.kernel("sum_of_products")
        self.added_products = self._program.kernel("added_products")


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
    return Program(Part(emit_add_correction, taken, made, machine)).kernel("add_correction")


def _terms(dtype: torch.dtype, products: torch.dtype | None) -> int | None:
    """How many terms of each number are multiplied on tiles; None: there are no tiles for it."""
    if dtype != torch.float32 or not has_tiles():
        return None
    return ROUNDED if products == torch.bfloat16 else EXACT


@cache
def _tiled_products(terms: int) -> dict[str, Kernel]:
    """Products of matrices of any shape."""
    part = partial(Part, emit_tiled_product, machine=host_machine(torch.float32), terms_of_each=terms)
    program = Program(
        part(name="times_transposed", cut=FEW_ROWS, right_lies_transposed=True),
        part(name="times", cut=FEW_ROWS),
        part(name="sum_of_products", cut=FEW_TERMS, left_lies_transposed=True),
    )
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
