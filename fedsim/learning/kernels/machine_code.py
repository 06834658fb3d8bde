"""Which kernels there are on this machine, for which shapes: all that executors ask.

A kernel is made at its first use in a process, or taken from what an earlier process has kept. Where there are none at
all (`has_kernels`), products and corrections are None, and nobody may ask for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import torch

from fedsim.learning.kernels.processor import has_kernels, has_tiles, is_amd, llvm
from fedsim.learning.kernels.shapes import LANES, Element, Geometry, Kernel, Machine, MatrixShape

if llvm is not None:
    from fedsim.learning.kernels import (
        cells,
        corrections,
        forward,
        gradients,
        normalisation_backward,
        normalisation_forward,
        place_kernels,
        products,
        recurrent_kernels,
        series_kernels,
        tiled_forward,
        tiled_products,
    )
    from fedsim.learning.kernels.program import Part, Program
    from fedsim.learning.kernels.tiles import EXACT, ROUNDED

    _OF_LAYERS: dict[str, Callable[..., None]] = {
        "normalised": normalisation_forward.emit_forward,
        "normalised_by": normalisation_forward.emit_apply,
        "normalised_backward": normalisation_backward.emit_backward,
        "convolution": place_kernels.emit_convolution,
        "turned_weights": place_kernels.emit_turned_weights,
        "weight_gradient": place_kernels.emit_weight_gradient,
        "window_products": series_kernels.emit_window_products,
        "sums_of_windows": series_kernels.emit_sums_of_windows,
        "steps": recurrent_kernels.emit_steps,
        "steps_backward": recurrent_kernels.emit_steps_backward,
        "rounded_steps": recurrent_kernels.emit_rounded_steps,
        "rounded_steps_backward": recurrent_kernels.emit_rounded_steps_backward,
    }

__all__ = [
    "ENOUGH_HELD",
    "ConvolutionKernels",
    "ProductKernels",
    "TiledProductKernels",
    "cell",
    "convolution_kernels",
    "correction_kernel",
    "has_kernels",
    "host_machine",
    "layer_kernel",
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
            emitters = tiled_forward.emit_tiled_arrange, tiled_forward.emit_tiled_forward
            parts = [Part(emit, geometry, machine, terms) for emit in emitters]
            self.arranged_bytes = tiled_forward.tiled_weights(geometry, terms)
            self.room_bytes = tiled_forward.tiled_room(geometry, terms)
        else:
            parts = [Part(emit, geometry, machine) for emit in (forward.emit_arrange, forward.emit_forward)]
            size = 4 if machine.element == "float" else 8
            self.arranged_bytes, self.room_bytes = size * geometry.outputs * geometry.weights_per_output, 0
        back = gradients.emit_first_backward if geometry.first else gradients.emit_backward
        program = Program(*parts, Part(back, geometry, machine))
        self.arrange, self.forward, self.backward = map(program.kernel, ("arrange", "forward", "backward"))


class ProductKernels:
    """Products with a matrix of one shape."""

    def __init__(self, shape: MatrixShape, machine: Machine) -> None:
        emitters = (
            *(products.emit_times_transposed, products.emit_times),
            *(products.emit_sum_of_products, products.emit_added_products),
        )
        program = Program(*(Part(emit, shape, machine) for emit in emitters))
        self.times_transposed, self.times = map(program.kernel, ("times_transposed", "times"))
        self.sum_of_products, self.added_products = map(program.kernel, ("sum_of_products", "added_products"))


class TiledProductKernels:
    """The same on tiles, of float32 numbers and for any shape."""

    def __init__(self, shape: MatrixShape, terms: int) -> None:
        """*terms* of each number are multiplied."""
        self._shape, self._terms = shape, terms
        self._kernels = _tiled_products(terms)

    def times_transposed(self, rows: int, h: int, weights: int, y: int) -> None:
        """See `emit_times_transposed`."""
        sizes = rows, self._shape.outputs, self._shape.inputs
        self._run("times_transposed", tiled_products.FEW_ROWS, sizes, h, weights, y)

    def times(self, rows: int, d: int, weights: int, before: int) -> None:
        """See `emit_times`."""
        sizes = rows, self._shape.inputs, self._shape.outputs
        self._run("times", tiled_products.FEW_ROWS, sizes, d, weights, before)

    def sum_of_products(self, rows: int, d: int, h: int, total: int) -> None:
        """See `emit_sum_of_products`."""
        sizes = self._shape.outputs, self._shape.inputs, rows
        self._run("sum_of_products", tiled_products.FEW_TERMS, sizes, d, h, total)

    def _run(self, name: str, cut: tiled_products.Cut, sizes: tuple[int, int, int], *addresses: int) -> None:
        room = torch.empty(tiled_products.tiled_product_room(cut, sizes[0], self._terms), dtype=torch.uint8)
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
    return ProductKernels(shape, host_machine(dtype)) if products is None and shape.fits and _pays(dtype) else None


@cache
def correction_kernel(taken: int, made: int, dtype: torch.dtype) -> Kernel | None:
    """See `emit_add_correction`; None where PyTorch's products may be as good: with few registers, and not on AMD's."""
    if not _pays(dtype):
        return None
    part = Part(corrections.emit_add_correction, taken, made, host_machine(dtype))
    return Program(part).kernel("add_correction")


@cache
def layer_kernel(name: str, *about: object) -> Kernel:
    """One of the kernels of fused layers, for float32; its emitter, in `_OF_LAYERS`, says what it is made for."""
    return Program(Part(_OF_LAYERS[name], *about, host_machine(torch.float32))).kernel()


def cell(kind: str) -> cells.Cell:
    """The unit of a recurrent layer, ``gru`` or ``lstm``, of which `layer_kernel` has the ``steps``."""
    return cells.CELLS[kind]


def _pays(dtype: torch.dtype) -> bool:
    """Whether products without tiles may be quicker than PyTorch's."""
    return has_kernels() and host_machine(dtype).vectors_held >= ENOUGH_HELD and is_amd()


def _terms(dtype: torch.dtype, products: torch.dtype | None) -> int | None:
    """How many terms of each number are multiplied on tiles; None: there are no tiles for it."""
    if dtype != torch.float32 or not (has_kernels() and has_tiles()):
        return None
    return ROUNDED if products == torch.bfloat16 else EXACT


@cache
def _tiled_products(terms: int) -> dict[str, Kernel]:
    """Products of matrices of any shape."""
    few_rows, few_terms = tiled_products.FEW_ROWS, tiled_products.FEW_TERMS
    emit = tiled_products.emit_tiled_product
    part = partial(Part, emit, machine=host_machine(torch.float32), terms_of_each=terms)
    program = Program(
        part(name="times_transposed", cut=few_rows, right_lies_transposed=True),
        part(name="times", cut=few_rows),
        part(name="sum_of_products", cut=few_terms, left_lies_transposed=True),
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
