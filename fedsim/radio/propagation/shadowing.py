"""Shadowing: what walls and machines take away or let through around the median, a normal number of decibels.

Between one device and two base stations half of the variance is common, because half of what shadows it stands around
the device; stations on one mast share all of it (3GPP TR 36.942: 0.5 between sites, 1 between sectors of a site):

    X = sigma (sqrt(0.5) C(device) + sqrt(0.5) O(mast, device))

With ``redraw_every_s`` it is drawn again and again, because the surroundings move:

    X_0 = sigma W_0,   X_n = a X_(n-1) + sigma sqrt(1 - a^2) W_n,   a = exp(-redraw / correlation)

with independent W as above: every X has the standard deviation sigma, and values t seconds apart have the correlation
exp(-t / correlation). M. Gudmundson found this law over distance (*Correlation model for shadow fading in mobile radio
systems*, Electronics Letters 27, 1991). With ``correlation_m`` neighbours share shadows by it (TR 38.901 clause 7.4.4):
C and O are then random fields over the plane (`fedsim.radio.propagation.waves`) with the correlation exp(-d /
correlation_m), each mast having its own O. At the model's own distances (``model``) these fields are weighted by
whether a device has line of sight.

Leaves out fast fading, and that shadows of two base stations are the more alike the closer these stand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.errors import Misfit
from fedsim.kernel.philox import normals
from fedsim.radio.propagation.path_loss import Numbers, OwnShadows
from fedsim.radio.propagation.waves import Waves
from fedsim.radio.settings import RadioPath
from fedsim.settings import Positive, Settings, key_rule

__all__ = ["BETWEEN_SITES", "UNLIKELY", "Shadowing"]

BETWEEN_SITES = 0.5
"""Correlation of the shadows that one device has to two masts."""
COMMON, OWN = math.sqrt(BETWEEN_SITES), math.sqrt(1 - BETWEEN_SITES)
AT_ONCE = 8_192
"""Numbers that are drawn together where devices are fewer; no number depends on it."""
UNLIKELY = 4.753424  # standard deviations that a normal number exceeds once in a million: scipy.stats.norm.isf(1e-6)
OF_MAST, OF_DEVICE, FIELD_OF_MAST, COMMON_FIELD = range(4)
"""What a draw is of: the last word of its counter."""


AtLeastADecimetre = Annotated[float, Interval(ge=0.1, le=1e9)]
"""A wavelength of 3 GHz. Much less, and the phase of a wave at a position would be lost in rounding."""


class Shadowing(Settings):
    """Log-normal shadowing: a normal number of decibels for each mast and device, the same both ways."""

    sigma_db: Positive | None = None
    """Standard deviation; left out, that of the path-loss model, with and without line of sight."""
    redraw_every_s: Annotated[float, Interval(ge=1e-3, le=1e12)] | None = None
    """Seconds between two draws for one device; left out, one draw is for ever."""
    correlation_s: Positive | None = None
    """Seconds after which a draw's correlation with later ones has fallen to 1/e; left out, draws are independent."""
    correlation_m: AtLeastADecimetre | Literal["model"] | None = None
    """Distance between two devices over which the correlation of their shadows falls to 1/e; `model`: that of the
    path-loss model. Left out, each device has a shadow of its own."""

    @key_rule
    def _correlation_of_redraws(self) -> None:
        if self.correlation_s is not None and self.redraw_every_s is None:
            raise Misfit(
                f"correlation_s={self.correlation_s:g} needs redraw_every_s: one draw that is for ever has no others "
                "to go with; give redraw_every_s, or leave correlation_s out",
                "correlation_s",
            )

    def check_model(self, has_shadows: bool, what: str) -> None:
        """Raise `Misfit` where the model *what*, which may have no shadows of its own, is asked for them."""
        if has_shadows:
            return
        if self.sigma_db is None:
            raise Misfit(
                f"sigma_db is left out, and {what} has no standard deviation of its own; give sigma_db (in decibels: 4 "
                "to 8 are usual), or take a path_loss of TR 38.901",
                "sigma_db",
            )
        if self.correlation_m == "model":
            raise Misfit(
                f"correlation_m=model, and {what} has no distance of its own; give correlation_m in metres, or take a "
                "path_loss of TR 38.901",
                "correlation_m",
            )

    @property
    def asks_model(self) -> bool:
        """Whether `losses_db` needs what a path-loss model says of shadowing."""
        return self.sigma_db is None or self.correlation_m == "model"

    def losses_db(self, paths: Sequence[RadioPath], own: OwnShadows | None = None) -> Iterator[tuple[float, Numbers]]:
        """Losses of devices: (seconds from which they hold, decibels of each), the first at 0; endless with redraws.

        The n-th draw of a device is a function of the seed, its mast, the device and n (with ``correlation_m``, of its
        position instead), of nothing else: who else is asked for does not matter. *paths* are of one seed; *own* is
        the path-loss model's, for those that ask it.
        """
        sigma_db = self._sigma_db(own)
        return ((time_s, sigma_db * number) for time_s, number in self._numbers(self._draws(paths, own)))

    def least_db(self, path: RadioPath, own: OwnShadows | None = None) -> float:
        """The least loss to count on: the only draw, or what one draw in a million falls below."""
        if self.redraw_every_s is None:
            return float(next(self.losses_db([path], own))[1][0])
        return float(-UNLIKELY * np.max(self._sigma_db(own)))

    def _sigma_db(self, own: OwnShadows | None) -> float | Numbers:
        if self.sigma_db is not None:
            return self.sigma_db
        assert own is not None, "checked with the settings"
        return own.sigma_db

    def _draws(self, paths: Sequence[RadioPath], own: OwnShadows | None) -> Iterator[Numbers]:
        if self.correlation_m is None:
            return _draws_of_devices(paths)
        if self.correlation_m != "model":
            return _draws_of_places(paths, np.full(len(paths), self.correlation_m), self.correlation_m)
        assert own is not None, "checked with the settings"
        return _draws_of_places(paths, own.correlation_m, own.reference_m)

    def _numbers(self, draws: Iterator[Numbers]) -> Iterator[tuple[float, Numbers]]:
        """Standard normal numbers that are correlated in time, and when they begin."""
        now = next(draws)
        yield 0.0, now
        if self.redraw_every_s is None:
            return
        kept, fresh = 0.0, 1.0
        if self.correlation_s is not None:
            blocks = self.redraw_every_s / self.correlation_s
            kept, fresh = math.exp(-blocks), math.sqrt(-math.expm1(-2 * blocks))
        for number, drawn in enumerate(draws, 1):
            now = kept * now + fresh * drawn
            yield number * self.redraw_every_s, now


