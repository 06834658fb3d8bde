"""What a layer says of shapes, parameters and work, against arithmetic by hand and against PyTorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tiers import drawn
from torch import nn

from fedsim.models.layers import (
    BatchNorm1d,
    BatchNorm2d,
    Block,
    Conv1d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAveragePool,
    GroupNorm1d,
    GroupNorm2d,
    Gru,
    KMaxPool,
    LastStep,
    Layer,
    Linear,
    Lstm,
    MaxPool1d,
    MaxPool2d,
    OneHot,
    PadShortcut,
    ReLU,
    Residual,
    normalising,
)


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


def test_convolution_along_a_series_by_hand():
    conv = Conv1d("conv", in_channels=2, out_channels=3, kernel=5, stride=2, padding=1, bias=False)
    assert conv.parameter_shapes == {"weight": (3, 2, 5)}
    assert conv.output_shape((2, 8)) == (3, 3)  # (8 + 2 - 5) // 2 + 1
    assert conv.macs((2, 8)) == (3 * 3) * (2 * 5)


def test_batch_normalisation_has_two_parameters_and_two_statistics_for_each_channel():
    for norm, shape in ((BatchNorm1d("bn", 3), (3, 9)), (BatchNorm2d("bn", 3), (3, 4, 5))):
        assert norm.parameter_shapes == {"weight": (3,), "bias": (3,)}
        assert norm.buffer_shapes == {"running_mean": (3,), "running_var": (3,)}
        assert list(norm.state_shapes) == ["weight", "bias", "running_mean", "running_var"]
        assert norm.output_shape(shape) == shape
        assert norm.macs(shape) == 0


def test_group_normalisation_has_two_parameters_for_each_channel_and_remembers_nothing():
    for norm, shape in ((GroupNorm1d("gn", 4), (4, 9)), (GroupNorm2d("gn", 4), (4, 4, 5))):
        assert norm.parameter_shapes == norm.state_shapes == {"weight": (4,), "bias": (4,)}
        assert (norm.groups, norm.buffer_shapes, norm.alone) == (2, {}, True)
        assert norm.output_shape(shape) == shape
        assert norm.macs(shape) == 0
        assert norm.signature.endswith("(channels=4, groups=2)")


@pytest.mark.parametrize(("channels", "number", "names"), [(6, 3, ("bn3", "gn3")), (2, None, ("bn", "gn"))])
def test_a_model_says_what_is_behind_its_convolutions(channels, number, names):
    for axes, layers in ((1, (BatchNorm1d, GroupNorm1d)), (2, (BatchNorm2d, GroupNorm2d))):
        made = [normalising(how, axes, channels, number) for how in ("batch", "group", "none")]
        assert made == [*((layer(name, channels),) for layer, name in zip(layers, names, strict=True)), ()]


@pytest.mark.parametrize(("unit", "rows"), [(Gru, 15), (Lstm, 20)])
def test_a_recurrent_unit_by_hand(unit: type[Gru | Lstm], rows: int):
    layer = unit("r", inputs=4, hidden=5)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    assert layer.state_shapes == dict(zip(names, [(rows, 4), (rows, 5), (rows,), (rows,)], strict=True))
    assert layer.output_shape((4, 7)) == (5, 7)
    assert layer.macs((4, 7)) == 7 * (rows * 4 + rows * 5)
    assert (layer.signature, layer.alone) == (f"{unit.__name__.lower()}(inputs=4, hidden=5)", True)


def test_a_residual_block_is_the_sum_of_its_branches_work_and_states():
    conv = Conv2d("conv", 2, 4, kernel=3, stride=2, padding=1, bias=False)
    block = Residual("block", (conv, BatchNorm2d("bn", 4)), (Conv2d("conv", 2, 4, kernel=1, stride=2),))
    assert block.output_shape((2, 5, 5)) == (4, 3, 3)
    assert block.macs((2, 5, 5)) == 36 * 2 * 9 + 36 * 2
    assert block.state_shapes == {
        "body.conv.weight": (4, 2, 3, 3),
        "body.bn.weight": (4,),
        "body.bn.bias": (4,),
        "body.bn.running_mean": (4,),
        "body.bn.running_var": (4,),
        "shortcut.conv.weight": (4, 2, 1, 1),
        "shortcut.conv.bias": (4,),
    }
    assert set(block.parameter_shapes) | set(block.buffer_shapes) == set(block.state_shapes)
    assert list(block.buffer_shapes) == ["body.bn.running_mean", "body.bn.running_var"]


def test_composites_nest_and_name_their_leaves():
    inner = Residual("inner", (Linear("fc", 3, 3),))
    outer = Residual("outer", (Block("pair", (Linear("fc", 3, 3), ReLU("relu"))), inner))
    assert [name for name, _ in outer.leaves()] == [
        "outer.body.pair.fc",
        "outer.body.pair.relu",
        "outer.body.inner.body.fc",
    ]
    assert [name for name, _ in outer.units()] == ["outer.body.pair", "outer.body.inner.body.fc"]
    assert [f"outer.{kind}" for kind in outer.state_shapes] == [
        f"{name}.{kind}" for name, leaf in outer.leaves() for kind in leaf.state_shapes
    ]


@pytest.mark.parametrize(
    "layer",
    [
        ReLU("relu"),
        Dropout("dropout", 0.5),
        MaxPool2d("pool", kernel=2),
        Flatten("flatten"),
        GlobalAveragePool("pool"),
        PadShortcut("pad", 3, 6, stride=2),
    ],
)
def test_activations_and_pooling_have_no_parameters_and_no_counted_work(layer: Layer):
    assert layer.parameter_shapes == {}
    assert layer.macs((3, 4, 4)) == 0


@drawn(60)
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


@drawn(40)
@given(
    length=st.integers(1, 12),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 3),
)
def test_series_get_the_shapes_of_pytorch_or_are_refused_as_it_does(length, kernel, stride, padding):
    conv = Conv1d("conv", 2, 3, kernel=kernel, stride=stride, padding=padding)
    layers: list[tuple[Layer, nn.Module]] = [(conv, nn.Conv1d(2, 3, kernel, stride=stride, padding=padding))]
    if 2 * padding <= kernel:
        pool = MaxPool1d("pool", kernel=kernel, stride=stride, padding=padding)
        layers.append((pool, nn.MaxPool1d(kernel, stride=stride, padding=padding)))
    for layer, twin in layers:
        if length + 2 * padding < kernel:
            with pytest.raises(ValueError, match="of a length of at least"):
                layer.output_shape((2, length))
        else:
            assert layer.output_shape((2, length)) == tuple(twin(torch.zeros(1, 2, length)).shape[1:])


@drawn(40)
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
        (Conv1d("c", 2, 3, kernel=3), (1, 9), r"takes \(2, length\)"),
        (Conv1d("c", 2, 3, kernel=3), (2, 2), "takes series of a length of at least 3"),
        (MaxPool1d("p", kernel=3, stride=2), (2, 2), r"takes series \(channels, length\) of a length of at least 3"),
        (KMaxPool("p", k=8), (64, 7), "of a length of at least 8"),
        (GlobalAveragePool("p"), (64,), "takes channels of one or more axes"),
        (BatchNorm1d("bn", 3), (3,), r"takes \(3, length\)"),
        (BatchNorm2d("bn", 3), (4, 2, 2), r"takes \(3, height, width\)"),
        (GroupNorm1d("gn", 4), (4,), r"takes \(4, length\)"),
        (GroupNorm2d("gn", 4), (3, 2, 2), r"takes \(4, height, width\)"),
        (OneHot("o", 70), (70, 9), r"takes sequences of tokens \(length,\)"),
        (Embedding("e", 70, 16), (1, 9), r"takes sequences of tokens \(length,\)"),
        (Gru("g", 4, 5), (5, 4), r"takes series \(4, time\)"),
        (Lstm("l", 4, 5), (4,), r"takes series \(4, time\)"),
        (LastStep("l"), (4,), r"takes series \(channels, time\)"),
        (PadShortcut("p", 3, 6, stride=2), (4, 8, 8), r"takes \(3, height, width\)"),
        (Residual("r", (Linear("fc", 3, 2),)), (3,), r"the body gives \(2,\), the shortcut \(3,\)"),
        (Block("b", (Flatten("f"), Linear("fc", 3, 2))), (2, 2), "layer 'fc' .* takes vectors"),
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dropout("d", 1.0), "rate=1.0 of layer 'd' must be at least 0 and below 1"),
        (lambda: GroupNorm2d("g", 5), "channels=5 of layer 'g' must be a multiple of groups=2"),
        (lambda: GroupNorm1d("g", 4, groups=0), "groups=0 of layer 'g' must be at least 1"),
        (lambda: Block("b", (ReLU("a"), ReLU("a"))), r"inside layer 'b' must have different names"),
        (lambda: Residual("r", (ReLU("a"), ReLU("a"))), r"inside layer 'r' must have different names"),
    ],
)
def test_hyper_parameters_that_make_no_layer_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


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
        Conv2d("a", 1, 2, kernel=3, bias=False),
        Linear("a", 1, 2, bias=False),
        Conv1d("a", 1, 2, kernel=3),
        Conv1d("a", 1, 2, kernel=3, bias=False),
        MaxPool1d("a", kernel=2, stride=2),
        MaxPool1d("a", kernel=2, stride=2, padding=1),
        KMaxPool("a", k=2),
        GlobalAveragePool("a"),
        BatchNorm1d("a", 2),
        BatchNorm2d("a", 2),
        GroupNorm1d("a", 2),
        GroupNorm2d("a", 2),
        GroupNorm2d("a", 2, groups=1),
        Dropout("a", 0.5),
        Dropout("a", 0.25),
        OneHot("a", 2),
        Embedding("a", 2, 3),
        Embedding("a", 3, 2),
        Gru("a", 2, 3),
        Gru("a", 3, 2),
        Lstm("a", 2, 3),
        Lstm("a", 3, 2),
        LastStep("a"),
        PadShortcut("a", 1, 2, stride=2),
        Residual("a", (ReLU("a"),)),
        Residual("a", (), (ReLU("a"),)),
        Residual("a", (ReLU("a"),), (ReLU("a"),)),
        Block("a", (ReLU("a"),)),
        Block("a", (ReLU("a"), ReLU("b"))),
    ]
    assert len({layer.signature for layer in layers}) == len(layers)
    assert Conv2d("a", 1, 2, kernel=3).signature == Conv2d("b", 1, 2, kernel=3).signature
    assert Block("a", (ReLU("b"),)).signature == Block("c", (ReLU("d"),)).signature
    assert Residual("a", (ReLU("b"),)).signature == Residual("c", (ReLU("d"),)).signature


def test_digests_tell_names_inside_composites_because_states_are_named_by_them():
    named = [
        Residual("a", (Linear("b", 2, 2),)),
        Residual("a", (Linear("c", 2, 2),)),
        Residual("d", (Linear("b", 2, 2),)),
        Block("a", (Linear("b", 2, 2),)),
        Block("a", (Linear("c", 2, 2),)),
    ]
    assert len({layer.text for layer in named}) == len(named)
