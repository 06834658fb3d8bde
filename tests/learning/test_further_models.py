"""Objectives that receive a further model and send one, and what all objectives are told of their training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import small_learner
import torch
from learned import mean_of, train, update
from nodes import training_of
from small_learner import CLASSES, CLIENTS, SAMPLES, TRAINING, data, small, table, tensors

from fedsim.data.captures import Capture
from fedsim.data.stream.settings import StreamSettings
from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.batches import batches
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.semantics import rows_of, shuffled
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.learner import Model
from fedsim.learning.objectives.objective import Given, Objective, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.operation import Inputs, Operation

ROUNDS = 3
EXACT = 1e-12
EXECUTORS: dict[str, Callable[..., TorchExecutor]] = {
    "serial": Serial,
    "processes": lambda *given, **options: Processes(*given, workers=2, **options),
    "batched": Batched,
    "batched in two": lambda *given, **options: Batched(*given, workers=2, **options),
}

each_executor = pytest.mark.parametrize("kind", EXECUTORS)


class Controlled(Objective):
    """Control variates (SCAFFOLD: Karimireddy et al., ICML 2020, algorithm 1, option II)."""

    name: Literal["controlled"] = "controlled"
    receives: ClassVar[tuple[str, ...]] = ("control",)
    remembers: ClassVar[tuple[str, ...]] = ("own",)
    sends: ClassVar[tuple[str, ...]] = ("own",)
    reads_start: ClassVar[bool] = True

    def add_gradient(self, gradients: Tensors, weights: Tensors, given: Given) -> None:
        own = given.state.get("own", {})
        for name, gradient in gradients.items():
            gradient.add_(given.models["control"][name])
            if own:
                gradient.sub_(own[name])

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        control, own, way = given.models["control"], given.state.get("own", {}), given.steps * TRAINING.learning_rate
        moved = {name: (start - weights[name]) / way - control[name] for name, start in given.start.items()}
        return {"own": {name: change + own[name] if own else change for name, change in moved.items()}}


@dataclass(frozen=True)
class MeanControl(Operation):
    """The mean of what clients have sent, as parts of a model; at first 0.01 of the model itself."""

    name: ClassVar[str] = "mean_control"

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        if "sent" not in inputs:
            return {part: {name: 0.01 * one for name, one in own.items()} for part, own in inputs.model("like").items()}
        sent, parts = inputs.each("sent"), inputs.model("like")
        return {
            part: {name: sum(one[f"{part}.{name}"] for one in sent) / len(sent) for name in own}
            for part, own in parts.items()
        }


def controlled(learner: Any) -> dict[str, torch.Tensor]:
    """The last model, the last control, and what each client remembers."""
    model = learner.initial_model()
    control = learner.apply(MeanControl(), {"like": model}, model, round_number=0)
    own: list[Model] = [{}] * CLIENTS
    for use in range(ROUNDS):
        updates = []
        for client in range(CLIENTS):
            further = {"control": control}
            options = {"use": use, "round_number": use + 1, "state": own[client], "further": further}
            trained = train(learner, model, client, Controlled(), **options)
            own[client] = trained.state
            updates.append(update(client, trained.model, SAMPLES))
        model = mean_of(learner, model, updates, round_number=use + 1)
        control = learner.apply(MeanControl(), {"like": model, "sent": own}, model, round_number=use + 1)
        learner.evaluate(model, "global", round_number=use + 1)
    found: dict[str, torch.Tensor] = {}
    for title, handles in {"model": model, "control": control, **{str(n): one for n, one in enumerate(own)}}.items():
        for handle in handles.values():
            learner._forcer.force(handle)
        found |= {f"{title}.{name}": tensor.clone() for name, tensor in tensors(handles).items()}
    return found


@pytest.fixture(scope="module")
def by_hand() -> dict[str, torch.Tensor]:
    """The same in a loop of its own: the linear model's two tensors, in double precision."""
    dataset, streams = data(), Streams(1)
    x, y = torch.tensor(dataset.x).double().flatten(1), torch.tensor(dataset.y)
    bound = (6 / (x.shape[1] + CLASSES)) ** 0.5
    drawn = bound * (2 * streams("model/init").generator().random((CLASSES, x.shape[1])) - 1)
    model = [torch.tensor(drawn.astype("float32")).double(), torch.zeros(CLASSES).double()]
    control = [0.01 * tensor for tensor in model]
    own = [[torch.zeros_like(tensor) for tensor in model] for _ in range(CLIENTS)]
    for use in range(ROUNDS):
        ends = []
        for client in range(CLIENTS):
            local, steps = [tensor.clone().requires_grad_() for tensor in model], 0
            order = streams("batches", client, use).generator()
            for ids in batches(dataset.train_ids[client], batch_size=4, epochs=2, rng=order):
                loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(x[ids], *local), y[ids])
                gradients, steps = torch.autograd.grad(loss, local), steps + 1
                with torch.no_grad():
                    for tensor, gradient, ours, all_of_us in zip(local, gradients, own[client], control, strict=True):
                        tensor -= TRAINING.learning_rate * (gradient + all_of_us - ours)
            ends.append([tensor.detach() for tensor in local])
            way = steps * TRAINING.learning_rate
            own[client] = [
                ours - all_of_us + (old - new) / way
                for ours, all_of_us, old, new in zip(own[client], control, model, ends[-1], strict=True)
            ]
        model = [torch.stack(tensors).mean(0) for tensors in zip(*ends, strict=True)]
        control = [torch.stack(tensors).mean(0) for tensors in zip(*own, strict=True)]
    names = ("classifier.fc.weight", "classifier.fc.bias")
    expected = {"model": model, "control": control, **{f"{client}.own": one for client, one in enumerate(own)}}
    return {
        f"{title}.{name}": tensor for title, some in expected.items() for name, tensor in zip(names, some, strict=True)
    }


