"""What all builders share: names with numbers, and where things stand when nobody measured.

Devices are evenly over a disc, buildings on a square grid or on a circle.

The disc is the sunflower of H. Vogel, "A better way to construct the sunflower head" (Mathematical Biosciences 44,
1979). Positions are rounded to millimetres. Leaves out walls, machines and chance: equal counts give equal places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fedsim.topology.checks import NodeKind
from fedsim.topology.sketch import Sketch

__all__ = ["add_sensors", "around", "circle", "grid", "numbered"]

GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


def around(centre_m: tuple[float, float], count: int, radius_m: float) -> list[tuple[float, float]]:
    """*count* positions with equal shares of the disc of *radius_m* metres around *centre_m*.

    Position i has distance radius * sqrt((i + 1/2) / count) and angle i * golden angle.

    >>> around((10.0, 0.0), 2, radius_m=2.0)  # distances 1 and sqrt(3), angles 0 and 137.5 degrees
    [(11.0, 0.0), (8.723, 1.17)]
    """
    x, y = centre_m
    positions = []
    for i in range(count):
        distance, angle = radius_m * math.sqrt((i + 0.5) / count), i * GOLDEN_ANGLE
        positions.append((round(x + distance * math.cos(angle), 3), round(y + distance * math.sin(angle), 3)))
    return positions


def grid(centre_m: tuple[float, float], count: int, spacing_m: float) -> list[tuple[float, float]]:
    """*count* positions on a square grid around *centre_m*, row by row, *spacing_m* metres apart.

    >>> grid((0.0, 0.0), 3, spacing_m=100.0)
    [(-50.0, -50.0), (50.0, -50.0), (-50.0, 50.0)]
    >>> grid((5.0, 5.0), 1, spacing_m=100.0)
    [(5.0, 5.0)]
    """
    x, y = centre_m
    if count == 1:
        place_m = round(x, 3), round(y, 3)
        return [centre_m if place_m == centre_m else place_m]  # one object for both, in networks of many
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    left, bottom = x - (columns - 1) * spacing_m / 2, y - (rows - 1) * spacing_m / 2
    return [
        (round(left + i % columns * spacing_m, 3), round(bottom + i // columns * spacing_m, 3)) for i in range(count)
    ]


def circle(centre_m: tuple[float, float], count: int, spacing_m: float) -> list[tuple[float, float]]:
    """*count* (at least two) positions on a circle around *centre_m*, neighbours *spacing_m* metres apart.

    The circle's radius is spacing / (2 sin(pi / count)); the positions go round anticlockwise, from due east.

    >>> circle((0.0, 0.0), 6, spacing_m=100.0)[:2]  # a hexagon's side is its radius
    [(100.0, 0.0), (50.0, 86.603)]
    """
    x, y = centre_m
    radius_m = spacing_m / (2 * math.sin(math.pi / count))
    angles = (2 * math.pi * i / count for i in range(count))
    places = ((x + radius_m * math.cos(angle), y + radius_m * math.sin(angle)) for angle in angles)
    return [(round(east, 3) + 0.0, round(north, 3) + 0.0) for east, north in places]  # no negative zeros


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
