"""What every registered model keeps to; a new registry line is tested the moment it is written."""

from __future__ import annotations

import subprocess
import sys
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch
from nodes import slots, training_of
from tiers import mostly_long
from torch.utils.flop_counter import FlopCounterMode

from fedsim import registry
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import AS_IT_IS, Ids
from fedsim.errors import UserError
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.serial import Serial
from fedsim.learning.graph import Graph
from fedsim.learning.operations.init import Init
from fedsim.learning.training import TrainingSettings
from fedsim.models.layers import Recurrent
from fedsim.models.parted import PartedModule
from fedsim.models.settings import ModelSettings
from fedsim.models.table import LayerTable, ModelTable
from fedsim.models.torch_module import build, initial_parameters
from fedsim.settings import descriptions

NEEDED = {
    "declared": {"parameters": 6.68e6, "classifier_parameters": 6.3e3, "training_flops_per_sample": 1e8},
    "torch_module": {"path": f"{Path(__file__).with_name('own_net.py')}:Net"},
}
SMALL = {
    "vgg": {"head": "narrow", "dropout": 0.0, "initialisation": "kaiming_normal"},
    "char_cnn": {"depth": 3, "dropout": 0.0},
}
"""Settings, beside those needed, that make a model small and learn quickly."""
NATURAL: dict[str, tuple[tuple[int, ...], int]] = {
    "vgg": ((3, 32, 32), 10),
    "resnet": ((3, 16, 16), 10),
    "char_cnn": ((80,), 4),
    "vdcnn": ((64,), 4),
    "conv1d": ((2, 1024), 5),
    "gru": ((14, 30), 4),
    "lstm": ((14, 30), 4),
}
"""Samples and classes as each model takes them; images of 28 x 28 pixels and 10 classes where nothing else is said."""


def natural(name: str) -> tuple[tuple[int, ...], int]:
    return NATURAL.get(name, ((1, 28, 28), 10))


def model(name: str) -> ModelSettings:
    return registry.load("models", name)(**NEEDED.get(name, {}), **SMALL.get(name, {}))


def table(name: str) -> ModelTable:
    return model(name).table(*natural(name))


def samples(name: str, count: int, seed: int) -> torch.Tensor:
    """Random samples as the model takes them: values, or tokens of its vocabulary."""
    rng = np.random.default_rng(seed)
    shape = (count, *natural(name)[0])
    if layer_table(name).takes_ids:
        return torch.from_numpy(rng.integers(model(name).vocabulary, size=shape, dtype=np.int16))
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


every_model = pytest.mark.parametrize("name", registry.names("models"))
without_numbers = [name for name in registry.names("models") if not table(name).trainable]
made_of_layers = [name for name in registry.names("models") if isinstance(table(name), LayerTable)]
"""What trains, but for a user's own module, which has tests of its own in `test_user_module`."""
every_model_of_layers = pytest.mark.parametrize("name", made_of_layers)


def test_what_has_no_layers_is_declared_or_the_users_own():
    assert set(registry.names("models")) - set(made_of_layers) == {"declared", "torch_module"}


@every_model
def test_a_name_is_its_own_and_every_key_is_described(name):
    assert model(name).name == name
    assert registry.first_sentence("models", name).endswith(".")
    assert {"name", *descriptions(type(model(name)))} == {"name", *type(model(name)).model_fields}


@every_model
def test_parts_add_up_to_the_model(name):
    sizes = table(name)
    assert sum(sizes.parameters(part) for part in sizes.parts) == pytest.approx(sizes.parameters(), rel=1e-12)
    assert sum(sizes.bytes(part) for part in sizes.parts) == pytest.approx(sizes.bytes(), rel=1e-12)
    assert sizes.training_flops_per_sample == 3 * sizes.forward_flops_per_sample


@every_model
def test_4_bytes_travel_for_each_parameter_and_each_running_statistic(name):
    sizes = table(name)
    for part in sizes.parts:
        if isinstance(sizes, LayerTable):
            shapes = sizes.state_shapes(part)
            assert shapes.items() >= sizes.parameter_shapes(part).items()
            assert sizes.bytes(part) == 4 * sum(map(prod, shapes.values()))
        else:
            assert sizes.bytes(part) == 4 * sizes.parameters(part)


