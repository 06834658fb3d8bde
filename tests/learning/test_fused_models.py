"""Models with fused layers: the same state by the same names, and numbers as near to float64 as PyTorch's modules'."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median

import numpy as np
import pytest
import torch
from fused_tables import TABLES
from tiers import FULL, mostly_long
from torch import nn

from fedsim import registry
from fedsim.learning.executors.fused.dense import FusedDense, SmallDense
from fedsim.learning.executors.fused.images import ChannelsFirstConvolution, SmallConvolution
from fedsim.learning.executors.fused.module import fused
from fedsim.learning.executors.fused.normalised import FusedNormalisation
from fedsim.learning.executors.fused.recurrent import FusedRecurrent
from fedsim.learning.executors.fused.series import (
    ConvolutionOfSeries,
    ImageConvolutionOfSeries,
    LargestOfSeries,
    PointwiseConvolutionOfSeries,
    PoolingOfSeries,
)
from fedsim.learning.kernels.processor import has_bfloat16
from fedsim.models.layers import Conv1d, Flatten, Gru, Linear, MaxPool1d, ReLU
from fedsim.models.parted import PartedModule
from fedsim.models.table import LayerTable
from fedsim.models.torch_layers import LastStepModule, LstmModule
from fedsim.models.torch_module import LayerModule, build, initial_parameters

MOST, ROUNDING, NOTHING = 1.5, 3e-7, 1e-10
STEPS, RATE = 3, 0.002
KINDS = (
    *(FusedDense, SmallConvolution, ChannelsFirstConvolution, FusedNormalisation, FusedRecurrent),
    *(ConvolutionOfSeries, ImageConvolutionOfSeries, PointwiseConvolutionOfSeries, PoolingOfSeries, LargestOfSeries),
)


LARGE = ("vgg", "vgg batch", "vdcnn", "vdcnn none", "vdcnn group", "char_cnn batch", "char_cnn group")
each_table = pytest.mark.parametrize(
    "name", mostly_long(TABLES, now=[name for name in TABLES if name not in LARGE[:-1]])
)


def own(table: LayerTable, dtype: torch.dtype) -> PartedModule:
    """PyTorch's own modules; weights of images lie with channels last, as in the fused ones."""
    module = build(table).to(dtype)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.to(memory_format=torch.channels_last)
        elif isinstance(layer, LstmModule):
            layer.rounds = has_bfloat16()  # or oneDNN would refuse it
    return module


def started(module: PartedModule, table: LayerTable, *, lay: Callable[[torch.Tensor], torch.Tensor] = torch.clone):
    """*module* with the same start for all; *lay* says how it lies in memory."""
    for part, tensors in initial_parameters(table, np.random.default_rng(0)).items():
        module.load(part, {name: lay(tensor) for name, tensor in tensors.items()})
    return module


def samples(table: LayerTable, number: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator, shape = torch.Generator().manual_seed(seed), (number, *table.input_shape)
    ids = torch.randint(0, 60, shape, generator=generator).short()
    x = ids if table.takes_ids else torch.randn(shape, generator=generator)
    return x, torch.arange(number) % 4


def trained(module: PartedModule, table: LayerTable, *, number: int = 5, seed: int = 0) -> dict[str, torch.Tensor]:
    """Scores and gradients of a first step, what a few steps change, and scores in tests."""
    x, y = samples(table, number, seed)
    x = x if table.takes_ids else x.to(next(module.parameters()).dtype)
    begun = {
        part: {name: one.detach().clone() for name, one in module.part_state(part).items()} for part in table.parts
    }
    found: dict[str, torch.Tensor] = {}
    module.train()
    for step in range(STEPS):
        scores = module(x)
        module.zero_grad()
        nn.functional.cross_entropy(scores, y).backward()
        found |= {f"scores {step}": scores.detach().clone()}
        if not step:
            found |= {f"d {n}": p.grad.clone() for n, p in module.named_parameters() if p.grad is not None}
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=RATE)
    for part in table.parts:
        found |= {f"{part}.{name}": one.detach() - begun[part][name] for name, one in module.part_state(part).items()}
    with torch.no_grad():
        return found | {"tested": module.eval()(x)}


def error(found: dict[str, torch.Tensor], true: dict[str, torch.Tensor]) -> float:
    """The root of the mean square of all errors, each relative to what should have come out, if that is anything.

    The gradient of an offset before normalisation is zero but for rounding.
    """
    assert found.keys() == true.keys()
    assert all(one.isfinite().all() for one in found.values())
    norms = {name: float(one.norm()) for name, one in true.items()}
    squares = [
        (float((found[name].double() - one).norm()) / norms[name]) ** 2
        for name, one in true.items()
        if norms[name] > NOTHING
    ]
    return math.sqrt(sum(squares) / len(squares))


