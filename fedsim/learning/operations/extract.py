"""What a frozen extractor makes of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.learning.batches import Seen
from fedsim.learning.operations.operation import Operation

__all__ = ["FEATURES", "LABELS", "SAMPLES", "SEMANTICS", "Extract"]

SEMANTICS = "semantics"
"""The output of an operation that makes rows of semantics: tensors by these names, a row of each for a sample."""

FEATURES, LABELS, SAMPLES = "features", "labels", "samples"


@dataclass(frozen=True)
class Extract(Operation):
    """Rows of semantics: features that the "model" makes of samples, with their labels.

    The samples are those that are *seen*, or the raw ones in the input "remembered".
    """

    name: ClassVar[str] = "extract"
    model: str
    """The table's digest."""
    seen: Seen
    with_samples: bool
    """Whether the raw samples stand beside their semantics."""
