"""A graph of another tool becomes the network that the scenario says it is: each key, and each thing left unsaid."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import networkx as nx
import pytest
from drawn_towns import GLOBE, YED, ZOO, imported, kinds, parallels, refusal, triangle, typed, wires

from fedsim.topology.files.network import EARTH_RADIUS_M

pytestmark = pytest.mark.usefixtures("folder_of_its_own")

# Towns as five tools write them; two of them are in `drawn_towns`

GEPHI = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="label" attr.type="string" for="node" id="label"/>
<key attr.name="Edge Label" attr.type="string" for="edge" id="edgelabel"/>
<key attr.name="weight" attr.type="double" for="edge" id="weight"/>
<key attr.name="r" attr.type="int" for="node" id="r"/>
<key attr.name="x" attr.type="float" for="node" id="x"/>
<key attr.name="y" attr.type="float" for="node" id="y"/>
<key attr.name="size" attr.type="float" for="node" id="size"/>
<graph edgedefault="directed">
<node id="vie">
<data key="label">Vienna</data>
<data key="size">10.0</data>
<data key="r">153</data>
<data key="x">-0.5</data>
<data key="y">2.0</data>
</node>
<node id="lnz">
<data key="label">Linz</data>
<data key="size">10.0</data>
<data key="r">153</data>
<data key="x">0.5</data>
<data key="y">2.0</data>
</node>
<edge id="0" source="vie" target="lnz">
<data key="weight">10.0</data>
</edge>
</graph>
</graphml>
"""

CYTOSCAPE = """\
<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="shared name" attr.type="string" for="node" id="shared name"/>
<key attr.name="selected" attr.type="boolean" for="node" id="selected"/>
<key attr.name="name" attr.type="string" for="node" id="name"/>
<key attr.name="interaction" attr.type="string" for="edge" id="interaction"/>
<key attr.name="gbit" attr.type="int" for="edge" id="gbit"/>
<graph edgedefault="directed" id="Network">
<node id="62">
<data key="shared name">Vienna</data>
<data key="name">Vienna</data>
<data key="selected">false</data>
</node>
<node id="64">
<data key="shared name">Linz</data>
<data key="name">Linz</data>
<data key="selected">false</data>
</node>
<edge source="62" target="64">
<data key="interaction">fibre</data>
<data key="gbit">10</data>
</edge>
</graph>
</graphml>
"""

IGRAPH = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
         xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns
         http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
<!-- Created by igraph -->
  <key id="v_name" for="node" attr.name="name" attr.type="string"/>
  <key id="e_capacity" for="edge" attr.name="capacity" attr.type="double"/>
  <graph id="G" edgedefault="undirected">
    <node id="n0">
      <data key="v_name">Vienna</data>
    </node>
    <node id="n1">
      <data key="v_name">Linz</data>
    </node>
    <edge source="n0" target="n1">
      <data key="e_capacity">10000</data>
    </edge>
  </graph>
