"""The facts about a network, or about a link of one device, as tables of text that fit a terminal of 100 columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from fedsim.units import si
from fedsim.viz.human import duration, number, scale, size
from fedsim.viz.tables import DescriptionTable, count, many, pairs, rate, spreads

__all__ = ["link_tables", "network_tables"]


LONGEST_NAME = 40
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def network_tables(network: dict[str, Any]) -> Iterator[DescriptionTable]:
    """What is known of a network at time zero: its parts, its rates, its link budgets and the rows that are taken."""
    nodes = (many(count, kind.replace("_", " ")) for kind, count in network["nodes"].items() if count)
    yield pairs("network", ", ".join(nodes), _network_rows(network))
    yield spreads(
        "at time zero",
        [
            ("sensors in a cell", network["sensors_per_cell"], count),
            ("way from sensor to base station", network["distance_m"], lambda value: f"{number(value)} m"),
            ("uplink of a sensor, alone", network["uplink_bps"], rate),
            ("downlink of a sensor, alone", network["downlink_bps"], rate),
            ("rate of a wire", network["wire_rate_bps"], rate),
            ("delay of a wire", network["wire_delay_s"], duration),
            ("wires from a cell to the server", network["wires_to_server"], count),
        ],
    )
    yield _budgets(network["link_budget"])
    rows = [row for way, taken in network["table_rows"].items() for row in _taken(way, taken)]
    yield DescriptionTable(pd.DataFrame(rows), ("direction", "most common rows"))


def _network_rows(network: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "server", network["server"]
    for air in network["air"]:
        yield many(air["cells"], "cell"), _air(air)
    if network["half_duplex"]:
        yield "half-duplex devices", many(network["half_duplex"], "sensor")
    yield "out of coverage for ever", many(network["out_of_coverage"], "sensor")
    if network["without_coverage_now"]:
        yield "out of coverage at first", many(network["without_coverage_now"], "sensor")
    for one in network["coverage_classes"]:
        yield f"coverage class {one['class']}", many(one["devices"], "sensor")
    yield "wires", f"{network['wires']:,}, {network['wires_used']:,} of them on the way to the server"
    for remark in network["remarks"]:
        yield "remark", remark


def _air(air: dict[str, Any]) -> str:
    profile = f" {air['profile']}" if air["profile"] else ""
    delay = f", delay {duration(air['delay_s'])}" if air["delay_s"] else ""
    carriers = many(air["carriers"], "carrier")
    channels = f"{carriers} for both directions" if air["duplex"] == "shared" else f"{carriers} each way"
    return f"radio {air['radio']}{profile}, {channels}, {air['discipline']}{delay}"


WITH_PREFIX = "Hz", "bit/s"
"""Units that stand beside each number; the others are named once."""


def _budgets(terms: list[dict[str, Any]]) -> DescriptionTable:
    """Those of all devices."""
    title = "link budget, min / median / max"
    rows = [
        {
            title: term["term"] + (f" ({term['unit']})" if term["unit"] not in ("", *WITH_PREFIX) else ""),
            **{way: _three(term[way], term["unit"]) for way in ("uplink", "downlink")},
        }
        for term in terms
    ]
    return DescriptionTable(pd.DataFrame(rows), (title,))


def _three(spread: dict[str, float] | None, unit: str) -> str:
    """The three numbers, or the one that they all are."""
    if spread is None:
        return ""
    shown = [_value(spread[which], unit) for which in ("min", "median", "max")]
    return shown[0] if len(set(shown)) == 1 else " / ".join(shown)


def _value(value: float, unit: str) -> str:
    if unit in WITH_PREFIX:
        return rate(value) if unit == "bit/s" else si(value, unit)
    return f"{value:.2f}" if unit else number(value)


def _taken(way: str, taken: dict[str, Any]) -> Iterator[dict[str, str]]:
    rows = [(one["row"], one["devices"]) for one in taken["most_common"]]
    if others := taken["different"] - len(rows):
        rows.append((many(others, "other row"), taken["devices"] - sum(devices for _, devices in rows)))
    for row, devices in rows:
        yield {"direction": way, "most common rows": row, "sensors": f"{devices:,}"}


def link_tables(link: dict[str, Any]) -> Iterator[DescriptionTable]:
    """What `fedsim.experiment.description.link.describe_links` found out about one device: its budget, and the rest."""
    title = link["device"] if len(link["device"]) <= LONGEST_NAME else f"{link['device'][: LONGEST_NAME - 3]}..."
    model = link["model"]
    rows = [{title: term["term"], **_both(term)} for term in link["terms"]]
    seconds = (model["uplink_s"], model["downlink_s"])
    unit, name = scale("seconds", max((value for value in seconds if value is not None), default=0.0))
    up, down = ("never" if value is None else number(value / unit) for value in seconds)
    rows.append(
        {title: f"{size(model['bytes'])} of {model['name']}, alone", "uplink": up, "downlink": down, "unit": name}
    )
    yield DescriptionTable(pd.DataFrame(rows), (title, "unit"))
    yield pairs(title, f"of class {link['device_class']}, at time zero of seed {link['seed']}", _link_rows(link))


def _both(term: dict[str, Any]) -> dict[str, str]:
    """Two numbers of one unit, with the prefix that suits the larger one."""
    values, unit = (term["uplink"], term["downlink"]), term["unit"]
    if unit not in WITH_PREFIX:
        up, down = ("" if value is None else _value(value, unit) for value in values)
        return {"uplink": up, "downlink": down, "unit": unit}
    largest = max((value for value in values if value is not None and math.isfinite(value)), default=0.0)
    name = si(largest, unit).partition(" ")[2]
    factor = PREFIXES[name[: -len(unit)]]
    up, down = (
        "" if value is None else f"{value / factor:.4g}" if value < math.inf else "unlimited" for value in values
    )
    return {"uplink": up, "downlink": down, "unit": name}


def _link_rows(link: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "cell", f"{link['station']}: {_air(link['air'])}"
    if link["distance_m"] is not None:
        yield "distance on the ground", f"{number(link['distance_m'])} m"
    heights = (("base station", link["station_height_m"]), ("device", link["device_height_m"]))
    if known := [f"{who} {height:g} m" for who, height in heights if height is not None]:
        yield "heights of antennas", ", ".join(known)
    if link["indoor_m"] is not None:
        yield "indoors", f"{link['indoor_m']:g} m behind the outer wall"
    if link["extra_loss_db"]:
        yield "extra loss of its place", f"{link['extra_loss_db']:g} dB"
    if link["rates_from"] is not None:
        yield "rates are from", link["rates_from"]
    if link["coverage_class"] is not None:
        yield "coverage class", str(link["coverage_class"])
    for way in ("uplink", "downlink"):
        if link[f"{way}_row"]:
            yield f"row of the {way}", link[f"{way}_row"]
    if link["no_coverage"] is not None:
        yield "no coverage", link["no_coverage"]
