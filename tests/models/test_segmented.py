"""Models cut into segments: sizes add up, segments are called alike where they are equal, and start alike."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch

from fedsim.errors import UserError
from fedsim.kernel.streams import Streams
from fedsim.learning.executors.segmented import started
from fedsim.models.declared import Declared
from fedsim.models.layers import Linear
from fedsim.models.mlp import Mlp
from fedsim.models.resnet import ResNet
from fedsim.models.segmented import SegmentedTable, segmented
from fedsim.models.signatures import common_start, signatures
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import initial_parameters
from fedsim.models.vgg import Vgg

RESNETS = [ResNet(depth=depth, shortcut="projection").table((3, 16, 16), 10) for depth in (20, 32, 44, 56)]
VGGS = [Vgg(depth=depth).table(None, None) for depth in (11, 13, 16, 19)]


def cut(family: list[LayerTable]) -> list[SegmentedTable]:
    made = [segmented(table, family) for table in family]
    assert all(isinstance(table, SegmentedTable) for table in made)
    return [table for table in made if isinstance(table, SegmentedTable)]


@pytest.mark.parametrize("family", [RESNETS, VGGS], ids=["resnet", "vgg"])
def test_segments_are_all_of_the_model(family: list[LayerTable]) -> None:
    for table, whole in zip(cut(family), family, strict=True):
        assert sum(table.bytes(part) for part in table.parts) == table.bytes() == whole.bytes()
        assert sum(table.parameters(part) for part in table.parts) == table.parameters() == whole.parameters()
        assert table.statistics_bytes() == whole.statistics_bytes() > 0
        states = [(one.part, state) for one in table.segments.values() for state in one.names.values()]
        assert sorted(states) == sorted((part, name) for part in whole.parts for name in whole.state_shapes(part))
        assert table.training_flops_per_sample == whole.training_flops_per_sample
        assert table.feature_shape() == whole.feature_shape() and table.outputs == whole.outputs


@pytest.mark.parametrize("family", [RESNETS, VGGS], ids=["resnet", "vgg"])
def test_what_two_models_have_in_common_is_whole_segments_that_are_called_alike(family: list[LayerTable]) -> None:
    for one, other in combinations(cut(family), 2):
        common = common_start([signatures(one.whole), signatures(other.whole)])
        shared = [part for part, end in zip(one.parts, one.ends, strict=True) if end <= common]
        assert shared == list(other.parts[: len(shared)]) and one.ends[len(shared) - 1] == common
        for part in shared:
            assert one.state_shapes(part) == other.state_shapes(part)
            assert one.statistics_names(part) == other.statistics_names(part)


def test_sizes_on_the_wire() -> None:
    """The dossier's: four wide VGGs, and what VGG-13, alone of its kind, has in common with the larger ones."""
    assert [table.bytes() for table in cut(VGGS)] == [112_620_072, 113_361_192, 134_620_456, 155_879_720]
    assert [table.bytes() for table in cut(RESNETS)] == [1_096_168, 1_877_480, 2_658_792, 3_440_104]
    numbers = [(3, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256)]
    first_six = sum(4 * (9 * before * after + after + 4 * after) for before, after in numbers)
    thirteen = cut(VGGS)[1]
    assert thirteen.bytes("1") + thirteen.bytes("2-6") == first_six


def test_a_model_that_shares_nothing_is_left_whole() -> None:
    table = RESNETS[0]
    assert segmented(table, [table]) is table
    assert segmented(table, VGGS) is table
    alone = Mlp(hidden=[16]).table((64,), 10)
    assert segmented(alone, [Mlp(hidden=[12]).table((64,), 10)]) is alone
    declared = Declared(parameters=5).table(None, None)
    assert segmented(declared, [table]) is declared


def test_a_model_is_cut_where_a_part_of_another_one_ends() -> None:
    """Or a segment of one would be a part and a bit of the other."""
    one, two, last, other = Linear("one", 4, 3), Linear("two", 3, 3), Linear("last", 3, 2), Linear("other", 3, 5)
    short = LayerTable(input_shape=(4,), extractor=(one,), classifier=(two, last))
    long = LayerTable(input_shape=(4,), extractor=(one, two), classifier=(other,))
    assert segmented(short, [long]).parts == ("1", "2", "3")
    assert segmented(long, [short]).parts == ("1", "2", "3")


def test_connected_layers_apart() -> None:
    """ResNet's classifier is its only connected layer; of an mlp, all layers are, so that there is nothing to cut."""
    assert segmented(RESNETS[0], RESNETS[:1], connected_apart=True) is RESNETS[0]
    mlp = Mlp(hidden=[16, 12]).table((64,), 10)
    assert segmented(mlp, [mlp], connected_apart=True) is mlp


def test_common_layers_start_alike_and_others_do_not() -> None:
    streams = Streams(3)
    one, other = (started(table, streams("model/init")) for table in cut(RESNETS)[:2])
    for name, tensor in one["1-7"].items():
        assert torch.equal(tensor, other["1-7"][name])
    assert not torch.equal(one["8-21"]["8.0"], one["8-21"]["9.0"][:, :16])
    again = started(cut(RESNETS)[0], streams("model/init", 1))
    assert not torch.equal(one["1-7"]["1.0"], again["1-7"]["1.0"])


def test_weights_start_as_large_as_those_of_the_whole_model() -> None:
    whole = initial_parameters(RESNETS[0], Streams(3)("model/init").generator())
    table = cut(RESNETS)[0]
    pieces = started(table, Streams(3)("model/init"))
    for name, segment in table.segments.items():
        for own, state in segment.names.items():
            expected = whole[segment.part][state]
            assert pieces[name][own].shape == expected.shape
            if expected.numel() > 2_000:
                assert pieces[name][own].std() == pytest.approx(float(expected.std()), rel=0.1)
            elif expected.std() == 0 or expected.numel() == 1:
                assert torch.equal(pieces[name][own], expected), "biases, and what normalisation begins with"


def test_a_segment_that_there_is_none() -> None:
    table = cut(RESNETS)[0]
    with pytest.raises(UserError, match=r"has no part '1-8'.*parts: 1-7, 8-21, 22"):
        table.bytes("1-8")
    with pytest.raises(UserError, match="operations of layers 1-7 alone are not known"):
        table.part_flops("1-7")
