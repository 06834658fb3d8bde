"""Places on the globe: how far apart they are, and where they lie on a flat map in metres.

The Earth is a sphere of its mean radius, R1 of the IUGG (Moritz, "Geodetic Reference System 1980"), which makes
distances wrong by at most 0.6 %. Leaves out heights, and maps across the date line, where west and east are far apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["EARTH_RADIUS_M", "great_circle_m", "on_a_map_m"]

EARTH_RADIUS_M = 6_371_008.8

Degrees = tuple[float, float]
"""Latitude and longitude."""


def great_circle_m(one: Degrees, other: Degrees) -> float:
    """The shortest way over the ground between two places, by the haversine formula.

    hav(d / R) = hav(lat2 - lat1) + cos(lat1) cos(lat2) hav(lon2 - lon1) with hav(x) = sin(x / 2)^2.

    >>> round(great_circle_m((0.0, 0.0), (0.0, 90.0)))  # a quarter of the equator: R pi / 2
    10007557
    """
    (lat1, lon1), (lat2, lon2) = (map(math.radians, place) for place in (one, other))
    haversine = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, haversine)))  # rounding may exceed 1 at opposite places


def on_a_map_m(places: Mapping[str, Degrees]) -> dict[str, tuple[float, float]]:
    """x (east) and y (north) in metres, to the millimetre, around the middle of all *places*.

    Equirectangular: x = R (lon - lon0) cos(lat0), y = R (lat - lat0), where lat0 and lon0 are the means. Good for the
    size of a country.

    >>> on_a_map_m({"a": (0.0, 10.0), "b": (0.0, 10.002)})
    {'a': (-111.195, 0.0), 'b': (111.195, 0.0)}
    """
    if not places:
        return {}
    lat0, lon0 = (math.fsum(axis) / len(places) for axis in zip(*places.values(), strict=True))
    metres = EARTH_RADIUS_M * math.pi / 180
    shrunk = math.cos(math.radians(lat0))
    return {
        name: (round(metres * (lon - lon0) * shrunk, 3) + 0.0, round(metres * (lat - lat0), 3) + 0.0)
        for name, (lat, lon) in places.items()
    }
