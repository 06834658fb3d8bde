"""What kernels are made for: a processor, and the shapes of layers. LLVM is not needed to read or to make these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

__all__ = [
    "EPSILON",
    "LANES",
    "MOST_TOGETHER",
    "POOL",
    "Element",
    "Geometry",
    "Kernel",
    "Machine",
    "MatrixShape",
    "Normalisation",
    "Places",
    "Windows",
    "vectors_together",
]

Kernel = Callable[..., None]
"""Takes counts and addresses."""
Element = Literal["float", "double"]
LANES = 16
"""Numbers of a vector: channels that go through the arithmetic together."""
MOST_TOGETHER = 4
"""Vectors, or rows of a matrix, that go through the arithmetic at a time, at most: as many sums as hide the time that a
multiply-add takes."""
POOL = 2
EPSILON = 1e-5
"""Added to a variance, as in PyTorch."""


@dataclass(frozen=True)
class Machine:
    """What is written for: a type of numbers, and registers."""

    element: Element
    vectors_held: int
    """Vectors that may stay in registers, at least 1, beside those in passing. It decides how much is done at once, and
    so the order in which gradients of images are added up; nothing else."""


def vectors_together(channels: int) -> int:
    """Vectors of channels that go through the arithmetic at a time: as many as may, so that none is left."""
    return next(number for number in range(MOST_TOGETHER, 0, -1) if channels // LANES % number == 0)


@dataclass(frozen=True)
class Geometry:
    """A convolution of stride 1, the maximum over squares of 2 x 2 places, a bias, and a rectifier or not.

    Images lie with channels last and zeros around them, as many as the convolution that takes them wants: there is no
    edge to look out for. What goes in has ``padding`` of them; what comes out has ``margin``, the next one's padding.
    Strides are counted in numbers, not in bytes.
    """

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
    def taken(self) -> tuple[int, ...]:
        """(height, width, channels) of an image that goes in, with padding."""
        return self.height + 2 * self.padding, self.width + 2 * self.padding, self.inputs

    @property
    def made(self) -> tuple[int, ...]:
        """(height, width, channels) of an image that comes out, with margin."""
        return self.rows + 2 * self.margin, self.columns + 2 * self.margin, self.outputs

    @property
    def weights(self) -> tuple[int, ...]:
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


@dataclass(frozen=True)
class MatrixShape:
    """A matrix of weights, row by row."""

    outputs: int
    inputs: int

    @property
    def fits(self) -> bool:
        """Whether rows fill vectors."""
        return self.inputs % LANES == 0


@dataclass(frozen=True)
class Places:
    """A convolution that is computed place by place: of images that keep their height, or of series as rows."""

    width: int
    """Of an image."""
    inputs: int
    """Channels, a multiple of `LANES`."""
    outputs: int
    """Channels, a multiple of `LANES`."""
    rows: int
    """Of the kernel, an odd number: half of those that are left lie above an image, and half below it."""
    columns: int
    """Of the kernel."""
    padding: int
    """Zeros on the left of an image, and on the right."""
    biased: bool = False
    """Whether something is added to each channel of what is made."""
    mirrored: bool = False
    """Whether the kernel's first place is its last one."""

    @property
    def made(self) -> int:
        """Places that are made of a line."""
        return self.width + 2 * self.padding - self.columns + 1

    @cached_property
    def back(self) -> Places:
        """From what is made to what was taken, for its gradient."""
        padding = self.columns - 1 - self.padding
        return Places(self.made, self.outputs, self.inputs, self.rows, self.columns, padding, mirrored=True)

    @property
    def together(self) -> int:
        """Vectors of outputs that are made together."""
        return vectors_together(self.outputs)

    def beside(self, machine: Machine) -> int:
        """Of how many more things `together` vectors have their sums in registers."""
        return max(1, (machine.vectors_held - self.together - 1) // self.together)

    def tiles(self, machine: Machine) -> list[tuple[range, int]]:
        """The places of a line, as many at a time as have their sums in registers; and how many alike follow."""
        number = -(-self.made // self.beside(machine))
        size = -(-self.made // number)
        found: list[tuple[range, int]] = []
        for begin in range(0, self.made, size):
            tile = range(begin, min(begin + size, self.made))
            alike = bool(found) and self._is_whole(tile, size) and self._is_whole(found[-1][0], size)
            if alike:
                found[-1] = found[-1][0], found[-1][1] + 1
            else:
                found.append((tile, 1))
        return found

    def _is_whole(self, tile: range, size: int) -> bool:
        """Whether no zeros around the image have a part in it."""
        inside = self.inside(0).start <= tile.start and tile.stop <= self.inside(self.columns - 1).stop
        return inside and len(tile) == size

    def inside(self, column: int) -> range:
        """The places that are made of something at a *column* of the kernel."""
        return range(max(0, self.padding - column), min(self.made, self.width + self.padding - column))


@dataclass(frozen=True)
class Windows:
    """A convolution of series whose windows are multiplied with the weights."""

    numbers: int
    """In a window: places times channels."""
    step: int
    """Numbers from one window to the next."""
    outputs: int
    """Channels, a multiple of `LANES`."""

    @property
    def together(self) -> int:
        """Vectors of outputs that are made together."""
        return vectors_together(self.outputs)


@dataclass(frozen=True)
class Normalisation:
    """A normalisation, and what comes right behind it."""

    channels: int
    """A multiple of `LANES`."""
    groups: int | None
    """Of channels, each a power of two or a multiple of `LANES`; None: over the batch, channel by channel."""
    added: bool
    """Whether something is added before the rectifier, as in a residual block."""
    rectified: bool
    pooled: bool
    """Whether of two rows the larger value is kept."""
    reduced: bool = False
    """Whether values lie in bfloat16. What is computed with them is float32."""

    @property
    def together(self) -> int:
        """Vectors of channels that go through the rows together."""
        return vectors_together(self.channels)
