"""What a scenario's network is like at time zero, in numbers: nodes, cells, rates, links over the air and wires."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from fedsim.experiment.description.links import link_facts
from fedsim.experiment.description.spread import spread_of
from fedsim.network.settings import CellSettings
from fedsim.network.wires import Wires
from fedsim.radio.snr_radio import SnrRadio
from fedsim.topology.graph import NodeKind, Topology

__all__ = ["air_facts", "network_facts"]


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
    has_ratios = any(isinstance(cell.settings.radio, SnrRadio) for cell in wires.cells.values())
    with_ratios = wires.paths() if has_ratios else iter(())  # to look at each path takes a second in a large network
    return {
        "nodes": {kind.value: kinds[kind] for kind in NodeKind},
        "server": wires.server,
        "cells": len(wires.cells),
        "air": air_facts(cell.settings for cell in wires.cells.values()),
        "sensors_per_cell": spread_of(crowd),
        "half_duplex": sum(attachment.air_uplink.half_duplex is not None for attachment in wires.attachments),
        "out_of_coverage": sum(not attachment.covered for attachment in wires.attachments),
        "without_coverage_now": sum(
            attachment.covered and not attachment.in_coverage for attachment in wires.attachments
        ),
        "distance_m": spread_of(distance_m for distance_m in distances_m if distance_m is not None),
        "uplink_bps": spread_of(attachment.air_uplink.rate_bps for attachment in covered),
        "downlink_bps": spread_of(attachment.air_downlink.rate_bps for attachment in covered),
        **link_facts(with_ratios, lambda sensor: wires.cells[topology.cell_of(sensor)].settings.radio),
        "wires": topology.infrastructure.number_of_edges(),
        "wires_used": len(used),
        "wire_rate_bps": spread_of(link.medium.rate_bps for link in used),
        "wire_delay_s": spread_of(link.medium.delays_s[0] for link in used),
        "wires_to_server": spread_of(wires.steps()),
    }


def air_facts(cells: Iterable[CellSettings]) -> list[dict[str, Any]]:
    """The different kinds of air, each with the number of its cells."""
    kinds = Counter((*_radio(cell), cell.duplex, cell.carriers, cell.discipline.name, cell.delay_s) for cell in cells)
    keys = ("radio", "profile", "duplex", "carriers", "discipline", "delay_s")
    return [{**dict(zip(keys, kind, strict=True)), "cells": count} for kind, count in kinds.items()]


def _radio(cell: CellSettings) -> tuple[str, str | None]:
    profile = getattr(cell.radio, "profile", None)
    return cell.radio.name, profile
