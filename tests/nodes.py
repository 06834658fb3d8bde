"""Expressions as tests write them: trainings by client, and inputs by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedsim.data.captures import Capture
from fedsim.data.dataset import FederatedDataset
from fedsim.learning.batches import Seen
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.train import Train
from fedsim.learning.training import TrainingSettings

TRAINING, PLAIN, FLOAT32 = TrainingSettings(learning_rate=0.1, batch_size=4), Plain(), Float32()


def training_of(
    dataset: FederatedDataset,
    client: int = 0,
    training: TrainingSettings | Mapping[str, Any] = TRAINING,
    objective: Objective = PLAIN,
    *,
    model: str = "model",
    codec: Codec = FLOAT32,
    capture: Capture | None = None,
    rows: int | None = None,
) -> Train:
    """A client's training on samples of *dataset*, or on so many *rows* of semantics; *model* is its table's digest."""
    options = training if isinstance(training, TrainingSettings) else TrainingSettings(**training)
    return Train(model, options, objective, codec, Seen.of(dataset, client, capture), rows)


def slots(**roles: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[Slot, Any]:
    """``model={"classifier": handle}`` where it goes; of a list, each model has its number."""
    return {
        Slot(role, number, part): handle
        for role, given in roles.items()
        for number, model in enumerate([given] if isinstance(given, Mapping) else given)
        for part, handle in model.items()
    }
