"""A source of signal-to-noise ratios: a median for each device and direction, and shadowing around it.

One class and one line per source. Shadowing is what walls and machines take away or let through, a normal number of
decibels that is new now and then:

    X_0 = sigma W_0,   X_n = a X_(n-1) + sigma sqrt(1 - a^2) W_n,   a = exp(-redraw / correlation)

with independent standard normal W: every X has the standard deviation sigma, and values t seconds apart have the
correlation exp(-t / correlation). M. Gudmundson found this law over distance (*Correlation model for shadow fading in
mobile radio systems*, Electronics Letters 27, 1991); here devices stand and the surroundings change, so it is over time
(at a speed v, correlation_s is his distance divided by v). A shadow lies between a station and a device: the same pair
has the same one as long as both keep their positions among stations and devices. Leaves out fast fading, that
neighbours share shadows, and interference that comes and goes: it is a margin, if anything.

Given ratios leave out distance: the median is the same for every device, and only shadowing tells them apart. In a link
budget both directions have one path loss, as their carriers lie close together; it leaves out power control (a device
always sends with full power), antenna patterns, and devices that put their power into a part of the band.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.errors import Misfit, UserError
from fedsim.kernel.philox import Words, normals
from fedsim.radio.budget import PowerBudget, noise_dbm
from fedsim.radio.path_loss import PathLossSettings
from fedsim.radio.settings import RadioPath, UpDown
from fedsim.settings import Component, NonNegative, OneOf, Positive, Settings, key_rule

__all__ = ["REGISTRY", "Decibels", "FromLinkBudget", "Given", "Shadowing", "SnrSettings"]

REGISTRY = {
    "given": "fedsim.radio.snr:Given",
    "link_budget": "fedsim.radio.snr:FromLinkBudget",
}

Decibels = Annotated[float, Interval(ge=-300, le=300)]
"""More is no radio."""
DecibelsOfMany = NDArray[np.float64]
"""One for each of many devices, in their order."""
AT_ONCE = 8_192
"""Numbers that are drawn together where devices are fewer; no number depends on it."""
UNLIKELY = 4.753424  # standard deviations that a normal number exceeds once in a million: scipy.stats.norm.isf(1e-6)


class Shadowing(Settings):
    """Log-normal shadowing: a normal number of decibels for each station and device, the same both ways."""

    sigma_db: Positive
    """Standard deviation."""
    redraw_every_s: Annotated[float, Interval(ge=1e-3, le=1e12)] | None = None
    """Seconds between two draws for one device; left out, one draw is for ever."""
    correlation_s: Positive | None = None
    """Seconds after which a draw's correlation with later ones has fallen to 1/e; left out, draws are independent."""

    @key_rule
    def _correlation_of_redraws(self) -> None:
        if self.correlation_s is not None and self.redraw_every_s is None:
            raise Misfit(
                f"correlation_s={self.correlation_s:g} needs redraw_every_s: one draw that is for ever has no others "
                "to go with; give redraw_every_s, or leave correlation_s out",
                "correlation_s",
            )

    def losses_db(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, DecibelsOfMany]]:
        """Losses of devices: (seconds from which they hold, decibels of each), the first at 0; endless with redraws.

        The n-th draw of a device is a function of the seed, its station, the device and n, of nothing else: who else
        is asked for does not matter. *paths* are of one seed.
        """
        return self._losses_db(_normals_of(paths))

    def _losses_db(self, normals_of_all: Iterator[DecibelsOfMany]) -> Iterator[tuple[float, DecibelsOfMany]]:
        loss_db = self.sigma_db * next(normals_of_all)
        yield 0.0, loss_db
        if self.redraw_every_s is None:
            return
        kept, fresh_db = 0.0, self.sigma_db
        if self.correlation_s is not None:
            blocks = self.redraw_every_s / self.correlation_s
            kept, fresh_db = math.exp(-blocks), self.sigma_db * math.sqrt(-math.expm1(-2 * blocks))
        for number, fresh in enumerate(normals_of_all, 1):
            loss_db = kept * loss_db + fresh_db * fresh
            yield number * self.redraw_every_s, loss_db

    def least_db(self, path: RadioPath) -> float:
        """The least loss to count on: the only draw, or what one draw in a million falls below."""
        if self.redraw_every_s is None:
            return float(next(self.losses_db([path]))[1][0])
        return -UNLIKELY * self.sigma_db


def _normals_of(paths: Sequence[RadioPath]) -> Iterator[DecibelsOfMany]:
    """Standard normal numbers for devices, endless: the n-th array has the n-th number of each."""
    stations = np.array([path.station for path in paths], np.uint64)
    devices = np.array([path.index for path in paths], np.uint64)
    return _normals(paths[0].streams("radio/shadowing").key, stations, devices)


