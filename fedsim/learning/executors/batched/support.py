"""Which models the batched trainer has arithmetic for. No torch here: the choice is made before it is loaded.

A model is a stack of convolutions, each with a rectifier and pooling behind it or not, and then a stack of dense,
that is fully connected, layers, each with a rectifier behind it or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU, Shape
from fedsim.models.segmented import whole
from fedsim.models.table import LayerTable, ModelTable

__all__ = ["Architecture", "ConvolutionBlock", "DenseBlock", "architecture", "why_not"]


@dataclass(frozen=True)
class ConvolutionBlock:
    """A convolution; what it yields is pooled, then rectified, which is the same as the other way round."""

    part: str
    layer: Conv2d
    rectified: bool
    pool: int
    """Size of the pooling squares; 1 without pooling."""
    input_shape: Shape
    """(channels, height, width) before the convolution."""
    output_shape: Shape
    """(channels, height, width) after pooling."""
    first: bool
    """Whether it takes the samples: then nobody needs the gradient of its input."""


@dataclass(frozen=True)
class DenseBlock:
    """A fully connected layer."""

    part: str
    layer: Linear
    rectified: bool


@dataclass(frozen=True)
class Architecture:
    """A model as the batched trainer sees it."""

    conv_stack: tuple[ConvolutionBlock, ...]
    dense_stack: tuple[DenseBlock, ...]


def why_not(table: ModelTable) -> str | None:
    """Why the batched trainer cannot take the model, as a clause; None if it can.

    >>> from fedsim.models.resnet import ResNet
    >>> why_not(ResNet(depth=20).table((3, 32, 32), 10))
    'it has no arithmetic for layer bn1 (batch_norm2d(channels=16))'
    """
    parts = (None, *table.parts)
    return next((found for found in (_parse(table, part) for part in parts) if isinstance(found, str)), None)


def architecture(table: ModelTable, part: str | None = None) -> Architecture:
    """The two stacks of the model, or of *part* alone; `ValueError` where `why_not` has something to say."""
    found = _parse(table, part)
    if isinstance(found, str):
        raise ValueError(found)
    return found


def _parse(table: ModelTable, part: str | None = None) -> Architecture | str:
    table = whole(table)
    if not isinstance(table, LayerTable):
        return "it has no arithmetic for a module of the user's own"
    layers = [(own, layer) for own, some in table.layers.items() if part in (None, own) for layer in some]
    conv_stack: list[ConvolutionBlock] = []
    dense_stack: list[DenseBlock] = []
    shape = table.input_shape
    while layers and isinstance(layers[0][1], Conv2d):
        block, layers = _convolution_block(layers, shape, first=not conv_stack)
        conv_stack.append(block)
        shape = block.output_shape
    if layers and isinstance(layers[0][1], Flatten):
        del layers[0]
    while layers and isinstance(layers[0][1], Linear):
        (own, layer), *layers = layers
        assert isinstance(layer, Linear)
        rectified = bool(layers) and isinstance(layers[0][1], ReLU)
        layers = layers[rectified:]
        dense_stack.append(DenseBlock(own, layer, rectified))
    if not layers and not dense_stack and part in (None, table.parts[-1]):
        return "it ends in no fully connected layer"
    if layers:
        layer = layers[0][1]
        return f"it has no arithmetic for layer {layer.name} ({layer.signature})"
    return Architecture(tuple(conv_stack), tuple(dense_stack))


def _convolution_block(
    layers: list[tuple[str, Layer]], shape: Shape, *, first: bool
) -> tuple[ConvolutionBlock, list[tuple[str, Layer]]]:
    (part, layer), *rest = layers
    assert isinstance(layer, Conv2d)
    before, shape = shape, layer.output_shape(shape)
    behind = _behind(rest)
    rest = rest[len(behind) :]
    pool = 1
    for follower in behind:
        shape = follower.output_shape(shape)
        if isinstance(follower, MaxPool2d):
            pool = follower.kernel
    rectified = any(isinstance(follower, ReLU) for follower in behind)
    return ConvolutionBlock(part, layer, rectified, pool, before, shape, first), rest


def _behind(layers: Sequence[tuple[str, Layer]]) -> list[Layer]:
    """At most one rectifier and one pooling at the head of *layers*, in either order."""
    found: list[Layer] = []
    for _, layer in layers[:2]:
        if not isinstance(layer, ReLU | MaxPool2d) or any(type(layer) is type(other) for other in found):
            break
        found.append(layer)
    return found
