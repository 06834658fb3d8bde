"""Dense layers that take their step in the backward pass: the step of SGD, where it is plain, and never another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
import torch
from nodes import slots, training_of
from torch import nn

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.fused import dense
from fedsim.learning.executors.fused.dense import LARGE, FusedDense, steps_in_passing
from fedsim.learning.executors.fused.module import fused
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.serial import Serial
from fedsim.learning.graph import Graph
from fedsim.learning.objectives.objective import Given, Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.init import Init
from fedsim.models.layers import Flatten, Linear, ReLU
from fedsim.models.parted import PartedModule
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import build, initial_parameters

RATE, INPUTS, HIDDEN = 0.25, 512, 256


class Watching(Objective):
    """Has to see the gradients, and doubles them."""

    name: Literal["watching"] = "watching"

    def add_gradient(self, gradients: Any, weights: Any, given: Given) -> None:
        for gradient in gradients.values():
            gradient.mul_(2)


def table() -> LayerTable:
    """A large layer in each part, and a small one."""
    return LayerTable(
        input_shape=(INPUTS,),
        extractor=(Flatten("flat"), Linear("fc1", INPUTS, HIDDEN), ReLU("relu1")),
        classifier=(Linear("fc2", HIDDEN, HIDDEN), ReLU("relu2"), Linear("fc3", HIDDEN, 4)),
    )


def started(module: PartedModule) -> PartedModule:
    for part, tensors in initial_parameters(table(), np.random.default_rng(0)).items():
        module.load(part, tensors)
    return module


def layer(*, rate: float | None = RATE) -> tuple[FusedDense, nn.Linear]:
    """A stepping one, and PyTorch's with the same numbers."""
    own, same = nn.Linear(INPUTS, HIDDEN), nn.Linear(INPUTS, HIDDEN)
    same.load_state_dict(own.state_dict())
    stepping = FusedDense.of(same)
    assert stepping is not None
    stepping.rate = rate
    return stepping, own


@pytest.mark.parametrize("samples", [1, 2, 7, 33])
def test_it_takes_the_step_of_sgd_by_itself(samples: int) -> None:
    stepping, own = layer()
    x, d = torch.randn(samples, INPUTS), torch.randn(samples, HIDDEN)
    given = [x.clone().requires_grad_() for _ in range(2)]
    for one, at in zip((stepping, own), given, strict=True):
        one(at).backward(d)
    by_old_weights = d.double() @ own.weight.detach().double()
    errors = [float((one.grad.double() - by_old_weights).norm()) for one in given]
    assert errors[0] <= 1.1 * errors[1] + 1e-12
    assert stepping.weight.grad is None and stepping.bias.grad is None
    exact = own.weight.detach().double() - RATE * (d.double().t() @ x.double())
    errors = [
        float((found.detach().double() - exact).norm())
        for found in (stepping.weight, own.weight - RATE * own.weight.grad)
    ]
    assert errors[0] <= 1.1 * errors[1] + 1e-12
    torch.testing.assert_close(stepping.bias, own.bias - RATE * own.bias.grad)


def test_a_step_on_whole_numbers_is_exact() -> None:
    stepping, _ = layer()
    with torch.no_grad():
        stepping.weight.copy_(torch.randint(-9, 10, stepping.weight.shape))
    before, x, d = stepping.weight.detach().clone(), *(torch.randint(-5, 6, (9, n)).float() for n in (INPUTS, HIDDEN))
    stepping(x).backward(d)
    assert torch.equal(stepping.weight.detach(), before - RATE * (d.t() @ x))


def test_nothing_is_trained_without_a_rate_nor_without_gradients() -> None:
    for stepping, grad in ((layer(rate=None)[0], True), (layer()[0], False)):
        before = stepping.weight.detach().clone()
        with torch.set_grad_enabled(grad):
            made = stepping(torch.randn(3, INPUTS))
        if grad:
            made.sum().backward()
            assert stepping.weight.grad is not None and stepping.bias.grad is not None
        assert torch.equal(stepping.weight.detach(), before)


def test_only_layers_of_parts_that_are_trained_step() -> None:
    module = started(fused(build(table())))
    state = {part: {name: one.clone() for name, one in module.part_state(part).items()} for part in table().parts}
    steps_in_passing(module, ["classifier"], RATE)
    nn.functional.cross_entropy(module(torch.randn(5, INPUTS)), torch.arange(5) % 4).backward()
    assert all(torch.equal(one, state["extractor"][name]) for name, one in module.part_state("extractor").items())
    assert all(one.grad is not None for one in module.part_parameters("extractor").values())
    before = state["classifier"]
    changed = {name for name, one in module.part_state("classifier").items() if not torch.equal(one, before[name])}
    assert changed == {"fc2.weight", "fc2.bias"}
    steps_in_passing(module, table().parts, None)
    assert all(one.rate is None for one in module.modules() if isinstance(one, FusedDense))


