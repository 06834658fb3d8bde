"""The links of all devices over the air, together: terms of link budgets, coverage classes, rows of tables.

Arrays, and no object for each device: there may be hundreds of thousands.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.experiment.description.air import some_by_radio
from fedsim.experiment.description.spread import spread_of
from fedsim.radio.budget import LinkBudget
from fedsim.radio.settings import RadioPath, RadioSettings, RatesOfMany, UpDown
from fedsim.radio.snr_radio import SnrRadio

__all__ = ["link_facts", "merged"]

MOST_ROWS = 5
"""Of a table, that are told for each direction."""


def link_facts(paths: Iterable[RadioPath], radio_of: Callable[[str], RadioSettings]) -> dict[str, Any]:
    """What radios with signal-to-noise ratios make of *paths* at time zero; *radio_of* a sensor's name.

    ``link_budget``: the spread of every term in both directions, in the order in which a rate is worked out; None for a
    direction without it. ``coverage_classes``: how many devices are in each. ``table_rows``: in each direction how many
    different rows are taken, by how many devices, and the most common ones. All are empty where no radio has any.
    """
    found = _Found()
    for radio, some in some_by_radio(paths, radio_of):
        if isinstance(radio, SnrRadio):
            found.count(radio.rates_of(some))
            for both in radio.budgets_of(some):
                found.add(both)
    return {
        "link_budget": list(found.spreads()),
        "coverage_classes": [{"class": one, "devices": found.classes[one]} for one in sorted(found.classes)],
        "table_rows": {way: _most_common(rows) for way, rows in found.rows._asdict().items() if rows},
    }


class _Found:
    def __init__(self) -> None:
        self.order: list[str] = []
        self.units: dict[str, str] = {}
        self.budgets: UpDown[dict[tuple[str, ...], array[float]]] = UpDown({}, {})
        """By the names of their terms: the values of one device after the other."""
        self.classes: Counter[int] = Counter()
        self.rows: UpDown[Counter[str]] = UpDown(Counter(), Counter())

    def count(self, rates: RatesOfMany) -> None:
        """Classes and rows of some devices."""
        if rates.coverage_class is not None:
            classes, devices = np.unique(rates.coverage_class[rates.coverage_class >= 0], return_counts=True)
            self.classes.update(dict(zip(classes.tolist(), devices.tolist(), strict=True)))
        for way, taken in enumerate((rates.uplink_row, rates.downlink_row)):
            for number, devices in enumerate(() if taken is None else np.bincount(taken).tolist()):
                if devices and (row := rates.formats[way][number].row):
                    self.rows[way][row] += devices

    def add(self, both: UpDown[LinkBudget]) -> None:
        """The budget of one device."""
        for known, budget in zip(self.budgets, both, strict=True):
            names, values, units = zip(*budget.rows(), strict=True)
            if names not in known:
                known[names] = array("d")
                self.order = merged(self.order, names)
                self.units |= dict(zip(names, units, strict=True))
            known[names].extend(values)

    def spreads(self) -> Iterator[dict[str, Any]]:
        """Of each term but the rate, which is told elsewhere."""
        for name in self.order:
            both = {way: spread_of(_values(known, name)) for way, known in self.budgets._asdict().items()}
            if name != "rate" and any(both.values()):
                yield {"term": name, "unit": self.units[name], **both}


def _values(budgets: Mapping[tuple[str, ...], array[float]], name: str) -> NDArray[np.float64]:
    """Those of one term; the row of no coverage needs less than any number, and has no maximum."""
    columns = [
        np.frombuffer(values).reshape(-1, len(names))[:, names.index(name)]
        for names, values in budgets.items()
        if name in names
    ]
    found: NDArray[np.float64] = np.concatenate(columns or [np.empty(0)])
    return found[np.isfinite(found)]


def merged(order: Sequence[str], others: Iterable[str]) -> list[str]:
    """Names in *order*, and those of *others* that are new, each behind the one that it follows there.

    >>> merged(["SNR", "efficiency", "rate"], ["SNR", "needed SNR", "rate"])
    ['SNR', 'needed SNR', 'efficiency', 'rate']
    """
    names, behind = list(order), 0
    for name in others:
        if name not in names:
            names.insert(behind, name)
        behind = names.index(name) + 1
    return names


def _most_common(rows: Counter[str]) -> dict[str, Any]:
    ordered = sorted(rows.items(), key=lambda one: (-one[1], one[0]))
    most = [{"row": row, "devices": devices} for row, devices in ordered[:MOST_ROWS]]
    return {"different": len(rows), "devices": rows.total(), "most_common": most}
