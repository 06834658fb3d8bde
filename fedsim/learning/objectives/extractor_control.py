"""SPATL's gradient control (Yu et al., *SPATL: salient parameter aggregation and transfer learning for heterogeneous
federated learning*, SC 2022, section IV-C, Eqs. 9 and 10): SCAFFOLD's control variates, of the extractor alone.

The paper divides by the epochs E, and its code by the steps. With momentum neither is the weight that gradients have in
the change, so both are off unless it is 0 (see `fedsim.learning.objectives.control_variates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from fedsim.errors import Misfit
from fedsim.learning.objectives.control_variates import CONTROL, CONTROL_CHANGE, OWN, ControlVariates
from fedsim.learning.objectives.objective import Given, Tensors
from fedsim.models.table import BYTES_PER_PARAMETER, EXTRACTOR, ModelTable
from fedsim.settings import Positive, key_rule

__all__ = ["AUTHORS_SCALE", "ExtractorControl"]

PREFIX = f"{EXTRACTOR}."
AUTHORS_SCALE = 0.01
"""By what the public code of SPATL multiplies a correction."""


class ExtractorControl(ControlVariates):
    """Gradient control (SPATL): control variates of the extractor alone; the classifier's gradients are its own."""

    name: Literal["extractor_control"] = "extractor_control"  # type: ignore[assignment]
    part: ClassVar[str | None] = EXTRACTOR
    change: Literal["rebuilt", "sent"] = "rebuilt"
    """rebuilt: the server works out how a client's control variate has changed from the filters that it is sent, and
    of others it learns nothing; sent: the whole change is sent beside them, as the tables of the paper count it."""
    parity: Literal["paper", "authors"] = "paper"
    """paper: the correction is part of the gradient, and so of the momentum, and the way is divided by the weight of
    gradients in it. authors: as in their code, weights are moved by the correction after each step of the optimiser,
    and the way is divided by the number of steps."""
    cv_scale: Positive | None = None
    """With parity: authors, by what the correction is multiplied; left out, 0.01, as in their code."""

    @key_rule
    def _only_authors_scale(self) -> None:
        if self.cv_scale is not None and self.parity == "paper":
            raise Misfit(f"{self.cv_scale:g} is for parity: authors; leave it out", "cv_scale")

    @property
    def moves(self) -> bool:
        """As the authors do it."""
        return self.parity == "authors"

    @property
    def rebuilt(self) -> tuple[str, ...]:
        """Unless it is sent."""
        return (CONTROL_CHANGE,) if self.change == "rebuilt" else ()

    def bytes_of(self, name: str, table: ModelTable) -> float:
        """4 for each trained parameter of the extractor; nothing for what is rebuilt."""
        return 0.0 if name in self.rebuilt else float(BYTES_PER_PARAMETER * table.parameters(EXTRACTOR))

    def push(self, given: Given) -> Tensors:
        """``c - c_i`` of the extractor, and zero of all else."""
        return {name: self._correction(name, given, start) for name, start in given.start.items()}

    def _correction(self, name: str, given: Given, like: object) -> object:
        if not name.startswith(PREFIX):
            return like.new_zeros(like.shape)  # type: ignore[attr-defined]
        control, own = given.models[CONTROL][name], given.state.get(OWN)
        return control if own is None else control - own[name]

    def add_gradient(self, gradients: Tensors, weights: Tensors, given: Given) -> None:
        """Adds `push`, unless weights are moved by it."""
        if not self.moves:
            super().add_gradient(_of_extractor(gradients), weights, given)

    def move(self, weights: Tensors, given: Given) -> None:
        """``w = w - eta cv_scale (c - c_i)``."""
        rate = given.training.learning_rate * (AUTHORS_SCALE if self.cv_scale is None else self.cv_scale)
        for name, weight in _of_extractor(weights).items():
            weight.sub_(self._correction(name, given, weight), alpha=rate)

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        """``c_i+ = c_i - c + (w_g - w_e) / (a_i eta)``, and what that is more than ``c_i``; with a_i the steps for the
        authors."""
        given = given._replace(start=_of_extractor(given.start))
        return super().remember(weights, given)

    def weight_of_gradients(self, given: Given) -> float:
        """The number of steps, for the authors."""
        return float(given.steps) if self.moves else super().weight_of_gradients(given)


def _of_extractor(tensors: Tensors) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if name.startswith(PREFIX)}
