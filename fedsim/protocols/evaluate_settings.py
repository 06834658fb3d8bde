"""When models are evaluated, on what, and which metrics are shown of what is counted."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from fedsim.errors import Misfit, nearest
from fedsim.settings import Count, Name, NonNegativeInt, Settings, Several, key_rule

__all__ = ["OF_FAULTS", "EvaluateSettings", "Metric"]

OF_FAULTS = ("false_alarms", "missed_faults")
"""Metrics that ask which class is sound."""
_NAMES = ("recall", "macro_f1", *OF_FAULTS, "phm08")
_RMSE = "rmse_[a-z][a-z0-9]*"


def _known(name: str) -> str:
    if name in _NAMES or re.fullmatch(_RMSE, name):
        return name
    near = nearest(name, (*_NAMES, "rmse_cycles"))
    raise ValueError(f"no metric is called {name!r:.50}{near} ({', '.join(_NAMES)}, or rmse_ and a unit)")


Metric: TypeAlias = Annotated[
    str,
    AfterValidator(_known),
    Field(json_schema_extra={"anyOf": [{"enum": [*_NAMES, "rmse_cycles"]}, {"pattern": f"^{_RMSE}$"}]}),
]
"""The name of a metric: one of `_NAMES`, or the root mean squared error in a unit."""


class EvaluateSettings(Settings):
    """When and on what models are evaluated. The last model is always evaluated."""

    every: Count = 1
    """Evaluate after every so many rounds."""
    on: Several[Literal["global", "clients", "unseen", "own"]] = ("global",)
    """Test sets: the global one, the clients' own, and those of unseen clients that never take part. With own, each
    client's own test set is for its own model: what is learned together, with the parts that it keeps to itself.
    A target accuracy is one of the first set named."""
    metrics: Several[Metric] | None = None
    """Columns beside accuracy (or RMSE) and loss. For classes: recall (a column for each class), macro_f1,
    false_alarms (the share of sound samples taken for faulty), missed_faults (the share of faulty samples taken for
    sound). For values: the RMSE in the unit of the data set, as rmse_cycles, and phm08 (the score of PHM 2008). Left
    out: the RMSE in the unit, where the data set has one. All of it is counted in any case, so the choice trains
    nothing again."""
    sound_class: Name | None = None
    """The class of what has no fault, for false_alarms and missed_faults, by its name (where classes have none, by its
    number, in quotes); left out, the one that the data set says."""
    finetune_epochs: NonNegativeInt = 0
    """Passes over its own training samples that each client makes with its own model before that is scored, by plain
    SGD; the tuned model is scored and thrown away. Only with own."""
    finetune_timed: bool = False
    """Whether that takes simulated time: what clients have in common is sent to each client that can be reached, and
    its device computes. For evaluations that are due by ``every``, and for that of the last of ``stop.rounds``."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.on or len(set(self.on)) < len(self.on):
            raise ValueError("evaluate.on must name at least one test set, and none twice")
        return self

    @key_rule
    def _tuned_models_are_scored(self) -> None:
        if self.finetune_epochs and "own" not in self.on:
            problem = f"{self.finetune_epochs} is for clients' own models, and evaluate.on does not name them"
            raise Misfit(f"{problem}; write on: [own], or leave it out", "finetune_epochs")
        if self.finetune_timed and not self.finetune_epochs:
            raise Misfit("true needs finetune_epochs of at least 1", "finetune_timed")

    @key_rule
    def _metrics_are_shown_once(self) -> None:
        asked = self.metrics or ()
        if len(set(asked)) < len(asked):
            raise Misfit(f"{list(asked)} must name each metric once", "metrics")
        if self.sound_class is not None and not set(OF_FAULTS) & set(asked):
            problem = f"{self.sound_class!r} is for {' and '.join(OF_FAULTS)}, and evaluate.metrics names neither"
            raise Misfit(f"{problem}; add one, or leave it out", "sound_class")
