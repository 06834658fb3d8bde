"""What is behind a model's convolutions: its sizes by hand and by PyTorch's own count, and what models have by default.

*Channels* are those of all convolutions that are normalised: each has a scale and an offset, and, by batches, a running
mean and a running variance.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import pytest
from torch import nn

from fedsim import registry
from fedsim.models.layers import Normalisation, Shape
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import build


class Case(NamedTuple):
    """A model, and its numbers by hand."""

    keys: dict[str, Any]
    sample: Shape
    classes: int
    normalised: int
    """Parameters with a normalisation; with batches, they are those of the papers (see `test_published_models`)."""
    channels: int
    layers: int
    """How many of them are normalised."""
    biases: int
    """More biases where nothing is: of convolutions that have none otherwise."""
    default: Normalisation


RESNET = 16 + 6 * 16 + 6 * 32 + 6 * 64  # behind the first convolution, and 6 in each stage of ResNet-20
VGG = 64 + 128 + 2 * 256 + 4 * 512
VDCNN = 2 * (64 + 128 + 256 + 512)  # two behind each of 4 blocks, and the shortcuts of 3:
SHORTCUTS = 128 + 256 + 512
CASES = {
    "conv1d": Case({}, (1, 2048), 10, 54_310, 16 + 32 + 3 * 64, 5, 0, "group"),
    "resnet": Case({}, (3, 32, 32), 10, 269_722, RESNET, 19, RESNET, "batch"),
    "resnet projected": Case(
        {"shortcut": "projection"}, (3, 32, 32), 10, 272_474, RESNET + 32 + 64, 21, RESNET + 32 + 64, "batch"
    ),
    "vgg": Case({}, (3, 32, 32), 10, 28_149_514, VGG, 8, 0, "batch"),
    "vgg narrow": Case({"head": "narrow"}, (3, 32, 32), 10, 9_750_922 + 2 * VGG, VGG, 8, 0, "none"),
    "char_cnn": Case({"depth": 3}, (1014,), 4, 11_273_476 + 2 * 3 * 256, 3 * 256, 3, 0, "none"),
    "vdcnn": Case({}, (1024,), 4, 14_351_924, VDCNN + SHORTCUTS, 11, SHORTCUTS, "batch"),
}
each_case = pytest.mark.parametrize("name", CASES)
each_normalisation = pytest.mark.parametrize("how", get_args(Normalisation))


def table(name: str, how: str | None = None) -> LayerTable:
    case = CASES[name]
    keys = case.keys | ({} if how is None else {"normalisation": how})
    made: LayerTable = registry.load("models", name.split()[0])(**keys).table(case.sample, case.classes)
    return made


def test_every_model_that_has_the_key_is_tried() -> None:
    having = {
        name for name in registry.names("models") if "normalisation" in registry.load("models", name).model_fields
    }
    assert having == {name.split()[0] for name in CASES}


@each_case
@each_normalisation
def test_parameters_and_bytes_are_those_by_hand_and_those_of_pytorch(name: str, how: str) -> None:
    case, made = CASES[name], table(name, how)
    parameters = case.normalised - (2 * case.channels - case.biases if how == "none" else 0)
    statistics = 2 * case.channels if how == "batch" else 0
    assert (made.parameters(), made.bytes()) == (parameters, 4 * (parameters + statistics))
    assert made.statistics_bytes() == 4 * statistics
    assert made.training_flops_per_sample == table(name).training_flops_per_sample, "normalisation is not counted"
    module = build(made)
    assert sum(parameter.numel() for parameter in module.parameters()) == parameters
    assert sum(number.numel() for number in module.state_dict().values()) == parameters + statistics
    found = [layer for layer in module.modules() if isinstance(layer, nn.GroupNorm | nn.BatchNorm1d | nn.BatchNorm2d)]
    assert len(found) == (0 if how == "none" else case.layers)
    assert all(isinstance(layer, nn.GroupNorm) == (how == "group") for layer in found)
    assert all((layer.eps, layer.affine) == (1e-5, True) for layer in found)
    assert all(layer.num_groups == 2 for layer in found if isinstance(layer, nn.GroupNorm))


@each_case
def test_left_out_it_is_what_the_paper_has_but_for_conv1d(name: str) -> None:
    assert table(name) == table(name, CASES[name].default)


@pytest.mark.parametrize(
    ("name", "how", "digest"),
    [
        ("conv1d", "batch", "60cf15dff6cd8ff24c0475139cbe03dc"),
        ("resnet", None, "36c9251b6f0a847eff913ef5e101326e"),
        ("resnet projected", None, "546ec91b8893444796d8e3cd91372280"),
        ("vgg", None, "c349766fa646dd6b72d5efe16fc2647f"),
        ("vgg narrow", None, "06a98a681e898ebc1df247d551bd9c60"),
        ("char_cnn", None, "c2580a72003c410971c21e3e0d25c07b"),
        ("vdcnn", None, "874f4f9105644c72e69325dcaacc6b00"),
    ],
)
def test_models_are_what_they_were_before_they_had_the_key(name: str, how: str | None, digest: str) -> None:
    assert table(name, how).digest == digest


@each_case
def test_what_normalises_belongs_to_the_layer_before_it(name: str) -> None:
    """So models that differ in it have none of these layers in common."""
    tables = {how: table(name, how) for how in get_args(Normalisation)}
    signatures = {how: [layer.signature for layer in made.signed_layers()] for how, made in tables.items()}
    for bare, by_batches, by_groups in zip(*(signatures[how] for how in ("none", "batch", "group")), strict=True):
        assert len({bare, by_batches, by_groups}) == (3 if "batch_norm" in by_batches else 1)
        assert ("batch_norm" in by_batches) == ("group_norm" in by_groups)
        assert "norm" not in bare
    assert sum("group_norm" in signature for signature in signatures["group"]) == CASES[name].layers
    for made in tables.values():
        held = [(layer.part, state) for layer in made.signed_layers() for state in layer.states]
        assert held == [(part, state) for part in made.parts for state in made.state_shapes(part)], "each once"
