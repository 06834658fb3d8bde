"""What the uplinks of devices are like at time zero, for a drawing to give each its colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import UserError
from fedsim.experiment.description.air import Air, some_by_radio
from fedsim.radio.settings import RadioPath, RadioSettings, RatesOfMany
from fedsim.radio.snr_radio import SnrRadio
from fedsim.scenario.schema import Scenario
from fedsim.topology.graph import Topology
from fedsim.viz.topology_map.hues import Hues, Quantity

__all__ = ["device_hues"]

_MISSING = {
    "snr": "no radio here has signal-to-noise ratios (radio {radios}); colour by rate",
    "class": "no radio here has coverage classes (radio {radios}); colour by snr or rate",
    "rate": "every uplink is unlimited (radio {radios}), so there is nothing to tell apart",
}


def device_hues(scenario: Scenario, topology: Topology, seed: int, quantity: Quantity) -> Hues:
    """The colours of all devices of *topology* by one *quantity*.

    Raises `UserError` when no device in coverage has it, and when a radio cannot know its rates.
    """
    air = Air(scenario, topology, seed)
    values, covered = np.full(len(topology.sensors), np.nan), np.zeros(len(topology.sensors), np.bool_)
    radios: dict[str, None] = {}
    for radio, paths in some_by_radio(air.paths(), air.radio_of):
        places = [path.index for path in paths]
        with air.about_radio_of(paths[0].sensor):
            rates = radio.rates_of(paths)
            values[places] = _values(quantity, radio, paths, rates)
        covered[places] = (rates.uplink_bps > 0) & (rates.downlink_bps > 0)
        radios[radio.name] = None
    if not covered.any():
        raise UserError("--colour: the air reaches none of the devices at time zero")
    if not np.isfinite(values[covered]).any():
        raise UserError(f"--colour {quantity}: {_MISSING[quantity].format(radios=', '.join(radios))}")
    return Hues(quantity, seed, topology.sensors, values, covered)


def _values(
    quantity: Quantity, radio: RadioSettings, paths: Sequence[RadioPath], rates: RatesOfMany
) -> NDArray[np.float64] | float:
    if quantity == "rate":
        return rates.uplink_bps
    if quantity == "snr":
        return radio.snr_of(paths).uplink if isinstance(radio, SnrRadio) else np.nan
    classes = rates.coverage_class
    return np.nan if classes is None else np.where(classes < 0, np.nan, classes)
