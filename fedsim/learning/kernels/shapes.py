"""The shapes of a convolution, and how its images lie in memory.

Images lie with channels last and zeros around them, as many as the convolution that takes them wants: there is no edge
to look out for. What goes in has ``padding`` of them; what comes out has ``margin``, the next one's padding. Strides
are counted in numbers, not in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedsim.models.layers import Shape

__all__ = ["LANES", "POOL", "Geometry", "vectors_together"]

LANES = 16
"""Channels that go through the arithmetic together."""
POOL = 2


def vectors_together(channels: int, most: int) -> int:
    """Vectors of channels that go through the arithmetic at a time: at most *most*, and so that none is left."""
    return next(number for number in range(most, 0, -1) if channels // LANES % number == 0)


@dataclass(frozen=True)
class Geometry:
    """A convolution of stride 1, the maximum over squares of 2 x 2 places, a bias, and a rectifier or not."""

    inputs: int
    """Channels."""
    height: int
    """Rows of an image that goes in, without padding."""
    width: int
    outputs: int
    """Channels; they fill `LANES`."""
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
