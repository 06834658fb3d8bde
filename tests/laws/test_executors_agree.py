"""Every executor trains as a reference does, but for rounding, and rounding hurts it no more than the reference.

The reference is the plain loop on PyTorch's own modules. An executor may train clients together, keep weights in
factors, or use other kernels, as those of the plain loop do too. Its error is measured against the reference in float64
from the same numbers, and compared with the reference's own error in float32 on the same wave: in the median over waves
it is at most that error on models with large dense layers, at most 1.5 times it on others, and nowhere more than 3
times it, unless the reference in float64 comes so near to a rectifier's kink that chance decides. In float64 nothing
but rounding is left, so there every tensor agrees to nine digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count, product
from statistics import median

import pytest
import torch
from pushed import Pushed
from random_waves import (
    CLASSES,
    CLIENTS,
    KINK,
    Bounded,
    Comparison,
    Drifting,
    Errors,
    Step,
    Wave,
    World,
    disagreement,
    kinks_seen,
    outcome,
    random_wave,
    world,
)
from small_models import residual, series
from tiers import FULL, examples, mostly_long
from torch import nn

from fedsim import registry
from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors import wave as executors_wave
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.executors.trainer import Deliver, TensorDict, as_made
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.models.extractors import convolutional_extractor
from fedsim.models.fedgs_cnn import FedgsCnn
from fedsim.models.gru import GruModel
from fedsim.models.hfedms_cnn import HfedmsCnn
from fedsim.models.layers import BatchNorm2d, Conv2d, Dropout, Flatten, Linear, ReLU
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.lstm import LstmModel
from fedsim.models.mlp import Mlp
from fedsim.models.small_cnn import SmallCnn
from fedsim.models.softmax import Softmax
from fedsim.models.table import LayerTable, ModelTable

MOST_WITH_LARGE_DENSE_LAYERS, MOST_ELSEWHERE, MOST_OF_ONE_WAVE = 1.0, 1.5, 3.0
LARGE = 2**16  # weights of a dense layer
EXACT = 1e-9
SMALL_IMAGES, IMAGES = (1, 8, 8), (1, 28, 28)


def hfedms_cut_down() -> LayerTable:
    """Its five layers on smaller images: two convolutions, 128-512 and 512-100, and the classifier."""
    shape = (1, 16, 16)
    return LayerTable(
        input_shape=shape,
        extractor=(
            *convolutional_extractor(shape, channels=(4, 8), hidden=512),
            Linear("fc2", inputs=512, outputs=100),
            ReLU("relu4"),
        ),
        classifier=(Linear("fc3", inputs=100, outputs=CLASSES),),
    )


def normalised() -> LayerTable:
    """Layers that only the plain loop knows."""
    return LayerTable(
        input_shape=SMALL_IMAGES,
        extractor=(
            Conv2d("conv", 1, 3, kernel=3),
            BatchNorm2d("bn", 3),
            ReLU("relu"),
            Flatten("flatten"),
            Dropout("dropout", 0.3),
        ),
        classifier=(Linear("fc", 108, CLASSES),),
    )


MODELS: dict[str, Callable[[], LayerTable]] = {
    "softmax": lambda: Softmax().table(SMALL_IMAGES, CLASSES),
    "regression": lambda: Mlp(hidden=(32,)).table(SMALL_IMAGES, 1),
    "mlp": lambda: Mlp(hidden=(32, 16)).table(SMALL_IMAGES, CLASSES),
    "wide mlp": lambda: Mlp(hidden=(1024,)).table(SMALL_IMAGES, CLASSES),
    "small_cnn": lambda: SmallCnn(channels=(4, 8), hidden=16).table(SMALL_IMAGES, CLASSES),
    "leaf_cnn": lambda: LeafCnn().table(IMAGES, CLASSES),
    "hfedms_cnn cut down": hfedms_cut_down,
    "normalised": normalised,
    "fedgs_cnn": lambda: FedgsCnn().table(IMAGES, CLASSES),
    "hfedms_cnn": lambda: HfedmsCnn().table(IMAGES, CLASSES),
}
SEEDS = {"fedgs_cnn": range(5), "hfedms_cnn": range(5)}
"""Of the waves of the largest models; of each other one, 0 to 11."""


FUSED: dict[str, Callable[[], LayerTable]] = {
    **{f"residual {how}": partial(residual, how, CLASSES) for how in ("batch", "group", "none")},
    **{f"series {how}": partial(series, how, CLASSES) for how in ("batch", "group", "none")},
    "gru": lambda: GruModel(hidden=16).table((3, 6), CLASSES),
    "lstm": lambda: LstmModel(hidden=32, layers=2).table((3, 6), CLASSES),
    **{name: MODELS[name] for name in ("normalised", "regression", "wide mlp", "small_cnn", "leaf_cnn")},
}
"""Those whose layers the plain loop has machine code for, or computes in another order; only it knows most of them."""


def each_model_but(*long: str) -> pytest.MarkDecorator:
    """Those named take longest, and one with the same kinds of layers is among the others."""
    return pytest.mark.parametrize("model", mostly_long(MODELS, now=[name for name in MODELS if name not in long]))


EXECUTORS: dict[str, type[TorchExecutor]] = {
    name: registry.load("executors", name) for name in registry.names("executors")
}
THEIR_OWN_WAY = [name for name, executor in EXECUTORS.items() if executor.trainer is not PlainTrainer]
each_executor = pytest.mark.parametrize("executor", THEIR_OWN_WAY)


def drawn(model: str, seed: int) -> tuple[World, Wave]:
    """A world and a wave in it; the largest models have few clients, or the test would take minutes."""
    place = world((MODELS | FUSED)[model](), seed=seed, regression=model == "regression")
    large = {"most_clients": 3, "most_epochs": 1} if model in SEEDS else {}
    return place, random_wave(place, seed=seed, **large)


def bound(table: LayerTable) -> float:
    """On the median of the ratios of a model's waves."""
    dense = [layer for part in table.layers.values() for layer in part if isinstance(layer, Linear)]
    large = any(layer.inputs * layer.outputs >= LARGE for layer in dense)
    return MOST_WITH_LARGE_DENSE_LAYERS if large else MOST_ELSEWHERE


