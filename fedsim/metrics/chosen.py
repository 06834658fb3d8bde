"""The metrics that a scenario has chosen, as columns of tables, and how such columns are known again by their names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedsim.data.target import NO_UNITS
from fedsim.metrics.confusion import counts_of, false_alarms, macro_f1, missed_faults, recall

__all__ = ["RECALL", "ChosenColumn", "ChosenMetrics", "chosen_column", "chosen_columns"]

RECALL = "recall"
_ENDING = "(?:_(global|clients|unseen|own))?"
_PLAIN = "macro_f1|false_alarms|missed_faults|phm08|recall_.*?|(?:newcomers_)?rmse_[a-z][a-z0-9]*?"
_COLUMN = re.compile(f"({_PLAIN}){_ENDING}", re.DOTALL)


@dataclass(frozen=True)
class ChosenMetrics:
    """Which metrics, and what they need to know of the data set."""

    names: tuple[str, ...] = ()
    """recall, macro_f1, false_alarms, missed_faults, phm08, and the RMSE in the unit of values."""
    class_names: tuple[str, ...] = ()
    """One for each class; empty where there are none, or more than are counted."""
    sound_class: int | None = None
    """Needed for false_alarms and missed_faults."""

    @property
    def columns(self) -> list[str]:
        """What the columns are called, of the test set that is named first."""
        of_classes = [f"{RECALL}_{name}" for name in self.class_names]
        return [column for name in self.names for column in (of_classes if name == RECALL else [name])]

    def of(self, evaluation: Mapping[str, Any]) -> dict[str, float]:
        """The value of each column in one *evaluation* of a model, as far as it can be known: else NaN."""
        if not self.class_names:
            return {name: evaluation.get(name, math.nan) for name in self.names}
        if not evaluation.get("confusion"):  # not evaluated, or diverged
            return dict.fromkeys(self.columns, math.nan)
        counts = counts_of(evaluation["confusion"], len(self.class_names))
        values: list[float] = []
        for name in self.names:
            match name:
                case "recall":
                    values += recall(counts).tolist()
                case "macro_f1":
                    values.append(macro_f1(counts))
                case _:
                    assert self.sound_class is not None, "refused before"
                    share = false_alarms if name == "false_alarms" else missed_faults
                    values.append(share(counts, self.sound_class))
        return dict(zip(self.columns, values, strict=True))


class ChosenColumn(NamedTuple):
    """What the name of a column tells."""

    metric: str
    """Of one test set: ``macro_f1``, ``recall_normal``, ``rmse_cycles``; of newcomers, ``newcomers_rmse_cycles``."""
    test_set: str
    """Empty for the one that ``evaluate.on`` names first."""

    @property
    def class_name(self) -> str | None:
        """Of a recall; None for all others."""
        return self.metric.removeprefix(f"{RECALL}_") if self.metric.startswith(f"{RECALL}_") else None

    @property
    def unit(self) -> str | None:
        """Of an error in a unit; None for all others."""
        _, error, unit = self.metric.rpartition("rmse_")
        return unit if error and self.class_name is None else None

    @property
    def without_unit(self) -> str:
        """The column of the same error in the scale of the data: ``rmse``, ``rmse_clients``, ``newcomers_rmse``."""
        plain = self.metric.removesuffix(f"_{self.unit}")
        return f"{plain}_{self.test_set}" if self.test_set else plain


def chosen_column(name: str) -> ChosenColumn | None:
    """What the column called *name* has; None when it is of no chosen metric.

    >>> chosen_column("rmse_cycles_own"), chosen_column("rmse_own")
    (ChosenColumn(metric='rmse_cycles', test_set='own'), None)
    >>> chosen_column("recall_inner race")
    ChosenColumn(metric='recall_inner race', test_set='')
    """
    found = _COLUMN.fullmatch(name)
    if found is None:
        return None
    column = ChosenColumn(found[1], found[2] or "")
    return None if column.unit in NO_UNITS else column


def chosen_columns(names: Iterable[str]) -> list[str]:
    """Those of *names* that are columns of chosen metrics, in their order."""
    return [name for name in names if chosen_column(name) is not None]
