"""What the author of a scenario may not have meant, though it is no mistake: said before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from fedsim.network.disciplines.serial import Serial
from fedsim.network.settings import CellSettings
from fedsim.network.wires import Wires
from fedsim.radio.settings import Rates
from fedsim.scenario.document import KeyPath
from fedsim.scenario.schema import Scenario

__all__ = ["remarks_before"]


def remarks_before(scenario: Scenario, wires: Wires) -> list[str]:
    """A sentence for each key whose value is unusual, with the key and where it was written; *wires* are as at time
    zero."""
    return [
        scenario.written.remark(text, ("network", *where, *key))
        for where, cell in _cells(scenario)
        for key, text in (
            *_shared(cell, scenario.written.word(("network", *where, "duplex"))),
            *_one_at_a_time(cell, where, wires),
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


def _one_at_a_time(cell: CellSettings, where: KeyPath, wires: Wires) -> Said:
    """Where a device that can use a part of the carrier only has all of it."""
    if not isinstance(cell.discipline, Serial):
        return
    rates = _first_rates(cell, wires)
    if rates is not None and min(rates.uplink_share, rates.downlink_share) < 1:
        yield (
            ("discipline",),
            f"serial gives one device at a time a whole carrier, of which it can use {rates.uplink_share:.3g} up and "
            f"{rates.downlink_share:.3g} down; a base station serves several such devices at once: {{name: fair}}",
        )


def _first_rates(cell: CellSettings, wires: Wires) -> Rates | None:
    """Of the first device in such a cell, if there is one."""
    for attachment in wires.attachments:
        if wires.cell_of(attachment).settings is cell:
            return cell.radio.rates(wires.site(attachment))
    return None


def _full_duplex(scenario: Scenario, cell: CellSettings) -> Said:
    if cell.radio.device_duplex == "full":
        return
    for name, kind in scenario.devices.classes.items():
        if kind.duplex == "full":
            yield ("radio",), f"is for half-duplex devices, and those of class {name!r} are said to be full-duplex"
