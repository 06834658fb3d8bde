"""The text files of C-MAPSS: one cycle of one engine a line, 26 numbers apart by spaces, engine after engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.archive import read_blob
from fedsim.errors import Flaw, UserError
from fedsim.files import no_text, shown

__all__ = ["COLUMNS", "Engines", "read_engines", "read_lives"]

COLUMNS = 26  # unit, cycle, 3 settings, 21 sensors
MOST_BYTES = 20_000_000  # twice the largest published file; in memory it takes twenty times that
LARGEST = 1e9  # of any number in these files: float32 holds its square


@dataclass(frozen=True, eq=False)
class Engines:
    """What one file says."""

    values: NDArray[np.float64]
    """(24, cycles of all engines) settings and sensors."""
    cycles: tuple[int, ...]
    """Of each engine."""

    @property
    def number(self) -> int:
        """Engines in the file."""
        return len(self.cycles)

    def split(self, values: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """(channels, cycles) of each engine, of (channels, cycles of all engines) *values*."""
        return np.split(values, np.cumsum(self.cycles)[:-1], axis=1)


def read_engines(path: Path) -> Engines:
    """The engines in the file *path*, numbered from 1 in their order, each with its cycles from 1 on.

    Raises `UserError` with path, line, value and rule when they are not.
    """
    table: list[list[float]] = []
    cycles: list[int] = []
    for line, text in _lines(path):
        try:
            row = [_number(cell, place) for place, cell in enumerate(text.split(), start=1)]
            if len(row) != COLUMNS:
                raise Flaw(f"{len(row)} columns, and {COLUMNS} are needed: unit, cycle, 3 settings, 21 sensors")
            unit, cycle = row[:2]
            if unit == len(cycles) + 1 and cycle == 1:
                cycles.append(1)
            elif cycles and unit == len(cycles) and cycle == cycles[-1] + 1:
                cycles[-1] += 1
            else:
                raise Flaw(_order(unit, cycle, cycles))
        except Flaw as error:
            raise UserError(f"{shown(path)}:{line}: {error}") from error
        table.append(row[2:])
    if not table:
        raise UserError(f"{shown(path)}: is empty; one line for each cycle is needed")
    return Engines(np.array(table).T.copy(), tuple(cycles))


def read_lives(path: Path, engines: int) -> NDArray[np.float64]:
    """(engines,) cycles that each one still runs, from a file with one number a line.

    Raises `UserError` with path, line, value and rule when there is another number of them.
    """
    lives = []
    for line, text in _lines(path):
        try:
            cells = text.split()
            if len(cells) != 1:
                raise Flaw(f"{len(cells)} columns, and one is needed: the remaining cycles of an engine")
            life = _number(cells[0], 1)
            if life < 0:
                raise Flaw(f"{life:g} remaining cycles; there must be at least 0")
        except Flaw as error:
            raise UserError(f"{shown(path)}:{line}: {error}") from error
        lives.append(life)
    if len(lives) != engines:
        raise UserError(f"{shown(path)}: has {len(lives)} lines for the {engines} engines of the test file")
    return np.array(lives)


def _lines(path: Path) -> list[tuple[int, str]]:
    """(number, text) of the lines that are not blank."""
    content = read_blob(path, what="a text file of C-MAPSS", most_bytes=MOST_BYTES)
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise no_text(path, error) from error
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def _number(cell: str, column: int) -> float:
    try:
        number = math.nan if "_" in cell else float(cell)
    except ValueError:
        number = math.nan
    if not abs(number) <= LARGEST:
        raise Flaw(f"{cell[:30]!r} in column {column} must be a number, at most {LARGEST:g}")
    return number


def _order(unit: float, cycle: float, cycles: list[int]) -> str:
    expected = "unit 1 with cycle 1"
    if cycles:
        engine = len(cycles)
        expected = f"unit {engine} with cycle {cycles[-1] + 1}, or unit {engine + 1} with cycle 1"
    return f"unit {unit:g} with cycle {cycle:g} stands where {expected} must; is a line lost?"
