"""What the author of a scenario may not have meant, though it is no mistake: said before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from fedsim.kernel.streams import Streams
from fedsim.network.disciplines.serial import Serial
from fedsim.network.settings import CellSettings
from fedsim.network.sites import sites_of
from fedsim.radio.settings import SensorSite
from fedsim.radio.shannon import Shannon
from fedsim.scenario.build import Materials
from fedsim.scenario.document import KeyPath
from fedsim.scenario.schema import Scenario

__all__ = ["remarks_before"]


def remarks_before(scenario: Scenario, materials: Materials) -> list[str]:
    """A sentence for each key whose value is unusual, on the seed of *materials*: with the key and where it stands."""
    sites = _Sites(scenario, materials)
    return [
        scenario.written.remark(text, ("network", *where, *key))
        for where, cell in _cells(scenario)
        for key, text in (
            *_shared(cell, scenario.written.word(("network", *where, "duplex"))),
            *_one_at_a_time(cell, sites),
            *_above_its_category(cell, sites),
            *_full_duplex(scenario, cell),
        )
    ]


Said = Iterator[tuple[KeyPath, str]]
"""Keys below a cell's, and what there is to say of them."""


def _cells(scenario: Scenario) -> Iterator[tuple[KeyPath, CellSettings]]:
    network = scenario.network
    yield ("cell",), network.cell
    for station, cell in network.cells.items():
        yield ("cells", station), cell


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
            "shared makes all devices of a cell wait for both directions, and its radio has a frequency for each; that "
            "one device does one of both at a time is known without it",
        )


class _Sites:
    """Where the devices of each kind of cell are; found when first asked for, which most scenarios never do."""

    def __init__(self, scenario: Scenario, materials: Materials) -> None:
        self._network = scenario.network
        self._topology = materials.topology
        self._streams = Streams(materials.seed)

    def of(self, cell: CellSettings) -> Iterator[SensorSite]:
        """Those in cells with these settings."""
        network, station_of = self._network, self._topology.cell_of
        sites = sites_of(self._topology, self._streams)
        return (site for site in sites if network.cells.get(station_of(site.sensor), network.cell) is cell)


def _one_at_a_time(cell: CellSettings, sites: _Sites) -> Said:
    """Where a device that can use a part of the carrier only has all of it."""
    if not isinstance(cell.discipline, Serial) or (first := next(sites.of(cell), None)) is None:
        return
    rates = cell.radio.rates(first)
    if min(rates.uplink_share, rates.downlink_share) < 1:
        yield (
            ("discipline",),
            f"serial gives one device at a time a whole carrier, of which it can use {rates.uplink_share:.3g} up and "
            f"{rates.downlink_share:.3g} down; a base station serves several such devices at once: {{name: fair}}",
        )


def _above_its_category(cell: CellSettings, sites: _Sites) -> Said:
    """Where devices would have more than their category does."""
    radio = cell.radio
    if not isinstance(radio, Shannon) or radio.category is None or not (own := list(sites.of(cell))):
        return
    most_bps, uncut = radio.most_bps, radio.uncut_of(own)
    cut = int(((uncut.uplink_bps > most_bps.uplink) | (uncut.downlink_bps > most_bps.downlink)).sum())
    if cut:
        yield (
            ("radio", "category"),
            f"{cut} of {len(own)} devices have ratios for more than {radio.category} does; they are held at its "
            f"{most_bps.uplink / 1e3:g} kbit/s up and {most_bps.downlink / 1e3:g} kbit/s down",
        )


def _full_duplex(scenario: Scenario, cell: CellSettings) -> Said:
    if cell.radio.device_duplex == "full":
        return
    for name, kind in scenario.devices.classes.items():
        if kind.duplex == "full":
            yield ("radio",), f"is for half-duplex devices, and those of class {name!r} are said to be full-duplex"