def broken(ratios: Sequence[Errors], most: float) -> list[str]:
    """What the law says against these ratios of errors; nothing when they obey it."""
    found = []
    for what in ("clients", "total"):
        numbers = [number for ratio in ratios if (number := getattr(ratio, what)) is not None]
        if median(numbers) > most:
            found.append(f"{what}: {median(numbers):.3g} times the reference's error in the median, at most {most}")
        smooth = [number for ratio in ratios if not ratio.at_kink and (number := getattr(ratio, what)) is not None]
        if max(smooth, default=0.0) > MOST_OF_ONE_WAVE:
            found.append(f"{what}: {max(smooth):.3g} times the reference's error in one wave")
    if 2 * sum(ratio.at_kink for ratio in ratios) > len(ratios):
        found.append("most of these waves are at a kink, so they say little")
    return found


def test_what_chance_decides_at_a_kink_is_told_from_an_error() -> None:
    """One such wave says nothing, and most of them are no proof."""
    chance, sound = Errors(50.0, 50.0, at_kink=True), Errors(1.0, 1.0)
    assert broken([chance, sound, sound], 1.0) == []
    assert broken([replace(chance, at_kink=False), sound, sound], 1.0) != []
    assert broken([chance, chance, sound], 100.0) != []
    with kinks_seen() as distances:
        nn.ReLU()(torch.tensor([1.0, -1.0, 2.0**-22])), nn.ReLU()(torch.tensor([1.0, -1.0, 2.0**-20]))
    assert [distance < KINK for distance in distances] == [True, False]


