"""Layers made of layers: a branch with a shortcut around it, and layers that a paper lists as one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["Block", "PadShortcut", "Residual", "through"]


def through(layers: tuple[Layer, ...], input_shape: Shape) -> Shape:
    """The shape of what comes out of *layers*, one after the other; raises `ValueError` where an input does not fit."""
    for layer in layers:
        input_shape = layer.output_shape(input_shape)
    return input_shape


@dataclass(frozen=True)
class _Composite(Layer):
    def __post_init__(self) -> None:
        """Check the names."""
        super().__post_init__()
        names = [path for path, _ in self.children()]
        if len(set(names)) < len(names):
            raise ValueError(f"the layers inside layer {self.name!r} must have different names, they have {names}")

    @abstractmethod
    def children(self) -> tuple[tuple[str, Layer], ...]:
        """The layers inside, with their dotted names behind this layer's own."""

    @property
    def sizes(self) -> dict[str, int]:
        """None of its own."""
        return {}

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Those of the layers inside, by dotted names."""
        inside = self.children()
        return {f"{path}.{key}": shape for path, child in inside for key, shape in child.parameter_shapes.items()}

    @property
    def buffer_shapes(self) -> dict[str, Shape]:
        """Those of the layers inside, by dotted names."""
        inside = self.children()
        return {f"{path}.{key}": shape for path, child in inside for key, shape in child.buffer_shapes.items()}

    @property
    def state_shapes(self) -> dict[str, Shape]:
        """Those of the layers inside, layer by layer."""
        inside = self.children()
        return {f"{path}.{key}": shape for path, child in inside for key, shape in child.state_shapes.items()}

    def leaves(self) -> Iterator[tuple[str, Layer]]:
        """The leaves of the layers inside."""
        for path, child in self.children():
            stem = f"{self.name}.{path.removesuffix(child.name)}"
            yield from ((f"{stem}{name}", leaf) for name, leaf in child.leaves())


@dataclass(frozen=True)
class Residual(_Composite):
    """``body(x) + shortcut(x)`` (He et al., CVPR 2016, Eq. 2); without layers, the shortcut is x itself.

    >>> from fedsim.models.layers import Conv2d
    >>> block = Residual("block", body=(Conv2d("conv", 16, 16, kernel=3, padding=1),))
    >>> block.output_shape((16, 8, 8)), list(block.parameter_shapes)
    ((16, 8, 8), ['body.conv.weight', 'body.conv.bias'])
    """

    kind: ClassVar[str] = "residual"
    body: tuple[Layer, ...]
    shortcut: tuple[Layer, ...] = ()

    def children(self) -> tuple[tuple[str, Layer], ...]:
        """The body's layers, then the shortcut's."""
        body = tuple((f"body.{layer.name}", layer) for layer in self.body)
        return body + tuple((f"shortcut.{layer.name}", layer) for layer in self.shortcut)

    @property
    def signature(self) -> str:
        """The signatures of both branches."""
        body, shortcut = ([layer.signature for layer in layers] for layers in (self.body, self.shortcut))
        return f"residual(body=[{', '.join(body)}], shortcut=[{', '.join(shortcut)}])"

    @property
    def text(self) -> str:
        """As every layer's, with the names inside."""
        body, shortcut = (" ".join(layer.text for layer in layers) for layers in (self.body, self.shortcut))
        return f"{self.name}=residual(body: {body}; shortcut: {shortcut})"

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape that both branches give; raises `ValueError` when they differ."""
        body, shortcut = through(self.body, input_shape), through(self.shortcut, input_shape)
        if body != shortcut:
            raise ValueError(
                f"layer {self.name!r}: the body gives {body}, the shortcut {shortcut} for an input of {input_shape}; "
                "they must be equal"
            )
        return body

    def macs(self, input_shape: Shape) -> int:
        """Those of both branches; the addition is not counted."""
        self.output_shape(input_shape)
        return sum(_macs(layers, input_shape) for layers in (self.body, self.shortcut))

    def units(self) -> Iterator[tuple[str, Layer]]:
        """The units inside, each for itself: a residual block is no layer of its own."""
        for path, child in self.children():
            stem = f"{self.name}.{path.removesuffix(child.name)}"
            yield from ((f"{stem}{name}", unit) for name, unit in child.units())


@dataclass(frozen=True)
class Block(_Composite):
    """Layers, one after the other, that count as one: only models that have all of them have it in common.

    >>> from fedsim.models.layers import Conv1d, MaxPool1d, ReLU
    >>> block = Block("conv1", (Conv1d("conv", 70, 256, kernel=7), ReLU("relu"), MaxPool1d("pool", kernel=3, stride=3)))
    >>> block.output_shape((70, 1014)), list(block.parameter_shapes)
    ((256, 336), ['conv.weight', 'conv.bias'])
    """

    kind: ClassVar[str] = "block"
    layers: tuple[Layer, ...]

    def children(self) -> tuple[tuple[str, Layer], ...]:
        """The layers, by their names."""
        return tuple((layer.name, layer) for layer in self.layers)

    @property
    def signature(self) -> str:
        """The layers' signatures."""
        return f"block({', '.join(layer.signature for layer in self.layers)})"

    @property
    def text(self) -> str:
        """As every layer's, with the names inside."""
        return f"{self.name}=block({' '.join(layer.text for layer in self.layers)})"

    def output_shape(self, input_shape: Shape) -> Shape:
        """What the last layer gives."""
        return through(self.layers, input_shape)

    def macs(self, input_shape: Shape) -> int:
        """Those of all its layers."""
        return _macs(self.layers, input_shape)

    def units(self) -> Iterator[tuple[str, Layer]]:
        """Itself."""
        yield self.name, self


@dataclass(frozen=True)
class PadShortcut(Layer):
    """Every *stride*-th row and column of an image, and channels of zeros behind its own: nothing to train.

    (He et al., CVPR 2016, option A of section 4.1.) Raises `ValueError` when there would be fewer channels than before.

    >>> PadShortcut("pad", in_channels=16, out_channels=32, stride=2).output_shape((16, 32, 32))
    (32, 16, 16)
    """

    kind: ClassVar[str] = "pad_shortcut"
    in_channels: int
    out_channels: int
    stride: int

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(out_channels, height, width)``, sizes divided by the stride and rounded up."""
        if len(input_shape) != 3 or input_shape[0] != self.in_channels:
            raise self._misfit(input_shape, f"({self.in_channels}, height, width)")
        height, width = (-(-size // self.stride) for size in input_shape[1:])
        return (self.out_channels, height, width)


def _macs(layers: tuple[Layer, ...], input_shape: Shape) -> int:
    return sum(layer.macs(through(layers[:number], input_shape)) for number, layer in enumerate(layers))
