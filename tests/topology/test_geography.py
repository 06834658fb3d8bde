"""Distances on the globe, and on a map of a part of it."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.topology.files.network import EARTH_RADIUS_M, great_circle_m, on_a_map_m

places = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


@given(places, places, places)
def test_a_great_circle_is_a_metric(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> None:
    millimetre = 1e-3
    assert great_circle_m(a, a) == 0.0
    assert great_circle_m(a, b) == pytest.approx(great_circle_m(b, a), rel=1e-9)
    assert great_circle_m(a, b) <= EARTH_RADIUS_M * math.pi
    assert great_circle_m(a, c) <= great_circle_m(a, b) + great_circle_m(b, c) + millimetre


def test_a_great_circle_is_the_angle_between_two_vectors() -> None:
    """cos(d / R) is the product of the unit vectors: an independent formula, good for long distances."""
    here, there = (40.71427, -74.00597), (47.60621, -122.33207)  # New York and Seattle
    one, other = (
        (
            math.cos(math.radians(lat)) * math.cos(math.radians(lon)),
            math.cos(math.radians(lat)) * math.sin(math.radians(lon)),
            math.sin(math.radians(lat)),
        )
        for lat, lon in (here, there)
    )
    by_vectors_m = EARTH_RADIUS_M * math.acos(sum(x * y for x, y in zip(one, other, strict=True)))
    assert great_circle_m(here, there) == pytest.approx(by_vectors_m, rel=1e-9)
    assert by_vectors_m == pytest.approx(3_866e3, rel=1e-3)


@given(st.floats(-60, 60), st.floats(-170, 170))
def test_distances_on_the_map_are_those_on_the_globe_where_it_is_small(lat: float, lon: float) -> None:
    around = {"a": (lat, lon), "b": (lat + 0.1, lon), "c": (lat, lon + 0.1)}
    flat = on_a_map_m(around)
    for one, other in pairwise("abca"):
        assert math.dist(flat[one], flat[other]) == pytest.approx(great_circle_m(around[one], around[other]), rel=5e-3)
