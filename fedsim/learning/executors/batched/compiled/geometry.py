"""The shapes of a convolution, and how its images lie in memory.

Images lie with channels last and zeros around them, as many as the convolution that takes them wants: there is no edge
to look out for. What goes in has ``padding`` of them; what comes out has ``margin``, the next one's padding. Strides
are counted in numbers, not in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.models.layers import Shape

__all__ = ["LANES", "Geometry", "geometries"]

LANES = 16
"""Channels that go through the arithmetic together."""
FEW_INPUTS = 4
"""Channels of samples that are taken one by one: grey ones and coloured ones."""
LARGEST_KERNEL = 5
"""Rows of a kernel, at most: no larger one is tested."""
POOL = 2


@dataclass(frozen=True)
class Geometry:
    """A convolution of stride 1, the maximum over squares of 2 x 2 places, a bias, and a rectifier or not."""

    inputs: int
    """Channels."""
    height: int
    """Rows of an image that goes in, without padding."""
    width: int
    outputs: int
    """Channels."""
    kernel: int
    padding: int
    margin: int
    rectified: bool
    first: bool
    """Whether samples go in: few channels, and nobody asks for their gradient."""

    @property
    def rows(self) -> int:
        """Rows of an image that comes out, after pooling; a place that fills no square is dropped."""
        return (self.height + 2 * self.padding - self.kernel + 1) // POOL

    @property
    def columns(self) -> int:
        """Columns of it."""
        return (self.width + 2 * self.padding - self.kernel + 1) // POOL

    @property
    def taken(self) -> Shape:
        """(height, width, channels) of an image that goes in, with padding."""
        return self.height + 2 * self.padding, self.width + 2 * self.padding, self.inputs

    @property
    def made(self) -> Shape:
        """(height, width, channels) of an image that comes out, with margin."""
        return self.rows + 2 * self.margin, self.columns + 2 * self.margin, self.outputs

    @property
    def weights(self) -> Shape:
        """(outputs, kernel, kernel, inputs)."""
        return self.outputs, self.kernel, self.kernel, self.inputs

    @property
    def weights_per_output(self) -> int:
        """Weights of one output channel."""
        return self.kernel * self.kernel * self.inputs

    @property
    def taken_strides(self) -> tuple[int, int, int]:
        """Of images that go in: from sample to sample, row to row, column to column."""
        height, width, channels = self.taken
        return height * width * channels, width * channels, channels

    @property
    def made_strides(self) -> tuple[int, int, int]:
        """Of images that come out: from sample to sample, row to row, column to column."""
        height, width, channels = self.made
        return height * width * channels, width * channels, channels

    @property
    def made_start(self) -> int:
        """Where the first image that comes out begins, behind its margin."""
        _, row, column = self.made_strides
        return self.margin * (row + column)

    @property
    def where_strides(self) -> tuple[int, int, int]:
        """Of which place was the largest, which has no margin: from sample to sample, row to row, column to column."""
        return self.rows * self.columns * self.outputs, self.columns * self.outputs, self.outputs


def geometries(conv_stack: Sequence[ConvolutionBlock]) -> tuple[Geometry, ...] | None:
    """A model's convolutions, if there are kernels for all of them: a function of the model alone.

    Otherwise None: where a stride is not 1, something else is pooled than squares of 2, a kernel is larger than
    `LARGEST_KERNEL`, outputs do not fill `LANES`, or samples have more than `FEW_INPUTS` channels.
    """
    if not conv_stack or not all(_fits(block) for block in conv_stack):
        return None
    margins = [block.layer.padding for block in conv_stack[1:]] + [0]
    return tuple(_geometry(block, margin) for block, margin in zip(conv_stack, margins, strict=True))


def _fits(block: ConvolutionBlock) -> bool:
    layer = block.layer
    channels = layer.in_channels <= FEW_INPUTS if block.first else layer.in_channels % LANES == 0
    fits = layer.stride == 1 and block.pool == POOL and layer.kernel <= LARGEST_KERNEL
    return fits and channels and layer.out_channels % LANES == 0


def _geometry(block: ConvolutionBlock, margin: int) -> Geometry:
    layer, (_, height, width) = block.layer, block.input_shape
    return Geometry(
        inputs=layer.in_channels,
        height=height,
        width=width,
        outputs=layer.out_channels,
        kernel=layer.kernel,
        padding=layer.padding,
        margin=margin,
        rectified=block.rectified,
        first=block.first,
    )
