"""Which models treat each sample by itself."""

from __future__ import annotations

import pytest
import torch

from fedsim import registry
from fedsim.models.samples_alone import why_not_alone
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import build

MODELS: dict[str, tuple[dict[str, object], tuple[int, ...]]] = {
    "softmax": ({}, (1, 8, 8)),
    "mlp": ({}, (1, 8, 8)),
    "small_cnn": ({}, (1, 28, 28)),
    "fedgs_cnn": ({}, (1, 28, 28)),
    "resnet": ({"depth": 20}, (3, 32, 32)),
    "vgg": ({"depth": 11, "head": "narrow"}, (3, 32, 32)),
    "grouped resnet": ({"name": "resnet", "normalisation": "group"}, (3, 8, 8)),
    "conv1d": ({}, (1, 1024)),
    "conv1d by batches": ({"name": "conv1d", "normalisation": "batch"}, (1, 1024)),
}
REASONS = {
    "resnet": "layer bn1 (batch_norm2d(channels=16))",
    "vgg": "layer dropout1 ",
    "conv1d by batches": "layer bn1 (batch_norm1d(channels=16))",
}


def table_of(name: str) -> LayerTable:
    keys, shape = MODELS[name]
    table = registry.load("models", keys.get("name", name))(**keys).table(shape, 10)
    assert isinstance(table, LayerTable)
    return table


@pytest.mark.parametrize("name", MODELS)
def test_a_model_treats_samples_alone_or_the_layer_that_does_not_is_named(name: str) -> None:
    reason = why_not_alone(table_of(name))
    assert (reason is None) == (name not in REASONS)
    if reason is not None:
        assert REASONS[name] in reason


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"vgg", "fedgs_cnn"}))
def test_what_is_said_is_true_of_the_torch_module(name: str) -> None:
    """In training, the mean of the gradients of two halves is the gradient of the whole, or not."""
    table = table_of(name)
    module = build(table).double().train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        x, y = torch.rand(6, *MODELS[name][1], dtype=torch.float64), torch.arange(6)

        def gradient(rows: slice) -> torch.Tensor:
            loss = torch.nn.functional.cross_entropy(module(x[rows]), y[rows])
            return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(module.parameters()))])

        halves = (gradient(slice(0, 3)) + gradient(slice(3, 6))) / 2
        same = torch.allclose(halves, gradient(slice(0, 6)), rtol=0, atol=1e-12)
    assert same == (why_not_alone(table) is None)
