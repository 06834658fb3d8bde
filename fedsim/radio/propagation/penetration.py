"""What the outer wall of a building takes away, and the way behind it: outdoor to indoor, TR 38.901 clause 7.4.3.1.

    loss = 5 - 10 lg(sum of share x 10^(-loss of material / 10)) + 0.5 depth + N(0, sigma^2)

with the depth in metres behind the wall, each material's loss at the carrier's frequency (``penetration.csv``), and a
normal number that is drawn once for each device, whichever base station it hears. The low-loss model is 30 % plain
glass and 70 % concrete, the high-loss model 70 % infrared-reflecting glass and 30 % concrete. Leaves out the angle of
incidence beyond the 5 dB that stand for it, and that deep storeys are darker than high ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from fedsim.kernel.philox import normals
from fedsim.radio.propagation.path_loss import Numbers
from fedsim.radio.propagation.tables import rows_of
from fedsim.radio.settings import RadioPath

__all__ = ["Penetration", "penetration_losses_db", "wall_db"]

Penetration = Literal["low_loss", "high_loss"]
ASLANT_DB = 5.0
"""Added because waves do not hit the wall at a right angle only (PL_npi)."""
DB_PER_M = 0.5
"""Behind the wall."""


@dataclass(frozen=True, slots=True)
class _Material:
    share: float
    constant_db: float
    per_ghz_db: float
    sigma_db: float


@cache
def _materials() -> Mapping[str, Sequence[_Material]]:
    found: dict[str, list[_Material]] = {}
    for row in rows_of("penetration.csv"):
        found.setdefault(row["model"], []).append(_Material(*(float(row[field]) for field in _Material.__slots__)))
    return found


def wall_db(model: Penetration, carrier_hz: float) -> float:
    """The mean loss in the outer wall.

    >>> round(wall_db("low_loss", 3.5e9), 2), round(wall_db("high_loss", 3.5e9), 2)
    (12.7, 26.85)
    """
    passed = sum(
        one.share * 10 ** (-(one.constant_db + one.per_ghz_db * carrier_hz / 1e9) / 10) for one in _materials()[model]
    )
    return ASLANT_DB - 10 * math.log10(passed)


def penetration_losses_db(model: Penetration, paths: Sequence[RadioPath], carrier_hz: float) -> Numbers:
    """What each device loses by its building; 0 where its place is not indoors. *paths* are of one seed."""
    losses_db = np.zeros(len(paths))
    depths_m = [(at, path.place.indoor_m) for at, path in enumerate(paths) if path.place.indoor_m is not None]
    if depths_m:
        places = [at for at, _ in depths_m]
        devices = np.array([paths[at].index for at in places], np.uint64)
        key, none = paths[0].streams("radio/penetration").key, np.zeros(1, np.uint64)
        drawn_db = _materials()[model][0].sigma_db * normals(key, devices, none, none, none)
        depth_db = DB_PER_M * np.array([depth_m for _, depth_m in depths_m])
        losses_db[places] = wall_db(model, carrier_hz) + depth_db + drawn_db
    return losses_db
