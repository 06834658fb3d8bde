"""How the convolutions of a model are computed: a function of the model, the torch device and the precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch

from fedsim.learning.executors.batched.client_front import ClientFront, faster_kind
from fedsim.learning.executors.batched.compiled.geometry import geometries
from fedsim.learning.executors.batched.compiled_front import CompiledConvolution, CompiledFront
from fedsim.learning.executors.batched.convolution import Convolution
from fedsim.learning.executors.batched.front import Front
from fedsim.learning.executors.batched.layer import layer_tensors
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.stacked_front import StackedConvolution, StackedFront
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.executors.processor import fuses, has_tiles
from fedsim.learning.executors.trainer import Part

__all__ = ["FrontKind", "front_kind", "new_front"]

FrontKind = Literal["stacked", "compiled", "pytorch"]


def front_kind(front: Sequence[ConvolutionBlock], *, stacked: bool, products: torch.dtype | None) -> FrontKind:
    """All clients' convolutions at once where asked for; else in machine code of our own, if it has all of them.

    Products whose factors are rounded to another type, *products*, are left to PyTorch where there are no tiles, and
    everything on a processor that does not `fuse <fuses>` a product with a sum.
    """
    if stacked:
        return "stacked"
    ours = fuses() and (products is None or has_tiles())
    return "compiled" if ours and geometries(front) else "pytorch"


def new_front(
    kind: FrontKind,
    recipe: Recipe,
    blocks: Sequence[ConvolutionBlock],
    base: Mapping[str, Part],
    clients: int,
    samples: int,
) -> Front[Convolution]:
    """The convolutions of so many clients, each with at most so many *samples* in a step, which start from *base*."""
    given = [(recipe, block, *layer_tensors(base, block), clients) for block in blocks]
    if kind == "stacked":
        return StackedFront([StackedConvolution(*each) for each in given])
    if kind == "pytorch":
        return ClientFront([faster_kind(block)(*each) for block, each in zip(blocks, given, strict=True)])
    shapes = geometries(blocks)
    assert shapes is not None
    compiled = [
        CompiledConvolution(*each, geometry=shape, samples=samples) for each, shape in zip(given, shapes, strict=True)
    ]
    return CompiledFront(compiled, shapes[-1])
