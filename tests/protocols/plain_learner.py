"""A learner that computes nothing and remembers what it was asked: models are texts that say how they came about."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedsim.data.stream.captures import Capture
from fedsim.learning.learner import Contribution, Learner, Model, Trained
from fedsim.learning.objectives import Objective


@dataclass(eq=False)
class Part:
    """What stands for tensors: a text, and an identity of its own."""

    text: str


@dataclass(frozen=True)
class Training:
    """One local training, as it was asked for."""

    round_number: int
    client: int
    use: int
    start: str
    """The model that it starts from."""
    memory: str | None
    """What the client remembers from its last training."""
    objective: Objective


@dataclass
class PlainLearner(Learner):
    """Notes everything; *accuracies* are what evaluations yield, one after the other, and then zeros."""

    accuracies: Iterable[float] = ()
    when_evaluating: Callable[[PlainLearner], None] = lambda _: None
    trainings: list[Training] = field(default_factory=list)
    means: dict[int, list[Contribution]] = field(default_factory=dict)
    """Round -> what went into its mean."""
    captures: list[tuple[int, int, Capture]] = field(default_factory=list)
    """Round, client, and what it saw of its stream."""
    evaluations: list[tuple[int, str, str]] = field(default_factory=list)
    """Round, test set, model."""
    updates: weakref.WeakSet[Part] = field(default_factory=weakref.WeakSet)
    """The clients' models that somebody still holds."""

    def __post_init__(self) -> None:
        self._accuracies = iter(self.accuracies)

    def initial_model(self) -> Model:
        return {"model": Part("initial")}  # type: ignore[dict-item]

    def train(
        self,
        model: Model,
        client: int,
        *,
        objective: Objective,
        use: int,
        round_number: int,
        state: Model | None = None,
        capture: Capture | None = None,
    ) -> Trained:
        if capture is not None:
            self.captures.append((round_number, client, capture))
        memory = state["memory"].text if state else None  # type: ignore[attr-defined]
        self.trainings.append(Training(round_number, client, use, text(model), memory, objective))
        update = Part(f"{text(model)} trained by {client}")
        self.updates.add(update)
        return Trained({"model": update}, {"memory": Part(f"{client} after training {use}")})  # type: ignore[dict-item]

    def mean(self, base: Model, contributions: Sequence[Contribution], *, round_number: int) -> Model:
        self.means[round_number] = [
            Contribution(one.client, {"model": text(one.model)}, one.weight)  # type: ignore[dict-item]
            for one in contributions
        ]
        return {"model": Part(f"mean of round {round_number}")}  # type: ignore[dict-item]

    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any]:
        self.evaluations.append((round_number, on, text(model)))
        self.when_evaluating(self)
        accuracy = next(self._accuracies, 0.0)
        return {"accuracy": accuracy, "loss": 1 - accuracy}

    def keep_final(self, *_: Any) -> dict[str, str]:
        return {}

    def uses(self, client: int) -> list[int]:
        """The use counters of a client's trainings, in their order."""
        return [training.use for training in self.trainings if training.client == client]

    def averaged(self, round_number: int) -> list[int] | None:
        """The clients whose updates went into a round's mean; None when there was no mean."""
        return sorted(one.client for one in self.means[round_number]) if round_number in self.means else None


def text(model: Model) -> str:
    """How a model came about."""
    return model["model"].text  # type: ignore[attr-defined, no-any-return]
