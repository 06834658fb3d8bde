"""Local objectives: exact gradients, complete keys, and memories that survive a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import torch
from small_learner import (
    CLASSES,
    CLIENTS,
    SAMPLES,
    SHAPE,
    TRAINING,
    Fragile,
    averaged_rounds,
    data,
    small,
    table,
    tensors,
)

from fedsim.kernel.streams import Streams
from fedsim.learning.batches import batches
from fedsim.learning.keyed import described
from fedsim.learning.objectives.control_variates import OWN, ControlVariates
from fedsim.learning.objectives.objective import Given, Objective, State, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.rules.scaffold import CONTROL

ROUNDS = 4
WAVE_ENDS = [2, 3, 5, 6, 8, 9, 11, 12]  # trainings done when the two sums of each round's three models are


def random_tensors(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "a.weight": torch.randn(3, 4, generator=generator, dtype=torch.float64),
        "a.bias": torch.randn(3, generator=generator, dtype=torch.float64),
    }


@pytest.mark.parametrize("mu", [0.0, 0.1, 3.0])
def test_the_proximal_gradient_is_that_of_half_mu_times_the_squared_distance(mu: float) -> None:
    weights, start, gradients = random_tensors(1), random_tensors(2), random_tensors(3)
    for weight in weights.values():
        weight.requires_grad_()
    penalty = mu / 2 * sum(((weights[name] - start[name]) ** 2).sum() for name in weights)
    expected = torch.autograd.grad(penalty, list(weights.values()))
    with torch.no_grad():
        got = {name: gradient.clone() for name, gradient in gradients.items()}
        Proximal(mu=mu).add_gradient(got, weights, given(start))
    for name, term in zip(weights, expected, strict=True):
        torch.testing.assert_close(got[name], gradients[name] + term, rtol=1e-12, atol=1e-12)


def test_the_plain_objective_adds_nothing() -> None:
    gradients = random_tensors(3)
    Plain().add_gradient(gradients, random_tensors(1), given(random_tensors(2)))
    assert all(torch.equal(gradients[name], tensor) for name, tensor in random_tensors(3).items())


@pytest.mark.parametrize("own", [{}, {OWN: random_tensors(5)}], ids=["first", "later"])
@pytest.mark.parametrize("objective", [Plain(), Proximal(mu=0.3), ControlVariates()])
def test_an_objective_adds_the_pull_and_the_push_that_it_tells(objective: Objective, own: State) -> None:
    weights, start, gradients = random_tensors(1), random_tensors(2), random_tensors(3)
    has = given(start)._replace(state=own, models={CONTROL: random_tensors(4)})
    assert objective.pull is not None
    push = objective.push(has) if objective.pushes else dict.fromkeys(start, 0.0)
    expected = {
        name: one + objective.pull * (weights[name] - start[name]) + push[name] for name, one in gradients.items()
    }
    objective.add_gradient(gradients, weights, has)
    for name, tensor in expected.items():
        torch.testing.assert_close(gradients[name], tensor, rtol=1e-12, atol=1e-12)


def given(start: Tensors) -> Given:
    return Given(start, {}, {}, TRAINING, 0)


def test_every_field_and_the_version_are_in_the_description() -> None:
    descriptions = [described(objective) for objective in (Plain(), Proximal(mu=0.0), Proximal(mu=0.5))]
    assert all("version" in description for description in descriptions)
    assert all(descriptions.count(description) == 1 for description in descriptions)


class Drifting(Objective):
    """For this test: a client is pushed on the way that it has gone so far, which it remembers."""

    name: Literal["drifting"] = "drifting"
    remembers: ClassVar[tuple[str, ...]] = ("way",)
    reads_start: ClassVar[bool] = True
    strength: float

    def add_gradient(self, gradients: Tensors, weights: Tensors, given: Given) -> None:
        for name, gradient in gradients.items() if given.state else ():
            gradient.sub_(self.strength * given.state["way"][name])

    def remember(self, weights: Tensors, given: Given) -> dict[str, dict[str, torch.Tensor]]:
        moved = {name: weights[name] - given.start[name] for name in given.start}
        before = given.state.get("way", {})
        return {"way": {name: change + before[name] for name, change in moved.items()} if before else moved}


@pytest.fixture
def drifting() -> Drifting:
    return Drifting(strength=0.5)


@pytest.fixture
def whole(drifting: Drifting, tmp_path: Path) -> Iterator[dict[str, torch.Tensor]]:
    """The last model and what each client remembers, of a run that nobody killed."""
    run = small(tmp_path / "whole")
    yield outcome(run.learner, drifting)
    run.store.close()


def outcome(learner: Any, objective: Objective) -> dict[str, torch.Tensor]:
    model, memories = averaged_rounds(learner, objective, ROUNDS)
    found = tensors(model)
    for client, memory in enumerate(memories):
        for handle in memory.values():
            learner._forcer.force(handle)
        found |= {f"{client}.{name}": tensor for name, tensor in tensors(memory).items()}
    return found


def test_what_a_client_remembers_goes_into_its_next_training(
    whole: dict[str, torch.Tensor], drifting: Drifting
) -> None:
    """Against a loop written here: the linear model's own two tensors, and SGD by hand."""
    dataset, streams = data(), Streams(1)
    x, y = torch.tensor(dataset.x).flatten(1), torch.tensor(dataset.y)
    rng = streams("model/init").generator()
    bound = (6 / (x.shape[1] + CLASSES)) ** 0.5
    weight = torch.tensor((bound * (2 * rng.random((CLASSES, x.shape[1])) - 1)).astype("float32"))
    model = [weight, torch.zeros(CLASSES)]
    ways: list[list[torch.Tensor] | None] = [None] * CLIENTS
    for use in range(ROUNDS):
        total = [torch.zeros_like(tensor) for tensor in model]
        for client in range(CLIENTS):
            local = [tensor.clone().requires_grad_() for tensor in model]
            order = streams("batches", client, use).generator()
            for ids in batches(dataset.train_ids[client], batch_size=4, epochs=2, rng=order):
                loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(x[ids], *local), y[ids])
                gradients = torch.autograd.grad(loss, local)
                with torch.no_grad():
                    for position, tensor in enumerate(local):
                        way = ways[client]
                        gradient = gradients[position] - (drifting.strength * way[position] if way else 0)
                        tensor -= TRAINING.learning_rate * gradient
            moved = [(new - old).detach() for new, old in zip(local, model, strict=True)]
            before = ways[client] or [torch.zeros_like(tensor) for tensor in moved]
            ways[client] = [old + change for old, change in zip(before, moved, strict=True)]
            total = [old + change / CLIENTS for old, change in zip(total, moved, strict=True)]
        model = [old + change for old, change in zip(model, total, strict=True)]
    expected = {"classifier.fc.weight": model[0], "classifier.fc.bias": model[1]}
    for client, way in enumerate(ways):
        assert way is not None
        expected |= {f"{client}.way.classifier.fc.weight": way[0], f"{client}.way.classifier.fc.bias": way[1]}
    assert expected.keys() == whole.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(whole[name], tensor, rtol=1e-5, atol=1e-6)


