"""Sizes and work of the models, against the papers' figures, arithmetic by hand, and PyTorch's own FLOP counter."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from fedsim.errors import UserError
from fedsim.models.declared import Declared, DeclaredTable
from fedsim.models.fedgs_cnn import FedgsCnn
from fedsim.models.hfedms_cnn import HfedmsCnn
from fedsim.models.layers import Conv2d, Dropout, Flatten, Linear, ReLU, Residual
from fedsim.models.mlp import Mlp
from fedsim.models.settings import ModelSettings
from fedsim.models.small_cnn import SmallCnn
from fedsim.models.softmax import Softmax
from fedsim.models.table import LayerTable
from fedsim.settings import OneOf

TABLE = LayerTable(
    input_shape=(1, 4, 4),
    extractor=(Conv2d("conv", 1, 2, kernel=3), Flatten("flatten"), Linear("fc1", 8, 3), ReLU("relu")),
    classifier=(Linear("fc2", 3, 2),),
)


def parameters_by_layer(table: LayerTable) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in table.parts:
        for name, shape in table.parameter_shapes(part).items():
            size = 1
            for axis in shape:
                size *= axis
            layer = name.split(".")[0]
            counts[layer] = counts.get(layer, 0) + size
    return counts


def test_hfedms_cnn_has_the_parameters_of_the_papers_table_1():
    table = HfedmsCnn().table((1, 28, 28), 62)
    assert parameters_by_layer(table) == {"conv1": 832, "conv2": 51_264, "fc1": 6_424_576, "fc2": 204_900, "fc3": 6_262}
    assert table.parameters() == 6_687_834
    assert table.parameters("extractor") == 6_681_572
    assert table.parameters("classifier") == 6_262
    assert table.activation_shapes["relu4"] == (100,)  # what SCC stores of a sample


def test_fedgs_cnn_has_the_papers_6_3_mebi_parameters_and_17_21_million_macs():
    table = FedgsCnn().table((1, 28, 28), 62)
    assert parameters_by_layer(table) == {"conv1": 832, "conv2": 51_264, "fc1": 6_424_576, "fc2": 127_038}
    assert table.parameters() == 6_603_710
    assert round(table.parameters() / 2**20, 1) == 6.3
    assert table.parameters("classifier") == 2048 * 62 + 62
    # 28 x 28 x 32 outputs of 25 products; 14 x 14 x 64 of 25 x 32; then one product per weight
    assert table.forward_macs() == 627_200 + 10_035_200 + 6_422_528 + 126_976 == 17_211_904
    assert table.training_flops_per_sample == 6 * 17_211_904


def test_small_cnn_by_hand_on_28_and_on_8_pixels():
    large = SmallCnn().table((1, 28, 28), 62)
    assert parameters_by_layer(large) == {"conv1": 416, "conv2": 12_832, "fc1": 1568 * 128 + 128, "fc2": 128 * 62 + 62}
    assert large.forward_macs() == 784 * 16 * 25 + 196 * 32 * 25 * 16 + 1568 * 128 + 128 * 62 == 3_031_040
    digits = SmallCnn().table((1, 8, 8), 10)
    assert digits.activation_shapes["pool2"] == (32, 2, 2)
    assert digits.parameters() == 416 + 12_832 + (128 * 128 + 128) + (128 * 10 + 10)


def test_small_cnn_takes_its_widths_and_colours():
    table = SmallCnn(channels=(3, 5), hidden=7).table((3, 9, 6), 4)
    assert table.parameter_shapes("extractor")["conv1.weight"] == (3, 3, 5, 5)
    assert table.activation_shapes["pool2"] == (5, 2, 1)  # 9 x 6, 4 x 3, 2 x 1: odd rows are dropped
    assert table.parameter_shapes("extractor")["fc1.weight"] == (7, 10)


def test_mlp_has_one_layer_per_width_and_one_more():
    table = Mlp(hidden=(5, 3)).table((2, 2), 4)
    assert table.parameter_shapes("extractor") == {
        "fc1.weight": (5, 4),
        "fc1.bias": (5,),
        "fc2.weight": (3, 5),
        "fc2.bias": (3,),
    }
    assert table.parameter_shapes("classifier") == {"fc3.weight": (4, 3), "fc3.bias": (4,)}
    assert table.forward_macs("extractor") == 4 * 5 + 5 * 3
    assert table.forward_macs("classifier") == 3 * 4


def test_softmax_is_all_classifier():
    table = Softmax().table((1, 8, 8), 10)
    assert table.parts == ("classifier",)
    assert table.parameters("classifier") == table.parameters() == 650
    assert table.forward_flops_per_sample == 2 * 640


def test_activations_are_followed_through_the_layers():
    assert TABLE.activation_shapes == {"conv": (2, 2, 2), "flatten": (8,), "fc1": (3,), "relu": (3,), "fc2": (2,)}
    assert TABLE.outputs == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classifier": (Linear("fc2", 4, 2),)}, r"layer 'fc2' .* the input's shape is \(3,\)"),
        ({"input_shape": (1, 5, 4)}, r"layer 'fc1' .* takes vectors of shape \(8,\), the input's shape is \(12,\)"),
        ({"input_shape": ()}, "at least one axis"),
        ({"input_shape": (1, 0, 4)}, "each of at least 1"),
        ({"classifier": ()}, "needs a classifier"),
        ({"classifier": (Linear("fc1", 3, 2),)}, "used twice: fc1"),
        ({"classifier": (ReLU("last"),), "extractor": ()}, "must give a vector of scores"),
    ],
)
def test_a_table_whose_layers_do_not_fit_cannot_be_made(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TABLE, **change)


def test_tables_that_differ_in_anything_have_different_digests():
    variants = [
        TABLE,
        replace(TABLE, initialisation="torch_default"),
        replace(TABLE, initialisation="kaiming_normal"),
        replace(TABLE, takes_ids=True),
        replace(TABLE, extractor=(Conv2d("conv", 1, 2, kernel=3, bias=False), *TABLE.extractor[1:])),
        replace(TABLE, extractor=(Dropout("drop", 0.1), *TABLE.extractor)),
        replace(TABLE, extractor=(Dropout("drop", 0.2), *TABLE.extractor)),
        replace(TABLE, extractor=(Residual("r", (ReLU("a"),)), *TABLE.extractor)),
        replace(TABLE, extractor=(Residual("r", (ReLU("b"),)), *TABLE.extractor)),
        replace(TABLE, input_shape=(1, 4, 4), classifier=(Linear("fc2", 3, 4),)),
        replace(TABLE, classifier=(Linear("head", 3, 2),)),
        replace(TABLE, classifier=(Linear("fc2", 3, 2), ReLU("end"))),
        replace(TABLE, extractor=TABLE.extractor[:-1]),
        replace(TABLE, extractor=TABLE.extractor[:-1], classifier=(ReLU("relu"), Linear("fc2", 3, 2))),
        replace(TABLE, extractor=(), classifier=TABLE.extractor + TABLE.classifier),
        replace(TABLE, extractor=(ReLU("first"), *TABLE.extractor)),
        replace(TABLE, input_shape=(4, 4), extractor=(), classifier=(Flatten("flatten"), Linear("fc2", 16, 2))),
        replace(TABLE, input_shape=(2, 8), extractor=(), classifier=(Flatten("flatten"), Linear("fc2", 16, 2))),
        replace(TABLE, input_shape=(16,), extractor=(), classifier=(Flatten("flatten"), Linear("fc2", 16, 2))),
    ]
    assert len({table.digest for table in variants}) == len(variants)
    sizes = DeclaredTable(total=10.0, classifier=2.0, training_flops=60.0)
    declared = [
        sizes,
        replace(sizes, total=11.0),
        replace(sizes, classifier=3.0),
        replace(sizes, classifier=None),
        replace(sizes, training_flops=None),
        replace(sizes, bytes_per_parameter=2.0),
    ]
    assert len({table.digest for table in declared}) == len(declared)


def test_equal_tables_have_equal_digests():
    assert replace(TABLE) == TABLE and replace(TABLE).digest == TABLE.digest
    assert DeclaredTable(total=10).digest == DeclaredTable(total=10.0).digest
    assert pickle.loads(pickle.dumps(TABLE)) == TABLE


def test_a_part_that_is_not_there_is_refused_with_those_that_are():
    for ask in (TABLE.parameters, TABLE.bytes, TABLE.parameter_shapes, TABLE.state_shapes, TABLE.forward_macs):
        with pytest.raises(UserError, match=r"no part 'clasifier'; did you mean 'classifier'\? \(parts: extractor, cl"):
            ask("clasifier")
    with pytest.raises(UserError, match=r"no part 'classifier' \(parts: model\)"):
        Declared(parameters=5.0).table(None, None).parameters("classifier")
    with pytest.raises(UserError, match="no part 'model'"):
        Declared(parameters=5.0, classifier_parameters=1.0).table(None, None).parameters("model")


def test_declared_sizes_are_those_of_hfedms_table_2():
    table = Declared(parameters=6.68e6, classifier_parameters=6.3e3).table(None, None)
    assert not table.trainable
    assert table.parts == ("extractor", "classifier")
    assert (table.parameters(), table.parameters("classifier")) == (6.68e6, 6.3e3)
    assert table.parameters("extractor") == 6_673_700
    assert (table.bytes(), table.bytes("classifier")) == (26.72e6, 25.2e3)


def test_declared_without_a_classifier_is_one_part():
    table = Declared(parameters=100.0, bytes_per_parameter=2.0).table((3,), 7)
    assert table.parts == ("model",)
    assert table.parameters("model") == table.parameters() == 100.0
    assert table.bytes("model") == table.bytes() == 200.0


def test_declared_flops_are_told_or_asked_for():
    table = Declared(parameters=1.0, training_flops_per_sample=96e6).table(None, None)
    assert (table.training_flops_per_sample, table.forward_flops_per_sample) == (96e6, 32e6)
    unknown = Declared(parameters=1.0).table(None, None)
    for read in ("training_flops_per_sample", "forward_flops_per_sample"):
        with pytest.raises(UserError, match=r"compute time from FLOPs needs .* set model\.training_flops_per_sample"):
            getattr(unknown, read)


MODEL = TypeAdapter(Annotated[ModelSettings, OneOf("models")])


def test_a_scenarios_keys_become_the_model():
    assert MODEL.validate_python({"name": "mlp", "hidden": [32, 16]}) == Mlp(hidden=(32, 16))
    assert MODEL.validate_python({"name": "small_cnn", "channels": [4, 8]}) == SmallCnn(channels=(4, 8))
    assert MODEL.validate_python({"name": "hfedms_cnn", "classes": 10}).table(None, None).outputs == 10
    assert MODEL.validate_python({"name": "softmax", "initialisation": "torch_default"}).table(
        (2,), 2
    ).initialisation == ("torch_default")


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "mlp", "hidden": []},
        {"name": "mlp", "hidden": [0]},
        {"name": "mlp", "hidden": [8.5]},
        {"name": "small_cnn", "channels": [16]},
        {"name": "small_cnn", "channels": [16, "32"]},
        {"name": "softmax", "initialisation": "xavier"},
        {"name": "hfedms_cnn", "classes": 0},
        {"name": "declared"},
        {"name": "declared", "parameters": 0},
        {"name": "declared", "parameters": float("nan")},
        {"name": "declared", "parameters": 5, "classifier_parameters": 5},
        {"name": "declared", "parameters": 5, "initialisation": "xavier_uniform"},
    ],
)
def test_keys_that_make_no_model_are_refused(keys):
    with pytest.raises(ValidationError):
        MODEL.validate_python(keys)


@pytest.mark.parametrize("model", [HfedmsCnn(), FedgsCnn()])
def test_the_papers_cnns_take_only_their_own_images_and_no_more_classes_than_outputs(model):
    with pytest.raises(
        UserError, match=r"needs samples of shape \(1, 28, 28\), the data set has \(1, 8, 8\); .*pixels"
    ):
        model.table((1, 8, 8), 10)
    with pytest.raises(UserError, match=r"has 62 outputs, the data set has 100 classes; set model\.classes to 100"):
        model.table((1, 28, 28), 100)
    assert model.table((1, 28, 28), 10) == model.table((1, 28, 28), 62) == model.table(None, None)


@pytest.mark.parametrize("shape", [(64,), (8, 8), (1, 3, 8), (1, 8, 3)])
def test_small_cnn_takes_only_images_that_can_be_pooled_twice(shape):
    with pytest.raises(UserError, match=r"needs images .* at least 4 x 4 pixels.* choose softmax or mlp"):
        SmallCnn().table(shape, 10)
    assert SmallCnn().table((1, 4, 4), 10).activation_shapes["pool2"] == (32, 1, 1)


@pytest.mark.parametrize("model", [Softmax(), Mlp(), SmallCnn()])
@pytest.mark.parametrize(("shape", "classes"), [(None, 10), ((1, 8, 8), None)])
def test_models_cut_to_the_data_refuse_data_of_unknown_shape(model, shape, classes):
    with pytest.raises(UserError, match="this one declares sizes only; choose"):
        model.table(shape, classes)
