"""The coefficients of TR 38.901, read from the tables beside this file when the first model asks."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from fedsim.radio.propagation.path_loss import Numbers

__all__ = ["Law", "Range", "Sight", "laws", "ranges", "rows_of", "sights"]


@dataclass(frozen=True, slots=True)
class Law:
    """One formula of table 7.4.1-1, and the shadowing around it; what the formula has not is 0."""

    constant_db: float
    per_decade_db: float
    """For each tenfold of the distance in space."""
    carrier_db: float
    """For each tenfold of the carrier frequency, from 1 GHz on."""
    height_db: float
    """What each metre of the device's height above 1.5 m takes off."""
    far_decade_db: float
    """For each tenfold of the distance beyond the breakpoint."""
    far_db: float
    """What a tenfold of (breakpoint distance^2 + difference of heights^2) takes off beyond it."""
    sigma_db: float
    """Standard deviation of the shadowing."""
    far_sigma_db: float
    """The same beyond the breakpoint."""
    correlation_m: float
    """Over which the correlation of shadowing falls to 1/e."""

    def near_db(self, log_m: Numbers, log_ghz: float) -> Numbers:
        """Up to the breakpoint, at logarithms of distance and frequency."""
        return self.constant_db + self.per_decade_db * log_m + self.carrier_db * log_ghz

    def far_away_db(self, log_m: Numbers, log_ghz: float, log_of_break: Numbers) -> Numbers:
        """Beyond it."""
        return self.constant_db + self.far_decade_db * log_m + self.carrier_db * log_ghz - self.far_db * log_of_break


@dataclass(frozen=True, slots=True)
class Range:
    """For which ways a model holds, and the heights that it has unless others are given."""

    station_m: float
    device_m: float
    nearest_m: float
    farthest_m: float
    farthest_nlos_m: float
    """Without line of sight."""
    on: str
    """Whether distances are on the ``ground`` or in ``space``."""
    least_ghz: float
    most_ghz: float
    lowest_station_m: float
    highest_station_m: float
    lowest_device_m: float
    highest_device_m: float


@dataclass(frozen=True, slots=True)
class Sight:
    """Numbers of one line-of-sight probability of table 7.4.2-1."""

    near_m: float
    """Up to there, the two always see each other."""
    decay_m: float
    """Over which the probability falls to 1/e then."""
    middle_m: float
    """From where on it falls more slowly."""
    middle_share: float
    """What it is there."""
    far_decay_m: float
    """Over which it falls to 1/e from there."""
    far_at_middle: float
    """1 if it does so at that distance already, 0 if only beyond it."""


NUMBERS = tuple(field for field in Range.__slots__ if field != "on")


def rows_of(table: str) -> Iterator[Mapping[str, str]]:
    """The rows of a table beside this file."""
    with (resources.files("fedsim.radio.propagation") / table).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _numbers(row: Mapping[str, str], fields: Iterable[str]) -> list[float]:
    return [float(row[field] or 0) for field in fields]


@cache
def laws() -> Mapping[tuple[str, str], Law]:
    """By model and by ``los``, ``nlos`` or ``o2i`` (outdoor to indoor).

    >>> laws()["uma", "nlos"].per_decade_db
    39.08
    """
    return {
        (model, row["way"]): Law(*_numbers(row, Law.__slots__))
        for row in rows_of("path_loss.csv")
        for model in row["models"].split()
    }


@cache
def ranges() -> Mapping[str, Range]:
    """By model.

    >>> ranges()["rma"].most_ghz
    30.0
    """
    return {
        model: Range(on=row["on"], **dict(zip(NUMBERS, _numbers(row, NUMBERS), strict=True)))
        for row in rows_of("ranges.csv")
        for model in row["models"].split()
    }


@cache
def sights() -> Mapping[str, Sight]:
    """By model, of those whose probability depends on the distance in this way.

    >>> sights()["umi"].decay_m
    36.0
    """
    return {
        model: Sight(*_numbers(row, Sight.__slots__))
        for row in rows_of("line_of_sight.csv")
        for model in row["models"].split()
    }