@pytest.mark.drawn
@each_executor
@each_model_but("softmax", "regression", "small_cnn", "wide mlp", "normalised", "leaf_cnn", "fedgs_cnn", "hfedms_cnn")
def test_updates_and_sums_are_as_near_to_float64_as_the_references(executor: str, model: str) -> None:
    ratios = []
    for seed in SEEDS.get(model, range(12 if FULL else 8)):
        place, wave = drawn(model, seed)
        ratios.append(Comparison(EXECUTORS[executor], place).ratios(wave))
    assert broken(ratios, bound(place.table)) == []


@pytest.mark.drawn
@each_executor
@each_model_but("softmax", "mlp", "leaf_cnn", "fedgs_cnn", "hfedms_cnn")
def test_in_float64_every_tensor_is_the_references(executor: str, model: str) -> None:
    if "float64" not in EXECUTORS[executor].trainer.precisions:
        pytest.skip(f"{executor} does not compute in float64")
    for seed in range(1 if model in SEEDS else examples(12)):
        assert disagreement(EXECUTORS[executor], *drawn(model, 100 + seed)) <= EXACT


@pytest.mark.drawn
@each_executor
@pytest.mark.parametrize(
    "model", mostly_long(["mlp", "wide mlp", "small_cnn", "hfedms_cnn cut down"], now=["small_cnn"])
)
def test_they_agree_after_every_step(executor: str, model: str) -> None:
    """Waves of clients whose training is 1, 2 or 3 mini-batches long, by every kind of recipe."""
    ratios = []
    for seed, steps in product(range(examples(8)), (1, 2, 3)):
        place = world(MODELS[model](), seed=seed, samples=[5 * steps] * CLIENTS)
        wave = random_wave(place, seed=seed, chained=False)
        wave = replace(wave, training={**wave.training, "batch_size": 5, "epochs": 1})
        ratios.append(Comparison(EXECUTORS[executor], place).ratios(wave))
        if "float64" in EXECUTORS[executor].trainer.precisions:
            assert disagreement(EXECUTORS[executor], place, wave) <= EXACT, f"after {steps} steps"
    assert broken(ratios, bound(place.table)) == []


@pytest.mark.drawn
@each_executor
@pytest.mark.parametrize(
    "model", mostly_long(["mlp", "wide mlp", "small_cnn", "hfedms_cnn cut down"], now=["wide mlp", "small_cnn"])
)
def test_they_agree_where_each_client_is_pushed_its_own_way(executor: str, model: str) -> None:
    """With a pull and without, by every kind of recipe, alone and along chains."""
    ratios = []
    for seed in range(12 if FULL else 6):
        place = world(MODELS[model](), seed=seed)
        wave = random_wave(place, seed=seed, objective=Pushed(strength=0.05, mu=0.3 * (seed % 2)))
        ratios.append(Comparison(EXECUTORS[executor], place).ratios(wave))
        if "float64" in EXECUTORS[executor].trainer.precisions:
            assert disagreement(EXECUTORS[executor], place, wave) <= EXACT, seed
    assert broken(ratios, bound(place.table)) == []


OPTIONS = [
    {"momentum": momentum, "weight_decay": decay, "learning_rate": 0.05, "batch_size": size, "epochs": 1}
    for momentum, decay, size in product((0.0, 0.5), (0.0, 0.1), (4, 1))
]
RECIPES: dict[str, Objective] = {
    "plain": Plain(),
    "proximal": Proximal(mu=0.3),
    "drifting": Drifting(strength=0.5),
    "bounded": Bounded(strength=0.1),
    "pushed": Pushed(strength=0.1),
    "pushed and pulled": Pushed(strength=0.1, mu=0.3),
}


OF_EACH_KIND = [
    ("small_cnn", "drifting"),
    ("small_cnn", "bounded"),
    ("small_cnn", "pushed"),
    ("wide mlp", "plain"),
    ("wide mlp", "proximal"),
    ("wide mlp", "pushed and pulled"),
]


