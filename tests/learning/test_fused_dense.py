"""Large dense layers: products as near to float64 as PyTorch's, and the step of SGD in the backward pass.

They take that step where it is plain, and never another one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from layer_errors import ALL, ROUNDED, Numbers, Rounding, broken, draw, numbers, seeded
from nodes import slots, training_of
from torch import nn

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.executors import matrix
from fedsim.learning.executors.fused.dense import ENOUGH_PRODUCTS, FusedDense, SmallDense, steps_in_passing
from fedsim.learning.executors.fused.module import fused
from fedsim.learning.executors.matrix import LARGE
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.serial import Serial
from fedsim.learning.graph import Graph
from fedsim.learning.kernels.machine_code import ProductKernels, host_machine
from fedsim.learning.kernels.shapes import MatrixShape
from fedsim.learning.objectives.objective import Given, Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.init import Init
from fedsim.models.layers import Flatten, Linear, ReLU
from fedsim.models.parted import PartedModule
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import build, initial_parameters

RATE, INPUTS, HIDDEN = 0.25, 512, 256
FITTING = ((512, 256), (512, 131), (528, 126), (1024, 65), (3136, 40), (16, 4099))
"""Inputs and outputs in machine code: inputs in parts, of any number of vectors; outputs that fill blocks, and not."""
OTHERS = ((513, 131), (999, 70), (255, 300))
"""Left to PyTorch: rows do not fill vectors."""
SAMPLES = (1, 2, 5, 17, 64, 300)
"""Up to more than are added up by themselves."""


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


def layer(inputs: int = INPUTS, outputs: int = HIDDEN, *, rate: float | None = RATE) -> tuple[FusedDense, nn.Linear]:
    """A fused one, and PyTorch's with the same numbers."""
    own = nn.Linear(inputs, outputs)
    made = FusedDense.of(copy.deepcopy(own))
    assert made is not None
    made.rate = rate
    return made, own