</graphml>
"""

TOWNS: dict[str, tuple[str, dict[str, Any]]] = {
    "Topology Zoo": (ZOO, {"name_attribute": "label", "rate_attribute": "LinkSpeedRaw", "rate_bps": 1e9}),
    "yEd": (YED, {"name_attribute": "NodeLabel", "rate_attribute": "EdgeLabel", "rates": {"10G": 1e10}}),
    "Gephi": (GEPHI, {"name_attribute": "label", "rate_attribute": "weight", "rate_unit_bps": 1e9}),
    "Cytoscape": (CYTOSCAPE, {"name_attribute": "name", "rate_attribute": "gbit", "rate_unit_bps": 1e9}),
    "igraph": (IGRAPH, {"name_attribute": "name", "rate_attribute": "capacity", "rate_unit_bps": 1e6}),
}


# The tools


@pytest.mark.parametrize(("text", "keys"), TOWNS.values(), ids=TOWNS)
def test_a_file_of_a_tool_becomes_a_network(text: str, keys: Mapping[str, Any]) -> None:
    topology = imported(text, **keys).build()
    assert topology.clouds == ("Vienna",)
    assert kinds(topology)["Linz"] == "base_station"
    assert wires(topology)["Vienna", "Linz"] == (1e10, None)
    assert topology.route("Linz/sensor-1", "Vienna") == ("Linz/sensor-1", "Linz", "Vienna")


def test_networkx_may_write_graphml_node_links_or_adjacency() -> None:
    graph = triangle(gbit=10)
    keys = {"rate_attribute": "gbit", "rate_unit_bps": 1e9}
    from_graphml = imported(graph, **keys).build()
    assert wires(from_graphml) == dict.fromkeys(
        [("Vienna", "Linz"), ("Vienna", "Graz"), ("Linz", "Graz")], (1e10, None)
    )
    assert imported(graph, "zoo.json", **keys).build() == from_graphml
    assert imported(json.dumps(nx.adjacency_data(graph)), "zoo.json", **keys).build() == from_graphml


def test_ids_that_are_numbers_are_names_too() -> None:
    graph = nx.relabel_nodes(triangle(), {"Vienna": 0, "Linz": 1, "Graz": 2})
    assert imported(graph, "zoo.json", clouds=["0"]).build().sensors == ("1/sensor-1", "2/sensor-1")


# Names and kinds


def test_without_a_name_attribute_ids_are_names() -> None:
    assert list(kinds(imported(ZOO, clouds=["0"]).build())) == ["0", "1", "2", "3"]


def test_named_clouds_come_first_and_the_first_holds_the_model() -> None:
    topology = imported(triangle(), clouds=["Graz", "Linz"]).build()
    assert topology.clouds == ("Graz", "Linz")
    assert topology.cloud == "Graz"
    assert kinds(topology)["Vienna"] == "base_station"


def test_a_node_is_a_cloud_or_what_its_attribute_says_or_a_leaf_or_the_rest() -> None:
    graph = triangle()
    graph.add_edges_from([("Linz", "Wels"), ("Graz", "Leoben"), ("Leoben", "Bruck")])
    nx.set_node_attributes(graph, {"Vienna": "core", "Graz": "core", "Bruck": "radio"}, "role")
    meant = {"core": "edge", "radio": "base_station"}
    keys = {"kind": "edge", "leaf_kind": "base_station", "kind_attribute": "role", "kinds": meant}
    assert kinds(imported(graph, **keys).build()) == {
        "Vienna": "cloud",
        "Linz": "edge",
        "Graz": "edge",
        "Wels": "base_station",
        "Leoben": "edge",
        "Bruck": "base_station",
    }


def test_kinds_and_names_may_both_come_from_attributes() -> None:
    meant = {"1": "edge", "0": "base_station"}
    topology = imported(ZOO, name_attribute="label", kind_attribute="Internal", kinds=meant).build()
    assert kinds(topology) == {"Vienna": "cloud", "Linz": "edge", "Graz": "edge", "Bregenz": "base_station"}


def test_an_attribute_may_say_kinds_themselves_and_clouds_and_sensors() -> None:
    graph = typed()
    nx.set_edge_attributes(graph, 5.0, "gbit")
    keys = {"kind_attribute": "type", "rate_attribute": "gbit", "device": "camera"}
    topology = imported(graph, clouds=[], sensors_per_station=None, **keys).build()
    assert (topology.clouds, topology.sensors) == (("Vienna",), ("cam",))
    assert topology.graph.nodes["cam"]["device"] == "camera"
    assert topology.graph.edges["Linz", "cam"] == {"rate_bps": None, "delay_s": None}  # air: the radio's matter
    assert wires(topology) == {("Vienna", "Linz"): (5.0, None)}


def test_the_values_of_an_attribute_may_be_numbers_and_truths() -> None:
    graph = triangle()
    nx.set_node_attributes(graph, {"Vienna": 1, "Linz": 2, "Graz": True}, "tier")
    meant = {"1": "cloud", "2": "edge", "true": "base_station"}
    keys = {"clouds": [], "kind_attribute": "tier", "kinds": meant}
    assert list(kinds(imported(graph, "zoo.json", **keys).build()).values()) == ["cloud", "edge", "base_station"]


# Rates and delays


def test_without_any_word_on_rates_and_delays_the_scenarios_defaults_hold() -> None:
    assert set(wires(imported(triangle(gbit=3)).build()).values()) == {(None, None)}


def test_a_rate_may_have_no_limit() -> None:
    topology = imported(triangle(gbit=math.inf), "zoo.json", rate_attribute="gbit", rate_unit_bps=1e9).build()
    assert set(wires(topology).values()) == {(math.inf, None)}


def test_one_rate_and_one_delay_may_hold_for_all() -> None:
    topology = imported(triangle(), rate_bps=math.inf, delay_s=0.25).build()
    assert set(wires(topology).values()) == {(math.inf, 0.25)}


def test_an_attribute_in_any_unit_is_a_rate_or_a_delay() -> None:
    graph = triangle(gbit=2.5, km=80.0)
    keys = {"rate_attribute": "gbit", "rate_unit_bps": 1e9, "delay_attribute": "km", "delay_unit_s": 5e-6}
    assert set(wires(imported(graph, **keys).build()).values()) == {(2.5e9, 4e-4)}


def test_what_the_file_does_not_say_of_a_link_the_scenario_may() -> None:
    graph = triangle(gbit=1.0, ms=2.0)
    del graph.edges["Linz", "Graz"]["gbit"], graph.edges["Linz", "Graz"]["ms"]
    keys = {"rate_attribute": "gbit", "rate_unit_bps": 1e9, "delay_attribute": "ms", "delay_unit_s": 1e-3}
    topology = imported(graph, rate_bps=1e6, delay_s=0.5, **keys).build()
    assert wires(topology)["Linz", "Graz"] == (1e6, 0.5)
    assert wires(topology)["Vienna", "Linz"] == (1e9, 2e-3)
    assert refusal(graph, **keys)[0] == "rate_bps"
    key, problem = refusal(graph, rate_bps=1e6, **keys)
    assert key == "delay_s"
    assert problem.startswith("zoo.graphml:")
    assert problem.endswith(": link 'Linz' - 'Graz' has no 'ms'; add it, or set delay_s for such links")


def test_delays_follow_from_the_distance_on_the_globe() -> None:
    """One degree of a great circle is R pi / 180; at 2e8 m/s that is 0.556 ms."""
    keys = {"name_attribute": "label", "position": GLOBE, "delay_from_distance": {}, "delay_s": 0.003}
    found = wires(imported(ZOO, **keys).build())
    degree_s = EARTH_RADIUS_M * math.pi / 180 / 2.0e8
    assert degree_s == pytest.approx(0.000556, rel=1e-3)
    assert found["Vienna", "Linz"][1] == pytest.approx(degree_s, rel=1e-12)
    assert found["Vienna", "Graz"][1] == pytest.approx(degree_s, rel=1e-12)
    assert found["Linz", "Graz"][1] == pytest.approx(math.sqrt(2) * degree_s, rel=1e-4)  # nearly flat
    assert found["Linz", "Bregenz"][1] == 0.003  # Bregenz has no position
    slow = wires(imported(ZOO, **{**keys, "delay_from_distance": {"speed_m_per_s": 1.0e8}}).build())
    assert slow["Vienna", "Linz"][1] == pytest.approx(2 * degree_s, rel=1e-12)


def test_delays_follow_from_the_distance_in_a_plane() -> None:
    graph: nx.Graph[str] = nx.path_graph(["Vienna", "Linz"])
    nx.set_node_attributes(graph, {"Vienna": (0, 0), "Linz": (3, 4)}, "place")
    for node in graph.nodes.values():
        node["east"], node["north"] = node.pop("place")
    keys = {"position": {"x": "east", "y": "north", "unit_m": 1e3}, "delay_from_distance": {}}
    topology = imported(graph, **keys).build()
    assert wires(topology) == {("Vienna", "Linz"): (None, 5000 / 2e8)}
    assert topology.graph.nodes["Linz"]["position_m"] == (3000.0, 4000.0)


def test_the_middle_of_a_node_that_yed_drew_is_its_position() -> None:
    position = {"x": "Geometry.x", "y": "Geometry.y", "unit_m": 0.5}
    topology = imported(YED, name_attribute="NodeLabel", position=position).build()
    assert [topology.graph.nodes[name]["position_m"] for name in ("Vienna", "Linz")] == [(0.0, 0.0), (50.0, 0.0)]


# Sensors


def test_sensors_are_numbered_after_their_station_and_come_in_the_order_of_the_file() -> None:
    topology = imported(triangle(), sensors_per_station=10, device="camera").build()
    assert topology.sensors[:2] == ("Linz/sensor-01", "Linz/sensor-02")
    assert topology.sensors[-1] == "Graz/sensor-10"
    assert {topology.cell_of(sensor) for sensor in topology.sensors[10:]} == {"Graz"}
    assert topology.graph.nodes["Graz/sensor-10"] == {"kind": "sensor", "position_m": None, "device": "camera"}


def test_sensors_stand_around_their_station() -> None:
    keys = {"name_attribute": "label", "position": GLOBE, "radius_m": 50.0, "leaf_kind": "edge"}
    topology = imported(ZOO, sensors_per_station=20, **keys).build()
    nodes = topology.graph.nodes
    assert len(topology.sensors) == 40  # at Linz and Graz; Bregenz, without a position, is an edge server
    for sensor in topology.sensors:
        away_m = math.dist(nodes[sensor]["position_m"], nodes[topology.cell_of(sensor)]["position_m"])
        assert away_m <= 50.001


# Parallel and directed links

BY_ATTRIBUTES = {"rate_attribute": "bps", "delay_attribute": "s"}


def test_the_fastest_of_parallel_links_is_kept_and_of_several_the_one_with_the_shortest_delay() -> None:
    graph = parallels(bps=[1.0, 3.0, 3.0, 2.0], s=[0.0, 9.0, 5.0, 1.0])
    assert wires(imported(graph, parallel="fastest", **BY_ATTRIBUTES).build()) == {("Vienna", "Linz"): (3.0, 5.0)}


def test_parallel_links_together_are_as_fast_as_their_sum_and_as_late_as_the_last() -> None:
    graph = parallels(bps=[1.0, 3.0, 3.0], s=[0.0, 9.0, 5.0])
    assert wires(imported(graph, parallel="sum", **BY_ATTRIBUTES).build()) == {("Vienna", "Linz"): (7.0, 9.0)}


def test_parallel_links_are_so_in_either_order_of_their_ends() -> None:
    text = ZOO.replace("  </graph>", '<edge source="1" target="0"><data key="d36">5e9</data></edge></graph>')
    keys = {"name_attribute": "label", "rate_attribute": "LinkSpeedRaw", "rate_bps": 1.0}
    assert wires(imported(text, parallel="sum", **keys).build())["Vienna", "Linz"] == (1.5e10, None)


def test_a_link_and_the_one_back_are_one_wire() -> None:
    graph = triangle(gbit=1.0).to_directed()
    graph.remove_edge("Graz", "Vienna")  # a link without one back goes both ways too
    keys = {"rate_attribute": "gbit", "rate_unit_bps": 1e9}
    for path in ("zoo.graphml", "zoo.json"):
        topology = imported(graph, path, **keys).build()
        assert wires(topology) == wires(imported(triangle(gbit=1.0), **keys).build())


def test_parallel_links_that_are_directed_are_put_together_before_they_are_merged() -> None:
    graph = parallels(bps=[1.0, 2.0], s=[0.5, 0.5]).to_directed()
    assert wires(imported(graph, "zoo.json", parallel="sum", **BY_ATTRIBUTES).build()) == {
        ("Vienna", "Linz"): (3.0, 0.5)
    }