@each_executor
@pytest.mark.parametrize(
    ("model", "recipe"),
    mostly_long(product(("mlp", "wide mlp", "small_cnn", "hfedms_cnn cut down"), RECIPES), now=OF_EACH_KIND),
)
def test_every_recipe_is_followed_along_every_kind_of_chain(executor: str, model: str, recipe: str) -> None:
    """A client twice in a row, with its memory; a part that starts anew; lone samples; two models to start from."""
    if "float64" not in EXECUTORS[executor].trainer.precisions:
        pytest.skip(f"{executor} does not compute in float64")
    objective = RECIPES[recipe]
    place = world(MODELS[model](), seed=5, samples=[6, 3, 5, 4, 1, 2, *[1] * (CLIENTS - 6)])
    remembers = bool(objective.remembers)
    last = (*place.table.parts, *(f"state.{name}" for name in objective.remembers))
    chains = (
        (Step(0), Step(0, remembers_before=remembers), Step(1, last, memory=7 if remembers else None)),
        (Step(2), Step(3, last, restarts=("classifier",))),
        (Step(4, last), Step(5, restarts=("extractor",)), Step(0)),
        (Step(4, ("extractor",)),),
        (Step(1, last),),
    )
    for options in OPTIONS:
        wave = Wave(options, objective, chains, bases=(0, 1, 0, 0, 1), weights=(0.3, 0.1, 0.25, 0.2, 0.15))
        assert disagreement(EXECUTORS[executor], place, wave) <= EXACT, options


@pytest.mark.drawn
@pytest.mark.parametrize("model", mostly_long(FUSED, now=["residual batch", "series group", "lstm", "wide mlp"]))
def test_the_plain_loops_own_kernels_are_as_near_to_float64_as_the_references(model: str) -> None:
    """But for one wave: where two numbers are nearly equal, rounding may decide which one is pooled or rectified."""
    ratios = []
    for seed in range(12 if FULL else 8):
        place, wave = drawn(model, seed)
        ratios.append(Comparison(Serial, place).ratios(wave))
    ratios.sort(key=lambda errors: errors.total)
    assert broken(ratios[:-1], bound(place.table)) == []


@pytest.mark.drawn
@pytest.mark.parametrize("executor", [name for name in EXECUTORS if name not in THEIR_OWN_WAY])
@pytest.mark.parametrize("model", mostly_long(["normalised", "residual batch", "lstm"], now=["residual batch"]))
def test_executors_of_the_plain_loop_make_its_bits_in_any_process(executor: str, model: str) -> None:
    for seed in range(4 if FULL else 2):
        place, wave = drawn(model, seed)
        mine = EXECUTORS[executor](place.table, place.dataset, workers=2 if EXECUTORS[executor].parallel else 1)
        found, expected = (outcome(one, place, wave) for one in (mine, Serial(place.table, place.dataset)))
        mine.close()
        assert all(
            torch.equal(found[output][name], tensor)
            for output, tensors in expected.items()
            for name, tensor in tensors.items()
        )


# -- what the law sees ---------------------------------------------------------------------------------------------

Change = Callable[[executors_wave.Wave], executors_wave.Wave]


def each_training(change: Callable[[executors_wave.Training], executors_wave.Training]) -> Change:
    return lambda wave: replace(wave, trainings=tuple(map(change, wave.trainings)))


def without_option(name: str) -> Change:
    def change(training: executors_wave.Training) -> executors_wave.Training:
        options = training.about.training.model_copy(update={name: 0.0})
        return replace(training, about=replace(training.about, training=options))

    return each_training(change)


def without_objective(training: executors_wave.Training) -> executors_wave.Training:
    return replace(training, about=replace(training.about, objective=Plain()))


def without_memory(training: executors_wave.Training) -> executors_wave.Training:
    return replace(training, inputs={slot: at for slot, at in training.inputs.items() if slot.role == "model"})


def other_batches(training: executors_wave.Training) -> executors_wave.Training:
    return replace(training, stream=replace(training.stream, use=training.stream.use + 1000))


