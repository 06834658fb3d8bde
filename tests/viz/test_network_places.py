"""Where a drawing puts the nodes of a network."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from drawn_networks import many, network, plant, ring_of_edges

from fedsim.topology.factories import FactoryPark
from fedsim.topology.graph import Topology
from fedsim.topology.tree import Star
from fedsim.viz.topology_map.places import MARGIN, TALLEST, Net, Places, lay_out

WIDTH = 560.0
IN_PLACE = {"edge": (0.0, 0.0), "bs-1": (-40.0, 5.0), "bs-2": (40.0, 5.0)}


def laid_out(topology: Topology, width: float = WIDTH) -> Places:
    return lay_out(Net(topology), width)


def height(places: Places) -> float:
    return (places.frame[3] - places.frame[1]) / places.point


def is_crowded(places: Places) -> bool:
    return places.ground is None and "Where they are, nodes would hide each other or wires" in places.notes[0]


def test_nodes_with_positions_are_drawn_in_place() -> None:
    places = laid_out(plant(IN_PLACE))
    assert {name: places.nodes[name] for name in IN_PLACE} == IN_PLACE
    assert not any("beside the position" in note for note in places.notes)


def test_sensors_with_positions_are_drawn_in_place() -> None:
    topology = Star(devices=12).build()
    places = laid_out(topology)
    expected = [topology.graph.nodes[sensor]["position_m"] for sensor in topology.sensors]
    assert places.sensors["station"].tolist() == [list(position) for position in expected]
    assert places.radii["station"] >= max(math.hypot(*position) for position in expected)


def test_what_has_no_position_stands_above_the_rest_with_the_cloud_on_top() -> None:
    at = {"bs-1": (0.0, 0.0), "bs-2": (300.0, 100.0)}
    places = laid_out(plant(at))
    heights = [places.nodes[name][1] for name in ("bs-1", "bs-2", "edge", "cloud")]
    assert heights == sorted(heights)
    assert places.ground is not None
    assert heights[1] < places.ground < heights[2]


def test_a_lone_node_without_a_position_stands_over_its_neighbours() -> None:
    places = laid_out(plant({"edge": (-70.0, 0.0), "bs-1": (0.0, 0.0), "bs-2": (70.0, 40.0)}))
    assert places.nodes["cloud"][0] == -70.0


def test_a_base_station_without_a_position_stands_amid_its_sensors() -> None:
    places = laid_out(plant({"edge": (0.0, 0.0), "a": (100.0, 10.0), "b": (120.0, 30.0), "bs-2": (-50.0, 0.0)}))
    assert places.nodes["bs-1"] == (110.0, 20.0)


def test_an_edge_server_where_its_base_station_stands_is_drawn_beside_the_cell() -> None:
    topology = FactoryPark(factories=10, devices_per_factory=8).build()
    places = laid_out(topology)
    assert "10 nodes are drawn beside the position, where another one stands." in places.notes
    for number in range(1, 11):
        edge, station = f"factory-{number:02}/edge", f"factory-{number:02}/station-1"
        assert topology.graph.nodes[edge]["position_m"] == places.nodes[station]
        assert math.dist(places.nodes[edge], places.nodes[station]) > places.radii[station]


@pytest.mark.parametrize("name", many())
@pytest.mark.parametrize("width", [300.0, 560.0])
def test_no_node_stands_on_another_one_or_outside(name: str, width: float) -> None:
    places = laid_out(many()[name], width)
    left, bottom, right, top = places.frame
    spots = np.array(list(places.nodes.values()))
    assert (spots >= (left, bottom)).all() and (spots <= (right, top)).all()
    nearest = min(math.dist(one, other) for one, other in combinations(places.nodes.values(), 2))
    assert nearest / places.point >= 3.0
    assert height(places) <= TALLEST * width + 3 * MARGIN


def test_without_positions_a_row_is_the_hops_to_the_cloud() -> None:
    net = Net(ring_of_edges(8))
    places = lay_out(net, WIDTH)
    assert places.ground is None
    heights = {hops: {places.nodes[name][1] for name in net.hops if net.hops[name] == hops} for hops in range(6)}
    assert all(len(row) == 1 for row in heights.values())
    rows = [row.pop() for row in heights.values()]
    assert all(upper > lower for upper, lower in pairwise(rows))


def test_all_clouds_stand_on_top() -> None:
    places = laid_out(ring_of_edges(9, clouds=3))
    highest = max(y for _, y in places.nodes.values())
    assert {name for name, (_, y) in places.nodes.items() if y == highest} == {"cloud-0", "cloud-1", "cloud-2"}


def test_a_parent_stands_over_the_middle_of_its_children() -> None:
    places = laid_out(plant())
    assert places.nodes["edge"][0] == pytest.approx((places.nodes["bs-1"][0] + places.nodes["bs-2"][0]) / 2)


def test_a_thousand_base_stations_fill_a_block() -> None:
    stations = {f"bs-{i}": "base_station" for i in range(1000)}
    links = [("cloud", station) for station in stations] + [(f"bs-{i}", f"cam-{i}") for i in range(1000)]
    places = laid_out(network({"cloud": "cloud", **stations, **{f"cam-{i}": "sensor" for i in range(1000)}}, links))
    columns = {x for x, _ in places.nodes.values()}
    rows = {y for _, y in places.nodes.values()}
    assert 25 <= len(columns) <= 40 and 25 <= len(rows) <= 40
    assert height(places) <= TALLEST * WIDTH + 2 * MARGIN


@pytest.mark.parametrize("far_m", [0.0, 1e3, 1e6])
def test_groups_too_far_apart_to_be_seen_in_place_are_drawn_in_layers(far_m: float) -> None:
    factories = {f"bs-{i}": (i % 3 * 100.0 + i // 3 * far_m, i % 3 * 30.0 + i // 3 * 40.0) for i in range(9)}
    kinds = {"cloud": "cloud", **dict.fromkeys(factories, "base_station"), **{f"cam-{i}": "sensor" for i in range(9)}}
    links = [("cloud", name) for name in factories] + [(f"bs-{i}", f"cam-{i}") for i in range(9)]
    assert is_crowded(laid_out(network(kinds, links, factories))) is (far_m == 1e6)


def test_wires_that_would_run_along_each_other_are_drawn_in_layers() -> None:
    line = {"edge": (0.0, 0.0), **{f"bs-{i}": (100.0 * i, 0.0) for i in range(1, 7)}}
    kinds = {"cloud": "cloud", "edge": "edge", **{f"bs-{i}": "base_station" for i in range(1, 7)}, "cam": "sensor"}
    links = [("cloud", "edge"), ("bs-1", "cam"), *(("edge", f"bs-{i}") for i in range(1, 7))]
    assert is_crowded(laid_out(network(kinds, links, line)))


def test_one_position_alone_is_no_map() -> None:
    assert laid_out(plant({"edge": (5.0, 5.0)})).ground is None


@pytest.mark.parametrize("count", [1, 7, 37, 400])
def test_sensors_without_positions_stand_around_their_base_station(count: int) -> None:
    cell = {f"s{number}": "bs" for number in range(count)}
    kinds = {"cloud": "cloud", "bs": "base_station", **dict.fromkeys(cell, "sensor")}
    places = laid_out(network(kinds, [("cloud", "bs"), *cell.items()]))
    distances = np.linalg.norm(places.sensors["bs"] - places.nodes["bs"], axis=1) / places.radii["bs"]
    assert len(distances) == count
    assert (distances >= 0.4).all() and (distances <= 0.9).all()
    if count > 10:  # equal shares: half of the ring's area, half of the sensors
        assert (distances**2 < 0.22 + 0.25).sum() == pytest.approx(count / 2, abs=1)
