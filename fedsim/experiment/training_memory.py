"""The memory that one process takes to train client after client in the plain loop, in float32."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.training import TrainingSettings
from fedsim.models.segmented import whole
from fedsim.models.table import BYTES_PER_PARAMETER, LayerTable, ModelTable

__all__ = ["activation_bytes", "samples_bytes", "training_bytes"]


def activation_bytes(table: ModelTable, batch: int) -> float | None:
    """What every layer gives for each sample of a mini-batch; None where layers are not known."""
    table = whole(table)
    if not isinstance(table, LayerTable):
        return None
    numbers = prod(table.input_shape) + sum(map(prod, table.activation_shapes.values()))
    return float(BYTES_PER_PARAMETER * numbers * batch)


def samples_bytes(dataset: FederatedDataset) -> float:
    """Of the samples, as they are kept; 0 where there are none."""
    return 0.0 if dataset.stored is None else float(dataset.stored.nbytes)


def training_bytes(
    tables: Iterable[ModelTable],
    objective: Objective,
    settings: TrainingSettings,
    dataset: FederatedDataset,
    *,
    hands_over: bool,
) -> float:
    """A module for each of the *tables*, and for each further model that the *objective* receives; gradients, momentum
    and activations of the largest training, and the model that it *hands over* to another process, if it does.

    A mini-batch is no larger than what a client has.
    """
    tables = list(tables)
    roles = len(objective.receives)
    copies = 1 + bool(settings.momentum) + objective.reads_start
    batch = min(settings.batch_size, int(dataset.client_samples.max()))
    modules = sum((1 + roles) * table.bytes() for table in tables)
    largest = max(copies * table.bytes() + (activation_bytes(table, batch) or 0.0) for table in tables)
    return modules + largest + (max(table.bytes() for table in tables) if hands_over else 0.0)
