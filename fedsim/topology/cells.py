"""What all builders share: names with numbers, and the sensors of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedsim.topology.kinds import NodeKind
from fedsim.topology.layout import around
from fedsim.topology.sketch import Sketch

__all__ = ["add_sensors", "numbered"]


def numbered(word: str, count: int) -> list[str]:
    """*count* names, padded so that text order is their order.

    >>> numbered("hall", 10)[8:]
    ['hall-09', 'hall-10']
    """
    digits = len(str(count))
    return [f"{word}-{number:0{digits}}" for number in range(1, count + 1)]


def add_sensors(
    sketch: Sketch,
    station: str,
    centre_m: tuple[float, float],
    sensors: Sequence[str],
    radius_m: float,
    devices: Iterator[str | None],
) -> None:
    """Attach *sensors* to *station*, evenly spread within *radius_m* metres; each takes the next of *devices*."""
    for sensor, position_m in zip(sensors, around(centre_m, len(sensors), radius_m), strict=True):
        sketch.add_node(sensor, NodeKind.SENSOR, position_m=position_m, device=next(devices))
        sketch.add_link(station, sensor)
