"""From a drawn graph, and what the scenario says of it, to a network.

The Earth is a sphere of its mean radius, R1 of the IUGG (Moritz, "Geodetic Reference System 1980"), which makes
distances wrong by at most 0.6 %. Leaves out heights, and maps across the date line, where west and east are far apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import repeat

from fedsim.errors import Misfit
from fedsim.settings import LARGEST
from fedsim.topology.files.drawn import Drawn, DrawnLink
from fedsim.topology.files.parts import (
    Wire,
    delay_s,
    joined,
    node_coordinates,
    node_kinds,
    node_names,
    rate_bps,
    require_attribute,
)
from fedsim.topology.files.settings import DrawnSettings
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import add_sensors, numbered
from fedsim.topology.settings import refuse_too_many
from fedsim.topology.sketch import Sketch

__all__ = ["EARTH_RADIUS_M", "great_circle_m", "network", "on_a_map_m"]

EARTH_RADIUS_M = 6_371_008.8

Degrees = tuple[float, float]
"""Latitude and longitude."""
Places = Mapping[str, tuple[float, float]]


def network(drawn: Drawn, settings: DrawnSettings) -> Topology:
    """The network that *settings* make of *drawn*.

    Raises `UserError` that begins with the file and the place in it, as a `Misfit` where a key of *settings* can help.
    """
    sketch = _Translation(drawn, settings).sketch()
    with drawn.blamed():
        return Topology.of(sketch)


class _Translation:
    """One drawn graph under one reading; names are the network's, ids the file's."""

    def __init__(self, drawn: Drawn, settings: DrawnSettings) -> None:
        self._drawn = drawn
        self._settings = settings
        self._called = node_names(drawn, settings.name_attribute)
        """Id -> name."""
        self._kinds = node_kinds(
            drawn,
            self._called,
            clouds=settings.clouds,
            attribute=settings.kind_attribute,
            meanings=settings.kinds,
            leaf=NodeKind(settings.leaf_kind or settings.kind),
            other=NodeKind(settings.kind),
        )
        self._coordinates = self._read_coordinates()

    def sketch(self) -> Sketch:
        """Nodes in the order of the file, but the named clouds first; then the sensors that are added."""
        self._require_kinds()
        self._require_attributes()
        places_m = self._places_m()
        self._require_places(places_m)
        wires = joined(self._drawn, self._wire, self._settings.parallel, self._settings.directed)
        sketch = Sketch()
        with self._drawn.blamed():
            self._add_nodes(sketch, places_m)
            for one, other, wire in wires:
                sketch.add_link(self._called[one], self._called[other], rate_bps=wire.rate_bps, delay_s=wire.delay_s)
            for station in self._of_kind(NodeKind.BASE_STATION):
                self._add_sensors(sketch, station, places_m)
        return sketch

    def _add_nodes(self, sketch: Sketch, places_m: Places) -> None:
        for name in dict.fromkeys([*self._settings.clouds, *self._kinds]):
            kind = self._kinds[name]
            device = self._settings.device if kind == NodeKind.SENSOR else None
            sketch.add_node(name, kind, position_m=places_m.get(name), device=device)

    def _add_sensors(self, sketch: Sketch, station: str, places_m: Places) -> None:
        settings = self._settings
        if settings.sensors_per_station is None:
            return
        sensors = numbered(f"{station}/sensor", settings.sensors_per_station)
        if settings.radius_m is not None:
            add_sensors(sketch, station, places_m[station], sensors, settings.radius_m, repeat(settings.device))
            return
        for sensor in sensors:
            sketch.add_node(sensor, NodeKind.SENSOR, device=settings.device)
            sketch.add_link(station, sensor)

    # What must be there

    def _of_kind(self, kind: NodeKind) -> list[str]:
        return [name for name, found in self._kinds.items() if found == kind]

    def _require_kinds(self) -> None:
        path, each = self._drawn.path, self._settings.sensors_per_station
        if not self._of_kind(NodeKind.CLOUD):
            raise Misfit(
                f"no node of {path} is a cloud, and at least one must be: it holds the global model; name it", "clouds"
            )
        if each is None:
            if not self._of_kind(NodeKind.SENSOR):
                raise Misfit(
                    f"{path} has no sensors, and there must be some: they hold the data; set sensors_per_station to "
                    "the number at each base station",
                    "sensors_per_station",
                )
            return
        stations = len(self._of_kind(NodeKind.BASE_STATION))
        if not stations:
            raise Misfit(
                f"no node of {path} is a base station, where sensors could be added; set kind, leaf_kind or kinds",
                "sensors_per_station",
            )
        refuse_too_many("sensors", stations * each, "sensors_per_station")

    def _require_attributes(self) -> None:
        known, settings = self._drawn.link_attributes, self._settings
        if settings.rate_attribute is not None:
            require_attribute("link", settings.rate_attribute, known, "rate_attribute")
        if settings.delay_attribute is not None:
            require_attribute("link", settings.delay_attribute, known, "delay_attribute")

    def _require_places(self, places_m: Places) -> None:
        if self._settings.radius_m is None:
            return
        for station in self._of_kind(NodeKind.BASE_STATION):
            if station not in places_m:
                lacking = "position in the file" if self._settings.position else "position without the key position"
                problem = f"base station {station!r} has no {lacking}, so no sensors can stand around it; leave it out"
                raise Misfit(problem, "radius_m")

    # Wires

    def _wire(self, link: DrawnLink) -> Wire:
        ends = self._called[link.source], self._called[link.target]
        if NodeKind.SENSOR in {self._kinds[end] for end in ends}:
            return Wire(None, None)  # air
        return Wire(self._rate_bps(link), self._delay_s(link, ends))

    def _rate_bps(self, link: DrawnLink) -> float | None:
        settings = self._settings
        if settings.rate_attribute is None:
            return settings.rate_bps
        unit_bps, meanings = settings.rate_unit_bps, settings.rates
        found = rate_bps(self._drawn, link, attribute=settings.rate_attribute, unit_bps=unit_bps, meanings=meanings)
        if found is None and settings.rate_bps is None:
            raise self._lacking(link, f"no {settings.rate_attribute!r}", "rate_bps")
        return settings.rate_bps if found is None else found

    def _delay_s(self, link: DrawnLink, ends: tuple[str, str]) -> float | None:
        settings = self._settings
        if settings.delay_attribute is not None:
            lacking = f"no {settings.delay_attribute!r}"
            found = delay_s(self._drawn, link, attribute=settings.delay_attribute, unit_s=settings.delay_unit_s)
        elif settings.delay_from_distance is not None:
            lacking = "an end without position"
            found = None
            if all(end in self._coordinates for end in ends):
                found = self._distance_m(*ends) / settings.delay_from_distance.speed_m_per_s
        else:
            return settings.delay_s
        if found is None and settings.delay_s is None:
            raise self._lacking(link, lacking, "delay_s")
        return settings.delay_s if found is None else found

    def _lacking(self, link: DrawnLink, what: str, key: str) -> Misfit:
        problem = self._drawn.error(f"{link} has {what}; add it, or set {key} for such links", link.place)
        return Misfit(str(problem), key)

    # Places

    def _read_coordinates(self) -> dict[str, tuple[float, float]]:
        position = self._settings.position
        if position is None:
            return {}
        far = LARGEST / position.unit_m
        most = (90.0, 180.0) if position.latitude is not None else (far, far)
        return node_coordinates(self._drawn, self._called, position.attributes, most)

    def _places_m(self) -> dict[str, tuple[float, float]]:
        position = self._settings.position
        if position is None or position.latitude is not None:
            return on_a_map_m(self._coordinates)
        return {name: (x * position.unit_m, y * position.unit_m) for name, (x, y) in self._coordinates.items()}

    def _distance_m(self, one: str, other: str) -> float:
        places = self._coordinates[one], self._coordinates[other]
        position = self._settings.position
        assert position is not None  # there would be no coordinates
        return great_circle_m(*places) if position.latitude is not None else math.dist(*places) * position.unit_m


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