def test_every_registered_model_of_layers_is_tried() -> None:
    tried = {name.partition(" ")[0] for name in TABLES}
    assert {"resnet", "vgg", "conv1d", "char_cnn", "vdcnn", "gru", "lstm", "small_cnn", "leaf_cnn", "mlp"} <= tried
    others = {"softmax", "fedgs_cnn", "hfedms_cnn", "declared", "torch_module"}  # of the same layers, or of none
    assert set(registry.names("models")) <= tried | others


@each_table
def test_the_state_is_the_same_by_the_same_names(name: str) -> None:
    table = TABLES[name]()
    module = fused(build(table))
    for part in table.parts:
        state = {key: tuple(value.shape) for key, value in module.part_state(part).items()}
        assert list(state.items()) == list(table.state_shapes(part).items())
        assert list(module.part_parameters(part)) == list(table.parameter_shapes(part))
    assert {id(parameter) for parameter in module.parameters()} == {
        id(value) for part in table.parts for value in module.part_parameters(part).values()
    }


@pytest.mark.drawn
@each_table
def test_errors_are_pytorchs(name: str) -> None:
    """In the median over samples: where rounding decides a rectifier or a maximum, all behind it differs."""
    table, ratios = TABLES[name](), []
    for seed in range(9 if FULL and name not in LARGE else 3):
        true, theirs = (
            trained(started(own(table, dtype), table), table, seed=seed, number=5 + 6 * (seed % 3))
            for dtype in (torch.float64, torch.float32)
        )
        mine = trained(started(fused(build(table)), table), table, seed=seed, number=5 + 6 * (seed % 3))
        ratios.append(max(error(mine, true), ROUNDING) / max(error(theirs, true), ROUNDING))
    assert median(ratios) <= MOST, ratios


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["resnet", "resnet group projection", "conv1d", "conv1d batch", "lstm", "mixed"])
def test_errors_are_pytorchs_where_factors_are_of_bfloat16(name: str) -> None:
    table, ratios = TABLES[name](), []
    for seed in range(3):
        true = trained(started(own(table, torch.float64), table), table, seed=seed)
        with torch.autocast("cpu", torch.bfloat16):
            theirs = trained(started(own(table, torch.float32), table), table, seed=seed)
            mine = trained(started(fused(build(table), rounded=True), table), table, seed=seed)
        ratios.append(error(mine, true) / error(theirs, true))
    assert median(ratios) <= MOST, ratios


@each_table
def test_bits_are_the_same_again_and_however_weights_lay(name: str) -> None:
    table = TABLES[name]()
    once, again, strided = (
        trained(started(fused(build(table)), table, lay=lay), table)
        for lay in (torch.clone, torch.clone, lambda tensor: tensor.repeat_interleave(2, dim=0)[::2])
    )
    assert all(torch.equal(again[key], one) and torch.equal(strided[key], one) for key, one in once.items())


