"""What a layer says of shapes, parameters and work, against arithmetic by hand and against PyTorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from fedsim.models.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU


def test_convolution_by_hand():
    conv = Conv2d("conv", in_channels=2, out_channels=3, kernel=3, stride=2, padding=1)
    assert conv.parameter_shapes == {"weight": (3, 2, 3, 3), "bias": (3,)}
    assert conv.output_shape((2, 5, 7)) == (3, 3, 4)  # (5 + 2 - 3) // 2 + 1, (7 + 2 - 3) // 2 + 1
    assert conv.macs((2, 5, 7)) == (3 * 3 * 4) * (2 * 3 * 3)


def test_linear_by_hand():
    fc = Linear("fc", inputs=100, outputs=62)
    assert fc.parameter_shapes == {"weight": (62, 100), "bias": (62,)}
    assert fc.output_shape((100,)) == (62,)
    assert fc.macs((100,)) == 6_200


@pytest.mark.parametrize("layer", [ReLU("relu"), MaxPool2d("pool", kernel=2), Flatten("flatten")])
def test_activations_and_pooling_have_no_parameters_and_no_counted_work(layer: Layer):
    assert layer.parameter_shapes == {}
    assert layer.macs((3, 4, 4)) == 0


@settings(max_examples=60, deadline=None)
@given(
    channels=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    image=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 3),
)
def test_convolution_gives_the_shapes_of_pytorch_or_refuses_as_it_does(channels, image, kernel, stride, padding):
    layer = Conv2d("conv", *channels, kernel=kernel, stride=stride, padding=padding)
    twin = nn.Conv2d(*channels, kernel, stride=stride, padding=padding)
    assert layer.parameter_shapes == {name: tuple(value.shape) for name, value in twin.named_parameters()}
    shape = (channels[0], *image)
    if min(image) + 2 * padding < kernel:
        with pytest.raises(RuntimeError):
            twin(torch.zeros(1, *shape))
        with pytest.raises(ValueError, match="images of at least"):
            layer.output_shape(shape)
    else:
        assert layer.output_shape(shape) == tuple(twin(torch.zeros(1, *shape)).shape[1:])


@settings(max_examples=40, deadline=None)
@given(shape=st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)), kernel=st.integers(1, 4))
def test_pooling_and_flattening_give_the_shapes_of_pytorch(shape, kernel):
    assume(min(shape[1:]) >= kernel)
    sample = torch.zeros(1, *shape)
    assert MaxPool2d("pool", kernel=kernel).output_shape(shape) == tuple(nn.MaxPool2d(kernel)(sample).shape[1:])
    assert Flatten("flatten").output_shape(shape) == tuple(nn.Flatten()(sample).shape[1:])


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (Conv2d("c", 1, 2, kernel=3), (3, 8, 8), r"layer 'c' .* takes \(1, height, width\), .* is \(3, 8, 8\)"),
        (Conv2d("c", 1, 2, kernel=3), (64,), r"takes \(1, height, width\)"),
        (Linear("fc", 100, 62), (2048,), r"takes vectors of shape \(100,\), the input's shape is \(2048,\)"),
        (Linear("fc", 100, 62), (1, 10, 10), r"takes vectors of shape \(100,\)"),
        (MaxPool2d("p", kernel=2), (32, 1, 4), "takes images of at least 2 x 2 pixels"),
        (MaxPool2d("p", kernel=2), (32,), "takes images"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_with_layer_rule_and_shape(layer: Layer, shape, message):
    with pytest.raises(ValueError, match=message):
        layer.output_shape(shape)
    with pytest.raises(ValueError, match=message):
        layer.macs(shape)


@pytest.mark.parametrize(
    ("key", "size", "least"),
    [("kernel", 0, 1), ("in_channels", 0, 1), ("out_channels", -1, 1), ("stride", 0, 1), ("padding", -1, 0)],
)
def test_sizes_that_make_no_layer_are_refused(key, size, least):
    with pytest.raises(ValueError, match=f"{key}={size} of layer 'c' must be at least {least}"):
        Conv2d("c", **({"in_channels": 1, "out_channels": 1, "kernel": 1} | {key: size}))


@pytest.mark.parametrize("name", ["", "block.conv"])
def test_a_name_that_would_blur_parameter_names_is_refused(name):
    with pytest.raises(ValueError, match="a layer's name"):
        ReLU(name)


def test_signatures_tell_type_and_every_size_but_not_the_name():
    layers = [
        Conv2d("a", 1, 2, kernel=3),
        Conv2d("a", 2, 2, kernel=3),
        Conv2d("a", 1, 3, kernel=3),
        Conv2d("a", 1, 2, kernel=5),
        Conv2d("a", 1, 2, kernel=3, stride=2),
        Conv2d("a", 1, 2, kernel=3, padding=1),
        Linear("a", 1, 2),
        Linear("a", 2, 1),
        MaxPool2d("a", kernel=2),
        MaxPool2d("a", kernel=3),
        ReLU("a"),
        Flatten("a"),
    ]
    assert len({layer.signature for layer in layers}) == len(layers)
    assert Conv2d("a", 1, 2, kernel=3).signature == Conv2d("b", 1, 2, kernel=3).signature
