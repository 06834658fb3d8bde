"""What a protocol may ask of learning. Nothing is computed when it asks: it gets handles, and the clock runs on.

A model is a mapping part -> handle (``{"extractor": …, "classifier": …}``), so a protocol can send or train one part.
Learning never sees the simulated clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from fedsim.data.stream.captures import Capture
from fedsim.learning.graph import Handle
from fedsim.learning.objectives import Objective

__all__ = [
    "PARTIAL_SUM",
    "SUMMATION",
    "CalibrationSet",
    "Contribution",
    "Learner",
    "Model",
    "NoLearner",
    "Trained",
    "partial_sums",
]

Model = Mapping[str, Handle]

PARTIAL_SUM = 8
"""Contributions in one partial sum of a mean, at most. It decides the order of additions, so the family has it."""

SUMMATION = f"even-sums{PARTIAL_SUM}"
"""What the rule of `partial_sums` is called in the numeric family."""


def partial_sums(contributions: int) -> list[slice]:
    """Which contributions are in which partial sum: an even number of sums (or one), as equal as can be.

    Even, so that two workers, or four, have the same to do. A function of the number alone, never of the workers.

    >>> [some.stop - some.start for some in partial_sums(30)], [some.stop - some.start for some in partial_sums(1)]
    ([8, 8, 7, 7], [1])
    """
    sums = min(contributions, 2 * math.ceil(contributions / (2 * PARTIAL_SUM)))
    size, longer = divmod(contributions, sums)
    ends = [number * size + min(number, longer) for number in range(sums + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


class CalibrationSet(NamedTuple):
    """What a classifier is trained on: rows of features with their labels."""

    handles: tuple[Handle, ...]
    """One after the other."""
    rows: int
    """In all of them."""
    epochs: int
    """Passes over them."""


class Trained(NamedTuple):
    """What local training yields: a model, and what the client remembers."""

    model: Model
    state: Model


class Contribution(NamedTuple):
    """One client's part in a mean; weights are normalised by the mean."""

    client: int
    model: Model
    weight: float


NOTHING = Trained({}, {})
"""What comes of training when nothing is learned."""


class Learner(ABC):
    """Initial model, local training, mean, evaluation."""

    @abstractmethod
    def initial_model(self) -> Model:
        """The model that everybody starts from."""

    @abstractmethod
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
        """Local training of *client* (or `fedsim.learning.batches.POOL`), starting from *model*.

        *use* counts the client's trainings so far; *state* is what it remembers of them. *capture* says which samples
        of its stream it sees; None: all of its own. With *calibration_set*, *model* is the classifier alone, and is
        trained on that. *teacher* is the global model that some objectives look at.
        """

    @abstractmethod
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
        """What *extractor*, frozen, makes of a client's samples, with their labels: rows of semantics.

        The samples are those of *capture* (None: all of its own), or the raw ones in *remembered*. *with_samples* says
        whether the raw samples are kept beside their semantics. None when nothing is learned.
        """

    @abstractmethod
    def compensate(
        self,
        remembered: Handle,
        now: Handle,
        before: Handle,
        *,
        client: int,
        round_number: int,
        by: Literal["per_class", "mean"],
        absent: Literal["stays", "mean"],
    ) -> Handle:
        """*remembered* rows, moved by the drift of the means from *before* to *now*: the same samples, extracted anew.

        Each row by that of its class, or of all samples; *absent* says what becomes of classes that have none.
        """

    @abstractmethod
    def keep(
        self,
        candidates: Sequence[Handle],
        *,
        client: int,
        use: int,
        round_number: int,
        rows: int,
        quotas: Sequence[int] | None,
        at_random: bool,
    ) -> Handle | None:
        """*rows* of the candidates' rows, which come newest first: the nearest to the mean of their class, or any.

        *quotas* says how many of each class. None when nothing is learned.
        """

    @abstractmethod
    def mean(self, base: Model, contributions: Sequence[Contribution], *, round_number: int) -> Model:
        """``base + sum of w_i (model_i - base)``, ``w_i = weight_i / sum of weights``, in the precision of models.

        Contributions are added in the order of client indices, in `partial_sums`, and the partial sums in their order.
        """

    @abstractmethod
    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any] | None:
        """Metrics of *model* now: this forces the graph. None when nothing is learned."""

    @abstractmethod
    def keep_final(self, model: Model) -> dict[str, str]:
        """Keep the model at the end of a run for ever; returns part -> file."""


class NoLearner(Learner):
    """For network studies: nothing is learned, and evaluations yield nothing."""

    def initial_model(self) -> Model:
        """An empty model."""
        return {}

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
        """Nothing."""
        return NOTHING

    def extract(self, extractor: Model, client: int, **_: Any) -> None:
        """Nothing."""
        return

    def compensate(self, remembered: Handle, now: Handle, before: Handle, **_: Any) -> Handle:
        """As it was."""
        return remembered

    def keep(self, candidates: Sequence[Handle], **_: Any) -> None:
        """Nothing."""
        return

    def mean(self, base: Model, contributions: Sequence[Contribution], *, round_number: int) -> Model:
        """Nothing."""
        return {}

    def evaluate(self, model: Model, on: str, *, round_number: int) -> None:
        """Nothing to evaluate."""
        return

    def keep_final(self, model: Model) -> dict[str, str]:
        """Nothing to keep."""
        return {}
