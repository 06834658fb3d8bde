"""A group that comes again is played from a recording, and comes to the same bits as operation by operation.

Where there is no CUDA device, tapes stand in for CUDA graphs; what a graph cannot record is looked for with torch's
fake tensors, which have a device and no numbers.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import pytest
import torch
from nodes import training_of
from random_waves import (
    Step,
    Tensors,
    Wave,
    World,
    disagreement,
    outcome,
    random_wave,
    world,
)
from stacked import MODELS, Elsewhere, OnMeta, Stacked, StackedTrainer, on_cuda
from tapes import Tape, TapeRecorder
from tiers import FULL, examples, mostly_long
from torch._subclasses.fake_tensor import FakeTensorMode

from fedsim.kernel.streams import Stream
from fedsim.learning.batches import BatchSizes
from fedsim.learning.executors import matrix
from fedsim.learning.executors.batched import low_rank, recordings, trainer
from fedsim.learning.executors.batched.course import Stage
from fedsim.learning.executors.batched.cuda_graphs import CudaRecorder
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.batched.group import Group
from fedsim.learning.executors.batched.recordings import MOST, MOST_SEEN, STALE, Recordings, kind_of
from fedsim.learning.executors.batched.samples import ResidentSamples
from fedsim.learning.executors.wave import Training
from fedsim.learning.graph import Node
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.operation import Value

SEEDS, SEEDS_WITHOUT_NUMBERS = 12, 5
EXACT = 1e-12
SAMPLES = [7] * 12

each_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(autouse=True)
def only_operations_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code of our own, for the CPU, is on no tape."""
    monkeypatch.setattr(matrix, "kernels_for", lambda *_, **__: None)
    monkeypatch.setattr(low_rank, "correction_kernel", lambda *_: None)


class Recorder(TapeRecorder):
    """Counts from 0 in each test."""


@pytest.fixture(autouse=True)
def counted_from_nothing() -> None:
    Recorder.recorded = Recorder.played = 0


class RecordedTrainer(StackedTrainer):
    recorder: ClassVar[Any] = Recorder


class Recorded(Batched):
    """As on a CUDA device, on the CPU."""

    trainer = RecordedTrainer


def place_of(model: str, seed: int) -> World:
    return world(MODELS[model](), seed=seed, samples=SAMPLES, regression=model == "regression")


def another_of_its_kind(place: World, wave: Wave) -> tuple[World, Wave]:
    """Other models to begin with, and other clients, who have as many samples each."""
    clients = len(SAMPLES)
    chains = [[replace(step, client=(step.client + 5) % clients) for step in chain] for chain in wave.chains]
    return replace(place, bases=place.bases[::-1]), replace(wave, chains=tuple(map(tuple, chains)))


def same_bits(found: dict[str, Tensors], expected: dict[str, Tensors]) -> bool:
    assert found.keys() == expected.keys()
    return all(
        torch.equal(found[output][name], tensor) for output, made in expected.items() for name, tensor in made.items()
    )


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("precision", "model"),
    mostly_long(
        product(["float32", "float64"], MODELS),
        now=[("float32", "two convolutions"), ("float32", "large dense layers"), ("float32", "regression")],
    ),
)
def test_what_is_played_has_the_bits_of_what_is_done_operation_by_operation(model: str, precision: str) -> None:
    for seed in range(SEEDS if FULL else 2):
        place = place_of(model, seed)
        recorded, stacked = (kind(place.table, place.dataset, precision=precision) for kind in (Recorded, Stacked))
        wave, before = random_wave(place, seed=seed), Recorder.played
        turned = another_of_its_kind(place, wave)
        expected = [outcome(stacked, *given) for given in ((place, wave), turned)]
        for again in range(2):
            assert same_bits(outcome(recorded, place, wave), expected[0]), again
            assert same_bits(outcome(recorded, *turned), expected[1]), again
        groups = len(set(wave.bases))
        linear = isinstance(wave.objective, Plain | Proximal)
        assert Recorder.played - before == (3 * groups if linear else 0)


