"""What can be pruned of a model: its convolutions, who takes whose feature maps, and the work that is left."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedsim.learning.executors.selecting import pruned
from fedsim.models.char_cnn import CharCnn
from fedsim.models.convolutions import SAMPLES, Skeleton, skeleton_of
from fedsim.models.declared import Declared
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.mlp import Mlp
from fedsim.models.resnet import ResNet
from fedsim.models.table import EXTRACTOR, LayerTable
from fedsim.models.torch_module import build, initial_parameters
from fedsim.models.vgg import Vgg

TABLES: dict[str, LayerTable] = {
    "resnet": ResNet(depth=20).table((3, 16, 16), 10),
    "projected": ResNet(depth=20, shortcut="projection").table((3, 16, 16), 10),
    "vgg": Vgg(head="narrow").table((3, 32, 32), 10),
    "wide": Vgg().table((3, 32, 32), 10),
    "grouped": ResNet(depth=20, shortcut="projection", normalisation="group").table((3, 16, 16), 10),
    "bare": ResNet(depth=20, normalisation="none").table((3, 16, 16), 10),
    "leaf_cnn": LeafCnn().table(None, None),
}
CASES = pytest.mark.parametrize("model", TABLES)


def masks_of(skeleton: Skeleton, rng: np.random.Generator) -> list[np.ndarray]:
    """Any filters, of each convolution one at least."""
    masks = [rng.random(one.filters) < 0.5 for one in skeleton.convolutions]
    for mask in masks:
        mask[rng.integers(len(mask))] = True
    return masks


@CASES
def test_rows_of_filters_are_all_that_convolutions_and_normalisation_have(model: str) -> None:
    table = TABLES[model]
    shapes = table.state_shapes(EXTRACTOR)
    found = {name: numbers for one in skeleton_of(table).convolutions for name, numbers in one.states}
    assert found == {name: int(np.prod(shape[1:])) for name, shape in shapes.items()}
    for one in skeleton_of(table).convolutions:
        assert {shapes[name][0] for name, _ in one.states} == {one.filters}
    whole = sum(one.filters * one.filter_numbers for one in skeleton_of(table).convolutions)
    assert 4.0 * whole == table.bytes(EXTRACTOR)


def test_the_graph_of_a_resnet_has_its_shortcuts() -> None:
    graph = skeleton_of(TABLES["resnet"]).graph()
    kinds = {(begin, end): kind for begin, end, kind in graph.edges(data="kind")}
    assert kinds[SAMPLES, "conv1"] == kinds["conv1", "block1.body.conv1"] == "convolution"
    assert kinds["conv1", "block1.body.conv2"] == kinds["block3.body.conv2", "block4.body.conv2"] == "shortcut"
    assert sum(kind == "shortcut" for kind in kinds.values()) == 9
    assert graph.nodes["block4.body.conv1"] == {"filters": 32, "cells": 64}
    projected = skeleton_of(TABLES["projected"]).graph()
    assert projected.edges["block3.body.conv2", "block4.shortcut.conv"]["kind"] == "convolution"
    assert projected.edges["block4.shortcut.conv", "block4.body.conv2"]["kind"] == "shortcut"


def test_flops_are_counted_as_the_authors_do_but_for_pooling() -> None:
    """LeNet by hand: 24 x 24 outputs of 1 x 49 + 1 for 6 filters, and 8 x 8 of 6 x 49 + 1 for 16, behind pooling."""
    first, second = skeleton_of(TABLES["leaf_cnn"]).convolutions
    assert first.flops == 24 * 24 * 6 * (1 * 49 + 1) and second.flops == 8 * 8 * 16 * (6 * 49 + 1)
    vgg = skeleton_of(TABLES["vgg"]).convolutions
    assert [one.cells for one in vgg] == [32**2, 16**2, 8**2, 8**2, 4**2, 4**2, 2**2, 2**2]
    assert vgg[1].flops == 16 * 16 * 128 * (64 * 17 + 1)
    series = skeleton_of(CharCnn(depth=3).table(None, None)).convolutions
    assert series[0].flops == series[0].cells * 256 * (series[0].layer.in_channels * (2 * 7 - 1) + 1)


def test_what_is_left_is_scaled_by_both_sides_of_a_convolution() -> None:
    """LeNet with 3 of 6 filters and 4 of 16: half of the first, and an eighth of the second."""
    skeleton = skeleton_of(TABLES["leaf_cnn"])
    first, second = (one.flops for one in skeleton.convolutions)
    assert skeleton.flops_share([3, 4]) == pytest.approx((first / 2 + second / 8) / (first + second), rel=1e-12)
    assert skeleton.flops_share([6, 16]) == 1.0


@CASES
def test_what_is_kept_of_everything_is_everything(model: str) -> None:
    skeleton = skeleton_of(TABLES[model])
    assert skeleton.flops_share([one.filters for one in skeleton.convolutions]) == pytest.approx(1.0, abs=1e-12)
    assert skeleton.present_share([np.ones(one.filters, bool) for one in skeleton.convolutions]) == pytest.approx(1.0)


@CASES
def test_channels_that_are_there_are_those_that_are_not_zero_in_the_pruned_model(model: str) -> None:
    """Counted at the inputs of all convolutions of a pruned module, on random samples."""
    table, rng = TABLES[model], np.random.default_rng(1)
    skeleton, module = skeleton_of(table), build(table)
    masks = masks_of(skeleton, rng)
    parts = initial_parameters(table, rng)
    parts[EXTRACTOR] = {name: tensor.abs() + 0.1 for name, tensor in parts[EXTRACTOR].items()}  # nothing is cut by ReLU
    for part, tensors in parts.items():
        module.load(part, pruned(tensors, skeleton, masks) if part == EXTRACTOR else tensors)
    module.eval()
    names = {id(layer): name for name, layer in module.parts[EXTRACTOR].named_modules()}  # type: ignore[attr-defined]
    there: dict[str, float] = {}
    for layer in module.modules():
        if isinstance(layer, torch.nn.Conv2d):
            layer.register_forward_pre_hook(
                lambda layer, given: there.update(
                    {names[id(layer)]: float((given[0].flatten(2).abs().sum(2) > 0).any(0).float().mean())}
                )
            )
    module(torch.rand(2, *table.input_shape))
    left = sum(
        one.flops * mask.mean() * there[one.name] for one, mask in zip(skeleton.convolutions, masks, strict=True)
    )
    assert skeleton.present_share(masks) == pytest.approx(left / skeleton.flops, rel=1e-9)


@CASES
def test_a_pruned_model_is_one_with_fewer_filters(model: str) -> None:
    """Where nothing is added, what a filter would have made is zero, behind its bias and normalisation."""
    table, rng = TABLES[model], np.random.default_rng(2)
    skeleton, module = skeleton_of(table), build(table)
    masks = masks_of(skeleton, rng)
    extractor = {name: torch.rand(shape) for name, shape in table.state_shapes(EXTRACTOR).items()}
    module.load(EXTRACTOR, pruned(extractor, skeleton, masks))
    module.eval()
    last, mask = skeleton.convolutions[-1], masks[-1]
    norm = last.states[-1][0].rpartition(".")[0]
    made: list[torch.Tensor] = []
    module.parts[EXTRACTOR].get_submodule(norm).register_forward_hook(  # type: ignore[attr-defined]
        lambda _, __, result: made.append(result)
    )
    module.features(torch.rand(1, *table.input_shape))
    assert (made[0].flatten(2).abs().sum((0, 2)) > 0).tolist() == mask.tolist()


@pytest.mark.parametrize("table", [Mlp(hidden=(3,)).table((1, 8, 8), 10), Declared(parameters=10).table(None, None)])
def test_there_is_nothing_to_prune_without_convolutions(table: LayerTable) -> None:
    assert skeleton_of(table) == Skeleton((), ())
