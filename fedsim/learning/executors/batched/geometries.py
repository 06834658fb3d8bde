"""For which convolutions of a model there is machine code, and their shapes there."""

from __future__ import annotations

from collections.abc import Sequence

from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.kernels.shapes import LANES, POOL, Geometry

__all__ = ["geometries"]

FEW_INPUTS = 4
"""Channels of samples that are taken one by one: grey ones and coloured ones."""
LARGEST_KERNEL = 5
"""Rows of a kernel, at most: no larger one is tested."""


def geometries(conv_stack: Sequence[ConvolutionBlock]) -> tuple[Geometry, ...] | None:
    """A model's convolutions, if there are kernels for all of them: a function of the model alone.

    Otherwise None: where a stride is not 1, something else is pooled than squares of 2, a kernel is larger than
    `LARGEST_KERNEL`, or samples have more than `FEW_INPUTS` channels. Where outputs do not fill `LANES`, there are more
    of them than the layer has: their weights are zero, and so is whatever becomes of them.
    """
    if not conv_stack or not all(_fits(block) for block in conv_stack):
        return None
    margins = [block.layer.padding for block in conv_stack[1:]] + [0]
    return tuple(_geometry(block, margin) for block, margin in zip(conv_stack, margins, strict=True))


def _fits(block: ConvolutionBlock) -> bool:
    layer = block.layer
    fits = layer.stride == 1 and block.pool == POOL and layer.kernel <= LARGEST_KERNEL
    return fits and (layer.in_channels <= FEW_INPUTS or not block.first)


def _filled(channels: int) -> int:
    """At least so many channels, which fill vectors."""
    return -(-channels // LANES) * LANES


def _geometry(block: ConvolutionBlock, margin: int) -> Geometry:
    layer, (_, height, width) = block.layer, block.input_shape
    return Geometry(
        inputs=layer.in_channels if block.first else _filled(layer.in_channels),
        height=height,
        width=width,
        outputs=_filled(layer.out_channels),
        kernel=layer.kernel,
        padding=layer.padding,
        margin=margin,
        rectified=block.rectified,
        first=block.first,
    )
