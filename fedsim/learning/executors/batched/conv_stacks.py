"""How the convolutions of a model are computed: a function of the model, the torch device and the precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from fedsim.learning.executors.batched.client_conv_stack import ClientConvStack, faster_kind
from fedsim.learning.executors.batched.compiled_conv_stack import CompiledConvolution, CompiledConvStack
from fedsim.learning.executors.batched.conv_stack import ConvStack
from fedsim.learning.executors.batched.convolution import Convolution
from fedsim.learning.executors.batched.geometries import geometries
from fedsim.learning.executors.batched.layer import layer_tensors
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.stacked_conv_stack import StackedConvolution, StackedConvStack
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.kernels.processor import has_kernels

__all__ = ["ConvStackKind", "conv_stack_kind", "new_conv_stack"]

ConvStackKind = Literal["stacked", "compiled", "pytorch"]


def conv_stack_kind(conv_stack: Sequence[ConvolutionBlock], *, stacked: bool) -> ConvStackKind:
    """All clients' convolutions at once where asked for; else in machine code of our own, if it has all of them.

    They are left to PyTorch where there are no kernels.
    """
    if stacked:
        return "stacked"
    return "compiled" if has_kernels() and geometries(conv_stack) else "pytorch"


def new_conv_stack(
    kind: ConvStackKind,
    recipe: Recipe,
    blocks: Sequence[ConvolutionBlock],
    base: Mapping[str, TensorDict],
    clients: int,
    samples: int,
) -> ConvStack[Convolution]:
    """The convolutions of so many clients, each with at most so many *samples* in a step, which start from *base*."""
    given = [(recipe, block, *layer_tensors(base, block), clients) for block in blocks]
    if kind == "stacked":
        return StackedConvStack([StackedConvolution(*each) for each in given])
    if kind == "pytorch":
        return ClientConvStack([faster_kind(block)(*each) for block, each in zip(blocks, given, strict=True)])
    shapes = geometries(blocks)
    assert shapes is not None
    compiled = [
        CompiledConvolution(*each, geometry=shape, samples=samples) for each, shape in zip(given, shapes, strict=True)
    ]
    return CompiledConvStack(compiled, shapes[-1])