def test_a_memory_changes_the_result(whole: dict[str, torch.Tensor], drifting: Drifting, tmp_path: Path) -> None:
    run = small(tmp_path / "without")
    model, _ = averaged_rounds(run.learner, Plain(), ROUNDS)
    run.store.close()
    assert not torch.equal(tensors(model)["classifier.fc.weight"], whole["classifier.fc.weight"])


@pytest.mark.parametrize("kill_at", [CLIENTS + 2, 2 * CLIENTS, 2 * CLIENTS + 1, ROUNDS * CLIENTS])
def test_memories_survive_a_kill(
    whole: dict[str, torch.Tensor], drifting: Drifting, tmp_path: Path, kill_at: int
) -> None:
    killed = small(tmp_path / "killed", checkpoint_every_s=0, executor=Fragile(table(), data(), kill_at=kill_at))
    with pytest.raises(KeyboardInterrupt):
        outcome(killed.learner, drifting)
    killed.store.close()
    executor = Fragile(table(), data())
    resumed = small(tmp_path / "killed", checkpoint_every_s=0, executor=executor)
    found = outcome(resumed.learner, drifting)
    resumed.store.close()
    assert found.keys() == whole.keys()
    assert all(torch.equal(found[name], whole[name]) for name in whole)
    finished = max(end for end in WAVE_ENDS if end < kill_at)
    assert executor.trainings == ROUNDS * CLIENTS - finished, "what was remembered of finished waves was read"


def test_the_samples_are_what_this_test_believes() -> None:
    dataset = data()
    assert dataset.clients == CLIENTS
    assert set(dataset.client_samples) == {SAMPLES}
    assert dataset.sample_shape == SHAPE


@pytest.mark.parametrize(
    ("declared", "method"),
    [
        ({"scores": ("global",)}, "loss"),
        ({"features": ("global",)}, "feature_loss"),
        ({"pushes": True}, "push"),
        ({"remembers": ("own",)}, "remember"),
        ({"sends": ("own",)}, "remember"),
        ({"tells": ("own",)}, "remember"),
    ],
)
def test_who_declares_something_must_define_what_belongs_to_it(declared: dict[str, Any], method: str) -> None:
    (name,) = declared
    with pytest.raises(TypeError, match=rf"^Unfinished has {name}=.*, and must define {method}$"):
        type("Unfinished", (Objective,), {"__module__": __name__, "__annotations__": {}, **declared})