@each_table
def test_what_is_written_over_is_nobody_elses(name: str) -> None:
    """Samples, features and what the last layer takes stay as they were given."""
    table = TABLES[name]()
    module = started(fused(build(table)), table)
    x, _ = samples(table, 3, seed=0)
    before = x.clone()
    for training in (False, True):
        module.train(training)
        expected = started(own(table, torch.float32), table).train(training)
        with torch.set_grad_enabled(training):
            features = module.features(x)
            held = features.clone()
            scores = module.classify(features)
            taken, looked = module.looked_into(x, module)
            theirs, their_scores = expected.looked_into(x, expected)
        assert torch.equal(x, before) and torch.equal(features, held)
        assert torch.equal(scores, looked)
        torch.testing.assert_close(taken, theirs, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(looked, their_scores, rtol=1e-3, atol=1e-4)


def test_features_of_two_models_are_fused_as_before() -> None:
    table = TABLES["with fusion"]()
    x, found = samples(table, 4, seed=1)[0], []
    for make in (lambda: own(table, torch.float32), lambda: fused(build(table))):
        local, other = started(make(), table), started(make(), table).eval()
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.mul_(1.5)
            local.get_parameter("parts.extractor.fusion.gate").fill_(0.5)
        assert isinstance(local, LayerModule) and isinstance(other, LayerModule)
        local.fuse(other, x)
        found += [local(x), local(x)]
    torch.testing.assert_close(found[:2], found[2:], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found[2], found[3])


EXPECTED = {
    "resnet": {FusedNormalisation: 19, SmallConvolution: 16},
    "resnet none": {SmallConvolution: 16},
    "vgg": {FusedDense: 2, ChannelsFirstConvolution: 4},
    "conv1d": {FusedNormalisation: 5, ConvolutionOfSeries: 5},
    "char_cnn": {ImageConvolutionOfSeries: 3, PoolingOfSeries: 3, FusedDense: 2},
    "vdcnn": {FusedNormalisation: 11, ConvolutionOfSeries: 3, ImageConvolutionOfSeries: 6, PoolingOfSeries: 3}
    | {PointwiseConvolutionOfSeries: 3, LargestOfSeries: 1, FusedDense: 2},
    "lstm of two layers": {FusedRecurrent: 2},
    "narrow lstm": {},
    "mlp": {FusedDense: 1},
    "mixed": {ConvolutionOfSeries: 3, ImageConvolutionOfSeries: 2, PoolingOfSeries: 1, FusedNormalisation: 2},
    "summed": {FusedNormalisation: 1, SmallConvolution: 2, FusedDense: 1},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_which_layers_are_fused(name: str) -> None:
    layers = list(fused(build(TABLES[name]())).modules())
    counts = {kind: sum(type(layer) is kind for layer in layers) for kind in KINDS}
    assert {kind: count for kind, count in counts.items() if count} == EXPECTED[name]


def test_a_recurrent_layer_makes_the_last_states_alone_where_nobody_reads_others() -> None:
    layers = list(fused(build(TABLES["lstm of two layers"]())).modules())
    assert [layer.last for layer in layers if isinstance(layer, FusedRecurrent)] == [False, True]
    assert sum(isinstance(layer, nn.Identity) for layer in layers) == 1
    assert not any(isinstance(layer, LastStepModule) for layer in layers)


def test_a_part_that_ends_in_a_series_hands_it_on_as_one() -> None:
    table = LayerTable(
        input_shape=(3, 20),
        extractor=(Conv1d("conv", 3, 16, kernel=3), ReLU("relu"), MaxPool1d("pool", kernel=2, stride=2)),
        classifier=(Flatten("flatten"), Linear("fc", 16 * 9, 4)),
    )
    x, found = samples(table, 5, seed=1)[0], []
    for module in (started(own(table, torch.float32), table), started(fused(build(table)), table)):
        found.append(module.features(x))
        torch.testing.assert_close(module(x), module.classify(found[-1]))
    assert found[1].shape == (5, 16, 9)
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rounded", [False, True])
def test_which_layers_depend_on_whether_factors_are_rounded(rounded: bool) -> None:
    """Then convolutions of images stay PyTorch's, and small dense layers watch how much there is to multiply."""
    layers = list(fused(build(TABLES["resnet"]()), rounded=rounded).modules())
    counts = [sum(type(layer) is kind for layer in layers) for kind in (SmallConvolution, SmallDense, nn.Linear)]
    assert counts == ([0, 1, 0] if rounded else [16, 0, 1])
    assert sum(isinstance(layer, nn.Conv2d) for layer in layers) == 19 - counts[0]


def test_rectifiers_write_over_what_layers_have_made() -> None:
    """PyTorch's gradient of a change of a view is slow, and there is none of one that a layer of our own has made."""
    assert [layer.inplace for layer in _rectifiers("small_cnn")] == [True] * len(_rectifiers("small_cnn"))
    assert all(layer.inplace for layer in _rectifiers("conv1d none"))
    assert len(_rectifiers("resnet")) == 0


def test_rectifiers_do_not_write_over_states_nor_over_views() -> None:
    """A recurrent layer reads its states in the backward pass; what a pointwise convolution makes is a view."""
    pointwise, unit = Conv1d("conv", 128, 256, kernel=1), Gru("gru", inputs=256, hidden=16)
    between = (pointwise, ReLU("relu1"), unit, ReLU("relu2"), Flatten("flatten"))
    table = LayerTable(input_shape=(128, 9), extractor=between, classifier=(Linear("fc", 144, 4),))
    module = fused(build(table))
    assert [layer.inplace for layer in module.modules() if isinstance(layer, nn.ReLU)] == [False, False]
    assert error(*(trained(started(one, table), table) for one in (module, own(table, torch.float64)))) <= 1e-3


def _rectifiers(name: str) -> list[nn.ReLU]:
    return [layer for layer in fused(build(TABLES[name]())).modules() if isinstance(layer, nn.ReLU)]
