"""The published families: their sizes by arithmetic, the papers' rounded figures, and what they have in common."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from math import prod

import pytest

from fedsim.errors import UserError
from fedsim.models.char_cnn import CharCnn
from fedsim.models.conv1d import Conv1dModel
from fedsim.models.gru import GruModel
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.lstm import LstmModel
from fedsim.models.recurrent import RecurrentModelSettings
from fedsim.models.resnet import ResNet
from fedsim.models.settings import ModelSettings
from fedsim.models.table import LayerTable
from fedsim.models.vdcnn import Vdcnn
from fedsim.models.vgg import Vgg


def conv(inputs: int, outputs: int, cells: int, *, bias: bool = True) -> int:
    return inputs * outputs * cells + (outputs if bias else 0)


def full(*widths: int) -> int:
    """Fully connected layers from each width to the next."""
    return sum(inputs * outputs + outputs for inputs, outputs in pairwise(widths))


def test_leaf_cnn_has_spatls_48846_parameters():
    table = LeafCnn().table((1, 28, 28), 62)
    assert table.parameters("extractor") == conv(1, 6, 25) + conv(6, 16, 25) == 156 + 2_416 == 2_572
    assert table.parameters("classifier") == full(256, 120, 84, 62) == 30_840 + 10_164 + 5_270
    assert table.parameters() == 48_846
    assert table.activation_shapes["flatten"] == (256,)  # 28 - 4 = 24, 12, 12 - 4 = 8, 4: 16 x 4 x 4


VGG_CONVOLUTIONS = {
    11: conv(3, 64, 9) + conv(64, 128, 9) + conv(128, 256, 9) + conv(256, 256, 9) + conv(256, 512, 9) + 3 * 2_359_808,
}
VGG_CONVOLUTIONS[13] = VGG_CONVOLUTIONS[11] + conv(64, 64, 9) + conv(128, 128, 9)
VGG_CONVOLUTIONS[16] = VGG_CONVOLUTIONS[13] + conv(256, 256, 9) + 2 * 2_359_808
VGG_CONVOLUTIONS[19] = VGG_CONVOLUTIONS[16] + conv(256, 256, 9) + 2 * 2_359_808
VGG_CHANNELS = {11: 64 + 128 + 2 * 256 + 4 * 512}
VGG_CHANNELS[13] = VGG_CHANNELS[11] + 64 + 128
VGG_CHANNELS[16] = VGG_CHANNELS[13] + 256 + 2 * 512
VGG_CHANNELS[19] = VGG_CHANNELS[16] + 256 + 2 * 512


@pytest.mark.parametrize(
    ("depth", "wide", "published", "narrow"),
    [
        (11, 28_149_514, 28.15, 9_750_922),
        (13, 28_334_410, 28.33, 9_935_434),
        (16, 33_646_666, 33.65, 15_245_130),
        (19, 38_958_922, 38.96, 20_554_826),
    ],
)
def test_vgg_has_the_parameters_of_flexifed_and_of_spatl(depth, wide, published, narrow):
    convolutions, channels = VGG_CONVOLUTIONS[depth], VGG_CHANNELS[depth]
    table = Vgg(depth=depth, head="wide").table((3, 32, 32), 10)
    assert table.parameters("extractor") == convolutions + 2 * channels
    assert table.parameters("classifier") == full(512, 4096, 4096, 10) == 18_923_530
    assert table.parameters() == wide
    assert round(wide / 1e6, 2) == published
    table = Vgg(depth=depth, head="narrow").table((3, 32, 32), 10)
    assert table.parameters("extractor") == convolutions
    assert table.parameters("classifier") == full(512, 512, 512, 10) == 530_442
    assert table.parameters() == narrow


def test_vgg_11_narrow_has_spatls_encoder_and_39_megabytes():
    table = Vgg(depth=11, head="narrow").table(None, None)
    assert table.parameters("extractor") == 9_220_480
    assert round(table.bytes() / 1e6, 2) == 39.00


@pytest.mark.parametrize(
    ("depth", "pad", "projection"),
    [(20, 269_722, 272_474), (32, 464_154, 466_906), (44, 658_586, 661_338), (56, 853_018, 855_770)],
)
def test_resnet_has_the_parameters_of_spatl_and_of_flexifed(depth, pad, projection):
    # a convolution without bias and its normalisation: 9 * in * out + 2 * out
    blocks = (depth - 2) // 6
    stem = 9 * 3 * 16 + 2 * 16
    first = 2 * blocks * (9 * 16 * 16 + 2 * 16)
    second = (9 * 16 * 32 + 2 * 32) + (2 * blocks - 1) * (9 * 32 * 32 + 2 * 32)
    third = (9 * 32 * 64 + 2 * 64) + (2 * blocks - 1) * (9 * 64 * 64 + 2 * 64)
    table = ResNet(depth=depth, shortcut="pad").table((3, 32, 32), 10)
    assert table.parameters("extractor") == stem + first + second + third
    assert table.parameters("classifier") == 64 * 10 + 10
    assert table.parameters() == pad
    shortcuts = (16 * 32 + 2 * 32) + (32 * 64 + 2 * 64)
    assert ResNet(depth=depth, shortcut="projection").table((3, 32, 32), 10).parameters() == pad + shortcuts
    assert pad + shortcuts == projection


@pytest.mark.parametrize("shortcut", ["pad", "projection"])
def test_resnet_halves_images_of_odd_sizes_and_rounds_up(shortcut):
    shapes = ResNet(shortcut=shortcut).table((3, 9, 13), 10).activation_shapes
    assert [shapes[f"block{number}"] for number in (3, 6, 9)] == [(16, 9, 13), (32, 5, 7), (64, 3, 4)]


@pytest.mark.parametrize(
    ("depth", "features", "exact", "published"),
    [
        (3, 36 * 256, 11_273_476, 11.27),  # 1014 - 6, / 3 = 336, - 6, / 3 = 110, - 2, / 3 = 36
        (4, 35 * 256, 11_208_196, 11.21),
        (5, 34 * 256, 11_142_916, 11.14),
        (6, 34 * 256, 11_339_780, 11.34),
    ],
)
def test_char_cnn_has_the_parameters_of_flexifed(depth, features, exact, published):
    table = CharCnn(depth=depth).table((1014,), 4)
    assert table.activation_shapes["flatten"] == (features,)
    convolutions = conv(70, 256, 7) + conv(256, 256, 7) + (depth - 2) * conv(256, 256, 3)
    assert table.parameters("extractor") == convolutions
    assert table.parameters("classifier") == full(features, 1024, 1024, 4)
    assert table.parameters() == exact
    assert round(exact / 1e6, 2) == published


VDCNN_BLOCKS = {9: (1, 1, 1, 1), 17: (2, 2, 2, 2), 29: (5, 5, 2, 2), 49: (8, 8, 5, 3)}


@pytest.mark.parametrize(
    ("depth", "exact", "published"),
    [(9, 14_351_924, 14.35), (17, 16_446_644, 16.45), (29, 16_818_740, 16.82), (49, 19_951_028, 19.95)],
)
def test_vdcnn_has_the_parameters_of_flexifed(depth, exact, published):
    # a convolution with bias and its normalisation: 3 * in * out + 3 * out; a shortcut: in * out + 2 * out
    widths = (64, 128, 256, 512)
    blocks = sum(
        2 * count * (3 * width * width + 3 * width) for count, width in zip(VDCNN_BLOCKS[depth], widths, strict=True)
    )
    narrower = sum(3 * (width // 2) * width for width in widths[1:])  # where each wide stage begins
    shortcuts = sum((width // 2) * width + 2 * width for width in widths[1:])
    table = Vdcnn(depth=depth).table((1024,), 4)
    assert table.parameters("extractor") == 71 * 16 + conv(16, 64, 3) + blocks - narrower + shortcuts
    assert table.parameters("classifier") == full(8 * 512, 2048, 2048, 4) == 12_595_204
    assert table.parameters() == exact
    assert round(exact / 1e6, 2) == published
    convolutions = [layer.name for layer in table.signed_layers() if layer.signature.startswith("conv1d")]
    assert sum("shortcut" not in name for name in convolutions) == depth
    pooled = [table.activation_shapes[f"pool{number}"] for number in (1, 2, 3, 4)]
    assert pooled == [(64, 512), (128, 256), (256, 128), (512, 8)]


def test_conv1d_has_the_shapes_and_parameters_of_wdcnn():
    table = Conv1dModel().table((1, 2048), 10)
    shapes = [table.activation_shapes[f"{kind}{number}"] for number in range(1, 6) for kind in ("conv", "pool")]
    assert shapes == [
        (16, 128),
        (16, 64),
        (32, 64),
        (32, 32),
        (64, 32),
        (64, 16),
        (64, 16),
        (64, 8),
        (64, 6),
        (64, 3),
    ]
    convolutions = conv(1, 16, 64) + conv(16, 32, 3) + conv(32, 64, 3) + 2 * conv(64, 64, 3)
    assert table.parameters("extractor") == convolutions + 2 * (16 + 32 + 3 * 64) + full(192, 100)
    assert table.parameters() == 54_310


@pytest.mark.parametrize(("model", "gates"), [(GruModel, 3), (LstmModel, 4)])
def test_each_recurrent_layer_has_its_gates_and_reads_the_one_before(model: type[RecurrentModelSettings], gates: int):
    table = model(hidden=5, layers=2).table((14, 30), 3)
    first, second = gates * 5 * (14 + 5), gates * 5 * (5 + 5)
    assert table.parameters("extractor") == first + second + 2 * (2 * gates * 5)  # two biases for each gate
    assert table.parameters("classifier") == 5 * 3 + 3
    assert table.bytes() == 4 * (first + second + 20 * gates + 18)
    assert table.forward_macs() == 30 * (first + second) + 5 * 3
    assert table.training_flops_per_sample == 3 * 2 * table.forward_macs()
    kind = model().name
    assert [(layer.name, layer.signature) for layer in table.signed_layers()] == [
        (f"{kind}1", f"{kind}(inputs=14, hidden=5)"),
        (f"{kind}2", f"{kind}(inputs=5, hidden=5)"),
        ("fc", "linear(inputs=5, outputs=3)"),
    ]


def common(left: LayerTable, right: LayerTable) -> list[str]:
    """The names, in *left*, of the common base layers (FlexiFed, section 3): those before the first difference."""
    names = []
    for one, other in zip(left.signed_layers(), right.signed_layers(), strict=False):
        if one.signature != other.signature:
            break
        names.append(one.name)
    return names


@pytest.mark.parametrize(
    ("model", "depths", "kinds", "expected"),
    [
        # VGG and ResNet: convolutions. 11 | all: 1, 13 | 16, 19: 6, 16 | 19: 7. A stage's blocks, and the first one.
        (Vgg, (11, 13, 16, 19), {"head": "wide"}, [1, 1, 1, 6, 6, 7]),
        (Vgg, (11, 13, 16, 19), {"head": "narrow"}, [1, 1, 1, 6, 6, 7]),
        (ResNet, (20, 32, 44, 56), {"shortcut": "pad"}, [7, 7, 7, 11, 11, 15]),
        (ResNet, (20, 32, 44, 56), {"shortcut": "projection"}, [7, 7, 7, 11, 11, 15]),
        (ResNet, (20, 32, 44, 56), {"shortcut": "projection", "normalisation": "group"}, [7, 7, 7, 11, 11, 15]),
        # convolutions with their pooling: 3's last one is pooled and therefore not that of 4
        (CharCnn, (3, 4, 5, 6), {}, [2, 2, 2, 3, 3, 4]),
        # the first convolution, and two in each block: 1, 2 and 5 blocks (the look-up before them is common, too)
        (Vdcnn, (9, 17, 29, 49), {}, [1 + 2, 1 + 2, 1 + 2, 1 + 4, 1 + 4, 1 + 10]),
    ],
)
def test_common_base_layers_are_those_of_flexifed(model, depths, kinds, expected):
    tables = [model(depth=depth, **kinds).table(None, None) for depth in depths]
    prefixes = [common(left, right) for left, right in combinations(tables, 2)]
    assert [sum("conv" in name for name in prefix) for prefix in prefixes] == expected
    look_ups = 1 if model is Vdcnn else 0
    assert [len(prefix) for prefix in prefixes] == [count + look_ups for count in expected]


def test_vggs_of_both_papers_have_nothing_in_common_because_one_is_normalised():
    wide, narrow = (Vgg(depth=11, head=head).table(None, None) for head in ("wide", "narrow"))
    assert common(wide, narrow) == []
    alike = Vgg(depth=11, head="narrow", normalisation="batch").table(None, None)
    assert common(wide, alike) == [f"conv{number}" for number in range(1, 9)]


@pytest.mark.parametrize(
    "table", [Vgg().table(None, None), ResNet(shortcut="projection").table(None, None), Vdcnn().table(None, None)]
)
def test_compared_layers_hold_the_whole_state_each_once(table):
    states = {part: table.state_shapes(part) for part in table.parts}
    held = [(layer.part, state) for layer in table.signed_layers() for state in layer.states]
    assert held == [(part, name) for part, shapes in states.items() for name in shapes]


def test_running_statistics_travel_but_are_not_parameters():
    table = ResNet(depth=20).table(None, None)
    channels = 16 + 6 * 16 + 6 * 32 + 6 * 64
    statistics = [shape for name, shape in table.state_shapes("extractor").items() if "running" in name]
    assert sum(map(prod, statistics)) == 2 * channels
    assert table.bytes("extractor") == 4 * (table.parameters("extractor") + 2 * channels)
    assert table.bytes("classifier") == 4 * 650
    assert table.bytes() == table.bytes("extractor") + table.bytes("classifier")
    assert Vgg(head="narrow").table(None, None).bytes() == 4 * 9_750_922


@pytest.mark.parametrize(
    ("model", "shape", "classes", "natural"),
    [
        (Vgg(), (3, 32, 32), 10, (512,)),
        (Vgg(), (1, 64, 96), 62, (512 * 2 * 3,)),
        (ResNet(), (1, 28, 28), 62, (64,)),
        (ResNet(), (3, 8, 9), 1, (64,)),
        (CharCnn(), (70, 1014), 14, (8704,)),
        (CharCnn(), (123,), 2, (256,)),
        (CharCnn(depth=3), (69,), 2, (256,)),
        (Vdcnn(), (1014,), 4, (4096,)),
        (Vdcnn(), (57,), 5, (4096,)),
        (Conv1dModel(), (3, 1024), 5, (100,)),
        (Conv1dModel(stride=1), (9, 128), 6, (100,)),
        (GruModel(), (24, 1), 1, (64,)),
        (LstmModel(hidden=7, layers=3), (24, 1), 1, (7,)),
    ],
)
def test_models_are_cut_to_fit_the_data(model: ModelSettings, shape, classes, natural):
    table = model.table(shape, classes)
    assert (table.input_shape, table.outputs) == (shape, classes)
    assert table.activation_shapes[table.extractor[-1].name] == natural
    assert table.takes_ids == (len(shape) == 1)


@pytest.mark.parametrize("model", [Vgg(), ResNet(), CharCnn(), Vdcnn()])
def test_declared_data_gets_the_papers_shape_and_classes(model):
    papers = {"vgg": ((3, 32, 32), 10), "resnet": ((3, 32, 32), 10), "char_cnn": ((1014,), 4), "vdcnn": ((1024,), 4)}
    table = model.table(None, None)
    assert (table.input_shape, table.outputs) == papers[model.name]
    assert model.table(None, 7).outputs == 7


def test_each_model_starts_and_drops_out_as_its_paper_says():
    starts = {model: model().table(None, None).initialisation for model in (ResNet, Vdcnn, Vgg, CharCnn)}
    assert starts == {
        ResNet: "kaiming_normal",
        Vdcnn: "kaiming_normal",
        Vgg: "xavier_uniform",
        CharCnn: "xavier_uniform",
    }
    for model in (Vgg, CharCnn):
        classifier = model(dropout=0.3).table(None, None).classifier
        assert [layer.rate for layer in classifier if layer.kind == "dropout"] == [0.3, 0.3]


def test_a_single_output_too_few_is_refused():
    with pytest.raises(UserError, match="has 9 outputs, the data set has 10 classes; set model.classes to 10"):
        ResNet(classes=9).table((3, 32, 32), 10)


def test_outputs_may_be_more_than_the_datas_classes_and_never_fewer():
    assert ResNet(classes=100).table((3, 32, 32), 10).outputs == 100
    with pytest.raises(UserError, match=r"'resnet' has 5 outputs, the data set has 10 classes; set model\.classes to"):
        ResNet(classes=5).table((3, 32, 32), 10)
    with pytest.raises(UserError, match=r"'leaf_cnn' has 62 outputs, the data set has 100 classes"):
        LeafCnn().table((1, 28, 28), 100)


def test_one_number_is_asked_of_one_output():
    assert ResNet().table((3, 32, 32), 1).outputs == LeafCnn(classes=1).table((1, 28, 28), 1).outputs == 1
    for model, shape in ((LeafCnn(), (1, 28, 28)), (ResNet(classes=62), (3, 32, 32))):
        with pytest.raises(UserError, match=r"has 62 outputs, the data set asks for one number; set model"):
            model.table(shape, 1)


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (LeafCnn(), (1, 8, 8), r"needs samples of shape \(1, 28, 28\), the data set has \(1, 8, 8\); .*pixels"),
        (Vgg(), (1, 28, 28), r"at least 32 x 32 pixels, .* shape \(1, 28, 28\); choose larger .*resnet"),
        (LeafCnn(), (3, 32, 32), r"has \(3, 32, 32\); choose small_cnn or resnet, .* 28 and data\.grey to true"),
        (LeafCnn(), (1, 40, 98), r"has \(1, 40, 98\); choose small_cnn or resnet, which take images of many sizes"),
        (LeafCnn(), (14, 30), r"the data set has \(14, 30\); choose softmax or mlp, which take any shape"),
        (Vgg(), (1024,), r"needs images \(channels, height, width\) .* \(1024,\); choose softmax or mlp"),
        (ResNet(), (3, 7, 8), r"at least 8 x 8 pixels, .* shape \(3, 7, 8\); choose softmax"),
        (CharCnn(), (122,), r"'char_cnn' of depth 6 .* at least 123, .* shape \(122,\); choose a data set of texts"),
        (CharCnn(depth=3), (68,), r"at least 69"),
        (CharCnn(), (69, 1014), r"\(70, length\) of zeros and ones"),
        (CharCnn(), (1, 28, 28), r"needs samples \(length,\) of character numbers"),
        (Vdcnn(), (56,), r"at least 57, the data set has samples of shape \(56,\)"),
        (Vdcnn(), (70, 1024), r"needs samples \(length,\) of character numbers"),
        (
            Conv1dModel(),
            (1, 1023),
            r"kernel=64 and stride=16 .* at least 1024, .* \(1, 1023\); set model\.stride to 15, or",
        ),
        (Conv1dModel(), (2, 65), r"\(2, 65\); set model\.stride to 1, or choose gru"),
        (Conv1dModel(), (2, 64), r"\(2, 64\); choose gru, which takes series of any length"),
        (Conv1dModel(), (1, 28, 28), r"needs series \(channels, length\) .* choose softmax or mlp"),
        (GruModel(), (1, 28, 28), r"'gru' needs series \(channels, time\), .* shape \(1, 28, 28\); choose softmax"),
        (LstmModel(), (1024,), r"'lstm' needs series \(channels, time\), .* shape \(1024,\); save x\[:, None\]"),
    ],
)
def test_data_that_do_not_fit_are_refused_with_rule_shape_and_a_way_out(model, shape, message):
    with pytest.raises(UserError, match=message):
        model.table(shape, 4)


@pytest.mark.parametrize("length", [65, 100, 500, 1023])
def test_the_stride_that_a_short_series_is_told_to_take_fits_and_is_the_longest(length):
    with pytest.raises(UserError) as caught:
        Conv1dModel().table((1, length), 4)
    stride = int(re.search(r"set model\.stride to (\d+)", str(caught.value))[1])
    assert Conv1dModel(stride=stride).table((1, length), 4).parameters()
    with pytest.raises(UserError):
        Conv1dModel(stride=stride + 1).table((1, length), 4)


@pytest.mark.parametrize("model", [Conv1dModel(), GruModel(), LstmModel()])
def test_models_of_series_refuse_data_of_unknown_shape(model):
    with pytest.raises(UserError, match="this one declares sizes only; choose"):
        model.table(None, None)


def test_a_first_kernel_that_skips_values_is_refused():
    with pytest.raises(ValueError, match="stride=9 must be at most kernel=8"):
        Conv1dModel(kernel=8, stride=9)


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (Vgg, {"depth": 12}),
        (Vgg, {"depth": 16.5}),
        (Vgg, {"head": "huge"}),
        (Vgg, {"dropout": 1.0}),
        (ResNet, {"depth": 18}),
        (ResNet, {"shortcut": "none"}),
        (CharCnn, {"depth": 7}),
        (Vdcnn, {"depth": "9"}),
        (GruModel, {"layers": 0}),
        (LstmModel, {"layers": 101}),
        (LstmModel, {"hidden": 0}),
        (Conv1dModel, {"stride": 0}),
    ],
)
def test_what_no_paper_has_is_refused(model, keys):
    with pytest.raises(ValueError, match="Input should be"):
        model(**keys)
