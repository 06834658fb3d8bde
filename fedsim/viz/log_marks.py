"""What a logarithmic axis of seconds or bytes marks: round values with their unit, neither too few nor too many."""

from __future__ import annotations

import math
from itertools import takewhile

from fedsim.viz.human import size

__all__ = ["log_marks"]

_FINEST_FIRST = (("1235", 6), ("15", 6), ("1", 9))
"""With which digits marks begin, as long as there are no more than so many."""
_UNITS = {  # of time: its seconds, and the numbers of it that are round
    "µs": (1e-6, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    "ms": (1e-3, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    "s": (1.0, (1, 2, 5, 10, 20, 30)),
    "min": (60.0, (1, 2, 5, 10, 20, 30)),
    "h": (3600.0, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)),
}
_TIMES = {number * unit: (number, f"{number:,} {name}") for name, (unit, round_) in _UNITS.items() for number in round_}


def log_marks(quantity: str, least: float, most: float) -> dict[float, str]:
    """Marks from *least* to *most* (above 0), and what they are called; *quantity* is seconds or bytes.

    They are at 1, 2, 5 and 10 of a unit where the axis is short, and at powers of ten where it is long.

    >>> list(log_marks("bytes", 0.9e6, 12e6).values()), list(log_marks("seconds", 8, 3_000).values())
    (['1 MB', '2 MB', '5 MB', '10 MB'], ['10 s', '1 min', '5 min', '10 min'])
    >>> list(log_marks("bytes", 1e3, 2e9).values())
    ['1 kB', '10 kB', '100 kB', '1 MB', '10 MB', '100 MB', '1 GB']
    """
    known = {value: mark for value, mark in _known(quantity, most).items() if value >= least * (1 - 1e-9)}
    for digits, many in _FINEST_FIRST:
        found = {value: text for value, (number, text) in known.items() if f"{number:.0f}"[0] in digits}
        if len(found) <= many:
            return found
    return dict(list(found.items())[:: -(-len(found) // many)])


def _known(quantity: str, most: float) -> dict[float, tuple[float, str]]:
    """All marks up to *most*: the number that stands in each, and its text."""
    if quantity == "seconds":
        return {value: mark for value, mark in _TIMES.items() if value <= most * (1 + 1e-9)}
    powers = range(max(0, math.floor(math.log10(most))) + 1)
    values = (float(digit * 10**power) for power in powers for digit in (1, 2, 5))
    return {value: (value, size(value)) for value in takewhile(lambda value: value <= most * (1 + 1e-9), values)}
