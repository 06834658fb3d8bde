"""The link of one device over the air at time zero: how it comes to its rates, and what a model takes over it.

Nothing is simulated, and only this link is worked out: a device without coverage, for whose sake a run may refuse the
scenario, has a budget too, which says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from fedsim.errors import UserError, nearest, some
from fedsim.experiment.description.air import Air
from fedsim.experiment.description.links import merged
from fedsim.experiment.description.network import air_facts
from fedsim.network.blocks import air_bits
from fedsim.network.packets import Loss, put_on_link
from fedsim.network.settings import CellSettings
from fedsim.radio.fixed import Fixed
from fedsim.radio.settings import RadioPath, RadioSettings, Rates, TransportFormat
from fedsim.radio.snr import FromLinkBudget
from fedsim.radio.snr_radio import SnrRadio
from fedsim.radio.trace import Trace
from fedsim.scenario.build import Materials, gather_materials
from fedsim.scenario.schema import Scenario
from fedsim.units import bits

__all__ = ["describe_links"]


def describe_links(scenario: Scenario, devices: Sequence[str]) -> list[dict[str, Any]]:
    """The facts about the link of each of *devices*, which are sensors' names, on the scenario's first seed.

    ``terms`` are those of its link budget, each with its ``unit`` and its value ``uplink`` and ``downlink`` (None where
    a direction has none); a radio without budgets has only rates, and ``rates_from`` says where they are from. Seconds
    are those of the whole model over this link, alone and without losses; None where there is no coverage.

    Raises `UserError` when there is no such sensor, and when topology, data and model do not fit each other.
    """
    materials = gather_materials(scenario, scenario.seeds[0])
    numbers = {name: _number(name, materials.topology.sensors) for name in devices}
    air = Air(scenario, materials.topology, materials.seed)
    found = []
    for path in air.paths(numbers.values()):
        cell = air.cell(path.sensor)
        with air.about_radio_of(path.sensor):
            [rates] = cell.radio.rates_of([path])
            of_radio = _of_radio(cell.radio, path, rates)
        station = materials.topology.cell_of(path.sensor)
        found.append(
            {
                "device": path.sensor,
                "device_class": materials.device_classes[path.index],
                "seed": materials.seed,
                "station": station,
                "air": air_facts([cell])[0],
                "distance_m": path.distance_m,
                "position_m": path.position_m,
                **_place(cell.radio, path),
                **of_radio,
                "model": _model(scenario, materials, cell, path.index, rates),
            }
        )
    return found


def _number(name: str, sensors: Sequence[str]) -> int:
    """Its position among *sensors*."""
    if name in sensors:
        return sensors.index(name)
    raise UserError(f"--link: no device is called {name!r}{nearest(name, sensors) or f', only {some(sensors)}'}")


def _of_radio(radio: RadioSettings, path: RadioPath, rates: Rates) -> dict[str, Any]:
    covered = min(rates.uplink_bps, rates.downlink_bps) > 0
    return {
        "terms": _terms(radio, path, rates),
        "rates_from": None if isinstance(radio, SnrRadio) else _origin(radio),
        "uplink_bps": rates.uplink_bps,
        "downlink_bps": rates.downlink_bps,
        "uplink_row": rates.uplink_format.row,
        "downlink_row": rates.downlink_format.row,
        "coverage_class": rates.coverage_class,
        "no_coverage": None if covered else radio.why_no_coverage(path) or "none at time zero, but later",
    }


def _terms(radio: RadioSettings, path: RadioPath, rates: Rates) -> list[dict[str, Any]]:
    if not isinstance(radio, SnrRadio):
        both = [
            [("share of the carrier", rates.uplink_share, ""), ("rate", rates.uplink_bps, "bit/s")],
            [("share of the carrier", rates.downlink_share, ""), ("rate", rates.downlink_bps, "bit/s")],
        ]
    else:
        both = [budget.rows() for budget in radio.budgets(path)]
    up, down = ({name: value for name, value, _ in terms if isfinite(value) or name == "rate"} for terms in both)
    units = {name: unit for terms in both for name, _, unit in terms}
    order = merged([name for name, _, _ in both[0]], (name for name, _, _ in both[1]))
    return [
        {"term": name, "unit": units[name], "uplink": up.get(name), "downlink": down.get(name)}
        for name in order
        if name in up or name in down
    ]


def _origin(radio: RadioSettings) -> str:
    """Where rates come from that follow from no budget."""
    if isinstance(radio, Fixed):
        return "plain numbers of the scenario" if radio.profile is None else f"nominal rates of {radio.profile}"
    return f"{radio.path}, at time zero" if isinstance(radio, Trace) else f"radio {radio.name}, without a budget"


def _place(radio: RadioSettings, path: RadioPath) -> dict[str, Any]:
    """Heights as far as they are known, and what is around the device."""
    station_m, device_m, own = None, None, path.place
    if isinstance(radio, SnrRadio) and isinstance(radio.snr, FromLinkBudget):
        usual_m = radio.snr.path_loss.usual_heights_m or (None, None)
        station_m, device_m = (
            usual if given is None else given
            for usual, given in zip(usual_m, (radio.snr.station_height_m, radio.snr.device_height_m), strict=True)
        )
    return {
        "station_height_m": station_m,
        "device_height_m": device_m if own.height_m is None else own.height_m,
        "indoor_m": own.indoor_m,
        "extra_loss_db": own.extra_loss_db,
    }


def _model(scenario: Scenario, materials: Materials, cell: CellSettings, index: int, rates: Rates) -> dict[str, Any]:
    """The whole model that devices of its class train, on the air."""
    own = scenario.devices.classes[materials.device_classes[index]].model
    size_bytes = materials.client_tables[index].bytes()
    access_s = cell.radio.access_delays_s
    put_bits = bits(put_on_link(size_bytes, scenario.network.transport, Loss(), None).bytes)
    return {
        "name": (own or scenario.model).name,
        "bytes": size_bytes,
        "uplink_s": _seconds(put_bits, rates.uplink_bps, rates.uplink_format, cell.delay_s + access_s.uplink),
        "downlink_s": _seconds(put_bits, rates.downlink_bps, rates.downlink_format, cell.delay_s + access_s.downlink),
    }


def _seconds(put_bits: float, rate_bps: float, row: TransportFormat, delay_s: float) -> float | None:
    """With the mean of block errors, where those are drawn."""
    if rate_bps == 0:
        return None
    return air_bits(put_bits, replace(row, block_errors=0.0)) / (1.0 - row.block_errors) / rate_bps + delay_s