def some(inputs: int, outputs: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples, and the gradient of what is made of them."""
    return draw(seeded(1), samples, inputs), draw(seeded(2), samples, outputs)


# -- products ---------------------------------------------------------------------------------------------------------


def done(own: FusedDense | nn.Linear, x: torch.Tensor, d: torch.Tensor, rate: float | None) -> Numbers:
    """What comes out, the gradient that is handed on, and parameters after a step; without a rate, their gradients."""
    given = x.detach().to(own.weight.dtype).requires_grad_()
    made = own(given)
    made.backward(d.to(made.dtype))
    found = {"made": made.detach(), "d_input": given.grad}
    if rate is None:
        return found | {"d_weight": own.weight.grad, "d_bias": own.bias.grad}
    if isinstance(own, FusedDense):
        assert own.weight.grad is None and own.bias.grad is None
    else:
        torch.optim.SGD(own.parameters(), lr=rate).step()
    return found | {"weight": own.weight.detach(), "bias": own.bias.detach()}


def errors(found: Numbers, true: Numbers) -> dict[str, float]:
    own = {name: max(float((found[name].double() - one).norm() / one.norm()), ROUNDED) for name, one in true.items()}
    return own | {ALL: math.hypot(*own.values())}


@cache
def kernels(shape: MatrixShape, dtype: torch.dtype, products: torch.dtype | None = None) -> ProductKernels | None:
    return ProductKernels(shape, host_machine(dtype)) if shape.fits else None


@pytest.fixture(autouse=True)
def machine_code_on_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere products are left to PyTorch, or are taken on tiles."""
    monkeypatch.setattr(matrix, "product_kernels", kernels)


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("rate", [None, 0.3])
@pytest.mark.parametrize("shapes", [FITTING, OTHERS])
@pytest.mark.parametrize("samples", SAMPLES)
def test_errors_are_pytorchs(
    samples: int, shapes: Sequence[tuple[int, int]], rate: float | None, reduced: bool
) -> None:
    """With factors of bfloat16 too, under autocast. What is handed on is by the weights before the step."""
    ratios = []
    for shape in shapes:
        made, own = layer(*shape, rate=rate)
        x, d = some(*shape, samples)
        true = done(copy.deepcopy(own).double(), x, d, rate)
        with torch.autocast("cpu", torch.bfloat16, enabled=reduced):
            theirs, mine = (errors(done(one, x, d, rate), true) for one in (own, made))
        assert {one.dtype for one in made.parameters()} == {torch.float32}
        ratios.append({name: mine[name] / one for name, one in theirs.items()})
    assert broken(ratios) == {}


@pytest.mark.parametrize(
    ("shape", "samples", "rounded"), [((512, 131), 31, False), ((512, 131), 32, True), ((513, 131), 1, True)]
)
@pytest.mark.parametrize("rate", [None, RATE])
def test_a_few_samples_are_not_rounded_in_machine_code(
    shape: tuple[int, int], samples: int, rounded: bool, rate: float | None
) -> None:
    """Under autocast: what is made, and all that is handed on, is then what it is without."""
    made, (x, d) = layer(*shape, rate=rate)[0], some(*shape, samples)
    exact = done(copy.deepcopy(made), x, d, rate)
    with torch.autocast("cpu", torch.bfloat16):
        found = done(made, x, d, rate)
    assert {name: torch.equal(one, exact[name]) for name, one in found.items()} == dict.fromkeys(exact, not rounded)


@pytest.mark.parametrize(("samples", "rounded"), [(31, False), (32, True)])
def test_a_small_layer_of_few_products_is_not_rounded(samples: int, rounded: bool) -> None:
    """Under autocast: 2^20 products and more are PyTorch's, rounded; fewer are those of float32."""
    own = nn.Linear(256, 128)
    small, (x, d) = SmallDense.of(copy.deepcopy(own)), some(256, 128, samples)
    assert small is not None and (samples * 256 * 128 >= ENOUGH_PRODUCTS) == rounded
    exact, theirs, found = (numbers(one, [x.requires_grad_()], d) for one in (own, Rounding(own), Rounding(small)))
    assert all(torch.equal(found[name], one) for name, one in (theirs if rounded else exact).items())
    assert not torch.equal(exact["made"], theirs["made"])


def test_a_small_layer_takes_what_was_rounded_before_it() -> None:
    small = SmallDense.of(nn.Linear(16, 3, bias=False))
    x = torch.randn(5, 16).bfloat16().requires_grad_()
    assert small is not None and SmallDense.of(nn.Conv1d(16, 3, 1)) is None
    with torch.autocast("cpu", torch.bfloat16):
        made = small(x)
    made.sum().backward()
    assert made.dtype == torch.float32 and torch.equal(made, nn.functional.linear(x.float(), small.weight))
    assert x.grad is not None and x.grad.dtype == torch.bfloat16


def on_tiles(shape: MatrixShape, *about: Any) -> Any:
    """Kernels of another kind, which have none that adds."""
    names = "times_transposed", "times", "sum_of_products"
    return SimpleNamespace(**{name: getattr(kernels(shape, torch.float32), name) for name in names})


def test_a_few_samples_are_rounded_on_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's products on tiles are faster than ours in float32, for any number of samples."""
    monkeypatch.setattr(matrix, "product_kernels", on_tiles)
    (made, own), (x, d) = layer(rate=None), some(INPUTS, HIDDEN, 3)
    with torch.autocast("cpu", torch.bfloat16):
        found, theirs = (done(one, x, d, None) for one in (made, own))
    assert torch.equal(found["made"], theirs["made"]) and found["made"].dtype == torch.bfloat16


@pytest.mark.parametrize("rate", [None, RATE])
@pytest.mark.parametrize("shape", [FITTING[0], OTHERS[0]])
def test_each_product_is_in_machine_code_where_there_is_some(
    shape: tuple[int, int], rate: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, run = [], matrix._run

    def seen(*about: Any) -> None:
        runs.append(about)
        run(*about)

    monkeypatch.setattr(matrix, "_run", seen)
    done(layer(*shape, rate=rate)[0], *some(*shape, 5), rate)
    assert len(runs) == (3 if shape in FITTING else 0), "forward, back, and the gradient or the step"


LAYS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda one: one.t().contiguous().t(),
    lambda one: one.repeat_interleave(2, dim=1)[:, ::2],
    lambda one: one.repeat_interleave(2, dim=0)[1::2],
)


@pytest.mark.parametrize("rate", [None, RATE])
@pytest.mark.parametrize("samples", [1, 17, 300])
def test_how_numbers_lie_in_memory_changes_no_bit_of_a_product(samples: int, rate: float | None) -> None:
    """The sum over samples for the bias is PyTorch's, whose order follows how they lie."""
    made, (x, d) = layer(512, 131, rate=rate)[0], some(512, 131, samples)
    expected = done(copy.deepcopy(made), x, d, rate)
    for lay in LAYS:
        found = done(copy.deepcopy(made), lay(x), lay(d), rate)
        torch.testing.assert_close(found, expected)
        assert all(torch.equal(found[name], one) for name, one in expected.items() if "bias" not in name)


@pytest.mark.parametrize("rate", [None, RATE])
def test_without_a_kernel_that_adds_a_gradient_is_taken_off(
    rate: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with those on tiles."""
    (made, own), (x, d) = layer(rate=rate), some(INPUTS, HIDDEN, 17)
    monkeypatch.setattr(matrix, "product_kernels", on_tiles)
    torch.testing.assert_close(done(made, x, d, rate), done(own, x, d, rate), rtol=1e-5, atol=1e-5)


def test_a_gradient_that_is_one_number_for_all_is_taken() -> None:
    """It takes no memory, as that of a sum."""
    made, own = layer(rate=None)
    x, d = some(INPUTS, HIDDEN, 5)
    found, theirs = (done(one, x, d[:1, :1].expand_as(d), None) for one in (made, own))
    torch.testing.assert_close(found, theirs)


@pytest.mark.parametrize("shape", [(512, 131), (513, 131)])
@pytest.mark.parametrize("samples", [1, 17, 300])
def test_what_is_no_number_stays_with_its_sample(shape: tuple[int, int], samples: int) -> None:
    """What is made of the others, and the gradients of these, stay as they were to the last bit."""
    (made, _), (x, d), at = layer(*shape, rate=None), some(*shape, samples), samples // 2
    sound, others = done(copy.deepcopy(made), x, d, None), torch.arange(samples) != at
    x[at, 7] = d[at, 100] = torch.nan
    found = done(made, x, d, None)
    for name in ("made", "d_input"):
        assert found[name][at].isnan().all()
        assert torch.equal(found[name][others], sound[name][others])
    assert found["d_weight"].isnan().sum() == sum(shape) - 1, "of one input, and of one output"
    assert found["d_bias"].isnan().nonzero().tolist() == [[100]]


@pytest.mark.parametrize("shape", [(512, 131), (513, 131)])
@pytest.mark.parametrize("rate", [None, RATE])
def test_a_second_derivative_is_refused(shape: tuple[int, int], rate: float | None) -> None:
    """There is none, and without a word it would be nothing."""
    made, x = layer(*shape, rate=rate)[0], some(*shape, 3)[0].requires_grad_()
    (gradient,) = torch.autograd.grad(made(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


# -- steps ------------------------------------------------------------------------------------------------------------


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
    assert {one.rate for one in frozen.modules() if isinstance(one, FusedDense)} == {None}
