"""The layouts that are built from counts: how many, called what, where, and linked how."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from some_topologies import kinds, of_kind, places, plant_written_out

from fedsim import registry
from fedsim.topology.explicit import Explicit
from fedsim.topology.factories import FactoryPark, Regions, Ring
from fedsim.topology.graph import NodeKind
from fedsim.topology.layout import around, circle, grid
from fedsim.topology.settings import TopologySettings, WireSettings
from fedsim.topology.tree import Star, Tree

counts = st.integers(1, 120)
factories = st.integers(1, 12)
stations = st.integers(1, 12)


@pytest.mark.parametrize("name", registry.names("topologies"))
def test_what_is_registered_builds_a_topology(name: str) -> None:
    fields = {
        "star": {"devices": 3},
        "factory_park": {"factories": 2, "devices_per_factory": 3},
        "tree": {"branching": [2], "devices_per_station": 3},
        "ring": {"factories": 3, "devices_per_factory": 1},
        "regions": {"regions": 3, "factories_per_region": 1, "devices_per_factory": 1},
        "explicit": {
            "nodes": {
                "cloud": {"kind": "cloud"},
                "bs": {"kind": "base_station"},
                "cam": {"kind": "sensor", "count": 3, "attach": "bs"},
            },
            "links": [{"between": ["cloud", "bs"]}],
        },
        "imported": {
            "path": str(Path(__file__).parents[2] / "topologies/backbone.graphml"),
            "clouds": ["0", "1", "2"],
            "sensors_per_station": 1,
            "parallel": "fastest",
        },
    }
    settings = registry.load("topologies", name).model_validate({"name": name, **fields[name]})
    assert len(settings.build().sensors) == (6 if name in ("factory_park", "tree") else 3)


def test_settings_written_out_in_full_build_the_same_network() -> None:
    for settings in (
        Star(devices=3, backhaul_rate_bps=math.inf),
        FactoryPark(factories=2, devices_per_factory=3, device_classes=("a", "b")),
        Tree(branching=(2, 3), devices_per_station=2, wires=(WireSettings(rate_bps=math.inf), WireSettings())),
        Ring(factories=3, devices_per_factory=1, gateways=2),
        Regions(regions=2, factories_per_region=2, devices_per_factory=1, joined="ring"),
        Explicit.model_validate(plant_written_out()),
    ):
        written = json.loads(json.dumps(settings.model_dump(mode="json")))
        assert type(settings).model_validate(written).build() == settings.build()


def test_every_key_is_described_in_the_schema() -> None:
    for settings in (registry.load("topologies", name) for name in registry.names("topologies")):
        schema = settings.model_json_schema()
        tables = [schema, *(each for each in schema.get("$defs", {}).values() if "properties" in each)]
        keys = {key: about for table in tables for key, about in table["properties"].items() if key != "name"}
        assert [key for key, about in keys.items() if not about.get("description")] == []


# Star


@given(counts)
def test_a_star_has_one_cell(devices: int) -> None:
    topology = Star(devices=devices).build()
    assert kinds(topology) == {NodeKind.SENSOR: devices, NodeKind.BASE_STATION: 1, NodeKind.CLOUD: 1}
    assert {topology.cell_of(sensor) for sensor in topology.sensors} == {"station"}
    assert list(topology.sensors) == sorted(topology.sensors)


def test_a_star_carries_its_backhaul_and_device_class() -> None:
    topology = Star(devices=2, device="camera", backhaul_rate_bps=math.inf, backhaul_delay_s=0.25).build()
    assert topology.graph.edges["station", "cloud"] == {"rate_bps": math.inf, "delay_s": 0.25}
    assert [topology.graph.nodes[sensor]["device"] for sensor in topology.sensors] == ["camera", "camera"]
    assert topology.graph.nodes["station"]["device"] is None


def test_a_wire_of_which_nothing_is_said_is_left_to_the_scenario() -> None:
    nothing = {"rate_bps": None, "delay_s": None}
    assert Star(devices=1).build().graph.edges["station", "cloud"] == nothing
    park = FactoryPark(factories=1, devices_per_factory=1).build()
    assert park.graph.edges["cloud", "factory-1/edge"] == nothing
    assert park.graph.edges["factory-1/edge", "factory-1/station-1"] == nothing


# Factory park


@given(factories, counts, stations)
def test_a_park_has_what_was_ordered(factories: int, devices: int, stations: int) -> None:
    topology = FactoryPark(factories=factories, devices_per_factory=devices, stations_per_factory=stations).build()
    assert kinds(topology) == {
        NodeKind.CLOUD: 1,
        NodeKind.EDGE: factories,
        NodeKind.BASE_STATION: factories * stations,
        NodeKind.SENSOR: factories * devices,
    }
    for kind in NodeKind:
        called = of_kind(kind, topology)
        assert called == sorted(called)
    assert {len(topology.route(sensor, "cloud")) for sensor in topology.sensors} == {4}


@given(factories, counts, stations)
def test_sensors_stay_in_their_factory_and_are_shared_out_evenly(factories: int, devices: int, stations: int) -> None:
    topology = FactoryPark(factories=factories, devices_per_factory=devices, stations_per_factory=stations).build()
    for sensor in topology.sensors:
        factory = sensor.partition("/")[0]
        assert {node.partition("/")[0] for node in topology.route(sensor, f"{factory}/edge")} == {factory}
    cells = Counter(topology.cell_of(sensor) for sensor in topology.sensors)
    loads = [cells[name] for name, node in topology.graph.nodes(data=True) if node["kind"] == "base_station"]
    assert max(loads) - min(loads) <= 1


def test_names_are_padded_to_the_last_one() -> None:
    topology = FactoryPark(factories=10, devices_per_factory=100, stations_per_factory=2).build()
    assert topology.sensors[0] == "factory-01/sensor-001"
    assert topology.sensors[-1] == "factory-10/sensor-100"
    assert topology.route("factory-03/sensor-017", "cloud") == (
        "factory-03/sensor-017",
        "factory-03/station-1",
        "factory-03/edge",
        "cloud",
    )


def test_the_cells_of_a_factory_touch_but_do_not_overlap() -> None:
    at = places(FactoryPark(factories=1, devices_per_factory=4, stations_per_factory=4, radius_m=50.0).build())
    stations = [f"factory-1/station-{number}" for number in range(1, 5)]
    assert [at[station] for station in stations] == [(-50.0, -50.0), (50.0, -50.0), (-50.0, 50.0), (50.0, 50.0)]


def test_factories_stand_factory_spacing_apart() -> None:
    at = places(FactoryPark(factories=4, devices_per_factory=1, factory_spacing_m=300.0).build())
    assert [at[f"factory-{number}/edge"] for number in (1, 2)] == [(-150.0, -150.0), (150.0, -150.0)]


def test_backhaul_and_lan_are_two_wires() -> None:
    topology = FactoryPark(
        factories=2,
        devices_per_factory=1,
        backhaul_rate_bps=1e6,
        backhaul_delay_s=0.1,
        lan_rate_bps=1e9,
        lan_delay_s=0.2,
    ).build()
    for factory in ("factory-1", "factory-2"):
        assert topology.graph.edges["cloud", f"{factory}/edge"] == {"rate_bps": 1e6, "delay_s": 0.1}
        assert topology.graph.edges[f"{factory}/edge", f"{factory}/station-1"] == {"rate_bps": 1e9, "delay_s": 0.2}


@given(factories, counts, st.lists(st.sampled_from(["camera", "gateway", "plc"]), max_size=5))
def test_device_classes_are_dealt_out_in_turn(factories: int, devices: int, classes: list[str]) -> None:
    topology = FactoryPark(factories=factories, devices_per_factory=devices, device_classes=tuple(classes)).build()
    for index, sensor in enumerate(topology.sensors):
        expected = classes[index % len(classes)] if classes else None
        assert topology.graph.nodes[sensor]["device"] == expected


@given(factories, counts, stations, st.floats(1, 1e4))
def test_everything_stands_within_reach(factories: int, devices: int, stations: int, radius_m: float) -> None:
    park = FactoryPark(
        factories=factories, devices_per_factory=devices, stations_per_factory=stations, radius_m=radius_m
    ).build()
    ring = Ring(factories=factories + 2, devices_per_factory=devices, radius_m=radius_m).build()
    regions = Regions(regions=2, factories_per_region=factories, devices_per_factory=devices, radius_m=radius_m).build()
    tree = Tree(branching=(factories, stations), devices_per_station=2, radius_m=radius_m).build()
    for topology in (park, ring, regions, tree, Star(devices=devices, radius_m=radius_m).build()):
        at = places(topology)
        for sensor in topology.sensors:
            assert math.dist(at[sensor], at[topology.cell_of(sensor)]) <= radius_m + 1e-3  # rounded to millimetres


# All of them


@given(st.lists(st.sampled_from(["camera", "gateway", "plc"]), min_size=1, max_size=5))
def test_everybody_deals_device_classes_out_in_turn(classes: list[str]) -> None:
    dealt = {"device_classes": tuple(classes)}
    for settings in (
        FactoryPark(factories=3, devices_per_factory=2, **dealt),
        Tree(branching=(2, 2), devices_per_station=3, **dealt),
        Ring(factories=3, devices_per_factory=3, stations_per_factory=2, **dealt),
        Regions(regions=2, factories_per_region=2, devices_per_factory=3, **dealt),
    ):
        nodes, sensors = settings.build().graph.nodes, settings.build().sensors
        assert [nodes[sensor]["device"] for sensor in sensors] == [
            classes[index % len(classes)] for index in range(len(sensors))
        ]


@pytest.mark.parametrize("factories", [20, pytest.param(100, marks=pytest.mark.long)])
def test_a_park_of_100_000_sensors_has_a_route_to_each(factories: int) -> None:
    topology = FactoryPark(factories=factories, devices_per_factory=1000, stations_per_factory=4).build()
    hops = sum(len(topology.route("cloud", sensor)) - 1 for sensor in topology.sensors)
    assert hops == 3_000 * factories  # routes that search the graph would take hours


# Places


@given(counts)
def test_a_smaller_disc_holds_its_share(count: int) -> None:
    radii_m = [math.hypot(*place) for place in around((0.0, 0.0), count, radius_m=1000.0)]
    for part in (0.25, 0.5, 0.75):
        inside = sum(radius_m <= 1000.0 * math.sqrt(part) for radius_m in radii_m)
        assert abs(inside - part * count) <= 0.5 + 1e-9


@given(st.integers(2, 200))
def test_nobody_stands_on_somebody_else(count: int) -> None:
    at_m = (3.0, 4.0)
    for taken in (around(at_m, count, radius_m=100.0), grid(at_m, count, spacing_m=10.0), circle(at_m, count, 10.0)):
        assert len(set(taken)) == count


@given(st.integers(1, 10))
def test_a_full_grid_is_centred(side: int) -> None:
    places = grid((3.0, -4.0), side * side, spacing_m=10.0)
    assert (sum(x for x, _ in places) / side**2, sum(y for _, y in places) / side**2) == pytest.approx((3.0, -4.0))


@given(st.integers(2, 100))
def test_neighbours_on_the_grid_are_one_spacing_apart(count: int) -> None:
    places = grid((0.0, 0.0), count, spacing_m=10.0)
    for place in places:
        assert min(math.dist(place, other) for other in places if other != place) == 10.0


@given(st.integers(2, 100))
def test_neighbours_on_the_circle_are_one_spacing_apart_and_all_equally_far_from_its_centre(count: int) -> None:
    places = circle((3.0, -4.0), count, spacing_m=10.0)
    for place, neighbour in itertools.pairwise([*places, places[0]]):
        assert math.dist(place, neighbour) == pytest.approx(10.0, abs=2e-3)  # rounded to millimetres
        assert math.dist(place, (3.0, -4.0)) == pytest.approx(math.dist(places[0], (3.0, -4.0)), abs=2e-3)


# What the fields refuse


@pytest.mark.parametrize(
    ("settings", "fields", "rule"),
    [
        (Star, {"devices": 0}, "greater than or equal to 1"),
        (Star, {"devices": 1_000_001}, "less than or equal to 1000000"),
        (Star, {"devices": 2.5}, "valid integer"),
        (Star, {"devices": 1, "radius_m": 0.0}, "greater than 0"),
        (Star, {"devices": 1, "backhaul_rate_bps": 0.0}, "greater than 0"),
        (Star, {"devices": 1, "backhaul_rate_bps": math.nan}, "not NaN"),
        (Star, {"devices": 1, "backhaul_delay_s": -0.1}, "greater than or equal to 0"),
        (Star, {"devices": 1, "backhaul_delay_s": math.inf}, "finite number"),
        (Star, {"devices": 1, "stations": 1}, "Extra inputs are not permitted"),
        (Star, {"devices": 1, "device": ""}, "at least 1 character"),
        (FactoryPark, {"factories": 0, "devices_per_factory": 1}, "greater than or equal to 1"),
        (FactoryPark, {"factories": 1}, "give either devices_per_factory or devices"),
        (FactoryPark, {"factories": 1, "devices_per_factory": 1, "stations_per_factory": 0}, "greater than or equal"),
        (FactoryPark, {"factories": 1, "devices_per_factory": 1, "factory_spacing_m": -1.0}, "greater than 0"),
        (FactoryPark, {"factories": 1, "devices_per_factory": 1, "device_classes": "camera"}, "valid tuple"),
        (FactoryPark, {"factories": 1, "devices_per_factory": 1, "device_classes": [3]}, "valid string"),
        (Tree, {"branching": [], "devices_per_station": 1}, "at least 1 item"),
        (Tree, {"branching": [2, 0], "devices_per_station": 1}, "greater than or equal to 1"),
        (Tree, {"branching": [1] * 17, "devices_per_station": 1}, "at most 16 items"),
        (Tree, {"branching": 2, "devices_per_station": 1}, "valid tuple"),
        (Tree, {"branching": [2], "devices_per_station": 0}, "greater than or equal to 1"),
        (Tree, {"branching": [2], "devices_per_station": 1, "wires": [{"rate": 1.0}]}, "Extra inputs"),
        (Tree, {"branching": [2], "devices_per_station": 1, "wires": [{"rate_bps": 0.0}]}, "greater than 0"),
        (Ring, {"factories": 2, "devices_per_factory": 1}, "greater than or equal to 3"),
        (Ring, {"factories": 3, "devices_per_factory": 1, "gateways": 0}, "greater than or equal to 1"),
        (Ring, {"factories": 3, "devices_per_factory": 1, "ring_delay_s": -0.1}, "greater than or equal to 0"),
        (Regions, {"regions": 1, "factories_per_region": 1, "devices_per_factory": 1}, "greater than or equal to 2"),
        (Regions, {"regions": 2, "factories_per_region": 0, "devices_per_factory": 1}, "greater than or equal to 1"),
        (
            Regions,
            {"regions": 2, "factories_per_region": 1, "devices_per_factory": 1, "joined": "star"},
            "'mesh' or 'ring'",
        ),
    ],
)
def test_the_fields_refuse(settings: type[TopologySettings], fields: dict[str, object], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        settings.model_validate(fields)


@pytest.mark.parametrize(
    ("settings", "fields", "message"),
    [
        (
            FactoryPark,
            {"factories": 1_001, "devices_per_factory": 1_000},
            "makes 1,001,000 sensors in all, and at most 1,000,000 are simulated; lower it",
        ),
        (
            Ring,
            {"factories": 1_001, "devices_per_factory": 1, "stations_per_factory": 1_000},
            "makes 1,001,000 base stations in all, and at most 1,000,000 are simulated; lower it",
        ),
        (
            Tree,
            {"branching": [100, 100], "devices_per_station": 101},
            "makes 1,010,000 sensors in all, and at most 1,000,000 are simulated; lower it",
        ),
        (
            Tree,
            {"branching": [1_000, 1_000], "devices_per_station": 1},
            "makes 1,001,000 base stations and edge servers in all, and at most 1,000,000 are simulated; lower it",
        ),
        (
            Regions,
            {"regions": 11, "factories_per_region": 1_000, "devices_per_factory": 100},
            "makes 1,100,000 sensors in all, and at most 1,000,000 are simulated; lower it",
        ),
        (
            Regions,
            {"regions": 1_415, "factories_per_region": 1, "devices_per_factory": 1},
            "makes 1,000,405 wires between clouds in all, and at most 1,000,000 are simulated; lower it",
        ),
        (
            Explicit,
            {
                "nodes": {
                    "cloud": {"kind": "cloud"},
                    "bs": {"kind": "base_station"},
                    "cam": {"kind": "sensor", "count": 600_000, "attach": "bs"},
                    "agv": {"kind": "sensor", "count": 600_000, "attach": "bs"},
                },
                "links": [{"between": ["cloud", "bs"]}],
            },
            "makes 1,200,000 sensors in all, and at most 1,000,000 are simulated; lower it",
        ),
    ],
)
def test_nobody_builds_more_than_can_be_simulated(
    settings: type[TopologySettings], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError) as refusal:
        settings.model_validate(fields)
    assert [error["msg"] for error in refusal.value.errors()] == [f"Value error, {message}"]


def test_exactly_as_many_as_can_be_simulated_are_allowed() -> None:
    Tree(branching=(100, 100), devices_per_station=100)
    FactoryPark(factories=1_000, devices_per_factory=1_000)
    Regions(regions=1_000, factories_per_region=1, devices_per_factory=1_000, joined="mesh")


@pytest.mark.parametrize(
    "park",
    [
        {"name": "factory_park", "factories": 10},
        {"name": "ring", "factories": 10},
        {"name": "regions", "regions": 2, "factories_per_region": 5},
    ],
)
def test_devices_of_all_factories_are_shared_out_evenly(park: dict[str, Any]) -> None:
    settings = registry.load("topologies", park["name"]).model_validate({**park, "devices": 368})
    topology = settings.build()
    assert len(topology.sensors) == 368
    sizes = Counter(sensor.rpartition("/")[0] for sensor in topology.sensors)
    assert sorted(sizes.values()) == [36] * 2 + [37] * 8


@pytest.mark.parametrize(
    ("devices", "rule"),
    [
        ({}, "give either devices_per_factory or devices; neither of them is given"),
        ({"devices": 4, "devices_per_factory": 2}, "both of them is given"),
        ({"devices": 9}, "devices=9 must be at least 10, one for each factory"),
    ],
)
def test_a_park_has_one_number_of_devices(devices: dict[str, int], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        FactoryPark(factories=10, **devices)