def _draws_of_devices(paths: Sequence[RadioPath]) -> Iterator[Numbers]:
    """Standard normal numbers for devices, endless: the n-th array has the n-th number of each."""
    masts = np.array([path.mast for path in paths], np.uint64)
    devices = np.array([path.index for path in paths], np.uint64)
    key = paths[0].streams("radio/shadowing").key
    none, of_mast, of_device = (np.full(1, word, np.uint64) for word in (0, OF_MAST, OF_DEVICE))
    first, ahead = 0, 1
    while True:
        numbers = np.arange(first, first + ahead, dtype=np.uint64)[:, None]
        common = normals(key, numbers, devices, none, of_device)  # (ahead, devices)
        yield from COMMON * common + OWN * normals(key, numbers, devices, masts, of_mast)
        first += ahead
        ahead = max(1, min(2 * ahead, AT_ONCE // len(devices)))  # few devices are quicker drawn several times at once


def _draws_of_places(paths: Sequence[RadioPath], correlation_m: Numbers, reference_m: float) -> Iterator[Numbers]:
    """The same where devices that stand close to each other have numbers that are close."""
    positions_m = np.array([_position_of(path) for path in paths])
    masts = np.array([path.mast for path in paths])
    groups = _alike(masts, correlation_m)
    key = paths[0].streams("radio/shadowing").key
    for number in count():
        found = np.empty(len(paths))
        common = Waves(key, (number, 0, COMMON_FIELD), reference_m)
        for mast, of_mast in groups.items():
            own = Waves(key, (number, mast, FIELD_OF_MAST), reference_m)
            for distance_m, members in of_mast.items():
                there_m = positions_m[members]
                found[members] = COMMON * common.at(there_m, distance_m) + OWN * own.at(there_m, distance_m)
        yield found


def _alike(masts: NDArray[np.int64], correlation_m: Numbers) -> dict[int, dict[float, NDArray[np.intp]]]:
    """The places of devices by their mast, and by their distance of correlation."""
    found: dict[int, dict[float, NDArray[np.intp]]] = {}
    order = np.lexsort((correlation_m, masts))
    new = (np.diff(masts[order], prepend=-1) != 0) | (np.diff(correlation_m[order], prepend=-1.0) != 0)
    for members in np.split(order, np.flatnonzero(new)[1:]):
        found.setdefault(int(masts[members[0]]), {})[float(correlation_m[members[0]])] = members
    return found


def _position_of(path: RadioPath) -> tuple[float, float]:
    if path.position_m is None:
        raise Misfit(
            f"sensor {path.sensor!r} stands nowhere in particular, and shadows that neighbours share need to know "
            "where; give its position_m in the topology, or leave correlation_m out",
            "snr",
            "shadowing",
            "correlation_m",
        )
    return path.position_m
