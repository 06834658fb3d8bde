"""A node of an industrial network is a sensor, a base station, an edge server or a cloud."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["NodeKind"]


class NodeKind(StrEnum):
    """What a node of the network is."""

    SENSOR = "sensor"
    """A device that holds data and trains: a client."""
    BASE_STATION = "base_station"
    """The fixed end of the air: it and its sensors are one cell."""
    EDGE = "edge"
    """A server near the sensors, such as one in each factory."""
    CLOUD = "cloud"
    """A data centre. The first one holds the global model, unless the scenario says otherwise; others only relay."""
