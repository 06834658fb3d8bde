"""What lies behind a handle of a model's part, or of rows of semantics: tensors by name."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from fedsim.learning.objectives.objective import Objective, Tensors
from fedsim.learning.operations.train import sent_as, state_as

__all__ = ["TensorDict", "by_full_name", "made_by"]

TensorDict = dict[str, torch.Tensor]


def by_full_name(model: Mapping[str, TensorDict]) -> TensorDict:
    """The tensors of all parts, each by ``part.name``."""
    return {f"{part}.{name}": tensor for part, tensors in model.items() for name, tensor in tensors.items()}


def made_by(objective: Objective, remembered: Mapping[str, Tensors]) -> dict[str, TensorDict]:
    """The outputs of a training that *objective* has *remembered*: what is kept, what is sent by part, and numbers."""
    made = {state_as(name): dict(remembered[name]) for name in objective.remembers if name in remembered}
    for name in objective.sends:
        for full_name, tensor in remembered[name].items():
            part, _, own = full_name.partition(".")
            made.setdefault(sent_as(name, part), {})[own] = tensor
    return made | {name: dict(remembered[name]) for name in objective.tells}
