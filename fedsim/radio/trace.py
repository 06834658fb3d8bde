"""Rates as they were measured, or worked out elsewhere: a file says what holds from when on, for whom.

Between two rows of the file the first one holds (piecewise constant). Leaves out interpolation and interference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Interval
from pydantic import ValidationInfo, field_validator

from fedsim.errors import Misfit, UserError, nearest, some
from fedsim.files import beside
from fedsim.radio.carrier import Carrier
from fedsim.radio.settings import Duplex, PartialCoverage, RadioPath, Rates, UpDown
from fedsim.radio.trace_file import EVERYBODY, Series, TraceFile, digest, read_trace_file
from fedsim.settings import key_rule

__all__ = ["Trace"]


class Trace(PartialCoverage):
    """Rates, or signal-to-noise ratios, over time for each device, from a CSV file."""

    name: Literal["trace"] = "trace"
    path: str
    """The file, relative to the scenario. Its columns: `time_s`, `device` (a sensor's name, or `*` for all that have no
    rows of their own; may be missing) and `uplink_bps`, `downlink_bps` or `uplink_snr_db`, `downlink_snr_db`."""
    sha256: str | None = None
    """Digest of the file; left out, it is filled in, so that a run is never repeated with another file unnoticed."""
    repeat_every_s: Annotated[float, Interval(ge=1e-3, le=1e12)] | None = None
    """Seconds after which the file begins anew, later than its last row, and at least 0.001; left out, the last row
    holds for ever."""
    carrier: Carrier | None = None
    """What turns signal-to-noise ratios into rates; only for a file that holds such."""

    @field_validator("path")
    @classmethod
    def _beside_the_scenario(cls, path: str, info: ValidationInfo) -> str:
        """An absolute path, so that the scenario means the same file from wherever it is read again.

        The validation's context, if there is one, is the document that is read; its ``source`` is its own path.
        """
        return str(beside(info.context, path))

    @key_rule
    def _know_the_file(self) -> None:
        """Read the file only when its digest is not known: a run's scenario means something without it."""
        if self.sha256 is None:
            try:
                object.__setattr__(self, "sha256", digest(Path(self.path)))
            except UserError as error:
                raise Misfit(str(error), "path") from error

    @property
    def device_duplex(self) -> Duplex:
        """That of the carrier's category, if there is one."""
        return "full" if self.carrier is None else self.carrier.category_duplex

    @property
    def divides_time(self) -> bool:
        """With a carrier that has a pattern of turns."""
        return self.carrier is not None and self.carrier.tdd is not None

    @property
    def usual_discipline(self) -> str:
        """With a carrier that turns ratios into rates, the air is shared out; plain rates go one after the other."""
        return "serial" if self.carrier is None else "fair"

    def rates(self, path: RadioPath) -> Rates:
        """The device's first row."""
        file = self._file()
        return self._rates(file, self._series(file, path), 0)

    def changes(self, path: RadioPath) -> Iterator[tuple[float, Rates]]:
        """The device's other rows; with `repeat_every_s` all of them, again and again."""
        file = self._file()
        series = self._series(file, path)
        times_s = series.time_s
        if len(times_s) == 1:
            return
        for row in range(1, len(times_s)):
            yield times_s[row], self._rates(file, series, row)
        if self.repeat_every_s is not None:
            for turn in count(1):
                for row in range(len(times_s)):
                    yield turn * self.repeat_every_s + times_s[row], self._rates(file, series, row)

    def why_no_coverage(self, path: RadioPath) -> str | None:
        """Of a direction that has no rate in any row, or of both when they never have one together."""
        file = self._file()
        series = self._series(file, path)
        best = self._rates_at(file, UpDown(max(series.uplink), max(series.downlink)))
        if best.uplink_bps == 0.0:
            return self._why(file, series, path, "uplink")
        if best.downlink_bps == 0.0:
            return self._why(file, series, path, "downlink")
        rows = [self._rates(file, series, row) for row in range(len(series.time_s))]
        return None if any(min(rates.uplink_bps, rates.downlink_bps) > 0 for rates in rows) else self._never_both(path)

    def check_sensors(self, sensors: Collection[str]) -> None:
        """Every device in the file is a sensor; `Misfit` names the line of the first that is not."""
        rows, known = self._file().series, {EVERYBODY, *sensors}
        for device, series in rows.items():
            if device not in known:
                free = [sensor for sensor in sensors if sensor not in rows]
                hand = nearest(device, free) or nearest(device.lower(), free)
                way_out = hand or f", only {some(list(sensors))}; rename or remove its rows"
                raise Misfit(f"{self.path}:{series.line}: the topology has no sensor {device!r}{way_out}", "path")

    def _file(self) -> TraceFile:
        try:
            file = read_trace_file(Path(self.path))
        except UserError as error:
            raise Misfit(str(error), "path") from error
        if file.sha256 != (self.sha256 or "").lower():
            raise Misfit(
                f"{self.path} is another file than this scenario was made with: its digest is {file.sha256}; bring the "
                "old one back, or leave sha256 out to use this one",
                "sha256",
            )
        if file.quantity == "snr" and self.carrier is None:
            raise Misfit(
                f"{self.path} holds signal-to-noise ratios, and they need a carrier to become rates; "
                "add carrier: {profile: ..., bandwidth_hz: ...}",
                "path",
            )
        if file.quantity == "rate" and self.carrier is not None:
            raise Misfit(f"{self.path} holds rates already; leave the carrier out", "carrier")
        return file

    def _series(self, file: TraceFile, path: RadioPath) -> Series:
        series = file.series.get(path.sensor) or file.series.get(EVERYBODY)
        if series is None:
            raise Misfit(
                f"{self.path} has no rows for sensor {path.sensor!r}, only for {some(list(file.series))}; "
                f"add some, or rows for the device {EVERYBODY}",
                "path",
            )
        if self.repeat_every_s is not None and self.repeat_every_s <= series.time_s[-1]:
            raise Misfit(
                f"repeat_every_s={self.repeat_every_s:g} must be later than the last row of {path.sensor!r} in "
                f"{self.path}, at {series.time_s[-1]:g} s",
                "repeat_every_s",
            )
        return series

    def _rates(self, file: TraceFile, series: Series, row: int) -> Rates:
        return self._rates_at(file, UpDown(series.uplink[row], series.downlink[row]))

    def _rates_at(self, file: TraceFile, values: UpDown[float]) -> Rates:
        if file.quantity == "rate":
            return Rates(*values)
        assert self.carrier is not None  # `_file` has seen to it
        return self.carrier.rates_at(values)

    def _never_both(self, path: RadioPath) -> str:
        return (
            f"sensor {path.sensor!r} is never in coverage: {self.path} gives it no row with both an uplink and a "
            "downlink; add one, or leave such sensors out with out_of_coverage: exclude"
        )

    def _why(self, file: TraceFile, series: Series, path: RadioPath, direction: Literal["uplink", "downlink"]) -> str:
        best, rows = max(getattr(series, direction)), len(series.time_s)
        column = f"{direction}_bps"
        found = f"{column}=0 in {'its only row' if rows == 1 else f'all of its {rows} rows'}"
        if self.carrier is not None:
            column, needed_db = f"{direction}_snr_db", getattr(self.carrier.efficiency, direction).snr_min_db
            found = f"{column}={best:g} at best, and {self.carrier.profile} needs {needed_db:g}"
        return (
            f"sensor {path.sensor!r} has no coverage in the {direction}: {self.path} gives it {found}; write a larger "
            f"{column}, or leave such sensors out with out_of_coverage: exclude"
        )
