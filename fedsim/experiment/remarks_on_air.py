"""What is unusual about the air of the cells: who shares it, what devices can do there, and how long they send."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import UserError
from fedsim.experiment.description.air import Air, some_by_radio
from fedsim.models.table import ModelTable
from fedsim.network.disciplines.serial import Serial
from fedsim.network.settings import CellSettings, NetworkSettings
from fedsim.radio.fixed import Fixed, profiles
from fedsim.radio.nb_iot.radio import NbIot
from fedsim.radio.settings import RadioPath, RadioSettings, RatesOfMany
from fedsim.radio.shannon import Shannon
from fedsim.radio.table_radio import TableRadio
from fedsim.scenario.build import Materials
from fedsim.scenario.document import KeyPath
from fedsim.scenario.schema import Scenario
from fedsim.units import bits, si
from fedsim.viz.human import duration

__all__ = ["Said", "remarks_on_air", "too_slow"]

Said = Iterator[tuple[KeyPath, str]]
"""Keys below a cell's, and what there is to say of them."""


def remarks_on_air(scenario: Scenario, materials: Materials) -> Iterator[tuple[KeyPath, KeyPath, str]]:
    """For each entry that cells have: where it stands, keys below it, and what there is to say of them."""
    devices = _Devices(scenario, materials)
    for where, cell in _cells_of(scenario.network):
        if devices.first(where) is None:
            continue
        word = scenario.written.word(("network", *where, "duplex"))
        for key, text in (
            *_shared(cell, word),
            *_one_at_a_time(cell, devices, where),
            *_above_its_category(cell, devices, where),
            *_full_duplex(scenario, cell),
            *(
                list(_slow_air(cell, materials.table))
                or _long_transfers(scenario, cell, devices.slow(where), materials.table)
            ),
        ):
            yield where, key, text


def _cells_of(network: NetworkSettings) -> Iterator[tuple[KeyPath, CellSettings]]:
    """Each entry, and what it says."""
    yield ("cell",), network.cell
    for station, cell in network.cells.items():
        yield ("cells", station), cell


class _Slow(NamedTuple):
    """Devices with low rates."""

    part: float
    """Of the devices there that have rates."""
    slowest_bps: float


class _Devices:
    """Those in the cells that each entry is for; looked at once for all entries, when first asked for."""

    def __init__(self, scenario: Scenario, materials: Materials) -> None:
        self._network = scenario.network
        self._topology = materials.topology
        self._air = Air(scenario, materials.topology, materials.seed)
        self._least_bps = bits(materials.table.bytes()) / scenario.network.max_transfer_s

    def first(self, where: KeyPath) -> RadioPath | None:
        """The first of them; None where there is none."""
        return self._first.get(where)

    def held_back(self, where: KeyPath) -> tuple[int, int]:
        """How many of them have ratios for more than their category does, and how many there are."""
        return self._held_back[where]

    def slow(self, where: KeyPath) -> _Slow | None:
        """Those for which a model takes too long in a direction; None where there are none."""
        return self._slow.get(where)

    @cached_property
    def _first(self) -> dict[KeyPath, RadioPath]:
        found: dict[KeyPath, int] = {}
        for index, sensor in enumerate(self._topology.sensors):
            found.setdefault(self._where(sensor), index)
            if len(found) > len(self._network.cells):  # each entry, and the one for all others
                break
        return dict(zip(found, self._air.paths(found.values()), strict=True))

    @cached_property
    def _held_back(self) -> dict[KeyPath, tuple[int, int]]:
        counts: dict[KeyPath, tuple[int, int]] = {}
        for where, radio, own in self._by_entry():
            if isinstance(radio, Shannon) and radio.category is not None:
                most_bps, uncut = radio.most_bps, radio.uncut_of(own)
                more = (uncut.uplink_bps > most_bps.uplink) | (uncut.downlink_bps > most_bps.downlink)
                held_back, all_of_them = counts.get(where, (0, 0))
                counts[where] = held_back + int(more.sum()), all_of_them + len(own)
        return counts

    @cached_property
    def _slow(self) -> dict[KeyPath, _Slow]:
        """Of devices that have rates at time zero; the others wait for coverage first."""
        rates_bps: dict[KeyPath, list[NDArray[np.float64]]] = {}
        for where, first in self._first.items():
            if isinstance(fixed := self._air.radio_of(first.sensor), Fixed):  # all alike
                rates_bps[where] = [_lower(fixed.rates_of([first]))]
        if len(rates_bps) < len(self._first):  # to look at each path takes a second in a large network
            for where, radio, own in self._by_entry():
                if not isinstance(radio, Fixed):
                    with suppress(UserError):  # that is for the network to say
                        rates_bps.setdefault(where, []).append(_lower(radio.rates_of(own)))
        found = {where: np.concatenate(several) for where, several in rates_bps.items()}
        return {
            where: _Slow(float((rates < self._least_bps).mean()), float(rates.min()))
            for where, rates in found.items()
            if rates.min(initial=math.inf) < self._least_bps
        }

    def _by_entry(self) -> Iterator[tuple[KeyPath, RadioSettings, list[RadioPath]]]:
        """All paths, many at a time, by the entry for their cells."""
        for radio, some in some_by_radio(self._air.paths(), self._air.radio_of):
            here: dict[KeyPath, list[RadioPath]] = {}
            for path in some:
                here.setdefault(self._where(path.sensor), []).append(path)
            yield from ((where, radio, own) for where, own in here.items())

    def _where(self, sensor: str) -> KeyPath:
        """The entry for the cell of *sensor*."""
        station = self._topology.cell_of(sensor)
        return ("cells", station) if station in self._network.cells else ("cell",)


