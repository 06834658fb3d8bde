"""Remembered semantics, moved to where a new extractor would have put them.

(SCC: Zeng et al., *HFedMS*, IEEE TCC 2023, section III-D.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fedsim.learning.operations.extract import FEATURES, LABELS, SEMANTICS
from fedsim.learning.operations.operation import Inputs, Operation, Value

__all__ = ["Compensate"]


@dataclass(frozen=True)
class Compensate(Operation):
    """Eqs. 13 to 15: ``z + mean of now - mean of before``, over the samples of the row's class; Eq. 12: over all.

    Inputs: rows "remembered"; "now" and "before", the same samples by the new extractor and by the old one.
    """

    name: ClassVar[str] = "compensate"
    by: Literal["per_class", "mean"]
    absent: Literal["stays", "mean"]
    """A class without a sample stays as it is, or takes the drift of all samples."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The remembered rows, moved."""
        remembered, now, before = (inputs.one(role) for role in ("remembered", "now", "before"))
        drift = now[FEATURES] - before[FEATURES]  # of each sample; its mean is the difference of the means
        whole = drift.mean(dim=0)
        labels, features = remembered[LABELS], remembered[FEATURES].clone()
        if self.by == "mean":
            features.add_(whole)
            return {SEMANTICS: {**remembered, FEATURES: features}}
        for label in labels.unique().tolist():
            seen = drift[now[LABELS] == label]
            if len(seen):
                features[labels == label] += seen.mean(dim=0)
            elif self.absent == "mean":
                features[labels == label] += whole
        return {SEMANTICS: {**remembered, FEATURES: features}}