class Counted(CudaRecorder):
    """Counts CUDA graphs that are played."""

    played = 0

    def record(self, work: Any) -> Any:
        made, play = super().record(work)

        def counted() -> None:
            Counted.played += 1
            play()

        return made, counted


class CountedTrainer(StackedTrainer):
    recorder: ClassVar[Any] = Counted


class OnCuda(Elsewhere):
    trainer = CountedTrainer


@on_cuda
@each_model
def test_on_a_device_what_is_played_has_the_bits_of_what_is_done_operation_by_operation(model: str) -> None:
    Counted.played = 0
    for seed in range(SEEDS):
        place = place_of(model, seed)
        recorded, wave = OnCuda(place.table, place.dataset), random_wave(place, seed=seed)
        turned = another_of_its_kind(place, wave)
        for given in ((place, wave), turned):
            expected = outcome(OnCuda(place.table, place.dataset), *given)  # the first of its kind there
            assert all(same_bits(outcome(recorded, *given), expected) for _ in range(3))
    assert Counted.played >= SEEDS


@pytest.mark.drawn
def test_weights_grow_the_same_where_a_device_is_not_asked_by_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "is_cpu", property(lambda tensor: False), raising=False)
        for seed in range(examples(SEEDS)):
            place = place_of("large dense layers", seed)
            assert disagreement(Recorded, place, random_wave(place, seed=seed)) <= EXACT


def uniform(place: World, seed: int, **changes: Any) -> Wave:
    """A wave that can be recorded, of one kind whatever the *seed*."""
    wave = random_wave(place, seed=1, chained=False)
    clients = [(seed + at) % len(SAMPLES) for at in range(len(wave.chains))]
    chains = [[Step(client, wanted=place.table.parts)] for client in clients]
    wave = replace(wave, objective=Plain(), bases=(0,) * len(chains), chains=tuple(map(tuple, chains)))
    return replace(wave, training={**wave.training, **changes})


def test_a_kind_is_recorded_once_and_then_played() -> None:
    place = place_of("two convolutions", 1)
    recorded = Recorded(place.table, place.dataset)
    counts = []
    for seed in range(4):
        outcome(recorded, place, uniform(place, seed))
        counts.append((Recorder.recorded, Recorder.played))
    assert counts == [(0, 0), (1, 1), (1, 2), (1, 3)]


