"""A radio trace: a CSV file of rates or signal-to-noise ratios over time, for each device or for all alike.

    time_s,device,uplink_bps,downlink_bps          or   ...,uplink_snr_db,downlink_snr_db
    0,*,1.0e6,5.0e6

The first line names the columns, in any order; without ``device``, or where it is ``*``, a row is for every device that
has none of its own. Each device's first row is at 0 and its times increase. Lines that begin with ``#`` and other
columns are passed over, unless their names are nearly those above. Leaves out other separators and compressed files.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fedsim.errors import Flaw, some
from fedsim.files import read_text_file, shown
from fedsim.lines import Lines, open_csv
from fedsim.quick import check_work
from fedsim.settings import LARGEST, SMALLEST

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["EVERYBODY", "MOST_BYTES", "Series", "TraceFile", "digest", "read_trace_file"]

EVERYBODY = "*"
WHAT = "a trace"
MOST_BYTES = 100_000_000
MOST_BYTES_IN_SECONDS = 30_000_000
LONGEST_ROW = 100_000
"""Characters: a few words and numbers, and whatever else a table has."""
MOST_DB = 300.0

Quantity = Literal["rate", "snr"]
COLUMNS: dict[Quantity, tuple[str, str]] = {
    "rate": ("uplink_bps", "downlink_bps"),
    "snr": ("uplink_snr_db", "downlink_snr_db"),
}
KNOWN = ("time_s", "device", *COLUMNS["rate"], *COLUMNS["snr"])


@dataclass(frozen=True, slots=True)
class Series:
    """One device's rows, in the order of time."""

    line: int
    """Where the first one stands in the file."""
    time_s: array[float] = field(default_factory=lambda: array("d"))
    uplink: array[float] = field(default_factory=lambda: array("d"))
    """bit/s or dB, as the file's quantity says."""
    downlink: array[float] = field(default_factory=lambda: array("d"))


@dataclass(frozen=True, slots=True)
class TraceFile:
    """What a trace holds."""

    quantity: Quantity
    series: dict[str, Series]
    """By device."""
    sha256: str
    """Digest of the file's text."""


def digest(path: Path) -> str:
    """The SHA-256 of a file's text, in hexadecimal digits. Raises `UserError` when there is none to read."""
    return hashlib.sha256(read_text_file(path, what=WHAT, most_bytes=MOST_BYTES).encode()).hexdigest()


