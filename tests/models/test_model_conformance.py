"""What every registered model keeps to; a new registry line is tested the moment it is written."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fedsim import registry
from fedsim.errors import UserError
from fedsim.models.settings import ModelSettings
from fedsim.models.table import LayerTable, ModelTable
from fedsim.models.torch_module import build, initial_parameters

NEEDED = {"declared": {"parameters": 6.68e6, "classifier_parameters": 6.3e3, "training_flops_per_sample": 1e8}}
SHAPE, CLASSES = (1, 28, 28), 10


def model(name: str) -> ModelSettings:
    return registry.load("models", name)(**NEEDED.get(name, {}))


def table(name: str) -> ModelTable:
    return model(name).table(SHAPE, CLASSES)


every_model = pytest.mark.parametrize("name", registry.names("models"))
trainable = [name for name in registry.names("models") if table(name).trainable]
every_trainable_model = pytest.mark.parametrize("name", trainable)


@every_model
def test_a_name_is_its_own_and_every_key_is_described(name):
    assert model(name).name == name
    assert registry.first_sentence("models", name).endswith(".")
    fields = type(model(name)).model_fields
    assert all(field.description for key, field in fields.items() if key != "name")


@every_model
def test_parts_add_up_to_the_model(name):
    sizes = table(name)
    assert sum(sizes.parameters(part) for part in sizes.parts) == pytest.approx(sizes.parameters(), rel=1e-12)
    assert sum(sizes.bytes(part) for part in sizes.parts) == pytest.approx(sizes.bytes(), rel=1e-12)
    assert sizes.bytes() == 4 * sizes.parameters()
    assert sizes.training_flops_per_sample == 3 * sizes.forward_flops_per_sample


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
needed = {NEEDED!r}
for name in registry.names("models"):
    table = registry.load("models", name)(**needed.get(name, {{}})).table({SHAPE!r}, {CLASSES})
    assert table.bytes() > 0 and table.training_flops_per_sample > 0 and table.digest
heavy = [module for module in ("torch", "simpy", "ortools", "matplotlib", "sklearn") if module in sys.modules]
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [name for name in registry.names("models") if name not in trainable])
def test_what_declares_sizes_only_is_never_made_into_tensors(name):
    with pytest.raises(UserError, match="declares sizes only and cannot be trained"):
        build(table(name))
    with pytest.raises(UserError, match="declares sizes only and cannot be trained"):
        initial_parameters(table(name), np.random.default_rng(0))


def layer_table(name: str) -> LayerTable:
    layers = table(name)
    assert isinstance(layers, LayerTable)
    return layers


@every_trainable_model
def test_the_modules_parameters_are_the_tables(name):
    layers, module = layer_table(name), build(layer_table(name))
    start = initial_parameters(layers, np.random.default_rng(0))
    assert tuple(module.parts) == tuple(start) == layers.parts
    for part in layers.parts:
        shapes = layers.parameter_shapes(part)
        state = module.parts[part].state_dict()
        assert {key: tuple(value.shape) for key, value in state.items()} == shapes
        assert {key: tuple(value.shape) for key, value in start[part].items()} == shapes
        assert list(state) == list(start[part]) == list(shapes)
    assert sum(parameter.numel() for parameter in module.parameters()) == layers.parameters()
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}


def started(layers: LayerTable, seed: int = 0) -> torch.nn.Module:
    module = build(layers)
    for part, values in initial_parameters(layers, np.random.default_rng(seed)).items():
        module.parts[part].load_state_dict(values)
    return module


@every_trainable_model
def test_the_whole_is_its_parts_one_after_the_other_and_shapes_are_the_tables(name):
    layers = layer_table(name)
    module = started(layers)
    x = torch.from_numpy(np.random.default_rng(1).random((3, *SHAPE), dtype=np.float32))
    activation = x
    for part in layers.parts:
        activation = module.parts[part](activation)
        assert tuple(activation.shape) == (3, *layers.activation_shapes[layers.layers[part][-1].name])
    assert torch.equal(activation, module(x))
    assert layers.outputs >= CLASSES


@every_trainable_model
def test_work_is_what_pytorch_counts(name):
    layers = layer_table(name)
    module = started(layers)
    x = torch.zeros(2, *SHAPE, requires_grad=True)  # so that the first layer's input gradient is computed, too
    with FlopCounterMode(display=False) as forward:
        scores = module(x)
    assert forward.get_total_flops() == 2 * layers.forward_flops_per_sample
    with FlopCounterMode(display=False) as backward:
        scores.sum().backward()
    assert forward.get_total_flops() + backward.get_total_flops() == 2 * layers.training_flops_per_sample


@every_trainable_model
def test_a_handful_of_samples_is_learnt_by_plain_sgd(name):
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.standard_normal((8, *SHAPE), dtype=np.float32))
    y = torch.arange(8) % 4
    module = started(layer_table(name))
    optimiser = torch.optim.SGD(module.parameters(), lr=0.02)
    first = torch.nn.functional.cross_entropy(module(x), y).item()
    for _ in range(30):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x), y)
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.2 * first
    assert (module(x).argmax(dim=1) == y).all()
