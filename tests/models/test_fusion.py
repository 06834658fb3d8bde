"""The fusion layer: where it stands, what it weighs, and what it makes of two streams of features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedsim import registry
from fedsim.models.fusion import GATES, fused
from fedsim.models.layers import Flatten, Fusion, Linear
from fedsim.models.softmax import Softmax
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import LayerModule, build, initial_parameters

PLACES = {
    "small_cnn": ((1, 28, 28), "pool2", 32),
    "fedgs_cnn": ((1, 28, 28), "pool2", 64),
    "hfedms_cnn": ((1, 28, 28), "pool2", 64),
    "leaf_cnn": ((1, 28, 28), "pool2", 16),
    "vgg": ((3, 32, 32), "pool5", 512),
    "resnet": ((3, 32, 32), "relu10", 64),
    "conv1d": ((1, 2048), "pool5", 64),
    "gru": ((14, 30), "gru1", 64),
    "lstm": ((14, 30), "lstm1", 64),
    "char_cnn": ((1014,), "conv6", 256),
    "vdcnn": ((1024,), "pool4", 512),
    "mlp": ((1, 8, 8), "relu1", 64),
}
"""Samples, the layer before the fusion, and its channels: of a multilayer perceptron, all numbers."""
OPERATORS = ("conv", "multi", "single")
each_operator = pytest.mark.parametrize("operator", OPERATORS)


def table(name: str = "small_cnn") -> LayerTable:
    made: LayerTable = registry.load("models", name)().table(PLACES[name][0], 10)
    return made


def module(operator: str, seed: int = 0) -> LayerModule:
    """A small network with a fusion layer, in double precision."""
    small = registry.load("models", "small_cnn")(channels=(2, 3), hidden=5).table((1, 8, 8), 4)
    made = build(fused(small, operator))
    assert isinstance(made, LayerModule)
    for part, tensors in initial_parameters(fused(small, operator), np.random.default_rng(seed)).items():
        made.load(part, tensors)
    return made.double().eval()


def set_gate(made: LayerModule, *numbers: float) -> None:
    with torch.no_grad():
        made.part_parameters("extractor")["fusion.gate"].copy_(torch.tensor(numbers))


def samples() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(9).standard_normal((6, 1, 8, 8)))


def before_fusion(made: LayerModule, x: torch.Tensor) -> torch.Tensor:
    """By another way than the module's own."""
    for name, layer in made.parts["extractor"].named_children():
        if name == "fusion":
            return x
        x = layer(x)
    raise AssertionError


def test_every_model_that_has_an_extractor_has_its_place_here() -> None:
    assert set(PLACES) == set(registry.names("models")) - {"declared", "torch_module", "softmax"}


@pytest.mark.parametrize("name", PLACES)
def test_it_stands_behind_the_last_convolution_or_at_the_end_of_the_extractor(name: str) -> None:
    _, before, channels = PLACES[name]
    made = fused(table(name), "multi")
    names = [layer.name for layer in made.extractor]
    assert names[names.index("fusion") - 1] == before
    assert made.extractor[names.index("fusion")] == Fusion("fusion", channels, "multi")
    assert [name for name in names if name != "fusion"] == [layer.name for layer in table(name).extractor]


def test_a_model_without_an_extractor_has_no_place_for_it() -> None:
    with pytest.raises(ValueError, match="no features to fuse"):
        fused(Softmax().table((1, 8, 8), 10), "multi")


@pytest.mark.parametrize(("operator", "numbers", "macs"), [("conv", 2 * 32**2, 49 * 2 * 32**2), ("multi", 32, 0)])
def test_its_parameters_bytes_and_work_by_hand(operator: str, numbers: int, macs: int) -> None:
    """32 channels of 7 x 7."""
    plain, made = table(), fused(table(), operator)
    assert made.parameters("extractor") - plain.parameters("extractor") == numbers
    assert made.bytes() - plain.bytes() == 4 * numbers
    assert made.forward_macs() - plain.forward_macs() == macs


def test_one_gate_is_one_number() -> None:
    assert fused(table(), "single").parameters() == table().parameters() + 1


def test_its_signature_tells_operators_apart() -> None:
    assert len({fused(table(), operator).digest for operator in OPERATORS} | {table().digest}) == 4
    assert Fusion("fusion", 3, "conv").signature == "fusion(channels=3, operator=conv)"


def test_other_channels_do_not_fit() -> None:
    with pytest.raises(ValueError, match="takes features of 3 channels, the input's shape is"):
        Fusion("fusion", 3, "multi").output_shape((4, 2, 2))


