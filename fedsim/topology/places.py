"""Which factory a sensor is in: what lies behind one edge server, or behind one base station where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.topology.graph import NodeKind, Topology

__all__ = ["factories", "factory_names"]


def factory_names(topology: Topology) -> tuple[str, ...]:
    """The node that stands for each factory: an edge server, or a base station where there is none."""
    return _numbered(topology)[1]


def factories(topology: Topology) -> NDArray[np.int64]:
    """(sensors,) the factory of each sensor, numbered from 0 in the order in which the sensors name them first."""
    return _numbered(topology)[0]


def _numbered(topology: Topology) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    kinds, towards = topology.infrastructure.nodes, topology.towards(topology.cloud)
    of_cell: dict[str, int] = {}
    numbers: dict[str, int] = {}
    behind: dict[str, str | None] = {}
    found = np.empty(len(topology.sensors), np.int64)
    for position, sensor in enumerate(topology.sensors):
        cell = topology.cell_of(sensor)
        if cell not in of_cell:
            of_cell[cell] = numbers.setdefault(_factory(kinds, towards, cell, behind), len(numbers))
        found[position] = of_cell[cell]
    return found, tuple(numbers)


def _factory(
    kinds: Mapping[str, Mapping[str, Any]], towards: Mapping[str, str], cell: str, behind: dict[str, str | None]
) -> str:
    """The first edge server on the way from a base station to the cloud, or else the base station.

    *behind* remembers what lies behind which edge server (None: behind none), so that no wire is followed twice.
    """
    way, node = [], cell
    while node not in behind:
        way.append(node)
        if kinds[node]["kind"] is NodeKind.EDGE:
            behind[node] = node
        elif node not in towards:  # the cloud
            behind[node] = None
        else:
            node = towards[node]
    behind.update(dict.fromkeys(way, behind[node]))
    return behind[cell] or cell