@every_model_of_layers
def test_tokens_have_a_vocabulary_and_values_need_none(name):
    assert not layer_table(name).takes_ids or model(name).vocabulary


@every_model
def test_the_same_settings_make_the_same_table(name):
    assert table(name) == table(name)
    assert table(name).digest == table(name).digest


def test_different_models_have_different_digests():
    digests = {table(name).digest for name in registry.names("models")}
    assert len(digests) == len(registry.names("models"))


def test_tables_are_made_without_torch():
    script = f"""
import sys
from fedsim import registry
settings = { {name: NEEDED.get(name, {}) | SMALL.get(name, {}) for name in registry.names("models")}!r}
natural = { {name: natural(name) for name in registry.names("models")}!r}
for name in settings.keys() - {{"torch_module"}}:
    table = registry.load("models", name)(**settings[name]).table(*natural[name])
    assert table.bytes() > 0 and table.training_flops_per_sample > 0 and table.digest
heavy = [module for module in ("torch", "simpy", "ortools", "matplotlib", "sklearn") if module in sys.modules]
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", without_numbers)
def test_what_declares_sizes_only_is_never_made_into_tensors(name):
    with pytest.raises(UserError, match="declares sizes only and cannot be trained"):
        build(table(name))
    with pytest.raises(UserError, match="declares sizes only and cannot be trained"):
        initial_parameters(table(name), np.random.default_rng(0))


def layer_table(name: str) -> LayerTable:
    layers = table(name)
    assert isinstance(layers, LayerTable)
    return layers


@every_model_of_layers
def test_the_modules_state_is_the_tables(name):
    layers, module = layer_table(name), build(layer_table(name))
    start = initial_parameters(layers, np.random.default_rng(0))
    assert tuple(start) == layers.parts
    for part in layers.parts:
        shapes = layers.state_shapes(part)
        state = module.part_state(part)
        assert {key: tuple(value.shape) for key, value in state.items()} == shapes
        assert {key: tuple(value.shape) for key, value in start[part].items()} == shapes
        assert list(state) == list(start[part]) == list(shapes)
        assert list(module.part_parameters(part)) == list(layers.parameter_shapes(part))
        assert {value.dtype for value in (*state.values(), *start[part].values())} == {torch.float32}
        assert not any(value.any() for value in state.values())
    assert sum(parameter.numel() for parameter in module.parameters()) == layers.parameters()


def started(layers: LayerTable, seed: int = 0) -> PartedModule:
    module = build(layers)
    for part, values in initial_parameters(layers, np.random.default_rng(seed)).items():
        module.load(part, values)
    return module


@every_model_of_layers
def test_the_whole_is_its_parts_one_after_the_other_and_shapes_are_the_tables(name):
    layers = layer_table(name)
    module = started(layers).eval()
    x = samples(name, 3, seed=1)
    activation = x
    with torch.no_grad():
        for part in layers.parts:
            for layer, built in zip(layers.layers[part], module.parts[part], strict=True):
                activation = built(activation)
                assert tuple(activation.shape) == (3, *layers.activation_shapes[layer.name])
        assert torch.equal(activation, module(x))
    assert layers.outputs >= natural(name)[1]


COUNTED = {"char_cnn": ((70, 80), 4)}
"""One-hot rows instead of tokens: PyTorch computes no gradient for what was looked up in a constant table."""


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # on switching something off
@every_model_of_layers
def test_work_is_what_pytorch_counts(name):
    layers = model(name).table(*COUNTED.get(name, natural(name)))
    assert isinstance(layers, LayerTable)
    module = started(layers)
    x = torch.zeros(2, *layers.input_shape)
    if not layers.takes_ids:
        x.requires_grad_()  # so that the first layer's input gradient is computed, too
    fused_lstm_off = torch.backends.mkldnn.flags(enabled=False)  # the counter knows nothing of it
    with fused_lstm_off, FlopCounterMode(display=False) as forward:
        scores = module(x)
    assert forward.get_total_flops() == 2 * layers.forward_flops_per_sample
    with FlopCounterMode(display=False) as backward:
        scores.sum().backward()
    # nothing is differentiated with respect to the zeros that a recurrent layer starts with: U's products, one step
    constant = sum(layer.gates * layer.hidden**2 for layer in layers.extractor if isinstance(layer, Recurrent))
    counted = forward.get_total_flops() + backward.get_total_flops()
    assert counted == 2 * (layers.training_flops_per_sample - 2 * constant)


HANDFUL = 4
LEARNING_RATES = {"vgg": 0.001, "char_cnn": 0.1, "gru": 0.1, "lstm": 0.2}
"""Other than 0.02: larger where layers are not normalised and start small, smaller where they start large."""


QUICK = [name for name in made_of_layers if name not in ("vgg", "vdcnn", "hfedms_cnn")]


@pytest.mark.parametrize("name", mostly_long(made_of_layers, now=QUICK))
def test_a_handful_of_samples_is_learnt_by_plain_sgd(name):
    check_that_a_handful_is_learnt(layer_table(name), samples(name, HANDFUL, seed=2), LEARNING_RATES.get(name, 0.02))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        pytest.param("vgg", {"depth": 13, "head": "wide", "dropout": 0.0}, marks=pytest.mark.long),
        pytest.param("vgg", {"depth": 16, "head": "wide", "dropout": 0.0}, marks=pytest.mark.long),
        pytest.param("vgg", {"depth": 19, "head": "wide", "dropout": 0.0}, marks=pytest.mark.long),
        ("resnet", {"depth": 32, "shortcut": "projection"}),
        pytest.param("resnet", {"depth": 44, "shortcut": "pad"}, marks=pytest.mark.long),
        pytest.param("resnet", {"depth": 56, "shortcut": "projection"}, marks=pytest.mark.long),
        pytest.param("vdcnn", {"depth": 17}, marks=pytest.mark.long),
        pytest.param("vdcnn", {"depth": 29}, marks=pytest.mark.long),
        pytest.param("vdcnn", {"depth": 49}, marks=pytest.mark.long),
    ],
)
def test_deep_models_learn_a_handful_of_samples_too(name, keys):
    layers = registry.load("models", name)(**keys).table(*natural(name))
    check_that_a_handful_is_learnt(layers, samples(name, HANDFUL, seed=2), 0.01)


def check_that_a_handful_is_learnt(layers: LayerTable, x: torch.Tensor, learning_rate: float) -> None:
    y = torch.arange(HANDFUL) % 2
    module = started(layers)
    optimiser = torch.optim.SGD(module.parameters(), lr=learning_rate)
    first = torch.nn.functional.cross_entropy(module(x), y).item()
    for _ in range(30):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x), y)
        loss.backward()
        optimiser.step()
        if loss.item() < 0.02 * first:
            break
    assert loss.item() < 0.2 * first
    assert (module(x).argmax(dim=1) == y).all()


@every_model_of_layers
def test_one_step_of_the_serial_executor_is_that_of_torchs_sgd(name):
    layers = layer_table(name)
    x, y = samples(name, 4, seed=3), np.arange(4) % 2
    dataset = FederatedDataset(
        name="handful",
        classes=natural(name)[1],
        sample_shape=layers.input_shape,
        sample_bytes=1.0,
        client_samples=np.array([4]),
        stored=x.numpy(),
        y=y,
        encoding=Ids(model(name).vocabulary) if layers.takes_ids else AS_IT_IS,
        train_ids=(np.arange(4),),
        client_test_ids=(np.empty(0, np.int64),),
    )
    executor = Serial(layers, dataset)
    graph = Graph(executor.family)
    init = graph.node(Init(layers.digest), {}, stream=Stream(1, "model/init"))
    (start,) = executor.compute([init])
    inputs = slots(model={part: init.output(part) for part in layers.parts})
    for slot, handle in inputs.items():
        handle.value = start[slot.part]
    operation = training_of(dataset, 0, TrainingSettings(learning_rate=0.01, batch_size=4), model=layers.digest)
    (trained,) = executor.compute([graph.node(operation, inputs, stream=Stream(1, "batches"))])

    module = build(layers)
    for part, tensors in start.items():
        module.load(part, tensors)
    order = Stream(1, "batches").generator().permutation(4)
    torch.nn.functional.cross_entropy(module(x[order]), torch.from_numpy(y[order])).backward()
    torch.optim.SGD(module.parameters(), lr=0.01).step()
    for part in layers.parts:
        for key, value in module.part_state(part).items():
            torch.testing.assert_close(trained[part][key], value.detach(), rtol=1e-5, atol=1e-6)
            assert torch.isfinite(value).all()