@each_operator
def test_gates_start_at_zero_and_weights_by_the_models_rule(operator: str) -> None:
    (kind, tensor), *more = (
        (name.removeprefix("fusion."), value)
        for name, value in initial_parameters(fused(table(), operator), np.random.default_rng(0))["extractor"].items()
        if name.startswith("fusion.")
    )
    assert not more
    if operator == "conv":
        bound = (6 / (64 + 32)) ** 0.5  # Glorot's, of a layer with 64 inputs and 32 outputs
        assert (kind, tuple(tensor.shape)) == ("weight", (32, 64))
        assert 0.9 * bound < tensor.abs().max().item() <= bound
    else:
        assert (kind, tensor.abs().max().item()) == ("gate", 0.0)
        assert f"extractor.fusion.{kind}" in GATES


@pytest.mark.parametrize("operator", ["multi", "single"])
def test_with_a_gate_of_1_it_is_the_global_stream_and_of_0_the_local_one(operator: str) -> None:
    local, other, x = module(operator, 1), module(operator, 2), samples()
    count = 3 if operator == "multi" else 1
    for gate, stream in ((1.0, other), (0.0, local)):
        set_gate(local, *[gate] * count)
        local.fuse(other, x)
        found = local(x)
        rest = before_fusion(stream, x)
        for name, layer in (*local.parts["extractor"].named_children(), *local.parts["classifier"].named_children()):
            rest = layer(rest) if name in ("flatten", "fc1", "relu3", "fc2") else rest
        assert torch.equal(found, rest)


def test_each_channel_has_its_own_gate() -> None:
    local, other, x = module("multi", 1), module("multi", 2), samples()
    set_gate(local, 0.0, 0.25, 1.0)
    own, others = before_fusion(local, x), before_fusion(other, x)
    local.fuse(other, x)
    found = local.parts["extractor"].get_submodule("fusion")(own)
    expected = [own[:, 0], 0.25 * others[:, 1] + 0.75 * own[:, 1], others[:, 2]]
    torch.testing.assert_close(found, torch.stack(expected, dim=1), rtol=1e-14, atol=1e-14)


def test_a_convolution_is_a_product_at_each_pixel_the_global_channels_first() -> None:
    local, other, x = module("conv", 1), module("conv", 2), samples()
    own, others = (before_fusion(made, x).detach().numpy() for made in (local, other))
    weight = local.part_parameters("extractor")["fusion.weight"].detach().numpy()
    local.fuse(other, x)
    found = local.parts["extractor"].get_submodule("fusion")(before_fusion(local, x)).detach().numpy()
    for image, row, column in np.ndindex(len(x), *own.shape[2:]):
        both = np.concatenate([others[image, :, row, column], own[image, :, row, column]])
        np.testing.assert_allclose(found[image, :, row, column], weight @ both, rtol=1e-12, atol=1e-12)


@each_operator
def test_the_other_stream_is_of_one_batch_and_without_it_both_are_the_local_one(operator: str) -> None:
    local, other, x = module(operator, 1), module(operator, 2), samples()
    if operator != "conv":
        set_gate(local, *[0.5] * (3 if operator == "multi" else 1))
    alone = local(x)
    local.fuse(other, x)
    assert not torch.equal(local(x), alone)
    assert torch.equal(local(x), alone)
    local.fuse(local, x)
    torch.testing.assert_close(local(x), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("operator", "shape"), [("conv", (3,)), ("conv", (3, 4)), ("multi", (3,)), ("multi", (3, 4)), ("single", (3, 4))]
)
def test_vectors_and_series_are_fused_like_images(operator: str, shape: tuple[int, ...]) -> None:
    numbers = int(np.prod(shape))
    head = (Flatten("flatten"), Linear("fc", numbers, 2))
    made = build(LayerTable(input_shape=shape, extractor=(Fusion("f", 3, operator),), classifier=head))
    assert isinstance(made, LayerModule)
    x, y = (torch.from_numpy(np.random.default_rng(n).random((5, *shape), dtype=np.float32)) for n in (1, 2))
    layer = made.parts["extractor"].get_submodule("f")
    for parameter in layer.parameters():
        torch.nn.init.constant_(parameter, 0.25)
    layer.other = y
    both = 0.25 * (x + y).sum(1, keepdim=True).expand_as(x) if operator == "conv" else 0.25 * y + 0.75 * x
    torch.testing.assert_close(layer(x), both)


@each_operator
def test_what_is_fused_is_not_trained_in_the_other_model(operator: str) -> None:
    local, other, x = module(operator, 1), module(operator, 2), samples()
    if operator != "conv":
        set_gate(local, *[0.5] * (3 if operator == "multi" else 1))
    local.fuse(other, x)
    local(x).sum().backward()
    assert all(parameter.grad is None for parameter in other.parameters())
    own = local.part_parameters("extractor")
    assert own["conv1.weight"].grad.any()
    assert own["fusion.weight" if operator == "conv" else "fusion.gate"].grad.any()
