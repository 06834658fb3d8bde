"""A source of signal-to-noise ratios: a median for each device and direction, and shadowing around it.

One class and one line per source. Given ratios leave out distance: the median is the same for every device, and only
shadowing (`fedsim.radio.propagation.shadowing`) tells them apart. In a link budget both directions have one path loss
(`fedsim.radio.propagation`), as their carriers lie close together; it leaves out power control (a device always sends
with full power), antenna patterns, and devices that put their power into a part of the band. Interference is a margin,
given or worked out from the loads of other cells (`fedsim.radio.interference`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.errors import Misfit, UserError, within
from fedsim.kernel.philox import philox
from fedsim.radio.budget import PowerBudget, noise_dbm
from fedsim.radio.interference import Interference
from fedsim.radio.propagation.path_loss import OwnShadows, PathLossSettings, Ways
from fedsim.radio.propagation.penetration import Penetration, penetration_losses_db
from fedsim.radio.propagation.shadowing import Shadowing
from fedsim.radio.settings import RadioPath, UpDown
from fedsim.settings import Component, NonNegative, OneOf, Positive, key_rule

__all__ = ["REGISTRY", "Decibels", "FromLinkBudget", "Given", "SnrSettings"]

REGISTRY = {
    "given": "fedsim.radio.snr:Given",
    "link_budget": "fedsim.radio.snr:FromLinkBudget",
}

Decibels = Annotated[float, Interval(ge=-300, le=300)]
"""More is no radio."""
DecibelsOfMany = NDArray[np.float64]
"""One for each of many devices, in their order."""


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
        if self.shadowing is None:
            return iter([(0.0, np.zeros(len(paths)))])
        return self.shadowing.losses_db(paths, self._asked_shadows(paths))

    def least_loss_db(self, path: RadioPath) -> float:
        """The least loss by shadowing that the device can count on."""
        return self.shadowing.least_db(path, self._asked_shadows([path])) if self.shadowing else 0.0

    def own_shadows(self, paths: Sequence[RadioPath]) -> OwnShadows | None:
        """What the source itself says of shadowing; None where it says nothing."""
        return None

    def coupling_losses_db(self, paths: Sequence[RadioPath]) -> DecibelsOfMany | None:
        """Median losses between the two antenna connectors; None where ratios are just given."""
        return None

    def _asked_shadows(self, paths: Sequence[RadioPath]) -> OwnShadows | None:
        return self.own_shadows(paths) if self.shadowing and self.shadowing.asks_model else None


class Given(SnrSettings):
    """Signal-to-noise ratios given as numbers, the same for every device apart from shadowing."""

    name: Literal["given"] = "given"
    uplink_db: Decibels
    """At the base station."""
    downlink_db: Decibels
    """At the device."""

    @key_rule
    def _shadows_of_their_own(self) -> None:
        if self.shadowing:
            with within("shadowing"):
                self.shadowing.check_model(False, "snr: {name: given}")

    def median_db(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """As given, whatever the bandwidth."""
        return UpDown(self.uplink_db, self.downlink_db)

    def medians_db(self, paths: Sequence[RadioPath], bandwidths_hz: UpDown[float]) -> UpDown[DecibelsOfMany]:
        """The same for all."""
        return UpDown(np.full(len(paths), self.uplink_db), np.full(len(paths), self.downlink_db))


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
    penetration: Penetration = "low_loss"
    """The outer walls of buildings, for devices whose place has an `indoor_m`. low_loss: plain glass and concrete;
    high_loss: mostly glass that reflects infrared (TR 38.901 clause 7.4.3.1)."""
    extra_loss_db: NonNegative = 0.0
    """What cables, walls and covers take away in addition, in both directions; a device's place may add more."""
    uplink_interference_margin_db: NonNegative = 0.0
    """How far interference lifts the noise at the base station."""
    downlink_interference_margin_db: NonNegative = 0.0
    """How far interference lifts the noise at the device."""
    interference: Interference | None = None
    """What cells on the same carrier add to both margins, by their load; left out, nothing."""
    station_height_m: NonNegative | None = None
    """Height of the base station's antenna. Left out, that of the path-loss model's scenario; a model that has none
    counts distances on the ground then."""
    device_height_m: NonNegative | None = None
    """Height of a device's antenna, unless its place has a `height_m`. Left out, as for the base station."""

    @key_rule
    def _both_heights_or_none(self) -> None:
        model: object = self.path_loss
        usual = isinstance(model, PathLossSettings) and model.usual_heights_m is not None
        if (self.station_height_m is None) != (self.device_height_m is None) and not usual:
            raise ValueError("only one of station_height_m and device_height_m is given; give both, or none")

    @key_rule
    def _model_fits(self) -> None:
        model: object = self.path_loss
        if not isinstance(model, PathLossSettings):  # one whose code is not to be run
            return
        try:
            model.check_carrier(self.carrier_hz)
        except UserError as error:
            raise Misfit(f"carrier_hz={self.carrier_hz:g} does not fit: {error}", "carrier_hz") from error
        if self.shadowing:
            with within("shadowing"):
                self.shadowing.check_model(model.has_shadows, f"path_loss: {model.name}")

    def median_db(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """Power and gains less losses, noise and margin."""
        uplink, downlink = self.medians_db([path], bandwidths_hz)
        return UpDown(float(uplink[0]), float(downlink[0]))

    def medians_db(self, paths: Sequence[RadioPath], bandwidths_hz: UpDown[float]) -> UpDown[DecibelsOfMany]:
        """Of many: term by term what `PowerBudget.snr_db` is of one."""
        losses_db = self._losses_db(paths)
        return UpDown(*(fixed.snr_after(*losses_db) for fixed in self._fixed(bandwidths_hz)))

    def power(self, path: RadioPath, bandwidths_hz: UpDown[float]) -> UpDown[PowerBudget]:
        """Every term. Raises `UserError` naming the sensor when its distance is unknown or none of the model's."""
        [both] = self.powers([path], bandwidths_hz)
        return both

    def powers(self, paths: Sequence[RadioPath], bandwidths_hz: UpDown[float]) -> Iterator[UpDown[PowerBudget]]:
        """The same of many devices, in their order."""
        fixed = self._fixed(bandwidths_hz)
        for path_db, extra_db, penetration_db in zip(
            *(of_all.tolist() for of_all in self._losses_db(paths)), strict=True
        ):
            losses = {"path_loss_db": path_db, "extra_loss_db": extra_db, "penetration_loss_db": penetration_db}
            yield UpDown(replace(fixed.uplink, **losses), replace(fixed.downlink, **losses))

    def coupling_losses_db(self, paths: Sequence[RadioPath]) -> DecibelsOfMany:
        """Losses on the way, less the gains of both antennas."""
        path_db, extra_db, penetration_db = self._losses_db(paths)
        return path_db + extra_db + penetration_db - self._gains_db

    def own_shadows(self, paths: Sequence[RadioPath]) -> OwnShadows | None:
        """What the path-loss model's source says."""
        ways = self._ways(paths)
        with _naming(paths):
            return self.path_loss.own_shadows(ways)

    @property
    def _gains_db(self) -> float:
        return self.device_antenna_gain_db + self.station_antenna_gain_db

    def _fixed(self, bandwidths_hz: UpDown[float]) -> UpDown[PowerBudget]:
        """What is the same for every device."""
        return UpDown(
            uplink=PowerBudget(
                power_dbm=self.device_power_dbm,
                antenna_gains_db=self._gains_db,
                noise_dbm=noise_dbm(bandwidths_hz.uplink),
                noise_figure_db=self.station_noise_figure_db,
                interference_margin_db=self.uplink_interference_margin_db,
            ),
            downlink=PowerBudget(
                power_dbm=self.station_power_dbm,
                antenna_gains_db=self._gains_db,
                noise_dbm=noise_dbm(bandwidths_hz.downlink),
                noise_figure_db=self.device_noise_figure_db,
                interference_margin_db=self.downlink_interference_margin_db,
            ),
        )

    def _losses_db(self, paths: Sequence[RadioPath]) -> tuple[DecibelsOfMany, DecibelsOfMany, DecibelsOfMany]:
        """Path loss, extra loss and penetration loss of each; shadowing comes on top."""
        ways = self._ways(paths)
        with _naming(paths):
            path_db = self.path_loss.losses_db(ways)
        extra_db = self.extra_loss_db + np.array([path.place.extra_loss_db for path in paths])
        return path_db, extra_db, penetration_losses_db(self.penetration, paths, self.carrier_hz)

    def _ways(self, paths: Sequence[RadioPath]) -> Ways:
        station_m, device_m = self.path_loss.usual_heights_m or (None, None)
        station_m = station_m if self.station_height_m is None else self.station_height_m
        device_m = device_m if self.device_height_m is None else self.device_height_m
        if station_m is None or device_m is None:
            heights_m = np.zeros(len(paths))
        else:
            heights_m = np.array(
                [device_m if path.place.height_m is None else path.place.height_m for path in paths], np.float64
            )
        return Ways(
            distance_m=self._distances_m(paths),
            carrier_hz=self.carrier_hz,
            station_height_m=np.full(len(paths), station_m or 0.0),
            device_height_m=heights_m,
            indoor_m=np.array(
                [math.nan if path.place.indoor_m is None else path.place.indoor_m for path in paths], np.float64
            ),
            lots=_lots_of(paths),
        )

    def _distances_m(self, paths: Sequence[RadioPath]) -> DecibelsOfMany:
        for path in paths:
            if path.distance_m is None and self.path_loss.needs_distance:
                raise Misfit(
                    f"the distance of sensor {path.sensor!r} to its base station is unknown, and a link budget needs "
                    "it; give both a position_m in the topology, or write snr: {name: given, ...}",
                    "snr",
                )
            if (path.place.indoor_m or 0.0) > (math.inf if path.distance_m is None else path.distance_m):
                raise Misfit(
                    f"sensor {path.sensor!r} stands {path.place.indoor_m:g} m deep in a building (place.indoor_m), and "
                    f"its base station is {path.distance_m:g} m away, which must be at least as far; give a smaller "
                    "indoor_m to its class, or move it",
                    "snr",
                )
        return np.array([math.nan if path.distance_m is None else path.distance_m for path in paths], np.float64)


@contextmanager
def _naming(paths: Sequence[RadioPath]) -> Iterator[None]:
    """A block in which a path-loss model that does not hold for one of the *paths* is told of with its sensor."""
    try:
        yield
    except UserError as error:
        sensor = paths[getattr(error, "place", 0)].sensor
        raise Misfit(f"sensor {sensor!r}: {error}", "snr", "path_loss") from error


def _lots_of(paths: Sequence[RadioPath]) -> NDArray[np.float64]:
    """A uniform number for each device and mast, which decides whether they see each other."""
    devices = np.array([path.index for path in paths], np.uint64)
    masts = np.array([path.mast for path in paths], np.uint64)
    none = np.zeros(1, np.uint64)
    words = philox(paths[0].streams("radio/line_of_sight").key, devices, masts, none, none)[0]
    lots: NDArray[np.float64] = (words >> np.uint64(11)) * 2.0**-53
    return lots
