"""What an objective sees of a mini-batch: scores and features of the local model, and of further ones, frozen."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fedsim.learning.objectives.objective import Objective
from fedsim.models.parted import PartedModule
from fedsim.models.torch_module import LayerModule

__all__ = ["View"]


class View:
    """Of one training, on samples or on rows of semantics."""

    def __init__(
        self, objective: Objective, local: PartedModule, frozen: Callable[[str], PartedModule], *, on_rows: bool
    ) -> None:
        """*frozen* are the further models by their names; only those that *objective* looks at are asked for."""
        looked_at = {*objective.scores, *objective.features, *filter(None, [objective.fuses])}
        self._objective, self._local, self._on_rows = objective, local, on_rows
        self._others = {role: frozen(role) for role in objective.receives if role in looked_at}

    def of(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The local scores of a batch, and the terms of the loss that the objective makes of what it sees."""
        objective, local, terms = self._objective, self._local, []
        if objective.fuses is not None and not self._on_rows:
            other = self._others[objective.fuses]
            assert isinstance(local, LayerModule) and isinstance(other, LayerModule), "no other has a fusion layer"
            local.fuse(other, x)
        if objective.features:
            features, scores = local.looked_into(x, self._forward(local))
            with torch.no_grad():
                seen = {role: self._looked_into(role, x) for role in objective.features}
            terms.append(objective.feature_loss(features, seen))
        else:
            scores = self._forward(local)(x)
        if objective.scores:
            with torch.no_grad():
                told = {role: self._forward(self._others[role])(x) for role in objective.scores}
            terms.append(objective.loss(scores, told))
        return scores, terms

    def _forward(self, module: PartedModule) -> Callable[[torch.Tensor], torch.Tensor]:
        return module.classify if self._on_rows else module

    def _looked_into(self, role: str, x: torch.Tensor) -> torch.Tensor:
        module = self._others[role]
        return module.looked_into(x, self._forward(module))[0]