@each_executor
def test_a_further_model_is_looked_at_and_what_is_sent_comes_from_it(
    kind: str, by_hand: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    executor = EXECUTORS[kind](table(), data(), precision="float64")
    run = small(tmp_path, executor=executor)
    found = controlled(run.learner)
    run.store.close()
    executor.close()
    assert found.keys() == by_hand.keys()
    for name, tensor in by_hand.items():
        torch.testing.assert_close(found[name], tensor, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_every_executor_of_a_family_comes_to_the_same_bits(precision: str, tmp_path: Path) -> None:
    """However many workers there are."""
    found = {}
    for kind, make in EXECUTORS.items():
        executor = make(table(), data(), precision=precision)
        run = small(tmp_path / kind, executor=executor)
        found[kind] = controlled(run.learner)
        run.store.close()
        executor.close()
    for one, other in (("serial", "processes"), ("batched", "batched in two")):
        assert all(torch.equal(found[other][name], tensor) for name, tensor in found[one].items()), other


def test_the_further_model_is_in_the_key_and_what_is_not_received_is_not(tmp_path: Path) -> None:
    run = small(tmp_path)
    learner, start = run.learner, run.learner.initial_model()
    others = [train(learner, start, client, Plain()).model for client in range(2)]

    def key(objective: Objective, **further: Model) -> str:
        return train(learner, start, 2, objective, further=further).model["classifier"].node.key

    keys = [key(Controlled(), control=other) for other in others]
    assert len({*keys, key(Plain())}) == 3
    assert key(Controlled(), control=others[0], more=others[1]) == keys[0]
    assert key(Plain(), control=others[0]) == key(Plain())
    run.store.close()


# -- how many steps there are ----------------------------------------------------------------------------------------


class Counting(Objective):
    """Notes each step that it is asked for, by what the client remembers, and remembers how many it was told of."""

    name: Literal["counting"] = "counting"
    remembers: ClassVar[tuple[str, ...]] = ("steps",)
    taken: ClassVar[Counter[float]] = Counter()

    def add_gradient(self, gradients: Tensors, weights: Tensors, given: Given) -> None:
        self.taken[given.state["client"]["v"].item()] += 1

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        return {"steps": {"v": torch.tensor(float(given.steps))}}


@dataclass(frozen=True)
class Called(Operation):
    """What a client remembers of itself: its number."""

    name: ClassVar[str] = "called"
    client: int

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        return {"client": {"v": torch.tensor(float(self.client))}}


RAGGED = (6, 3, 1)
"""Samples: 2, 1 and 1 mini-batches of at most 4 in each of 2 epochs."""


@pytest.mark.parametrize("kind", [Serial, Batched])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_objective_is_told_how_many_steps_it_has(
    kind: type[TorchExecutor], streamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = data()
    ids = tuple(own[:number] for own, number in zip(whole.train_ids, RAGGED, strict=True))
    stream = StreamSettings(samples=4) if streamed else None
    ragged = replace(whole, train_ids=ids, client_samples=np.array(RAGGED), stream=stream)
    monkeypatch.setattr(small_learner, "data", lambda: ragged)
    monkeypatch.setattr(Counting, "taken", Counter())
    run = small(tmp_path, executor=kind(table(), ragged))
    told, expected = steps_told(run.learner, streamed=streamed)
    run.store.close()
    assert told == expected
    assert Counting.taken == Counter(expected)


def steps_told(learner: Any, *, streamed: bool) -> tuple[dict[float, float], dict[float, float]]:
    """Of the clients of one wave: what each remembers, and what it must be."""
    model = learner.initial_model()
    states, updates = [], []
    for client in range(CLIENTS):
        called = learner.apply(Called(client), {"model": model}, ["client"], round_number=1)
        capture = Capture(0, 3 + 2 * client) if streamed else None  # 3, 5, 7 samples
        trained = train(learner, model, client, Counting(), state=called, capture=capture)
        states.append(trained.state["steps"])
        updates.append(update(client, trained.model, 1.0))
    learner.evaluate(mean_of(learner, model, updates), "global", round_number=1)
    for state in states:
        learner._forcer.force(state)
    expected = (2, 4, 4) if streamed else (4, 2, 2)
    return {float(n): state.value["v"].item() for n, state in enumerate(states)}, dict(enumerate(map(float, expected)))


@pytest.mark.parametrize("number", [1, 4, 7, 8])
def test_the_steps_on_rows_are_the_mini_batches_of_rows(number: int) -> None:
    about = training_of(data(), 0, TRAINING, rows=number)
    rows = rows_of(torch.zeros(number, 2), torch.zeros(number, dtype=torch.int64), None)
    made = [len(labels) for _, labels in shuffled(rows, TRAINING, Stream(1, "batches"))]
    assert list(about.sizes) == made
    assert about.sizes.steps == len(made)