class Keeping(Recorded):
    """Keeps what it has made."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kept: list[list[torch.Tensor]] = []

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Value]]:
        made = super().compute(chunk)
        self.kept.append([tensor for outputs in made for part in outputs.values() for tensor in part.values()])
        return made


def test_what_was_made_before_is_not_written_over() -> None:
    place = place_of("two convolutions", 1)
    recorded = Keeping(place.table, place.dataset)
    for seed in range(3):
        outcome(recorded, place, uniform(place, seed))
    first, *others = ({tensor.untyped_storage()._cdata for tensor in kept} for kept in recorded.kept)
    assert Recorder.played == 2
    assert all(len(memory) == len(first) and first.isdisjoint(memory) for memory in others)
    assert others[0].isdisjoint(others[1])


def group_of(**changes: Any) -> Group:
    """One chain of two trainings, the second of which restarts a part."""
    options = {"learning_rate": changes.get("learning_rate", 0.1), "batch_size": 3}
    about = training_of(place_of("no convolution", 1).dataset, 0, options, changes.get("objective", Plain()))
    training = Training(about, Stream(1, "batches", 0, 0), {}, ())
    first = Stage(changes.get("number", 0), training, frozenset(), frozenset(changes.get("needed", ())))
    last = Stage(1, training, frozenset(changes.get("restarts", ["classifier"])), frozenset())
    return Group(((first, last),), {}, changes.get("summed", ("extractor",)), changes.get("weights", {1: 0.5}))


def test_whatever_operations_depend_on_makes_another_kind() -> None:
    sizes = dict.fromkeys((0, 1, 5), BatchSizes(samples=5, batch_size=3, epochs=1))
    kinds = [
        kind_of(group_of(), sizes),
        kind_of(group_of(), sizes | {1: BatchSizes(samples=5, batch_size=4, epochs=1)}),
        kind_of(group_of(number=5), sizes),
        kind_of(group_of(needed=["extractor"]), sizes),
        kind_of(group_of(restarts=[]), sizes),
        kind_of(group_of(summed=("classifier",)), sizes),
        kind_of(group_of(weights={1: 0.25}), sizes),
        kind_of(group_of(weights=None), sizes),
        kind_of(group_of(learning_rate=0.2), sizes),
        kind_of(group_of(objective=Proximal(mu=0.1)), sizes),
    ]
    assert len(set(kinds)) == len(kinds)
    assert kind_of(group_of(), sizes) == kinds[0]


def test_groups_of_one_wave_are_told_apart_by_their_trainings() -> None:
    """They are alike but for the model that they begin with."""
    place = place_of("no convolution", 1)
    recorded, stacked = (kind(place.table, place.dataset) for kind in (Recorded, Stacked))
    wave = uniform(place, 0)
    four = replace(wave, chains=wave.chains[:4], bases=(0, 1, 0, 1), weights=(0.25,) * 4)
    for _ in range(3):
        assert same_bits(outcome(recorded, place, four), outcome(stacked, place, four))
    assert (Recorder.recorded, Recorder.played) == (2, 4)


def kinds(place: World, number: int) -> list[Wave]:
    return [uniform(place, 0, learning_rate=0.01 + 0.0001 * each) for each in range(number)]


def test_more_kinds_than_are_kept_leave_those_that_are_played_alone() -> None:
    place = place_of("no convolution", 1)
    recorded = Recorded(place.table, place.dataset)
    for _ in range(3):
        for wave in kinds(place, MOST + 1):
            outcome(recorded, place, wave)
    assert (Recorder.recorded, Recorder.played) == (MOST, 2 * MOST)


@pytest.mark.long
def test_a_recording_that_is_played_no_more_makes_room() -> None:
    place = place_of("no convolution", 1)
    recorded = Recorded(place.table, place.dataset)
    waves = kinds(place, MOST + 1)
    for wave in waves[:MOST] * 2:
        outcome(recorded, place, wave)
    for _ in range(STALE - MOST):
        outcome(recorded, place, waves[0])
    for number in (MOST, MOST, MOST + 1):  # the second one was played STALE - 1, STALE, STALE + 1 groups ago
        outcome(recorded, place, waves[MOST])
        assert Recorder.recorded == number
    outcome(recorded, place, waves[1])  # which is gone; the third one makes room
    assert Recorder.recorded == MOST + 2


def test_a_kind_that_came_long_ago_comes_for_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_SEEN > 4 * STALE
    monkeypatch.setattr(recordings, "MOST_SEEN", 2)
    place = place_of("no convolution", 1)
    recorded = Recorded(place.table, place.dataset)
    for wave in [*kinds(place, 3), *kinds(place, 1)]:
        outcome(recorded, place, wave)
    assert Recorder.recorded == 0


def test_a_long_training_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of("no convolution", 1)
    wave = uniform(place, 0, batch_size=7, epochs=3)
    for most, number in ((2, 0), (3, 1)):
        monkeypatch.setattr(recordings, "MOST_STEPS", most)
        Recorder.recorded = 0
        recorded = Recorded(place.table, place.dataset)
        for _ in range(2):
            outcome(recorded, place, wave)
        assert Recorder.recorded == number


def test_a_trainer_that_nobody_holds_is_gone() -> None:
    """And with it what lies on the device, though garbage is not collected."""
    place = place_of("two convolutions", 1)
    trainer = RecordedTrainer(place.table, place.dataset, "cpu", "float32")
    gone = weakref.ref(trainer)
    gc.disable()
    try:
        del trainer
        assert gone() is None
    finally:
        gc.enable()


def test_on_cuda_graphs_record() -> None:
    place = place_of("two convolutions", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "CudaRecorder", Recorder)
        patch.setattr(trainer, "ResidentSamples", lambda dataset, dtype, _: ResidentSamples(dataset, dtype, "cpu"))
        found = trainer.BatchedTrainer(place.table, place.dataset, "cuda", "float32")._recordings
    assert isinstance(found, Recordings)
    assert trainer.BatchedTrainer(place.table, place.dataset, "cpu", "float32")._recordings is None


class Refusing:
    def record(self, work: Any) -> Any:
        try:
            work()
            raise RuntimeError("operation not permitted when stream is capturing\nand more")
        finally:
            raise RuntimeError("operation failed due to a previous error during capture")


def test_what_cannot_be_recorded_is_said_and_done_operation_by_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordedTrainer, "recorder", Refusing)
    place = place_of("two convolutions", 1)
    recorded, stacked = (kind(place.table, place.dataset) for kind in (Recorded, Stacked))
    outcome(recorded, place, uniform(place, 0))
    with pytest.warns(UserWarning, match="not as a CUDA graph: operation not permitted when stream is capturing$"):
        found = outcome(recorded, place, uniform(place, 1))
    assert same_bits(found, outcome(stacked, place, uniform(place, 1)))
    assert same_bits(outcome(recorded, place, uniform(place, 2)), outcome(stacked, place, uniform(place, 2)))


# -- what a CUDA graph cannot record --------------------------------------------------------------------------------


class StrictTape(Tape):
    """Everything is on the torch device; that nobody asks for a number there is seen to by fake tensors."""

    def check(self, function: Any, touched: list[torch.Tensor]) -> None:
        super().check(function, touched)
        if any(tensor.device.type != "meta" for tensor in touched):
            raise RuntimeError("something comes from the host, or goes there")


class StrictRecorder(Recorder):
    tape = StrictTape


class StrictTrainer(StackedTrainer):
    recorder: ClassVar[Any] = StrictRecorder


class StrictOnMeta(OnMeta):
    trainer = StrictTrainer


def play_on_meta(place: World, wave: Wave) -> int:
    """How often something was played."""
    StrictRecorder.played = 0
    with FakeTensorMode(allow_non_fake_inputs=True):
        executor = StrictOnMeta(place.table, place.dataset)
        for _ in range(2):
            outcome(executor, place, wave)
    return StrictRecorder.played


@pytest.mark.drawn
@pytest.mark.parametrize("model", mostly_long(MODELS, now=["two convolutions"]))
def test_a_graph_can_record_every_wave_of_a_linear_objective(model: str, recwarn: pytest.WarningsRecorder) -> None:
    """Without numbers a wave takes seconds, so `make test` tries the first one only."""
    places = [place_of(model, seed) for seed in range(SEEDS_WITHOUT_NUMBERS)]
    waves = [(place, random_wave(place, seed=seed)) for seed, place in enumerate(places)]
    linear = [(place, wave) for place, wave in waves if isinstance(wave.objective, Plain | Proximal)]
    for place, wave in linear if FULL else linear[:1]:
        assert play_on_meta(place, wave) == len(set(wave.bases))
    assert not [warning for warning in recwarn if "CUDA" in str(warning.message)]


TRANSFERS = {
    "number": lambda ids: float(ids.sum()),
    "to the device": lambda ids: ids + torch.tensor([1]).to("meta"),
    "from the device": lambda ids: ids.cpu(),
}


@pytest.mark.parametrize("transfer", mostly_long(TRANSFERS, now=["from the device"]))
def test_what_a_graph_cannot_record_is_seen(transfer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = recordings._Recording._train

    def train(recording: Any) -> None:
        own(recording)
        TRANSFERS[transfer](recording._ids)

    monkeypatch.setattr(recordings._Recording, "_train", train)
    place = place_of("two convolutions", 1)
    with pytest.warns(UserWarning, match="host" if "device" in transfer else "scalar"):
        assert play_on_meta(place, uniform(place, 0)) == 0
