"""What the author of a scenario may not have meant, though it is no mistake: said before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from operator import itemgetter

from fedsim.errors import some
from fedsim.experiment.remarks_on_classes import normalised_over_few_classes
from fedsim.kernel.streams import Streams
from fedsim.models.table import ModelTable
from fedsim.network.disciplines.serial import Serial
from fedsim.network.radio_paths import MANY, paths_of
from fedsim.network.settings import CellSettings, NetworkSettings
from fedsim.protocols.combination import Combination
from fedsim.radio.fixed import Fixed, profiles
from fedsim.radio.settings import RadioPath
from fedsim.radio.shannon import Shannon
from fedsim.scenario.build import Materials, device_kinds
from fedsim.scenario.document import KeyPath
from fedsim.scenario.schema import Scenario
from fedsim.units import bits, si
from fedsim.viz.human import duration

__all__ = ["remarks_before", "remarks_on_data"]


MOST = 3
"""Cells of which the same is said one by one."""


def remarks_before(scenario: Scenario, materials: Materials) -> list[str]:
    """A sentence for each key whose value is unusual, on the seed of *materials*: with the key and where it stands."""
    devices = _Devices(scenario, materials)
    places: dict[tuple[KeyPath, str], list[KeyPath]] = {}
    for where, cell in _cells_of(scenario.network):
        word = scenario.written.word(("network", *where, "duplex"))
        for key, text in (
            *_shared(cell, word),
            *_one_at_a_time(cell, devices, where),
            *_above_its_category(cell, devices, where),
            *_full_duplex(scenario, cell),
            *_slow_air(cell, materials.table),
        ):
            if devices.first(where) is not None:
                places.setdefault((key, text), []).append(("network", *where, *key))
    said = []
    for (_, text), paths in places.items():
        said += [scenario.written.remark(text, path) for path in paths[:MOST]]
        if len(paths) > MOST:
            said[-1] += f" (the same holds for {len(paths) - MOST:,} more under network.cells)"
    others = (
        *_slow_wires(scenario, materials),
        *_classifiers_that_nobody_scores(scenario),
        *_phases_that_never_begin(scenario),
        *_sizes_that_are_declared(scenario),
        *normalised_over_few_classes(scenario, materials),
    )
    return said + [scenario.written.remark(text, path) for path, text in others]


def remarks_on_data(scenario: Scenario, materials: Materials) -> list[str]:
    """What the data set says of itself: what was left out, and what is tested."""
    return [scenario.written.remark(text, ("data",)) for text in materials.dataset.remarks]


Said = Iterator[tuple[KeyPath, str]]
"""Keys below a cell's, and what there is to say of them."""


def _cells_of(network: NetworkSettings) -> Iterator[tuple[KeyPath, CellSettings]]:
    """Each entry, and what it says."""
    yield ("cell",), network.cell
    for station, cell in network.cells.items():
        yield ("cells", station), cell


