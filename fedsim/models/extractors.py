"""The convolutional extractor that LEAF's image CNN and its descendants share (Caldas et al., LEAF, 2018)."""

from __future__ import annotations

from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU, Shape

__all__ = ["convolutional_extractor"]


def convolutional_extractor(input_shape: Shape, *, channels: tuple[int, ...], hidden: int) -> tuple[Layer, ...]:
    """One block of convolution (5 x 5, padding 2), ReLU and 2 x 2 pooling per entry of *channels*, then a ReLU layer.

    *input_shape* is (channels, height, width); raises `ValueError` when the image is too small to be pooled so often.

    >>> [layer.name for layer in convolutional_extractor((1, 4, 4), channels=(2,), hidden=8)]
    ['conv1', 'relu1', 'pool1', 'flatten', 'fc1', 'relu2']
    """
    layers: list[Layer] = []
    shape = input_shape
    for number, out_channels in enumerate(channels, start=1):
        block: tuple[Layer, ...] = (
            Conv2d(f"conv{number}", in_channels=shape[0], out_channels=out_channels, kernel=5, padding=2),
            ReLU(f"relu{number}"),
            MaxPool2d(f"pool{number}", kernel=2),
        )
        for layer in block:
            shape = layer.output_shape(shape)
        layers += block
    flatten = Flatten("flatten")
    (features,) = flatten.output_shape(shape)
    return (*layers, flatten, Linear("fc1", inputs=features, outputs=hidden), ReLU(f"relu{len(channels) + 1}"))