def read_trace_file(path: Path) -> TraceFile:
    """The trace in *path*, read again only when the file has changed.

    Raises `UserError` with file, line, value, rule and way out when it is no trace.
    """
    state = path.stat() if path.is_file() else None  # then it is read, which says why not
    return _read(path, state and (state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=8)
def _read(path: Path, version: tuple[int, int] | None) -> TraceFile:
    with open_csv(path, what=WHAT, most_bytes=MOST_BYTES, longest_row=LONGEST_ROW) as (rows, lines):
        check_work(path.stat().st_size / 1e6, MOST_BYTES_IN_SECONDS / 1e6, f"MB of {WHAT}", shown(path))
        quantity, series = _parse(rows, lines)
    return TraceFile(quantity, series, digest(path))


def _parse(rows: Reader, lines: Lines) -> tuple[Quantity, dict[str, Series]]:
    meant = filter(_meant, lines.rows(rows))
    header = next(meant, None)
    if header is None:
        raise Flaw(f"the file has no line with names of columns; it must begin with time_s,{','.join(COLUMNS['rate'])}")
    quantity, device_at, *numbers_at = _places([name.strip() for name in header])
    found: dict[str, Series] = {}
    for row in meant:
        if len(row) != len(header):
            raise Flaw(f"{len(row)} columns, and the first line names {len(header)}")
        device = EVERYBODY if device_at is None else row[device_at].strip()
        series = found.get(device)
        if series is None:
            series = found[device] = _begun(device, rows.line_num)
        _append(series, device, quantity, [row[place] for place in numbers_at])
    if not found:
        raise Flaw("there are no rows below the names of the columns; add one for time 0")
    return quantity, found


def _meant(row: Sequence[str]) -> bool:
    """Whether a line says something: it is neither empty nor a remark."""
    if row and row[0] and not row[0].isspace():
        return not row[0].lstrip().startswith("#")
    return any(cell.strip() for cell in row)


def _places(names: Sequence[str]) -> tuple[Quantity, int | None, int, int, int]:
    """What the columns hold, and where device (None: no such column), time, uplink and downlink stand."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise Flaw(f"two columns are called {name!r}; keep one")
    for name in names:
        close = difflib.get_close_matches(name.lower(), KNOWN, n=1, cutoff=0.8)
        if close and name not in KNOWN:
            raise Flaw(f"the column {name!r} is not read; did you mean {close[0]!r}? Rename or remove it")
    found: list[Quantity] = [quantity for quantity, columns in COLUMNS.items() if set(columns) & set(names)]
    if len(found) == 2:
        raise Flaw("there are columns of rates and of signal-to-noise ratios, and one kind is needed; remove the other")
    quantity = found[0] if found else "rate"
    needed = ("time_s", *COLUMNS[quantity])
    missing = [name for name in needed if name not in names]
    if missing:
        if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
            raise Flaw("columns are separated by commas, and numbers have points; save the file as such a CSV")
        other = "" if found else f" (or {' and '.join(COLUMNS['snr'])})"
        raise Flaw(
            f"no column is called {missing[0]!r}; the columns are {some([name[:30] for name in names], most=10)}, and "
            f"{', '.join(needed)}{other} are needed"
        )
    time, uplink, downlink = map(names.index, needed)
    return quantity, names.index("device") if "device" in names else None, time, uplink, downlink


def _begun(device: str, line: int) -> Series:
    if not device:
        raise Flaw(f"no device; write {EVERYBODY} for all that have no rows of their own")
    return Series(line)


def _append(series: Series, device: str, quantity: Quantity, cells: Sequence[str]) -> None:
    """One more row; *cells* are time, uplink and downlink."""
    try:
        time_s, uplink, downlink = map(float, cells)
    except ValueError:
        time_s = uplink = downlink = math.nan
    if not math.isfinite(time_s + uplink + downlink):
        _refuse_what_is_no_number(quantity, cells)
    if min(uplink, downlink) < SMALLEST or max(uplink, downlink) > LARGEST or quantity == "snr":
        _refuse_what_is_impossible(quantity, uplink, downlink)
    if not series.time_s:
        if time_s != 0:
            problem = f"the first row of {device!r} is at time_s={time_s:g} and must be at 0"
            raise Flaw(f"{problem}; add a row with time_s=0 before it")
    elif time_s <= series.time_s[-1]:
        before_s = series.time_s[-1]
        raise Flaw(f"time_s={time_s:g} of {device!r} comes after {before_s:g}, and times must increase; sort the rows")
    series.time_s.append(time_s)
    series.uplink.append(uplink)
    series.downlink.append(downlink)


def _refuse_what_is_no_number(quantity: Quantity, cells: Sequence[str]) -> None:
    for name, cell in zip(("time_s", *COLUMNS[quantity]), cells, strict=True):
        try:
            is_number = math.isfinite(float(cell))
        except ValueError:
            is_number = False
        if not is_number:
            raise Flaw(f"{name}={cell.strip()[:30]!r} must be a finite number")


def _refuse_what_is_impossible(quantity: Quantity, uplink: float, downlink: float) -> None:
    for name, value in zip(COLUMNS[quantity], (uplink, downlink), strict=True):
        if quantity == "rate" and value < 0:
            raise Flaw(f"{name}={value:g} must be at least 0; 0 is no coverage")
        if quantity == "rate" and value != 0 and not SMALLEST <= value <= LARGEST:
            raise Flaw(f"{name}={value:g} must be 0 or from {SMALLEST:g} to {LARGEST:g}")
        if quantity == "snr" and abs(value) > MOST_DB:
            raise Flaw(f"{name}={value:g} must be from {-MOST_DB:g} to {MOST_DB:g} dB; {-MOST_DB:g} is no coverage")
