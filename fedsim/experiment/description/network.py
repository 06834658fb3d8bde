"""What a scenario's network is like at time zero, in numbers: nodes, cells, rates, link budgets and wires."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from fedsim.experiment.description.spread import spread_of
from fedsim.network.radio_paths import by_radio
from fedsim.network.settings import CellSettings
from fedsim.network.wires import Wires
from fedsim.radio.settings import RadioSettings
from fedsim.radio.shannon import Shannon
from fedsim.topology.graph import NodeKind, Topology

__all__ = ["network_facts"]


def network_facts(topology: Topology, wires: Wires) -> dict[str, Any]:
    """The network of one seed as it is when a run begins.

    Rates are what a device has alone in its cell; ``out_of_coverage`` counts those that never take part, and
    ``without_coverage_now`` those that have no rate at time zero.
    """
    kinds = Counter(node["kind"] for _, node in topology.graph.nodes(data=True))
    crowd = np.bincount([attachment.air_uplink.link.index for attachment in wires.attachments])[: len(wires.cells)]
    covered = [attachment for attachment in wires.attachments if attachment.in_coverage]
    used = wires.used()
    distances_m = (path.distance_m for path in wires.paths())
    return {
        "nodes": {kind.value: kinds[kind] for kind in NodeKind},
        "server": wires.server,
        "cells": len(wires.cells),
        "air": _air(cell.settings for cell in wires.cells.values()),
        "sensors_per_cell": spread_of(crowd),
        "half_duplex": sum(attachment.air_uplink.half_duplex is not None for attachment in wires.attachments),
        "out_of_coverage": sum(not attachment.covered for attachment in wires.attachments),
        "without_coverage_now": sum(
            attachment.covered and not attachment.in_coverage for attachment in wires.attachments
        ),
        "distance_m": spread_of(distance_m for distance_m in distances_m if distance_m is not None),
        "uplink_bps": spread_of(attachment.air_uplink.rate_bps for attachment in covered),
        "downlink_bps": spread_of(attachment.air_downlink.rate_bps for attachment in covered),
        "link_budget": _budgets(topology, wires),
        "wires": topology.infrastructure.number_of_edges(),
        "wires_used": len(used),
        "wire_rate_bps": spread_of(link.medium.rate_bps for link in used),
        "wire_delay_s": spread_of(link.medium.delay_s for link in used),
        "wires_to_server": spread_of(wires.steps()),
    }


def _air(cells: Iterable[CellSettings]) -> list[dict[str, Any]]:
    """The different kinds of air, each with the number of its cells."""
    kinds = Counter((*_radio(cell), cell.duplex, cell.carriers, cell.discipline.name, cell.delay_s) for cell in cells)
    keys = ("radio", "profile", "duplex", "carriers", "discipline", "delay_s")
    return [{**dict(zip(keys, kind, strict=True)), "cells": count} for kind, count in kinds.items()]


def _radio(cell: CellSettings) -> tuple[str, str | None]:
    profile = getattr(cell.radio, "profile", None)
    return cell.radio.name, profile


def _budgets(topology: Topology, wires: Wires) -> list[dict[str, Any]]:
    """Every term of the link budgets, in the order in which a rate is worked out; empty where no radio has any."""
    terms: dict[str, tuple[str, list[float], list[float]]] = {}
    if not any(isinstance(cell.settings.radio, Shannon) for cell in wires.cells.values()):
        return []

    def radio_of(sensor: str) -> RadioSettings:
        return wires.cells[topology.cell_of(sensor)].settings.radio

    for radio, paths in by_radio(wires.paths(), radio_of):
        for uplink, downlink in radio.budgets_of(paths) if isinstance(radio, Shannon) else ():
            for (name, up, unit), (_, down, _) in zip(uplink.rows(), downlink.rows(), strict=True):
                _, ups, downs = terms.setdefault(name, (unit, [], []))
                ups.append(up)
                downs.append(down)
    return [
        {"term": name, "unit": unit, "uplink": spread_of(up), "downlink": spread_of(down)}
        for name, (unit, up, down) in terms.items()
        if name != "rate"
    ]
