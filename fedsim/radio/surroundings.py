"""Who else is on a device's carrier, and what margin all of them together ask for: `fedsim.radio.interference`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import Misfit
from fedsim.kernel.philox import each
from fedsim.radio.budget import noise_dbm
from fedsim.radio.interference import Interference, OfferedTraffic
from fedsim.radio.propagation.path_loss import Numbers
from fedsim.radio.settings import RadioPath, RadioSettings, UpDown
from fedsim.radio.snr import FromLinkBudget
from fedsim.radio.snr_radio import SnrRadio

__all__ = ["Surroundings"]

MOST_STEPS, CLOSE = 500, 1e-9
AT_ONCE = 1_024
"""Devices whose distances to all stations are in memory together."""
Places = NDArray[np.intp]
Position = tuple[float, float]


class Surroundings:
    """All devices and base stations of a network; nothing is looked at until a radio with interference asks."""

    def __init__(
        self,
        paths: Callable[[], Iterable[RadioPath]],
        radio_of: Callable[[str], RadioSettings],
        positions_m: Callable[[], Sequence[Position | None]],
    ) -> None:
        """*paths* makes all devices', in order; *radio_of* is a sensor's; *positions_m* tells each base station's."""
        self._paths, self._radio_of, self._positions_m = paths, radio_of, positions_m
        self._known: dict[int, _Carrier] = {}

    def margins_db(self, radio: RadioSettings, paths: Sequence[RadioPath]) -> Iterator[tuple[float, UpDown[Numbers]]]:
        """How far other cells lift the noise of *paths*, which are of *radio*: (seconds, decibels), the first at 0."""
        if id(radio) not in self._known:
            own = [path for path in self._paths() if self._radio_of(path.sensor) is radio]
            self._known[id(radio)] = _Carrier(radio, own, self._positions_m())
        carrier = self._known[id(radio)]
        for number, from_s in enumerate(carrier.interference.from_s):
            yield from_s, carrier.margins_db(number, paths)


class _Carrier:
    """The cells of one radio."""

    def __init__(
        self,
        radio: RadioSettings,
        paths: Sequence[RadioPath],
        positions_m: Sequence[Position | None],
    ) -> None:
        assert isinstance(radio, SnrRadio) and isinstance(radio.snr, FromLinkBudget), "no others have the key"
        assert radio.snr.interference is not None, "it would not ask"
        snr, interference = radio.snr, radio.snr.interference
        self._radio, self.interference = radio, interference
        self._indices = np.array([path.index for path in paths], np.intp)
        numbers, self._cell = np.unique([path.station for path in paths], return_inverse=True)
        self._cells = len(numbers)
        self._medians_db = snr.medians_db(paths, radio.bandwidths_hz)
        alone = radio.rates_at_all(self._medians_db)
        self._offers: NDArray[np.bool_] = (alone.uplink_bps > 0) & (alone.downlink_bps > 0)
        self._device, self._other, loss_db = _losses_to_others(snr, interference, paths, numbers, positions_m)
        noises_dbm = UpDown(*map(noise_dbm, radio.bandwidths_hz))
        at_station_db = snr.station_noise_figure_db + snr.uplink_interference_margin_db
        at_device_db = snr.device_noise_figure_db + snr.downlink_interference_margin_db
        uplink_db = snr.device_power_dbm - loss_db - noises_dbm.uplink - at_station_db
        downlink_db = snr.station_power_dbm - loss_db - noises_dbm.downlink - at_device_db
        self._over_noise = UpDown(_linear(uplink_db), _linear(downlink_db))
        """For each device and neighbour, I / N (with the given margin in N) where the other sends all the time."""
        self._margins_db: dict[int, UpDown[Numbers]] = {}

    def margins_db(self, entry: int, paths: Sequence[RadioPath]) -> UpDown[Numbers]:
        """Of some of its devices, while the *entry* of the loads holds."""
        if entry not in self._margins_db:
            self._margins_db[entry] = self._worked_out(entry)
        places = np.searchsorted(self._indices, [path.index for path in paths])
        return UpDown(*(of_all[places] for of_all in self._margins_db[entry]))

    def _worked_out(self, entry: int) -> UpDown[Numbers]:
        if self.interference.loads is None:
            return self._margins(self._heard(*self._given()))
        return self._margins(self._balanced(self.interference.loads[entry]))

    def _given(self) -> tuple[Numbers, Numbers]:
        """What every device sends, and the downlink's loads, where loads are given."""
        uplink, downlink = self.interference.uplink_load, self.interference.downlink_load
        assert uplink is not None and downlink is not None, "checked with the settings"
        senders = self._in_cells(self._offers)[self._cell]
        return uplink * self._offers / np.maximum(senders, 1.0), np.full(self._cells, downlink)

    def _balanced(self, traffic: OfferedTraffic) -> UpDown[Numbers]:
        """The interference whose loads cause it."""
        heard = UpDown(np.zeros(self._cells), np.zeros(len(self._cell)))
        before = UpDown(np.zeros(len(self._cell)), np.zeros(len(self._cell)))
        for _ in range(MOST_STEPS):
            rates = self._radio.rates_under(self._medians_db, self._margins(heard))
            now = UpDown(
                self._parts(traffic.uplink_bps, rates.uplink_bps, rates.uplink_share),
                self._parts(traffic.downlink_bps, rates.downlink_bps, rates.downlink_share),
            )
            found = self._heard(now.uplink * self._radio.uplink_density(rates), self._in_cells(now.downlink))
            heard = UpDown(*(np.maximum(old, new) for old, new in zip(heard, found, strict=True)))
            if all(np.allclose(old, new, rtol=0.0, atol=CLOSE) for old, new in zip(before, now, strict=True)):
                break
            before = now
        return heard

    def _parts(self, offered_bps: float, rate_bps: Numbers, share: Numbers) -> Numbers:
        """The part of its cell's carrier that each device takes."""
        served = rate_bps > 0
        wanted = np.where(self._offers & served, offered_bps * share / np.where(served, rate_bps, 1.0), 0.0)
        parts = wanted / np.maximum(self._in_cells(wanted), 1.0)[self._cell]
        stuck = self._offers & ~served & (offered_bps > 0)
        stuck_there = self._in_cells(stuck)[self._cell]
        return np.where(stuck_there > 0, stuck / np.maximum(stuck_there, 1.0), parts)

    def _heard(self, sent: Numbers, loads: Numbers) -> UpDown[Numbers]:
        """I / N at each station, where every device sends so much, and at each device, at such loads of stations."""
        uplink, downlink = self._over_noise
        return UpDown(
            _sums(self._other, sent[self._device] * uplink, self._cells),
            _sums(self._device, loads[self._other] * downlink, len(self._cell)),
        )

    def _in_cells(self, of_devices: NDArray[Any]) -> Numbers:
        """The sum over the devices of each cell."""
        return _sums(self._cell, of_devices, self._cells)

    def _margins(self, heard: UpDown[Numbers]) -> UpDown[Numbers]:
        """Of each device."""
        uplink_db, downlink_db = (each(math.log1p, ratios) * (10 / math.log(10)) for ratios in heard)
        return UpDown(uplink_db[self._cell], downlink_db)