def _normals(key: int, stations: Words, devices: Words) -> Iterator[DecibelsOfMany]:
    first, ahead = 0, 1
    while True:
        numbers = np.arange(first, first + ahead, dtype=np.uint64)[:, None]
        yield from normals(key, numbers, devices, stations, np.zeros(1, np.uint64))  # (ahead, devices)
        first += ahead
        ahead = max(1, min(2 * ahead, AT_ONCE // len(devices)))  # few devices are quicker drawn several times at once


class SnrSettings(Component):
    """What is registered under "snrs"."""

    shadowing: Shadowing | None = None
    """What is drawn around the median for each device; nothing when left out."""

    @abstractmethod
    def median_db(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """The device's ratios without shadowing. Raises `UserError` when they cannot be known."""

    def power(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[PowerBudget] | None:
        """What the median consists of; None where it is just given."""
        return None

    def powers(self, paths: Sequence[RadioPath], bandwidths_hz: UpDown[float]) -> Iterator[UpDown[PowerBudget] | None]:
        """The same of many devices, in their order."""
        return (self.power(path, bandwidths_hz) for path in paths)

    def medians_db(self, paths: Sequence[RadioPath], bandwidths_hz: UpDown[float]) -> UpDown[DecibelsOfMany]:
        """The same ratios of many devices, in their order."""
        medians_db = [self.median_db(path, bandwidths_hz) for path in paths]
        return UpDown(*(np.array(of_all) for of_all in zip(*medians_db, strict=True)))

    def losses_db(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, DecibelsOfMany]]:
        """Losses by shadowing: (seconds from which they hold, decibels of each device), the first at 0; may be endless.

        *paths* are of one seed.
        """
        return self.shadowing.losses_db(paths) if self.shadowing else iter([(0.0, np.zeros(len(paths)))])

    def least_loss_db(self, path: RadioPath) -> float:
        """The least loss by shadowing that the device can count on."""
        return self.shadowing.least_db(path) if self.shadowing else 0.0


class Given(SnrSettings):
    """Signal-to-noise ratios given as numbers, the same for every device apart from shadowing."""

    name: Literal["given"] = "given"
    uplink_db: Decibels
    """At the base station."""
    downlink_db: Decibels
    """At the device."""

    def median_db(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """As given, whatever the bandwidth."""
        return UpDown(self.uplink_db, self.downlink_db)


class FromLinkBudget(SnrSettings):
    """Signal-to-noise ratios from powers, antennas, the path to the base station, and noise."""

    name: Literal["link_budget"] = "link_budget"
    carrier_hz: Positive
    """Carrier frequency of both directions."""
    device_power_dbm: Decibels
    """Transmit power of a device: 23 dBm is usual, 14 or 20 in small ones."""
    station_power_dbm: Decibels
    """Transmit power of a base station: 43 to 46 dBm outdoors, 24 to 30 in a hall."""
    device_noise_figure_db: NonNegative
    """What a device's receiver adds to thermal noise: 5 to 9 dB."""
    station_noise_figure_db: NonNegative
    """What a base station's receiver adds: 3 to 5 dB."""
    device_antenna_gain_db: Decibels = 0.0
    """Gain of a device's antenna, over an isotropic one."""
    station_antenna_gain_db: Decibels = 0.0
    """Gain of a base station's antenna."""
    path_loss: Annotated[PathLossSettings, OneOf("path_losses")]
    """What is lost on the way."""
    extra_loss_db: NonNegative = 0.0
    """What cables, walls and covers take away in addition, in both directions."""
    uplink_interference_margin_db: NonNegative = 0.0
    """How far interference lifts the noise at the base station."""
    downlink_interference_margin_db: NonNegative = 0.0
    """How far interference lifts the noise at the device."""
    station_height_m: NonNegative | None = None
    """Height of the base station's antenna; with `device_height_m`, distances are in space, not on the ground."""
    device_height_m: NonNegative | None = None
    """Height of a device's antenna."""

    @key_rule
    def _both_heights_or_none(self) -> None:
        if (self.station_height_m is None) != (self.device_height_m is None):
            raise ValueError("only one of station_height_m and device_height_m is given; give both, or none")

    def median_db(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """Power and gains less losses, noise and margin."""
        uplink, downlink = self.power(path, bandwidths_hz)
        return UpDown(uplink.snr_db, downlink.snr_db)

    def power(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[PowerBudget]:
        """Every term. Raises `UserError` naming the sensor when its distance is unknown or too short for the model."""
        way = {
            "antenna_gains_db": self.device_antenna_gain_db + self.station_antenna_gain_db,
            "path_loss_db": self._path_loss_db(path),
            "extra_loss_db": self.extra_loss_db,
        }
        return UpDown(
            uplink=PowerBudget(
                power_dbm=self.device_power_dbm,
                **way,
                noise_dbm=noise_dbm(bandwidths_hz.uplink),
                noise_figure_db=self.station_noise_figure_db,
                interference_margin_db=self.uplink_interference_margin_db,
            ),
            downlink=PowerBudget(
                power_dbm=self.station_power_dbm,
                **way,
                noise_dbm=noise_dbm(bandwidths_hz.downlink),
                noise_figure_db=self.device_noise_figure_db,
                interference_margin_db=self.downlink_interference_margin_db,
            ),
        )

    def _path_loss_db(self, path: RadioPath) -> float:
        if path.distance_m is None:
            raise Misfit(
                f"the distance of sensor {path.sensor!r} to its base station is unknown, and a link budget needs it; "
                "give both a position_m in the topology, or write snr: {name: given, ...}",
                "snr",
            )
        distance_m = path.distance_m
        if self.station_height_m is not None and self.device_height_m is not None:
            distance_m = math.hypot(distance_m, self.station_height_m - self.device_height_m)
        try:
            return self.path_loss.loss_db(distance_m, self.carrier_hz)
        except UserError as error:
            raise Misfit(f"sensor {path.sensor!r}: {error}", "snr", "path_loss") from error