class _Devices:
    """Those in the cells that each entry is for; looked at once for all entries, when first asked for."""

    def __init__(self, scenario: Scenario, materials: Materials) -> None:
        self._network = scenario.network
        self._topology = materials.topology
        self._streams = Streams(materials.seed)
        self._kind_of = device_kinds(scenario, materials)

    def first(self, where: KeyPath) -> RadioPath | None:
        """The first of them; None where there is none."""
        return self._first.get(where)

    def held_back(self, where: KeyPath) -> tuple[int, int]:
        """How many of them have ratios for more than their category does, and how many there are."""
        return self._held_back[where]

    @cached_property
    def _first(self) -> dict[KeyPath, RadioPath]:
        found: dict[KeyPath, int] = {}
        for index, sensor in enumerate(self._topology.sensors):
            found.setdefault(self._where(sensor), index)
            if len(found) > len(self._network.cells):  # each entry, and the one for all others
                break
        return dict(zip(found, self._paths(found.values()), strict=True))

    @cached_property
    def _held_back(self) -> dict[KeyPath, tuple[int, int]]:
        counts: dict[KeyPath, tuple[int, int]] = {}
        cells = dict(_cells_of(self._network))
        coming = self._paths()
        while some := list(islice(coming, MANY)):
            here: dict[KeyPath, list[RadioPath]] = {}
            for path in some:
                here.setdefault(self._where(path.sensor), []).append(path)
            for where, own in here.items():
                radio = cells[where].radio
                if isinstance(radio, Shannon) and radio.category is not None:
                    most_bps, uncut = radio.most_bps, radio.uncut_of(own)
                    more = (uncut.uplink_bps > most_bps.uplink) | (uncut.downlink_bps > most_bps.downlink)
                    held_back, all_of_them = counts.get(where, (0, 0))
                    counts[where] = held_back + int(more.sum()), all_of_them + len(own)
        return counts

    def _paths(self, only: Iterable[int] | None = None) -> Iterator[RadioPath]:
        return paths_of(self._topology, self._streams, lambda index: self._kind_of(index).place, only)

    def _where(self, sensor: str) -> KeyPath:
        """The entry for the cell of *sensor*."""
        station = self._topology.cell_of(sensor)
        return ("cells", station) if station in self._network.cells else ("cell",)


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
    rates = cell.radio.rates(first)  # shares are a technology's, and so alike in one cell
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
            if text := _too_slow(getattr(cell.radio, key), model):
                yield ("radio", key), text


def _slow_wires(scenario: Scenario, materials: Materials) -> Said:
    """The same of wires: the default, and the slowest one of the topology."""
    link = scenario.network.link
    if link is not None and (text := _too_slow(link.rate_bps, materials.table)):
        yield ("network", "link", "rate_bps"), text
    neighbours = materials.topology.infrastructure.adjacency()  # `edges` would remember each node that it has seen
    wires = (wire for _, of_node in neighbours for wire in of_node.values())
    slowest_bps = min((wire["rate_bps"] for wire in wires if wire["rate_bps"] is not None), default=math.inf)
    if text := _too_slow(slowest_bps, materials.table):
        keys = (key for key, value in scenario.topology if key.endswith("rate_bps") and value == slowest_bps)
        yield ("topology", *islice(keys, 1)), text


def _classifiers_that_nobody_scores(scenario: Scenario) -> Said:
    """Where clients keep a part of the model to themselves, and the first test set is not for their own models."""
    first, *others = scenario.evaluate.on
    if not scenario.learn or first == "own":
        return
    on = ", ".join(("own", first, *(one for one in others if one != "own")) if "own" in others else ("own",))
    combinations = (protocol for protocol in scenario.protocols if isinstance(protocol, Combination))
    if titles := [protocol.title for protocol in combinations if protocol.parts.exchange.keeps_parts]:
        yield (
            ("evaluate", "on"),
            f"with {some(titles)}, clients keep parts of the model to themselves, and accuracy is of a model that "
            "has these parts as they were at the start; for each client's own model, write "
            f"evaluate: {{on: [{on}]}}",
        )


def _phases_that_never_begin(scenario: Scenario) -> Said:
    """Where a protocol trains several models one after the other, and its run ends before the last one's turn."""
    for protocol in scenario.protocols:
        rounds = (protocol.stop or scenario.stop).rounds
        first = protocol.last_model_from
        if rounds is not None and rounds < first:
            yield (
                scenario.place_of(protocol),
                f"{protocol.title!r} trains its last model from round {first} on, and its run has {rounds}: it ends "
                "with an earlier model",
            )


def _sizes_that_are_declared(scenario: Scenario) -> Said:
    """Where a run that learns could measure the sizes of updates, and is told them."""
    for protocol in scenario.protocols:
        if scenario.learn and isinstance(protocol, Combination) and (key := protocol.declared_size):
            yield (
                (*scenario.place_of(protocol), *key),
                "sizes of updates, and so bytes and seconds, are as declared here, and not those of what is learned; "
                "leave it out to measure them",
            )


def _too_slow(rate_bps: float, model: ModelTable) -> str | None:
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
