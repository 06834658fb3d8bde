"""Rows of semantics: features that an extractor made, the label of each, and the raw sample where it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from fedsim.kernel.streams import Stream
from fedsim.learning.batches import batches
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.operations.extract import FEATURES, LABELS, SAMPLES
from fedsim.learning.training import TrainingSettings

__all__ = ["joined", "rows_of", "shuffled"]


def rows_of(features: torch.Tensor, labels: torch.Tensor, samples: torch.Tensor | None) -> TensorDict:
    """Features, (rows, ...), with the label of each, and the raw samples if they are to be kept."""
    rows = {FEATURES: features.contiguous(), LABELS: labels}
    return rows if samples is None else rows | {SAMPLES: samples}


def shuffled(
    rows: TensorDict, training: TrainingSettings, stream: Stream
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Mini-batches of a training on *rows*: features and labels, in the order that samples would have."""
    sizes = {"batch_size": training.batch_size, "epochs": training.epochs}
    for ids in batches(np.arange(len(rows[LABELS])), **sizes, rng=stream.generator()):
        chosen = torch.from_numpy(ids).to(rows[LABELS].device)
        yield rows[FEATURES][chosen], rows[LABELS][chosen]


def joined(rows: Sequence[TensorDict]) -> TensorDict:
    """All rows, one after the other."""
    return {name: torch.cat([some[name] for some in rows]) for name in rows[0]}
