"""Local objectives: what a client minimises beside the loss on its samples.

Torch-free: they only call tensors' methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["Distilled", "Objective", "Plain", "Proximal", "objective_from"]

Tensors = Mapping[str, Any]
State = Mapping[str, Tensors]


@dataclass(frozen=True)
class Objective:
    """A term of the local objective, as its exact gradient. ``version`` belongs to the numbers it makes."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    remembers: ClassVar[tuple[str, ...]] = ()
    """Names of what a client keeps from one training to the next."""
    reads_start: ClassVar[bool] = False
    """Whether it looks at the model as it was received; only then is a copy kept."""

    reads_teacher: ClassVar[bool] = False
    """Whether it looks at what the round's global model makes of the samples, beside the model in training."""

    @property
    def pull(self) -> float | None:
        """The number k if the term's gradient is ``k (w - w_start)`` and nothing else; None if it is not."""
        return None

    def parameters(self) -> dict[str, Any]:
        """What goes into a training's key: name, version and every field."""
        return {"name": self.name, "version": self.version, **vars(self)}

    def add_gradient(self, gradients: Tensors, weights: Tensors, start: Tensors, state: State) -> None:
        """Add this term's gradient to *gradients*, in place.

        *start* is the model as it was received (empty unless ``reads_start``), *state* what the client remembers;
        empty at its first training.
        """

    def loss(self, scores: Any, teacher: Any) -> Any:
        """A term of the loss of a mini-batch from two models' *scores*, (samples, classes); for ``reads_teacher``."""
        raise NotImplementedError

    def remember(self, state: State, weights: Tensors, start: Tensors) -> dict[str, Tensors]:
        """What the client keeps for the next training, in new memory, by the names in ``remembers``."""
        return {}


@dataclass(frozen=True)
class Plain(Objective):
    """Nothing but the loss on the samples: local SGD."""

    name: ClassVar[str] = "plain"

    @property
    def pull(self) -> float:
        """None at all."""
        return 0.0


@dataclass(frozen=True)
class Proximal(Objective):
    """``(mu / 2) ||w - w_start||^2`` over all parameters (FedProx, Li et al., MLSys 2020, Eq. 2)."""

    name: ClassVar[str] = "proximal"
    reads_start: ClassVar[bool] = True
    mu: float

    @property
    def pull(self) -> float:
        """``mu``."""
        return self.mu

    def add_gradient(self, gradients: Tensors, weights: Tensors, start: Tensors, state: State) -> None:
        """Adds ``mu (w - w_start)``."""
        for name, gradient in gradients.items():
            gradient.add_(weights[name] - start[name], alpha=self.mu)


@dataclass(frozen=True)
class Distilled(Objective):
    """``coefficient KL(softmax of the global model's scores || softmax of the local ones)``, mean over samples.

    The authors' public code of HFedMS has it in full rounds, with 0.1; no paper does.
    """

    name: ClassVar[str] = "distilled"
    reads_teacher: ClassVar[bool] = True
    coefficient: float

    def loss(self, scores: Any, teacher: Any) -> Any:
        """Zero where both models agree, and never negative."""
        told, ours = teacher.log_softmax(dim=1), scores.log_softmax(dim=1)
        return self.coefficient * (told.exp() * (told - ours)).sum(dim=1).mean()


_OBJECTIVES: dict[str, type[Objective]] = {objective.name: objective for objective in (Plain, Proximal, Distilled)}


def objective_from(parameters: Mapping[str, Any]) -> Objective:
    """The objective that was described by `Objective.parameters`."""
    fields = {name: value for name, value in parameters.items() if name not in ("name", "version")}
    return _OBJECTIVES[parameters["name"]](**fields)
