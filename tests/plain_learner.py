"""A learner that computes nothing and remembers what it was asked: models are texts that say how they came about."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedsim.data.captures import Capture
from fedsim.learning.graph import Handle
from fedsim.learning.learner import CalibrationSet, Contribution, Learner, Model, Trained
from fedsim.learning.objectives.objective import Objective


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
    rows: int | None = None
    """Those that it calibrates on; None when it trains on samples."""


@dataclass(frozen=True)
class Extraction:
    """Semantics, as they were asked for."""

    round_number: int
    client: int
    extractor: str
    capture: Capture | None
    remembered: str | None


@dataclass
class PlainLearner(Learner):
    """Notes everything; *accuracies* are what evaluations yield, in turn (None: diverged), and then zeros."""

    accuracies: Iterable[float | None] = ()
    parts: tuple[str, ...] = ("model",)
    when_evaluating: Callable[[PlainLearner], None] = lambda _: None
    trainings: list[Training] = field(default_factory=list)
    extractions: list[Extraction] = field(default_factory=list)
    kept: list[tuple[int, int, list[str], int]] = field(default_factory=list)
    """Round, client, what there was to choose from, and how many rows of it were kept."""
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
        return {part: Part("initial") for part in self.parts}  # type: ignore[misc]

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
        calibration_set: CalibrationSet | None = None,
        teacher: Model | None = None,
    ) -> Trained:
        if capture is not None:
            self.captures.append((round_number, client, capture))
        memory = state["memory"].text if state else None  # type: ignore[attr-defined]
        rows = None if calibration_set is None else calibration_set.rows
        self.trainings.append(Training(round_number, client, use, text(model), memory, objective, rows))
        update = {part: Part(f"{text(model)} trained by {client}") for part in model}
        self.updates.update(update.values())
        return Trained(update, {"memory": Part(f"{client} after training {use}")})  # type: ignore[arg-type, dict-item]

    def extract(
        self,
        extractor: Model,
        client: int,
        *,
        round_number: int,
        capture: Capture | None = None,
        remembered: Handle | None = None,
        with_samples: bool = False,
    ) -> Handle | None:
        from_memory = None if remembered is None else said(remembered)
        self.extractions.append(Extraction(round_number, client, said(extractor["extractor"]), capture, from_memory))
        return Part(f"{client} in round {round_number}")  # type: ignore[return-value]

    def compensate(self, remembered: Handle, now: Handle, before: Handle, **_: Any) -> Handle:
        return Part(f"{said(remembered)}, moved")  # type: ignore[return-value]

    def keep(
        self, candidates: Sequence[Handle], *, client: int, rows: int, round_number: int, **_: Any
    ) -> Handle | None:
        self.kept.append((round_number, client, [said(one) for one in candidates], rows))
        return Part(f"kept in round {round_number}")  # type: ignore[return-value]

    def mean(self, base: Model, contributions: Sequence[Contribution], *, round_number: int) -> Model:
        self.means[round_number] = [
            Contribution(one.client, {part: text(one.model) for part in one.model}, one.weight)  # type: ignore[misc]
            for one in contributions
        ]
        return {part: Part(f"mean of round {round_number}") for part in base}  # type: ignore[misc]

    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any]:
        self.evaluations.append((round_number, on, text(model)))
        self.when_evaluating(self)
        accuracy = next(self._accuracies, 0.0)
        return {"accuracy": accuracy, "loss": math.inf if accuracy is None else 1 - accuracy}

    def keep_final(self, *_: Any) -> dict[str, str]:
        return {}

    def uses(self, client: int) -> list[int]:
        """The use counters of a client's trainings, in their order."""
        return [training.use for training in self.trainings if training.client == client]

    def averaged(self, round_number: int) -> list[int] | None:
        """The clients whose updates went into a round's mean; None when there was no mean."""
        return sorted(one.client for one in self.means[round_number]) if round_number in self.means else None


def text(model: Model) -> str:
    """How a model came about: its parts together, or only those that there are."""
    return " & ".join(dict.fromkeys(said(part) for part in model.values()))


def said(handle: Handle) -> str:
    """The text that stands for tensors."""
    return handle.text  # type: ignore[attr-defined, no-any-return]
