"""Normalisation of channels, over the samples of a batch or within each sample.

Batch normalisation (Ioffe and Szegedy, ICML 2015): while training, values are normalised by their batch; when a model
is evaluated, by running means over batches, which are part of a model's state. Leaves out: the count of batches seen,
which nothing reads as long as the running means forget at a fixed rate.

Group normalisation (Wu and He, ECCV 2018): each sample is normalised by itself, over groups of its channels, in
training as in tests, so that a client with samples of one class only has no statistics that others have not. It has two
groups here, as in Reddi et al. (Adaptive Federated Optimization, ICLR 2021, experiments), who follow Hsieh et al. (The
Non-IID Data Quagmire of Decentralized Machine Learning, ICML 2020).

Both add 1e-5 to a variance, as PyTorch does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from fedsim.models.layers.layer import Layer, Shape

__all__ = [
    "GROUPS",
    "BatchNorm1d",
    "BatchNorm2d",
    "ChannelNorm",
    "GroupNorm1d",
    "GroupNorm2d",
    "Normalisation",
    "normalising",
]

Normalisation: TypeAlias = Literal["batch", "group", "none"]
"""What is behind a model's convolutions: batch normalisation, group normalisation of two groups, or nothing."""

GROUPS = 2
"""Of channels, in group normalisation (Reddi et al., ICLR 2021)."""


@dataclass(frozen=True)
class ChannelNorm(Layer):
    """What all normalisations of channels have in common: each channel has a scale and an offset of its own."""

    axes: ClassVar[tuple[str, ...]]
    channels: int

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Scale and offset of each channel, which PyTorch calls weight and bias."""
        return {"weight": (self.channels,), "bias": (self.channels,)}

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) != 1 + len(self.axes) or input_shape[0] != self.channels:
            raise self._misfit(input_shape, f"({self.channels}, {', '.join(self.axes)})")
        return input_shape


@dataclass(frozen=True)
class _BatchNorm(ChannelNorm):
    @property
    def alone(self) -> bool:
        """No: it normalises over the batch."""
        return False

    @property
    def buffer_shapes(self) -> dict[str, Shape]:
        """Running mean and variance of each channel."""
        return {"running_mean": (self.channels,), "running_var": (self.channels,)}


@dataclass(frozen=True)
class BatchNorm2d(_BatchNorm):
    """Normalises each channel of images over the batch and the pixels.

    >>> norm = BatchNorm2d("bn", channels=16)
    >>> norm.parameter_shapes | norm.buffer_shapes
    {'weight': (16,), 'bias': (16,), 'running_mean': (16,), 'running_var': (16,)}
    """

    kind: ClassVar[str] = "batch_norm2d"
    axes: ClassVar[tuple[str, ...]] = ("height", "width")


@dataclass(frozen=True)
class BatchNorm1d(_BatchNorm):
    """Normalises each channel of series over the batch and the length."""

    kind: ClassVar[str] = "batch_norm1d"
    axes: ClassVar[tuple[str, ...]] = ("length",)


@dataclass(frozen=True)
class _GroupNorm(ChannelNorm):
    groups: int = GROUPS

    def __post_init__(self) -> None:
        """Groups are of as many channels each; raises `ValueError` where they cannot be."""
        super().__post_init__()
        if self.channels % self.groups:
            raise ValueError(
                f"channels={self.channels} of layer {self.name!r} must be a multiple of groups={self.groups}"
            )


@dataclass(frozen=True)
class GroupNorm2d(_GroupNorm):
    """Normalises each group of an image's channels over these and the pixels.

    >>> norm = GroupNorm2d("gn", channels=16)
    >>> norm.signature, norm.alone
    ('group_norm2d(channels=16, groups=2)', True)
    >>> norm.parameter_shapes | norm.buffer_shapes
    {'weight': (16,), 'bias': (16,)}
    """

    kind: ClassVar[str] = "group_norm2d"
    axes: ClassVar[tuple[str, ...]] = ("height", "width")


@dataclass(frozen=True)
class GroupNorm1d(_GroupNorm):
    """Normalises each group of a series' channels over these and the length."""

    kind: ClassVar[str] = "group_norm1d"
    axes: ClassVar[tuple[str, ...]] = ("length",)


def normalising(how: Normalisation, axes: Literal[1, 2], channels: int, number: int | None = None) -> tuple[Layer, ...]:
    """The layers that normalise *channels* of series (1) or images (2): ``bn`` or ``gn`` with its *number*, or none.

    >>> [layer.text for layer in normalising("group", 1, 64, 3)]
    ['gn3=group_norm1d(channels=64, groups=2)']
    >>> normalising("none", 1, 64)
    ()
    """
    if how == "none":
        return ()
    layers = {"batch": (BatchNorm1d, BatchNorm2d), "group": (GroupNorm1d, GroupNorm2d)}
    name = f"{how[0]}n{'' if number is None else number}"
    return (layers[how][axes - 1](name, channels),)
