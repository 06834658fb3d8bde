"""The plain loop on a CUDA device: every registered model is trained there as on the CPU, and to the same bits again.

Models are those of the benchmark of all models, in their usual sizes, as operations that depend on chance are seen on
large tensors. A model that torch has no deterministic algorithm for is skipped, with the operation's name: its runs are
refused. That no tensor strays to another device is shown by torch's fake tensors, on any machine.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_waves import Step, Tensors, Wave, World, errors, outcome
from stacked import MODELS as STACKED
from stacked import Elsewhere, OnMeta, on_cuda
from test_stacked_training import place_of
from tiers import mostly_long
from torch._subclasses.fake_tensor import FakeTensorMode

from benchmarks.models_work import MODELS, Model, Work
from fedsim import registry
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import AS_IT_IS, Ids
from fedsim.errors import UserError
from fedsim.learning.executors import plain
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.objectives.plain import Plain
from fedsim.models.parted import PartedModule
from fedsim.models.table import ModelTable
from fedsim.models.torch_module import build, initial_parameters

BY_LABEL = {model.label: model for model in MODELS}
FOR_SERIES = [label for label, model in BY_LABEL.items() if model.keys["name"] in ("gru", "lstm")]
ON_THE_CPU = ["softmax", "resnet-20", "resnet-20-group", "vdcnn-9", "lstm-2"]
CLIENTS = 2
SAMPLES, BATCH, MANY = 10, 5, 64
ROUNDING = 1e-10
"""Of an update in float64: some thousand times what deep models make of rounding errors."""
MOST_OF_AN_UPDATE = {"float32": 1e-3, "tf32": 2e-2, "bfloat16": 0.1}
"""How far precisions may be from float64 where waves are those of the law of executors."""

every_model = pytest.mark.parametrize("label", BY_LABEL)
each_precision = pytest.mark.parametrize("precision", MOST_OF_AN_UPDATE)


class InThePlainLoop(Elsewhere):
    trainer = PlainTrainer

    @classmethod
    def trainer_of(cls, table: ModelTable) -> type[Trainer]:
        return cls.trainer


class BuiltThere(PlainTrainer):
    """Its modules are made where they are trained, as fake ones cannot be moved."""

    def _built(self) -> PartedModule:
        with torch.device(self.torch_device):
            return build(self.table)


class InThePlainLoopOnMeta(OnMeta, InThePlainLoop):
    """Computes on a device that is not the CPU, and has no numbers."""

    trainer = BuiltThere


def samples_of(model: Model, count: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    if model.of_texts:
        return rng.integers(0, model.vocabulary, (count, *model.shape), dtype=np.uint8)
    return rng.standard_normal((count, *model.shape), dtype=np.float32)


def world_of(work: Work, samples: int) -> World:
    """Clients with so many random samples each, and two models to start from."""
    model, total, table = work.model, CLIENTS * samples, work.table()
    dataset = FederatedDataset(
        name="random",
        classes=model.classes,
        sample_shape=model.shape,
        sample_bytes=1.0,
        client_samples=np.full(CLIENTS, samples),
        stored=samples_of(model, total + 1),
        y=np.random.default_rng(8).integers(model.classes, size=total + 1),
        encoding=Ids(model.vocabulary) if model.of_texts else AS_IT_IS,
        train_ids=tuple(np.split(np.arange(total), CLIENTS)),
        test_ids=np.arange(total, total + 1),
        client_test_ids=(np.arange(0),) * CLIENTS,
    )
    return World(table, dataset, tuple(initial_parameters(table, np.random.default_rng(seed)) for seed in (2, 3)))


def wave_of(place: World, rate: float, batch: int, clients: int = CLIENTS) -> Wave:
    """An epoch of each client, with momentum and weight decay; everybody's model is wanted."""
    training = {"learning_rate": rate, "batch_size": batch, "momentum": 0.5, "weight_decay": 0.01}
    chains = tuple((Step(client, wanted=place.table.parts),) for client in range(clients))
    return Wave(training, Plain(), chains, (0,) * clients, (1 / clients,) * clients)


def unless_refused(executor: Elsewhere, place: World, wave: Wave) -> dict[str, Tensors]:
    """What *executor* makes of *wave*; the test is skipped if it is refused as users are told."""
    try:
        return outcome(executor, place, wave)
    except UserError as refusal:
        assert str(refusal).startswith("--torch-device cuda: the model cannot be trained there with the same result")
        pytest.skip(str(refusal))


def is_finite(made: dict[str, Tensors]) -> bool:
    return all(bool(tensor.isfinite().all()) for part in made.values() for tensor in part.values())


def same_bits(found: dict[str, Tensors], expected: dict[str, Tensors]) -> bool:
    return all(torch.equal(found[part][name], one) for part, own in expected.items() for name, one in own.items())


# -- on a device ----------------------------------------------------------------------------------------------------


@on_cuda
@every_model
def test_in_float64_a_model_is_trained_as_on_the_cpu(label: str) -> None:
    work = Work(BY_LABEL[label], BATCH).without_dropout()
    place = world_of(work, SAMPLES)
    wave = wave_of(place, work.model.rate, BATCH, clients=1)
    found = unless_refused(InThePlainLoop(place.table, place.dataset, precision="float64"), place, wave)
    true = outcome(Serial(place.table, place.dataset, precision="float64"), place, wave)
    assert errors(found, true).total <= ROUNDING


