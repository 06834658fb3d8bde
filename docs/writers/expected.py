"""What a shipped scenario says that it ends with: a block in its header comment, for people and for tests.

::

    # Expected on seeds 1 to 3, and by hand:
    #   fedavg                   accuracy 0.93 to 0.96    time 12.4 min    traffic 84.6 MB
    #   "fedavg, as many steps"  accuracy 0.95 to 0.98    time 31 min

A row has a protocol's title in results, a range for each metric (a column of summary.csv, whose ``final_`` may be left
out), and what was worked out by hand: simulated time, and bytes on the clients' own hops. The rules: CONTRIBUTING.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedsim.errors import UserError, nearest
from fedsim.viz.human import duration, size

TITLES = {
    (True, True): "Expected on seeds 1 to 3, and by hand:",
    (True, False): "Expected on seeds 1 to 3:",
    (False, True): "Expected by hand:",
}
"""(Whether rows have ranges, whether any was worked out by hand) -> how the block begins."""
SEEDS = (1, 2, 3)
CLOSE = 0.1
"""By which share what was worked out by hand and what was simulated may differ."""

LIKE_A_TITLE = re.compile(r"expected\b.*:", re.IGNORECASE)
LABEL = re.compile(r"""(?:"(?P<double>[^"]+)"|'(?P<single>[^']+)'|(?P<plain>[^\s"',]+))(?=\s|$)""")
NUMBER = re.compile(r"-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")
UNITS = {
    "time": {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    "traffic": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
}


@dataclass
class Row:
    """What one protocol ends with."""

    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Metric -> the smallest and the largest value."""
    by_hand: dict[str, float] = field(default_factory=dict)
    """``time`` in seconds and ``traffic`` in bytes, where they were worked out."""


def expected(path: Path) -> dict[str, Row]:
    """The rows of the block in the scenario at *path*, by protocol; none where it has no block.

    Raises `UserError` with file and line for what is not as the rules have it.
    """
    return in_header(path.read_text(encoding="utf-8"), str(path))


def in_header(text: str, source: str) -> dict[str, Row]:
    """As `expected`, of the *text* of a scenario; messages call it *source*."""
    header = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        header.append(line[1:].rstrip())
    begins = [at for at, line in enumerate(header, 1) if LIKE_A_TITLE.fullmatch(line.strip())]
    if not begins:
        return {}
    if len(begins) > 1:
        raise UserError(f"{source}:{begins[1]}: a second block of what is expected; write one, with all protocols")
    [begin] = begins
    place = f"{source}:{begin}: "
    title = header[begin - 1].strip()
    if title not in TITLES.values():
        raise UserError(f"{place}{title!r} is no title of a block; write one of: {quoted(TITLES.values())}")
    rows: dict[str, Row] = {}
    for at, line in enumerate(header[begin:], begin + 1):
        if not line:
            break
        try:
            label, row = parsed(line)
            if label in rows:
                raise ValueError(f"{label!r} stands twice; write one row for each protocol")
        except ValueError as error:
            raise UserError(f"{source}:{at}: {error}") from None
        rows[label] = row
    if not rows:
        raise UserError(f"{place}no row follows; write one for each protocol, indented by two spaces or more")
    ranged = [label for label, row in rows.items() if row.ranges]
    if ranged and len(ranged) < len(rows):
        missing = next(label for label in rows if label not in ranged)
        raise UserError(f"{place}{missing!r} has no range of a metric, and other protocols have; add one")
    fits = TITLES[bool(ranged), any(row.by_hand for row in rows.values())]
    if title != fits:
        raise UserError(f"{place}the title is {title!r}; for what the rows have it must be {fits!r}")
    return rows


def parsed(line: str) -> tuple[str, Row]:
    """A row of a block: the protocol's title, and what it ends with. Raises `ValueError` for what is none.

    >>> parsed("   'a, b'  accuracy 0.9 to 1  rmse 10 to 12  time 1.5 h  traffic 1,423 kB")
    ('a, b', Row(ranges={'accuracy': (0.9, 1.0), 'rmse': (10.0, 12.0)}, by_hand={'time': 5400.0, 'traffic': 1423000.0}))
    """
    form = "write: protocol  METRIC LOW to HIGH  time NUMBER UNIT  traffic NUMBER UNIT"
    if not line.startswith("  "):
        raise ValueError(f"{line.strip()!r} is not indented; indent rows, and end the block with a line '#'")
    found = LABEL.match(line.strip())
    if found is None:
        raise ValueError(f"{line.strip()!r} does not begin with a protocol; put titles with a comma in quotes")
    label, row = found["double"] or found["single"] or found["plain"], Row()
    words = line.strip()[found.end() :].split()
    if not words:
        raise ValueError(f"nothing stands behind {label!r}; {form}")
    while words:
        name = words.pop(0)
        if NUMBER.fullmatch(name) or not re.fullmatch(r"[a-z]\w*", name):
            raise ValueError(f"{name!r} is no metric; {form}; put titles with spaces in quotes")
        if name in row.ranges or name in row.by_hand:
            raise ValueError(f"{label!r} has {name!r} twice")
        if name in UNITS:
            value, unit = (*words[:2], "", "")[:2]
            if unit not in UNITS[name]:
                raise ValueError(
                    f"{name} {value} {unit}".rstrip() + f": the unit must be one of {', '.join(UNITS[name])}"
                )
            row.by_hand[name] = read(value) * UNITS[name][unit]
            if row.by_hand[name] <= 0:
                raise ValueError(f"{name} {value} {unit}: must be above 0; leave out what was not worked out")
            del words[:2]
        else:
            low, to, high = (*words[:3], "", "", "")[:3]
            if to != "to":
                raise ValueError(f"{' '.join([name, *words[:3]])!r} is no range; write {name} LOW to HIGH")
            row.ranges[name] = (read(low), read(high))
            if not read(low) <= read(high):
                raise ValueError(f"{name} {low} to {high}: the smaller number comes first")
            del words[:3]
    return label, row


def read(word: str) -> float:
    """A number as people write it, such as ``1,423.5``. Raises `ValueError` where it is none."""
    if not NUMBER.fullmatch(word):
        raise ValueError(f"{word!r} is no number; write digits, such as 0.95 or 1,423")
    return float(word.replace(",", ""))


def quoted(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))


# -- beside what was measured -----------------------------------------------------------------------------------------


def column(metric: str, columns: Iterable[str]) -> str:
    """The column of summary.csv that is called *metric*, or so with ``final_`` before it.

    Raises `UserError` where there is none.

    >>> column("accuracy_own", ["final_accuracy_own", "rmse"]), column("rmse", ["final_accuracy_own", "rmse"])
    ('final_accuracy_own', 'rmse')
    """
    columns = list(columns)
    for name in (metric, f"final_{metric}"):
        if name in columns:
            return name
    known = [name.removeprefix("final_") for name in columns]
    raise UserError(f"summary.csv has no column {metric!r} or 'final_{metric}'{nearest(metric, known)}")


def misses(row: Row, metrics: Mapping[str, float], *, sim_time_s: float, transfer_bytes: float) -> Iterator[str]:
    """What of *row* a run is outside of, in words.

    >>> row = Row({"accuracy": (0.9, 1.0)}, {"time": 100.0, "traffic": 1e6})
    >>> list(misses(row, {"accuracy": 0.9}, sim_time_s=110.0, transfer_bytes=0.9e6))
    []
    >>> list(misses(row, {"accuracy": 0.89}, sim_time_s=111.0, transfer_bytes=0.9e6))
    ['accuracy 0.89 is not within 0.9 to 1', 'time 111 s is not within 10 % of the 100 s by hand']
    """
    for metric, (low, high) in row.ranges.items():
        value = metrics.get(metric, math.nan)
        if not low <= value <= high:
            yield f"{metric} {value:.6g} is not within {low:g} to {high:g}"
    for name, simulated, said in (("time", sim_time_s, duration), ("traffic", transfer_bytes, size)):
        by_hand = row.by_hand.get(name)
        if by_hand is not None and not abs(simulated - by_hand) <= CLOSE * by_hand:
            yield f"{name} {said(simulated)} is not within {100 * CLOSE:.0f} % of the {said(by_hand)} by hand"