def one_start(wave: executors_wave.Wave) -> executors_wave.Wave:
    """Everybody starts where the first one starts."""
    start = wave.trainings[0].inputs
    begin = {slot: at for slot, at in start.items() if slot.role == "model"}
    return each_training(lambda training: replace(training, inputs={**training.inputs, **begin}))(wave)


def equal_weights(wave: executors_wave.Wave) -> executors_wave.Wave:
    (total,) = wave.sums
    number = len(total.weights)
    return replace(wave, sums=(replace(wave.sums[0], weights=(1 / number,) * number),))


FAULTS: dict[str, tuple[Change, Objective]] = {
    "weight decay": (without_option("weight_decay"), Plain()),
    "momentum": (without_option("momentum"), Plain()),
    "the proximal term": (each_training(without_objective), Proximal(mu=0.3)),
    "what clients remember": (each_training(without_memory), Drifting(strength=0.5)),
    "which samples come when": (each_training(other_batches), Plain()),
    "that a chain goes on, or another model to start from": (one_start, Plain()),
    "weights of the sum": (equal_weights, Plain()),
}


def wave_with_everything(place: World, objective: Objective) -> Wave:
    """The first random wave with several clients, a chain among them, and two models to start from; with options."""
    for seed in count():
        wave = random_wave(place, seed=seed)
        wanted = any(step.wanted for chain in wave.chains for step in chain)
        if wanted and max(map(len, wave.chains)) > 1 and len(wave.chains) > 3 and len(set(wave.bases)) > 1:
            break
    if isinstance(objective, Drifting):
        remembering = [
            tuple(replace(step, memory=step.client, wanted=("state.way",)) for step in chain) for chain in wave.chains
        ]
        wave = replace(wave, chains=tuple(remembering))
    training = {**wave.training, "momentum": 0.5, "weight_decay": 0.01, "batch_size": 4}
    return replace(wave, training=training, objective=objective)


@cache
def small_world() -> World:
    return world(MODELS["mlp"](), seed=1)


def forgetful(change: Change) -> type[TorchExecutor]:
    """An executor that trains another wave than it was given."""

    class Forgetful(PlainTrainer):
        def train(
            self, wave: executors_wave.Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
        ) -> list[dict[str, TensorDict]]:
            return super().train(change(wave), values, deliver)

    return type("Forgetting", (Serial,), {"trainer": Forgetful})


@pytest.mark.parametrize("term", mostly_long(FAULTS, now=["the proximal term", "weights of the sum"]))
def test_the_law_sees_what_is_forgotten(term: str) -> None:
    change, objective = FAULTS[term]
    wave = wave_with_everything(small_world(), objective)
    assert disagreement(forgetful(change), small_world(), wave) > 1000 * EXACT
    assert broken([Comparison(forgetful(change), small_world()).ratios(wave)], MOST_ELSEWHERE) != []
    assert broken([Comparison(forgetful(lambda same: same), small_world()).ratios(wave)], 1.0) == []


def test_the_law_sees_a_last_batch_that_is_filled_up() -> None:
    class Filling(PlainTrainer):
        def train(
            self, wave: executors_wave.Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
        ) -> list[dict[str, TensorDict]]:
            self._size = wave.trainings[0].about.training.batch_size
            return super().train(wave, values, deliver)

        def _loss(self, scores: torch.Tensor, y: torch.Tensor, reduction: str) -> torch.Tensor:
            return super()._loss(scores, y, "sum") / self._size

    executor = type("FillingUp", (Serial,), {"trainer": Filling})
    wave = wave_with_everything(small_world(), Plain())
    assert disagreement(executor, small_world(), wave) > 1000 * EXACT
    assert broken([Comparison(executor, small_world()).ratios(wave)], MOST_ELSEWHERE) != []


def test_the_law_sees_single_precision_where_double_is_asked_for() -> None:
    class Single(PlainTrainer):
        def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str, precision: str) -> None:
            super().__init__(table, dataset, torch_device, "float32")

    wave = wave_with_everything(small_world(), Plain())
    assert disagreement(type("InSingle", (Serial,), {"trainer": Single}), small_world(), wave) > EXACT
