"""Written out node by node: everything can be said this way, and read back to the same network."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from some_topologies import plant, plant_written_out, topologies

from fedsim.topology.explicit import Explicit, to_explicit
from fedsim.topology.factories import FactoryPark, Regions, Ring
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.settings import TopologySettings, WireSettings
from fedsim.topology.tree import Star, Tree


def build(mapping: dict[str, Any]) -> Topology:
    return Explicit.model_validate(mapping).build()


@given(topologies())
def test_written_out_and_built_again_is_the_same_network(topology: Topology) -> None:
    assert build(to_explicit(topology)) == topology


@given(topologies())
def test_what_is_written_out_is_plain_data(topology: Topology) -> None:
    written = to_explicit(topology)
    assert json.loads(json.dumps(written)) == written
    assert list(written["nodes"]) == list(topology.graph)


@pytest.mark.parametrize(
    "settings",
    [
        Star(devices=12, device="camera", backhaul_rate_bps=math.inf),
        FactoryPark(
            factories=3, devices_per_factory=7, stations_per_factory=2, device_classes=("a", "b"), lan_delay_s=0.1
        ),
        Tree(branching=(2, 3), devices_per_station=2, wires=(WireSettings(rate_bps=1e9), WireSettings())),
        Ring(factories=5, devices_per_factory=2, gateways=2, ring_delay_s=0.1),
        Regions(regions=3, factories_per_region=2, devices_per_factory=1, core_rate_bps=1e9),
    ],
    ids=["star", "factory_park", "tree", "ring", "regions"],
)
def test_every_builders_network_can_be_written_out(settings: TopologySettings) -> None:
    assert build(to_explicit(settings.build())) == settings.build()


def test_written_out_it_is_short() -> None:
    assert to_explicit(Topology(plant())) == plant_written_out()


def test_attach_is_short_for_a_link() -> None:
    with_link = plant_written_out()
    del with_link["nodes"]["cam"]["attach"]
    with_link["links"].append({"between": ["cam", "bs-1"]})
    assert build(with_link) == build(plant_written_out()) == Topology(plant())


def test_count_repeats_a_sensor_where_it_stands() -> None:
    written = plant_written_out()
    cams = {"kind": "sensor", "count": 10, "attach": "bs-2", "device": "camera", "position_m": [1, 2.5]}
    written["nodes"] = {"first": {"kind": "sensor", "attach": "bs-1"}, "cams": cams, **written["nodes"]}
    topology = build(written)
    assert topology.sensors == ("first", *(f"cams-{number:02}" for number in range(1, 11)), "cam")
    for number in range(1, 11):
        sensor = topology.graph.nodes[f"cams-{number:02}"]
        assert sensor == {"kind": NodeKind.SENSOR, "position_m": (1.0, 2.5), "device": "camera"}
        assert topology.cell_of(f"cams-{number:02}") == "bs-2"


@given(st.integers(1, 300))
def test_counted_names_are_in_text_order(count: int) -> None:
    cams = {"kind": "sensor", "count": count, "attach": "bs"}
    nodes = {"cloud": {"kind": "cloud"}, "bs": {"kind": "base_station"}, "cam": cams}
    topology = build({"nodes": nodes, "links": [{"between": ["cloud", "bs"]}]})
    assert len(topology.sensors) == count
    assert list(topology.sensors) == sorted(topology.sensors)


def test_wires_may_form_rings_and_there_may_be_several_clouds() -> None:
    written = plant_written_out()
    written["nodes"]["north"] = {"kind": "cloud"}
    written["links"] += [
        {"between": ["bs-1", "bs-2"]},
        {"between": ["north", "bs-2"], "rate_bps": 1e6},
        {"between": ["north", "cloud"], "delay_s": 0.01},
    ]
    topology = build(written)
    assert topology.clouds == ("cloud", "north")
    assert topology.route("cam", "north") == ("cam", "bs-1", "bs-2", "north")
    assert build(to_explicit(topology)) == topology


# What it refuses

Change = Callable[[dict[str, Any]], object]


def node(name: str, **fields: Any) -> Change:
    return lambda written: written["nodes"].__setitem__(name, {**written["nodes"].get(name, {}), **fields})


def link(*between: Any, **fields: Any) -> Change:
    return lambda written: written["links"].append({"between": list(between), **fields})


REFUSED: dict[str, tuple[Change, tuple[str | int, ...], str]] = {
    "unknown node in a link": (
        link("egde", "bs-1"),
        (),
        "links[3]: no node is called 'egde'; did you mean 'edge'?",
    ),
    "node that is like no other": (
        link("edge", "moon"),
        (),
        "links[3]: no node is called 'moon'; add it to nodes",
    ),
    "unknown base station": (
        node("cam", attach="bs1"),
        (),
        "nodes.cam.attach: no node is called 'bs1'; did you mean 'bs-1'?",
    ),
    "attached and linked": (
        link("cam", "bs-1"),
        (),
        "links[3]: 'cam' and 'bs-1' are linked already, and a link goes both ways; keep one",
    ),
    "no cloud": (
        node("cloud", kind="edge"),
        (),
        "no node is of kind 'cloud', and at least one must be: it holds the global model; add one",
    ),
    "attached edge server": (
        node("edge", attach="bs-1"),
        ("nodes", "edge"),
        "attach='bs-1' is for sensors, and this is of kind edge; write an entry in links",
    ),
    "counted base stations": (
        node("bs-1", count=2),
        ("nodes", "bs-1"),
        "count=2 is for sensors, and this is of kind base_station; write out each node",
    ),
}


@pytest.mark.parametrize(("change", "place", "message"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(change: Change, place: tuple[str | int, ...], message: str) -> None:
    written = plant_written_out()
    change(written)
    with pytest.raises(ValidationError) as refusal:
        Explicit.model_validate(written)
    [error] = refusal.value.errors()
    assert error["loc"] == place
    assert error["msg"] == f"Value error, {message}"


@pytest.mark.parametrize("order", [("cam", "cam-2"), ("cam-2", "cam")], ids=["count first", "count last"])
def test_a_counted_name_must_be_free(order: tuple[str, str]) -> None:
    entries = {
        "cam": {"kind": "sensor", "count": 3, "attach": "bs-1"},
        "cam-2": {"kind": "sensor", "attach": "bs-1"},
    }
    written = plant_written_out()
    del written["nodes"]["cam"]
    written["nodes"].update({name: entries[name] for name in order})
    with pytest.raises(ValidationError) as refusal:
        Explicit.model_validate(written)
    assert refusal.value.errors()[0]["msg"] == (
        f"Value error, nodes.{order[1]}: there is another node called 'cam-2', and names must differ; rename one "
        "(an entry with a count makes numbered names)"
    )


@pytest.mark.parametrize(
    ("change", "place", "rule"),
    [
        (node("edge", kind="server"), ("nodes", "edge", "kind"), "'sensor', 'base_station', 'edge' or 'cloud'"),
        (node("new"), ("nodes", "new", "kind"), "Field required"),
        (node("edge", colour="red"), ("nodes", "edge", "colour"), "Extra inputs"),
        (node("edge", position_m=[1.0, math.nan]), ("nodes", "edge", "position_m", 1), "finite number"),
        (node("cam", count=0), ("nodes", "cam", "count"), "greater than or equal to 1"),
        (link("edge"), ("links", 3, "between", 1), "Field required"),
        (link("edge", "bs-1", "bs-2"), ("links", 3, "between"), "at most 2 items"),
        (link("edge", "bs-1", rate_bps=-1.0), ("links", 3, "rate_bps"), "greater than 0"),
        (link("edge", "bs-1", delay_ms=1.0), ("links", 3, "delay_ms"), "Extra inputs"),
    ],
)
def test_a_wrong_value_is_refused_in_its_place(change: Change, place: tuple[str | int, ...], rule: str) -> None:
    written = plant_written_out()
    change(written)
    with pytest.raises(ValidationError, match=rule) as refusal:
        Explicit.model_validate(written)
    assert [error["loc"] for error in refusal.value.errors()] == [place]