def _sums(places: Places, numbers: NDArray[Any], most: int) -> Numbers:
    """Of the *numbers* at each place, added in their order."""
    return np.asarray(np.bincount(places, numbers, most), np.float64)


def _linear(decibels: Numbers) -> Numbers:
    return each(lambda number: 10.0 ** (number / 10), decibels)


def _losses_to_others(
    snr: FromLinkBudget,
    interference: Interference,
    paths: Sequence[RadioPath],
    numbers: NDArray[np.int64],
    positions_m: Sequence[Position | None],
) -> tuple[Places, Places, Numbers]:
    """Each device with each of its neighbours, as places in *paths* and in *numbers*, and what is lost on the way.

    *numbers* are those of the base stations that have devices, in order.
    """
    mast_of = dict(zip((path.station for path in paths), (path.mast for path in paths), strict=True))
    masts = np.array([mast_of[number] for number in numbers.tolist()], np.intp)
    if (masts == masts[0]).all():
        return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
    _check_distance_matters(snr)
    there_m = np.array([positions_m[number] for number in numbers.tolist()], np.float64)
    devices, others, losses_db = [], [], []
    for first in range(0, len(paths), AT_ONCE):
        some = paths[first : first + AT_ONCE]
        device, other = _nearest(some, there_m, masts, interference)
        ways = [
            _way(some[one], int(numbers[station]), int(masts[station]), there_m[station].tolist())
            for one, station in zip(device.tolist(), other.tolist(), strict=True)
        ]
        devices.append(device + first)
        others.append(other)
        losses_db.append(_coupling_losses_db(snr, ways) if ways else np.empty(0))
    return np.concatenate(devices), np.concatenate(others), np.concatenate(losses_db)


def _nearest(
    paths: Sequence[RadioPath], there_m: Numbers, masts: Places, interference: Interference
) -> tuple[Places, Places]:
    """Each device with each of its neighbours, the nearest first."""
    here_m = np.array([path.position_m for path in paths], np.float64)
    across_m, up_m = (np.subtract.outer(here_m[:, axis], there_m[:, axis]) for axis in (0, 1))
    square = across_m * across_m + up_m * up_m
    square[np.array([path.mast for path in paths], np.intp)[:, None] == masts] = np.inf
    if interference.within_m is not None:
        square[square > interference.within_m * interference.within_m] = np.inf
    most = min(interference.neighbours, len(masts))
    farthest = np.partition(square, most - 1, axis=1)[:, most - 1 : most]
    device, other = np.nonzero((square <= farthest) & (square < np.inf))
    order = np.lexsort((other, square[device, other], device))
    device, other = device[order], other[order]
    rank = np.arange(len(device)) - np.searchsorted(device, device)
    return device[rank < most], other[rank < most]


def _way(path: RadioPath, station: int, mast: int, there_m: Sequence[float]) -> RadioPath:
    """From the device of *path* to another base station."""
    assert path.position_m is not None, "its median would be refused"
    distance_m = math.dist(path.position_m, there_m)
    return RadioPath(path.sensor, path.index, station, mast, distance_m, path.streams, path.position_m, path.place)


def _coupling_losses_db(snr: FromLinkBudget, ways: Sequence[RadioPath]) -> Numbers:
    try:
        return snr.coupling_losses_db(ways)
    except Misfit as misfit:
        raise Misfit(
            f"{misfit.problem} (on the way to another base station, for interference: within_m leaves out those that "
            "are farther away)",
            *("snr", "interference"),
        ) from misfit


def _check_distance_matters(snr: FromLinkBudget) -> None:
    """Raise `Misfit` where all stations would be equally loud. Distances are known: medians have needed them before."""
    if not snr.path_loss.needs_distance:
        raise Misfit(
            f"path_loss: {snr.path_loss.name} loses as much on the way to every other base station, so each would be "
            "as loud as a device's own; take a path_loss that depends on the distance, or leave interference out",
            *("snr", "interference"),
        )
