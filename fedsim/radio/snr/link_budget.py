"""Signal-to-noise ratios from a link budget: powers and antennas against distance, noise and a margin.

Both directions have one path loss, as their carriers lie close together. Leaves out power control (a device always
sends with full power), antenna patterns, and devices that put their power into a part of the band.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import model_validator

from fedsim.errors import Misfit, UserError
from fedsim.radio.budget import PowerBudget, noise_dbm
from fedsim.radio.path_loss.settings import PathLossSettings
from fedsim.radio.settings import SensorSite, UpDown
from fedsim.radio.snr.settings import Decibels, SnrSettings
from fedsim.settings import NonNegative, OneOf, Positive

__all__ = ["FromLinkBudget"]


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

    @model_validator(mode="after")
    def _both_heights_or_none(self) -> Self:
        if (self.station_height_m is None) != (self.device_height_m is None):
            raise ValueError("only one of station_height_m and device_height_m is given; give both, or none")
        return self

    def median_db(self, site: SensorSite, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """Power and gains less losses, noise and margin."""
        uplink, downlink = self.power(site, bandwidths_hz)
        return UpDown(uplink.snr_db, downlink.snr_db)

    def power(self, site: SensorSite, bandwidths_hz: UpDown[float]) -> UpDown[PowerBudget]:
        """Every term. Raises `UserError` naming the sensor when its distance is unknown or too short for the model."""
        way = {
            "antenna_gains_db": self.device_antenna_gain_db + self.station_antenna_gain_db,
            "path_loss_db": self._path_loss_db(site),
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

    def _path_loss_db(self, site: SensorSite) -> float:
        if site.distance_m is None:
            raise Misfit(
                f"the distance of sensor {site.sensor!r} to its base station is unknown, and a link budget needs it; "
                "give both a position_m in the topology, or write snr: {name: given, ...}",
                "snr",
            )
        distance_m = site.distance_m
        if self.station_height_m is not None and self.device_height_m is not None:
            distance_m = math.hypot(distance_m, self.station_height_m - self.device_height_m)
        try:
            return self.path_loss.loss_db(distance_m, self.carrier_hz)
        except UserError as error:
            raise Misfit(f"sensor {site.sensor!r}: {error}", "snr", "path_loss") from error