@pytest.mark.parametrize(
    ("own", "fits"),
    [
        (nn.Linear(256, 256), True),
        (nn.Linear(LARGE, 1), True),
        (nn.Linear(255, 256), False),
        (nn.Linear(256, 256, bias=False), False),
        (nn.Conv1d(256, 256, 1), False),
    ],
)
def test_which_layers_step(own: nn.Module, fits: bool) -> None:
    assert (FusedDense.of(own) is not None) == fits


# -- in the plain loop ------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def same_numbers() -> Iterator[None]:
    """Random ones, but the same in each run."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float | None]]:
    """The rates of all passes through stepping layers while there are gradients."""
    rates: list[float | None] = []
    forward = FusedDense.forward

    def seen(self: FusedDense, x: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled():
            rates.append(self.rate)
        return forward(self, x)

    monkeypatch.setattr(FusedDense, "forward", seen)
    return rates


def dataset() -> FederatedDataset:
    rng = np.random.default_rng(1)
    return FederatedDataset(
        name="handful",
        classes=4,
        sample_shape=(INPUTS,),
        sample_bytes=1.0,
        client_samples=np.array([12]),
        stored=rng.standard_normal((14, INPUTS)).astype(np.float32),
        y=np.arange(14) % 4,
        train_ids=(np.arange(12),),
        test_ids=np.arange(12, 14),
        client_test_ids=(np.empty(0, np.int64),),
    )


class UnfusedTrainer(PlainTrainer):
    """With PyTorch's own modules."""

    def _built(self) -> PartedModule:
        return build(self.table)


class Unfused(Serial):
    """The plain loop with these."""

    trainer = UnfusedTrainer


def trained(kind: type[Serial], options: dict[str, float], objective: Objective) -> dict[str, dict[str, torch.Tensor]]:
    """The model after three steps."""
    executor, whole = kind(table(), dataset()), dataset()
    graph = Graph(executor.family)
    init = graph.node(Init(table().digest), {}, stream=Stream(1, "model/init"))
    (start,) = executor.compute([init])
    inputs = slots(model={part: init.output(part) for part in table().parts})
    for slot, handle in inputs.items():
        handle.value = start[slot.part]
    settings = {"learning_rate": 0.05, "batch_size": 4, "epochs": 1} | options
    node = graph.node(training_of(whole, 0, settings, objective, model=table().digest), inputs, stream=Stream(1, "b"))
    (made,) = executor.compute([node])
    return {part: made[part] for part in table().parts}


RECIPES: dict[str, tuple[dict[str, float], Objective, bool]] = {
    "plain": ({}, Plain(), True),
    "momentum": ({"momentum": 0.9}, Plain(), False),
    "weight decay": ({"weight_decay": 0.1}, Plain(), False),
    "a pull": ({}, Proximal(mu=0.5), False),
    "watched gradients": ({}, Watching(), False),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_training_is_that_of_the_loop_without_such_layers(recipe: str, steps: list[float | None]) -> None:
    options, objective, alone = RECIPES[recipe]
    found, expected = (trained(kind, options, objective) for kind in (Serial, Unfused))
    assert set(steps) == {0.05 if alone else None} and len(steps) == 2 * 3
    for part, tensors in expected.items():
        for name, one in tensors.items():
            torch.testing.assert_close(found[part][name], one, rtol=1e-5, atol=1e-6)


def test_what_is_tested_is_not_trained(steps: list[float | None]) -> None:
    """Even if a training before has left its rate behind."""
    trainer = PlainTrainer(table(), dataset(), "cpu", "float32")
    start = initial_parameters(table(), np.random.default_rng(0))
    weights = {part: {name: one.clone() for name, one in tensors.items()} for part, tensors in start.items()}
    steps_in_passing(trainer._module, table().parts, 0.05)
    scores = trainer.score(weights, [np.arange(12, 14)])
    features = trainer.features({"extractor": weights["extractor"]}, [torch.randn(3, INPUTS)])
    assert len(scores) == len(features) == 1 and steps == []
    state = {part: trainer._module.part_state(part) for part in table().parts}
    assert all(torch.equal(state[part][name], one) for part in start for name, one in start[part].items())


def test_further_models_never_step() -> None:
    trainer = PlainTrainer(table(), dataset(), "cpu", "float32")
    steps_in_passing(trainer._module, table().parts, 0.05)
    frozen = trainer._frozen("teacher", initial_parameters(table(), np.random.default_rng(0)))
    assert {one.rate for one in frozen.modules() if isinstance(one, dense.FusedDense)} == {None}
