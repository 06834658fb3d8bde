"""A learner that computes nothing and remembers what it was asked: models are texts that say how they came about."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fedsim.data.captures import Capture
from fedsim.learning.graph import Handle
from fedsim.learning.learner import Learner, LocalTraining, Model, OwnModel, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.compensate import Compensate
from fedsim.learning.operations.extract import Extract
from fedsim.learning.operations.keep import Keep
from fedsim.learning.operations.move_gates import MoveGates
from fedsim.learning.operations.operation import Operation
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.operations.weigh import Weigh
from fedsim.learning.rules.fednova import Normalised
from fedsim.learning.rules.optimiser import Step
from fedsim.learning.rules.scaffold import Zeros
from fedsim.models.table import ModelTable

BESIDE = "beside a model"
"""The text of what a client sends with its model."""


@dataclass(eq=False)
class Part:
    """What stands for tensors: a text, and an identity of its own."""

    text: str
    client: int | None = None
    """Who has trained it last; None: nobody, it was made of many."""


class Meant(NamedTuple):
    """What a client's model counted for in a mean."""

    client: int | None
    """Who has trained it last."""
    model: dict[str, str]
    """Its parts, and how each came about."""
    share: float
    """Its weight; those of a mean add up to 1."""


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
    further: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The models that its objective receives, by their names."""


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
    means: dict[int, list[Meant]] = field(default_factory=dict)
    """Round -> what went into its mean, in the order in which it was added up."""
    captures: list[tuple[int, int, Capture]] = field(default_factory=list)
    """Round, client, and what it saw of its stream."""
    evaluations: list[tuple[int, str, str]] = field(default_factory=list)
    """Round, test set, model."""
    updates: weakref.WeakSet[Part] = field(default_factory=weakref.WeakSet)
    """The clients' models that somebody still holds."""

    def __post_init__(self) -> None:
        self._accuracies = iter(self.accuracies)

    def initial_model(self, table: ModelTable | None = None, client: int = 0) -> Model:
        return {part: Part("initial") for part in self.parts}  # type: ignore[misc]

    def train(self, task: LocalTraining, model: Model, *, state: Model, further: Mapping[str, Model]) -> Trained:
        client = task.client
        if task.capture is not None:
            self.captures.append((task.round_number, client, task.capture))
        memory = said(state["memory"]) if state else None
        rows = None if task.rows is None else task.rows.number
        others = {name: text(further[name]) for name in task.objective.receives}
        self.trainings.append(
            Training(task.round_number, client, task.use, text(model), memory, task.objective, rows, others)
        )
        update = {part: Part(f"{text(model)} trained by {client}", client) for part in model}
        self.updates.update(update.values())
        beside = {name: {part: Part(BESIDE) for part in model} for name in task.objective.sends}
        beside |= {name: {name: Part(BESIDE)} for name in task.objective.tells}
        state = {"memory": Part(f"{client} after training {task.use}")}
        return Trained(update, state, beside=beside)  # type: ignore[arg-type]

    def apply(
        self,
        operation: Operation,
        inputs: Mapping[str, Model | Sequence[Model]],
        outputs: Iterable[str],
        *,
        round_number: int,
        client: int | None = None,
        **_: Any,
    ) -> Model:
        given = {role: [some] if isinstance(some, Mapping) else list(some) for role, some in inputs.items()}
        match operation:
            case Extract():
                remembered = text(given["remembered"][0]) if "remembered" in given else None
                seen = operation.seen
                self.extractions.append(
                    Extraction(round_number, seen.client, text(given["model"][0]), seen.capture, remembered)
                )
                made = f"{seen.client} in round {round_number}"
            case Compensate():
                made = f"{text(given['remembered'][0])}, moved"
            case Keep():
                assert client is not None
                self.kept.append((round_number, client, [text(some) for some in given["rows"]], operation.rows))
                made = f"kept in round {round_number}"
            case PartialSum():
                if text(given[TERM][0]) != BESIDE:
                    self.means.setdefault(round_number, []).extend(map(_meant, given[TERM], operation.weights))
                made = f"change of round {round_number}"
            case Add() | MoveGates() | Step() | Normalised() | Weigh():
                made = f"mean of round {round_number}"
            case Zeros():
                made = "zeros"
            case _:
                raise NotImplementedError(operation)
        return {name: Part(made) for name in outputs}  # type: ignore[misc]

    def value(self, handle: Handle) -> float:
        raise NotImplementedError("no operation here makes a number")

    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any]:
        self.evaluations.append((round_number, on, text(model)))
        self.when_evaluating(self)
        accuracy = next(self._accuracies, 0.0)
        return {"accuracy": accuracy, "loss": math.inf if accuracy is None else 1 - accuracy}

    def evaluate_own(self, models: Sequence[OwnModel], *, round_number: int) -> dict[int, dict[str, Any]]:
        return {
            one.client: {**self.evaluate(one.model, "own", round_number=round_number), "samples": 1} for one in models
        }

    def keep_final(self, *_: Any) -> dict[str, str]:
        return {}

    def uses(self, client: int) -> list[int]:
        """The use counters of a client's trainings, in their order."""
        return [training.use for training in self.trainings if training.client == client]

    def averaged(self, round_number: int) -> list[int | None] | None:
        """The clients whose updates went into a round's mean; None when there was no mean."""
        return [one.client for one in self.means[round_number]] if round_number in self.means else None


def _meant(model: Model, share: float) -> Meant:
    (client,) = {part.client for part in model.values()}  # type: ignore[attr-defined]
    return Meant(client, {part: said(handle) for part, handle in model.items()}, share)


def text(model: Model) -> str:
    """How a model came about: its parts together, or only those that there are."""
    return " & ".join(dict.fromkeys(said(part) for part in model.values()))


def said(handle: Handle) -> str:
    """The text that stands for tensors."""
    return handle.text  # type: ignore[attr-defined, no-any-return]