@on_cuda
@each_precision
@every_model
def test_a_model_is_trained_to_the_same_bits_again(label: str, precision: str) -> None:
    """Dropout included."""
    work = Work(BY_LABEL[label], MANY // 2)
    place = world_of(work, MANY)
    wave = wave_of(place, work.model.rate, MANY // 2)
    first, *others = (
        unless_refused(InThePlainLoop(place.table, place.dataset, precision=precision), place, wave) for _ in range(3)
    )
    assert is_finite(first)
    assert all(same_bits(other, first) for other in others)


@on_cuda
@each_precision
@pytest.mark.parametrize("model", STACKED)
def test_together_clients_are_trained_in_each_precision_to_the_same_bits_again(model: str, precision: str) -> None:
    place = place_of(model, 1)
    wave = wave_of(place, 0.02, BATCH, clients=8)
    true = outcome(Serial(place.table, place.dataset, precision="float64"), place, wave)
    executor = Elsewhere(place.table, place.dataset, precision=precision)
    first, *played = (outcome(executor, place, wave) for _ in range(3))  # from the second time on as a CUDA graph
    assert all(same_bits(other, first) for other in played)
    assert errors(first, true).total <= MOST_OF_AN_UPDATE[precision]


@on_cuda
@pytest.mark.parametrize("label", FOR_SERIES)
def test_weights_for_series_lie_together_before_and_after_training(label: str) -> None:
    """Else cuDNN copies them in each step, and says so in a warning, which is an error here."""
    work = Work(BY_LABEL[label], BATCH)
    place = world_of(work, SAMPLES)
    executor = InThePlainLoop(place.table, place.dataset)
    outcome(executor, place, wave_of(place, work.model.rate, BATCH))
    before = PlainTrainer(place.table, place.dataset, "cuda", "float32")
    after = executor._pool._trainer_of(place.table.digest)
    for layer in (*before._module.modules(), *after._module.modules()):
        if isinstance(layer, torch.nn.RNNBase):
            assert len({weight.untyped_storage().data_ptr() for weight in layer.parameters()}) == 1


@on_cuda
def test_the_largest_of_overlapping_squares_hands_on_the_same_gradient_again() -> None:
    """And so do the k largest of a series, by `gather`: some hundred thousand sums on one device."""
    x = torch.randn(64, 64, 2048, device="cuda").relu_()
    for forward in (
        lambda x: torch.nn.functional.max_pool1d(x, 3, stride=2, padding=1),
        lambda x: x.gather(2, x.detach().sort(dim=2, descending=True, stable=True).indices[:, :, :512]),
    ):
        gradients = []
        for _ in range(3):
            given = x.clone().requires_grad_()
            with plain.repeatable("cuda"):
                forward(given).cos().sum().backward()
            gradients.append(given.grad)
        assert all(torch.equal(gradients[0], other) for other in gradients[1:])


@on_cuda
def test_workers_say_that_they_cannot_train_where_this_process_has_trained_before() -> None:
    """Where there is a device, PyTorch starts threads for it with the first gradient, and threads are not forked."""
    place = world_of(Work(BY_LABEL["leaf_cnn"], BATCH), SAMPLES)
    wave = wave_of(place, 0.01, BATCH)
    outcome(Serial(place.table, place.dataset), place, wave)
    workers = Processes(place.table, place.dataset, workers=2)
    try:
        with pytest.raises(UserError, match="this process has trained before, on a machine with a GPU"):
            outcome(workers, place, wave)
    finally:
        workers.close()


# -- anywhere -------------------------------------------------------------------------------------------------------


def test_every_registered_model_of_layers_is_tried() -> None:
    assert {model.keys["name"] for model in MODELS} >= set(registry.names("models")) - {"declared", "torch_module"}


@pytest.mark.parametrize("label", mostly_long(BY_LABEL, now=ON_THE_CPU))
def test_nothing_strays_to_another_device(label: str) -> None:
    work = Work(BY_LABEL[label], 2)
    place = world_of(work, 2)
    with FakeTensorMode(allow_non_fake_inputs=True):
        made = outcome(InThePlainLoopOnMeta(place.table, place.dataset), place, wave_of(place, 0.01, 2))
    assert {f"sum.{part}" for part in place.table.parts} <= made.keys()


@pytest.mark.parametrize("label", FOR_SERIES)
def test_weights_for_series_are_laid_together_where_they_have_come_to_lie(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What PyTorch does then, it can only do where they are trained."""
    seen: list[set[str]] = []
    monkeypatch.setattr(
        torch.nn.RNNBase,
        "flatten_parameters",
        lambda layer: seen.append({weight.device.type for weight in layer._flat_weights}),
    )
    place = world_of(Work(BY_LABEL[label], BATCH), SAMPLES)
    trainer = PlainTrainer(place.table, place.dataset, "cpu", "float64")
    seen.clear()
    trainer._module.to("meta")
    assert seen and all(places == {"meta"} for places in seen)
