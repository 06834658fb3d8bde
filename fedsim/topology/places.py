"""Which factory a sensor is in: what lies behind one edge server, or behind one base station where there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsim.topology.graph import Topology
from fedsim.topology.kinds import NodeKind

__all__ = ["factories", "factory_names"]


def factory_names(topology: Topology) -> tuple[str, ...]:
    """The node that stands for each factory, in the order in which the sensors name them first."""
    return tuple(dict.fromkeys(_factory_of_each(topology)))


def factories(topology: Topology) -> NDArray[np.int64]:
    """(sensors,) the factory of each sensor, numbered from 0 in the order in which the sensors name them first."""
    numbers = {name: number for number, name in enumerate(factory_names(topology))}
    return np.array([numbers[name] for name in _factory_of_each(topology)], np.int64)


def _factory_of_each(topology: Topology) -> list[str]:
    """The first edge server on the way from each sensor to the cloud, or else its base station."""
    of_cell: dict[str, str] = {}
    names = []
    for sensor in topology.sensors:
        cell = topology.cell_of(sensor)
        if cell not in of_cell:
            way = topology.route(cell, topology.cloud)
            edges = (node for node in way if topology.graph.nodes[node]["kind"] == NodeKind.EDGE)
            of_cell[cell] = next(edges, cell)
        names.append(of_cell[cell])
    return names
