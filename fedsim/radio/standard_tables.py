"""Tables of standards that come with the package, and what several technologies count in the same way."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

__all__ = ["SUBCARRIERS", "SYMBOLS", "precoded_sizes", "table"]

SUBCARRIERS = 12
"""Of a resource block (TS 36.211 table 6.2.3-1, TS 38.211 clause 4.4.4.1)."""
SYMBOLS = 14
"""Of an LTE subframe or an NR slot, normal cyclic prefix (TS 36.211 clause 6.2.3, TS 38.211 table 4.3.2-1)."""


def table(package: str, name: str) -> list[dict[str, str]]:
    """The rows of a CSV file, whose first lines may be comments."""
    with (resources.files(package) / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@cache
def precoded_sizes(most: int) -> tuple[int, ...]:
    """Numbers of resource blocks that an uplink with transform precoding may have: products of 2, 3 and 5.

    Source: TS 36.211 clause 5.3.3, TS 38.211 clause 6.3.1.4.

    >>> precoded_sizes(16)
    (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16)
    """
    return tuple(size for size in range(1, most + 1) if pow(30, size, size) == 0)
