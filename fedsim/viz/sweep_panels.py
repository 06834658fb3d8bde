"""What figures of a sweep have in common: which metrics are drawn, over which of the varied keys, and in which panels.

All begin with the means over seeds, `SweepResults.compare`, whose first columns are the varied keys.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedsim.viz.human import scale
from fedsim.viz.names import shortened

__all__ = [
    "MOST_LETTERS",
    "MOST_PANELS",
    "Metric",
    "drawn_metrics",
    "drawn_rows",
    "is_numeric",
    "name_of",
    "panels_by",
    "sorted_values",
]

MOST_PANELS = 12
"""In one figure of lines; more become too small."""
MOST_LETTERS = 18
"""Of a value."""


@dataclass(frozen=True)
class Metric:
    """What is drawn over keys."""

    column: str
    """Of the means, without ``_mean``."""
    name: str
    title: str
    label: str
    quantity: str | None = None
    """What `fedsim.viz.human.scale` takes; None for a number without a unit."""

    def unit(self, events: pd.DataFrame) -> tuple[float, str]:
        """How many seconds or bytes one on the axis is, and its label with the unit."""
        if self.quantity is None:
            return 1.0, self.label
        unit, name = scale(self.quantity, events[f"{self.column}_mean"].max())
        return unit, f"{self.label}, {name}"


_METRICS = (
    Metric("final_accuracy", "accuracy", "Accuracy at the end", "test accuracy"),
    Metric("rmse", "rmse", "Error at the end", "test error (RMSE)"),
    Metric("sim_time_s", "time", "Simulated time", "simulated time", "seconds"),
    Metric("transfer_bytes", "traffic", "Traffic of the clients", "sent and received by clients", "bytes"),
    Metric("time_to_target_s", "time-to-target", "Simulated time to the target", "time to target", "seconds"),
    Metric("bytes_to_target", "bytes-to-target", "Traffic to the target", "sent and received to target", "bytes"),
)


def drawn_rows(compared: pd.DataFrame, keys: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows of *compared* that were simulated, and those of its *keys* that have several values there.

    Keys with numbers come first; the first key of all is the axis of lines. The values of other keys are texts in these
    rows, and unlike values have unlike texts: 1, ``true`` and ``"1"``, where they stand beside each other.
    """
    events = compared[compared["accounting"] == "event"]
    events = events.assign(**{key: _texts(events[key]) for key in keys if not is_numeric(events[key])})
    varied = [key for key in keys if events[key].nunique() > 1]
    return events, sorted(varied, key=lambda key: not is_numeric(events.loc[:, key]))  # and in their order


def _texts(values: pd.Series[Any]) -> list[str]:
    others = {name_of(value) for value in values if not isinstance(value, str)}
    return [json.dumps(value) if isinstance(value, str) and value in others else name_of(value) for value in values]


def drawn_metrics(events: pd.DataFrame) -> list[Metric]:
    """Those of which any row has a finite mean."""
    nothing = pd.Series(dtype=float)
    return [metric for metric in _METRICS if (events.get(f"{metric.column}_mean", nothing).abs() < math.inf).any()]


def panels_by(
    events: pd.DataFrame, keys: Sequence[str], *, letters: int = MOST_LETTERS
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each combination of the values of *keys*, in words with so many *letters* of a value, and its rows."""
    if not keys:
        yield "", events
        return
    for values, part in events.groupby(list(keys), sort=False):
        named = zip(keys, values, strict=True)
        yield ", ".join(f"{key}={shortened(name_of(value), letters)}" for key, value in named), part


def is_numeric(values: pd.Series[float]) -> bool:
    """Whether all of them are finite numbers, and so have a place on an axis."""
    numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return bool(numbers and (values.abs() < math.inf).all())


def sorted_values(values: pd.Series[float]) -> list[object]:
    """Each once; numbers in order."""
    return list(dict.fromkeys(sorted(values) if is_numeric(values) else values))


def name_of(value: object) -> str:
    """A value as people read it, a truth value as in a scenario.

    >>> name_of(0.1 + 0.2), name_of(5.0), name_of(True), name_of("lte_m_m1")
    ('0.3', '5', 'true', 'lte_m_m1')
    """
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    return f"{value:.9g}" if isinstance(value, float) else str(value)
