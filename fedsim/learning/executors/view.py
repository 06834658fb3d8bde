"""What an objective sees of a mini-batch: scores and features of the local model, and of further ones, frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from fedsim.learning.objectives.objective import Objective
from fedsim.models.parted import PartedModule
from fedsim.models.torch_module import LayerModule

__all__ = ["Seen", "View"]


class Seen(NamedTuple):
    """What further models make of a mini-batch, and the local model's features, as far as an objective looks at it."""

    features: torch.Tensor | None
    other_features: Mapping[str, torch.Tensor]
    other_scores: Mapping[str, torch.Tensor]


class View:
    """Of one training, on samples or on rows of semantics."""

    def __init__(
        self, objective: Objective, local: PartedModule, frozen: Callable[[str], PartedModule], *, on_rows: bool
    ) -> None:
        """*frozen* are the further models by their names; only those that *objective* looks at are asked for."""
        looked_at = {*objective.scores, *objective.features, *filter(None, [objective.fuses])}
        self._objective, self._local, self._on_rows = objective, local, on_rows
        self._others = {role: frozen(role) for role in objective.receives if role in looked_at}

    def of(self, x: torch.Tensor) -> tuple[torch.Tensor, Seen]:
        """The local scores of a batch, and what the objective sees of it beside them."""
        objective, local, features = self._objective, self._local, None
        others: dict[str, torch.Tensor] = {}
        told: dict[str, torch.Tensor] = {}
        if objective.fuses is not None and not self._on_rows:
            other = self._others[objective.fuses]
            assert isinstance(local, LayerModule) and isinstance(other, LayerModule), "no other has a fusion layer"
            local.fuse(other, x)
        if objective.features:
            features, scores = local.looked_into(x, self._forward(local))
            with torch.no_grad():
                others = {role: self._looked_into(role, x) for role in objective.features}
        else:
            scores = self._forward(local)(x)
        if objective.scores:
            with torch.no_grad():
                told = {role: self._forward(self._others[role])(x) for role in objective.scores}
        return scores, Seen(features, others, told)

    def terms(self, scores: torch.Tensor, seen: Seen) -> list[torch.Tensor]:
        """The terms of the loss that the objective makes of what it has *seen*, in the type of *scores*."""
        objective, dtype, terms = self._objective, scores.dtype, []
        if seen.features is not None:
            others = {role: features.to(dtype) for role, features in seen.other_features.items()}
            terms.append(objective.feature_loss(seen.features.to(dtype), others))
        if objective.scores:
            terms.append(objective.loss(scores, {role: told.to(dtype) for role, told in seen.other_scores.items()}))
        return terms

    def _forward(self, module: PartedModule) -> Callable[[torch.Tensor], torch.Tensor]:
        return module.classify if self._on_rows else module

    def _looked_into(self, role: str, x: torch.Tensor) -> torch.Tensor:
        module = self._others[role]
        return module.looked_into(x, self._forward(module))[0]
