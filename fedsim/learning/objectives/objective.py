"""What a local objective is: a term beside the loss on a client's samples, and what a client remembers for it.

Torch-free: objectives only call tensors' methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import BYTES_PER_PARAMETER, ModelTable
from fedsim.settings import Component

__all__ = ["Given", "Objective", "State", "Tensors"]

Tensors = Mapping[str, Any]
State = Mapping[str, Tensors]


class Given(NamedTuple):
    """What a client has in a local training, beside the weights that it trains."""

    start: Tensors
    """The model as it was received; empty unless the objective ``reads_start``."""
    state: State
    """What it remembers, by name; empty at its first training."""
    models: Mapping[str, Tensors]
    """The further models that came with it, by name; of each the tensors by ``part.name``."""
    training: TrainingSettings
    steps: int
    """How many steps of SGD the whole training has."""
    right: Any = None
    """At its end, where the objective ``counts_right``: how many samples were told right when they were trained on."""
    seen: int = 0
    """How many there were, each counted once in every epoch."""


class Objective(Component):
    """A term of the local objective, as its exact gradient. Registered under "objectives"."""

    version: ClassVar[int] = 1
    """Belongs to the numbers that it makes."""
    remembers: ClassVar[tuple[str, ...]] = ()
    """Names of what a client keeps from one training to the next."""
    reads_start: ClassVar[bool] = False
    """Whether it looks at the model as it was received; only then is a copy kept."""
    receives: ClassVar[tuple[str, ...]] = ()
    """Names of the further models that it needs: whoever sends the model sends them too."""
    sends: ClassVar[tuple[str, ...]] = ()
    """Names of what goes up beside the trained model, shaped like its trained parameters."""
    part: ClassVar[str | None] = None
    """The part of the model that this is about; None: all of it."""
    tells: ClassVar[tuple[str, ...]] = ()
    """Names of numbers that go up beside it."""
    counts_right: ClassVar[bool] = False
    """Whether it asks how many samples were told right in training; classes only."""
    pushes: ClassVar[bool] = False
    """Whether the term's gradient has a part that is constant in a training: `push`."""
    scores: ClassVar[tuple[str, ...]] = ()
    """Those among ``receives`` whose scores on each mini-batch `loss` looks at."""
    features: ClassVar[tuple[str, ...]] = ()
    """Those among ``receives`` whose features of each mini-batch `feature_loss` looks at."""
    fuses: ClassVar[str | None] = None
    """That among ``receives`` whose features the model's fusion layer takes beside its own."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Raise `TypeError` for a class that declares something and does not define the method that belongs to it."""
        super().__pydantic_init_subclass__(**options)  # which names it
        for method, declared in {
            "loss": ("scores",),
            "feature_loss": ("features",),
            "push": ("pushes",),
            "remember": ("remembers", "sends", "tells"),
        }.items():
            for name in declared:
                if getattr(cls, name) and getattr(cls, method) is getattr(Objective, method):
                    raise TypeError(f"{cls.__name__} has {name}={getattr(cls, name)!r}, and must define {method}")

    @property
    def looks_at_batches(self) -> bool:
        """Whether it looks at what models make of each mini-batch: then a client trains alone, in the plain loop."""
        return bool(self.scores or self.features or self.fuses)

    @property
    def moves(self) -> bool:
        """Whether it moves weights after each step, beside the optimiser; then, too, a client trains alone."""
        return False

    @property
    def trains_alone(self) -> bool:
        """Whether a client trains alone, in the plain loop."""
        return self.looks_at_batches or self.moves

    @property
    def rebuilt(self) -> tuple[str, ...]:
        """Those among ``sends`` that the server works out from the update itself, so that they take no bytes."""
        return ()

    @property
    def pull(self) -> float | None:
        """The number k if the term's gradient is ``k (w - w_start)``, and `push` if it `pushes`; None if it is not."""
        return None

    def push(self, given: Given) -> Tensors:
        """The constant that the term adds to each gradient of a training, by full name; nobody writes to it."""
        raise NotImplementedError  # never reached: whoever `pushes` defines it

    def check(self, dataset: FederatedDataset) -> None:
        """Raise `Misfit` when it cannot be minimised on such data."""
        return

    def forward_passes(self, table: ModelTable) -> float:
        """Forward passes of further models, of *table*, that a sample takes in each epoch beside its training."""
        return float(len({*self.scores, *self.features}))

    def bytes_of(self, name: str, table: ModelTable) -> float:
        """The bytes of *name*, received, sent or told, on the wire: 4 for a number, else as a rule the model's."""
        return float(BYTES_PER_PARAMETER) if name in self.tells else table.bytes()

    def kept_bytes(self, table: ModelTable) -> float:
        """Bytes, in float32, that a client keeps for it between trainings: as a rule, a model for each name."""
        return table.bytes() * len(self.remembers)

    def adapted(self, table: ModelTable) -> ModelTable:
        """The model that clients train, made of the scenario's *table*; raises `Misfit` when none can be made of it."""
        return table

    def add_gradient(self, gradients: Tensors, weights: Tensors, given: Given) -> None:
        """Add this term's gradient to *gradients*, in place."""

    def move(self, weights: Tensors, given: Given) -> None:
        """Move *weights*, in place, after a step of the optimiser. Only who `moves` is asked."""

    def loss(self, scores: Any, others: Mapping[str, Any]) -> Any:
        """A term of the loss of a mini-batch from its *scores*, (samples, classes), and those of other models."""
        raise NotImplementedError  # never reached: whoever has ``scores`` defines it

    def feature_loss(self, features: Any, others: Mapping[str, Any]) -> Any:
        """A term of the loss of a mini-batch from the model's *features*, (samples, ...), and those of other models.

        Features are what a model's last layer with parameters takes; of a user's module, what its classifier takes.
        """
        raise NotImplementedError  # never reached: whoever has ``features`` defines it

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        """What the client keeps for the next training, sends and tells, in new memory, by their names.

        What is sent has the names of *weights*; a number is a tensor of one number, by its own name.
        """
        return {}

    @property
    def makes(self) -> tuple[str, ...]:
        """Names of all that `remember` makes."""
        return tuple(dict.fromkeys((*self.remembers, *self.sends, *self.tells)))