def _lower(rates: RatesOfMany) -> NDArray[np.float64]:
    """The lower rate of each device that has both."""
    lower_bps = np.minimum(rates.uplink_bps, rates.downlink_bps)
    covered: NDArray[np.float64] = lower_bps[lower_bps > 0]
    return covered


def _shared(cell: CellSettings, word: object) -> Said:
    """Where both directions share one channel, under its old name or though the technology has two."""
    if word == "half":
        yield (
            ("duplex",),
            "'half' is read as 'shared', one channel for both directions, which it meant before; write shared, or "
            "leave it out: NB-IoT and LTE-M have a channel each way, and devices that are half-duplex",
        )
    elif cell.duplex == "shared" and cell.radio.device_duplex == "half":
        yield (
            ("duplex",),
            "with shared, uploads and downloads of different devices wait for each other, though the radio has a "
            "frequency for each direction; leave duplex out: half-duplex devices are known by their class",
        )


def _one_at_a_time(cell: CellSettings, devices: _Devices, where: KeyPath) -> Said:
    """Where a device that can use a part of the carrier only has all of it."""
    if not isinstance(cell.discipline, Serial) or (first := devices.first(where)) is None:
        return
    if isinstance(cell.radio, TableRadio):  # shares are of the row that each device has
        yield (
            ("discipline",),
            "serial gives one device at a time a whole carrier, of which it can use a part: the rows of the "
            "technology's tables have shares; a base station serves several such devices at once: {name: fair}",
        )
        return
    rates = cell.radio.rates(first)  # shares are a category's or a profile's, and so alike in one cell
    if min(rates.uplink_share, rates.downlink_share) < 1:
        yield (
            ("discipline",),
            f"serial gives one device at a time a whole carrier, of which it can use {rates.uplink_share:.3g} up and "
            f"{rates.downlink_share:.3g} down; a base station serves several such devices at once: {{name: fair}}",
        )


def _above_its_category(cell: CellSettings, devices: _Devices, where: KeyPath) -> Said:
    """Where devices would have more than their category does."""
    radio = cell.radio
    if not isinstance(radio, Shannon) or radio.category is None or devices.first(where) is None:
        return
    cut, all_of_them = devices.held_back(where)
    if cut:
        yield (
            ("radio", "category"),
            f"{cut} of {all_of_them} devices have ratios for more than {radio.category} does; they are held at its "
            f"{radio.most_bps.uplink / 1e3:g} kbit/s up and {radio.most_bps.downlink / 1e3:g} kbit/s down",
        )


def _full_duplex(scenario: Scenario, cell: CellSettings) -> Said:
    if cell.radio.device_duplex == "full":
        return
    for name, kind in scenario.devices.classes.items():
        if kind.duplex == "full":
            yield ("radio",), f"is for half-duplex devices, and those of class {name!r} are said to be full-duplex"


def _slow_air(cell: CellSettings, model: ModelTable) -> Said:
    """Where rates are below those of any technology."""
    if isinstance(cell.radio, Fixed) and cell.radio.profile is None:
        for key in ("uplink_bps", "downlink_bps"):
            if text := too_slow(getattr(cell.radio, key), model):
                yield ("radio", key), text


def _long_transfers(scenario: Scenario, cell: CellSettings, slow: _Slow | None, model: ModelTable) -> Said:
    """Where a model takes longer over the air than people wait for it."""
    most_s, radio = scenario.network.max_transfer_s, cell.radio
    if slow is not None:
        narrow = isinstance(radio, NbIot) or str(getattr(radio, "profile", "")).startswith("nb_iot")
        who = "each device" if slow.part == 1 else f"{100 * slow.part:.2g} % of the devices"
        yield (
            ("radio",),
            f"a model of {si(model.bytes(), 'B')} takes {who} longer than max_transfer_s={most_s:g}, alone on the air, "
            f"and up to {duration(bits(model.bytes()) / slow.slowest_bps)}; others send less (LASP: hfedms_d; a "
            f"smaller model; a codec), or take a faster radio{', such as lte_m' if narrow else ''}",
        )


def too_slow(rate_bps: float, model: ModelTable) -> str | None:
    """What to say of a rate that no technology is as slow as."""
    name, slowest_bps = min(
        ((name, min(rates.uplink_bps, rates.downlink_bps)) for name, rates in profiles().items()), key=itemgetter(1)
    )
    if rate_bps >= slowest_bps:
        return None
    unit, exponent = ("Mbit/s", 6) if rate_bps <= 1e3 else ("kbit/s", 3)
    takes = duration(bits(model.bytes()) / rate_bps)
    return (
        f"{rate_bps:g} bit/s: a model of {si(model.bytes(), 'B')} takes {takes}; the "
        f"slowest technology, {name}, has {si(slowest_bps, 'bit/s')} (docs/network.md#rates); for {rate_bps:g} {unit} "
        f"write {rate_bps!r}e+{exponent}"
    )
