"""A graph of another tool becomes the network that the scenario says it is: each key, and each thing left unsaid."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim.errors import UserError
from fedsim.experiment.run import run
from fedsim.scenario.load import load, written_out
from fedsim.topology.explicit import Explicit
from fedsim.topology.files.geography import EARTH_RADIUS_M, great_circle_m, on_a_map_m
from fedsim.topology.graph import Topology
from fedsim.topology.imported import Imported, self_contained

# Towns as five tools write them

ZOO = """\
<?xml version="1.0"  encoding="utf-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"\
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns\
 http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d38" />
  <key attr.name="LinkSpeedUnits" attr.type="string" for="edge" id="d37" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d36" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <key attr.name="id" attr.type="int" for="node" id="d31" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Internal" attr.type="int" for="node" id="d28" />
  <key attr.name="label" attr.type="string" for="graph" id="d12" />
  <graph edgedefault="undirected">
    <data key="d12">four towns</data>
    <node id="0">
      <data key="d28">1</data>
      <data key="d29">0.0</data>
      <data key="d31">0</data>
      <data key="d32">10.0</data>
      <data key="d33">Vienna</data>
    </node>
    <node id="1">
      <data key="d28">1</data>
      <data key="d29">0.0</data>
      <data key="d31">1</data>
      <data key="d32">11.0</data>
      <data key="d33">Linz</data>
    </node>
    <node id="2">
      <data key="d28">1</data>
      <data key="d29">1.0</data>
      <data key="d31">2</data>
      <data key="d32">10.0</data>
      <data key="d33">Graz</data>
    </node>
    <node id="3">
      <data key="d28">0</data>
      <data key="d31">3</data>
      <data key="d33">Bregenz</data>
    </node>
    <edge source="0" target="1">
      <data key="d38">10</data>
      <data key="d37">G</data>
      <data key="d36">10000000000.0</data>
    </edge>
    <edge source="0" target="2">
      <data key="d36">1000000000.0</data>
    </edge>
    <edge source="1" target="2">
    </edge>
    <edge source="1" target="3">
      <data key="d36">155000000.0</data>
    </edge>
  </graph>
</graphml>
"""

YED = """\
<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:java="http://www.yworks.com/xml/yfiles-common/1.0/java"\
 xmlns:x="http://www.yworks.com/xml/yfiles-common/markup/2.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"\
 xmlns:y="http://www.yworks.com/xml/graphml" xmlns:yed="http://www.yworks.com/xml/yed/3">
  <!--Created by yEd 3.25-->
  <key attr.name="Description" attr.type="string" for="graph" id="d0"/>
  <key for="port" id="d1" yfiles.type="portgraphics"/>
  <key attr.name="url" attr.type="string" for="node" id="d4"/>
  <key attr.name="description" attr.type="string" for="node" id="d5"/>
  <key for="node" id="d6" yfiles.type="nodegraphics"/>
  <key for="graphml" id="d7" yfiles.type="resources"/>
  <key attr.name="description" attr.type="string" for="edge" id="d9"/>
  <key for="edge" id="d10" yfiles.type="edgegraphics"/>
  <graph edgedefault="directed" id="G">
    <data key="d0" xml:space="preserve"/>
    <node id="n0">
      <data key="d5"/>
      <data key="d6">
        <y:ShapeNode>
          <y:Geometry height="30.0" width="60.0" x="-30.0" y="-15.0"/>
          <y:Fill color="#FFCC00" transparent="false"/>
          <y:NodeLabel alignment="center" fontSize="12">Vienna<y:LabelModel><y:SmartNodeLabelModel distance="4.0"/>
          </y:LabelModel></y:NodeLabel>
          <y:NodeLabel>capital</y:NodeLabel>
          <y:Shape type="rectangle"/>
        </y:ShapeNode>
      </data>
    </node>
    <node id="n1">
      <data key="d6">
        <y:SVGNode>
          <y:Geometry height="30.0" width="60.0" x="70.0" y="-15.0"/>
          <y:NodeLabel>Linz</y:NodeLabel>
        </y:SVGNode>
      </data>
      <port name="p"/>
    </node>
    <edge id="e0" source="n0" target="n1" sourceport="p">
      <data key="d10">
        <y:PolyLineEdge>
          <y:Path sx="0.0" sy="0.0" tx="0.0" ty="0.0"/>
          <y:Arrows source="none" target="standard"/>
          <y:EdgeLabel alignment="center">10G<y:PreferredPlacementDescriptor angle="0.0"/></y:EdgeLabel>
        </y:PolyLineEdge>
      </data>
    </edge>
  </graph>
  <data key="d7">
    <y:Resources/>
  </data>
</graphml>
"""

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


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def imported(content: str | nx.Graph[Any], path: str = "", **keys: Any) -> Imported:
    """Settings with *keys* for a file with *content*; of a graph, as networkx writes it."""
    if isinstance(content, str):
        path = path or "zoo.graphml"
        Path(path).write_text(content, encoding="utf-8")
    elif path.endswith(".json"):
        Path(path).write_text(json.dumps(nx.node_link_data(content, edges="edges")), encoding="utf-8")
    else:
        path = path or "zoo.graphml"
        nx.write_graphml(content, path, prettyprint=True)
    defaults = {"clouds": ["Vienna"], "sensors_per_station": 1, "directed": "merge"}
    return Imported.model_validate({"name": "imported", "path": path, **defaults, **keys})


def refusal(content: str | nx.Graph[Any], **keys: Any) -> tuple[str, str]:
    """The key that is blamed, and what is said of it."""
    with pytest.raises(ValidationError) as refused:
        imported(content, **keys)
    [details] = refused.value.errors()
    error = details["ctx"]["error"]
    place = (*details["loc"], *getattr(error, "key", ()))
    assert isinstance(error, ValueError)
    assert "\n" not in str(error)
    return ".".join(map(str, place)), str(error)


def typed() -> nx.Graph[str]:
    """Vienna - Linz - cam, which say what they are."""
    graph: nx.Graph[str] = nx.path_graph(["Vienna", "Linz", "cam"])
    nx.set_node_attributes(graph, {"Vienna": "cloud", "Linz": "base_station", "cam": "sensor"}, "type")
    return graph


def triangle(**attributes: Any) -> nx.Graph[str]:
    """Vienna - Linz - Graz - Vienna; the links have *attributes*."""
    graph: nx.Graph[str] = nx.cycle_graph(["Vienna", "Linz", "Graz"])
    nx.set_edge_attributes(graph, {edge: dict(attributes) for edge in graph.edges})
    return graph


def kinds(topology: Topology) -> dict[str, str]:
    return {name: str(node["kind"]) for name, node in topology.graph.nodes(data=True) if node["kind"] != "sensor"}


def wires(topology: Topology) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    return {(a, b): (link["rate_bps"], link["delay_s"]) for a, b, link in topology.infrastructure.edges(data=True)}


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


GLOBE = {"latitude": "Latitude", "longitude": "Longitude"}
ON_A_MAP = {"name_attribute": "label", "position": GLOBE}


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


def parallels(**attributes: list[float]) -> nx.MultiGraph[str]:
    """Vienna = Linz, with one link for each of the values."""
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    for values in zip(*attributes.values(), strict=True):
        graph.add_edge("Vienna", "Linz", **dict(zip(attributes, values, strict=True)))
    return graph


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


# What is refused: the key that is blamed and what is said


def self_loop() -> nx.Graph[str]:
    graph = triangle()
    graph.add_edge("Linz", "Linz")
    return graph


def unlike_ways() -> nx.DiGraph[str]:
    graph = triangle(bps=1.0).to_directed()
    graph.edges["Linz", "Vienna"]["bps"] = 2.0
    return graph


def mixed_directions() -> str:
    return ZOO.replace("  </graph>", '<edge source="1" target="0" directed="true"/></graph>')


def placed(**places: tuple[float, float] | tuple[float]) -> nx.Graph[str]:
    graph = triangle()
    for name, place in places.items():
        graph.nodes[name].update(zip(("lat", "lon"), place, strict=False))
    return graph


ON_THE_GLOBE = {"position": {"latitude": "lat", "longitude": "lon"}}
RATED = {"rate_attribute": "bps"}
LATE = {"delay_attribute": "s"}
FILE = "zoo.json: "

REFUSED: dict[str, tuple[nx.Graph[Any] | str, dict[str, Any], str, str]] = {
    # keys that do not fit each other
    "kinds of nothing": (triangle(), {"kinds": {"a": "edge"}}, "kinds", "means nothing without kind_attribute; ..."),
    "a unit of nothing": (
        triangle(),
        {"rate_unit_bps": 1e9},
        "rate_unit_bps",
        "means nothing without rate_attribute; ...",
    ),
    "rates of nothing": (triangle(), {"rates": {"a": 1.0}}, "rates", "means nothing without rate_attribute; ..."),
    "a delay's unit": (
        triangle(),
        {"delay_unit_s": 1e-3},
        "delay_unit_s",
        "means nothing without delay_attribute; ...",
    ),
    "a distance from nowhere": (
        triangle(),
        {"delay_from_distance": {}},
        "delay_from_distance",
        "means nothing without position; add that key or remove this one",
    ),
    "a radius of nothing": (
        triangle(),
        {"radius_m": 1.0, "sensors_per_station": None},
        "radius_m",
        "means nothing without sensors_per_station; ...",
    ),
    "two delays": (
        placed(),
        {**ON_THE_GLOBE, "delay_from_distance": {}, **LATE},
        "delay_from_distance",
        "cannot stand beside delay_attribute; keep one of the two",
    ),
    "half a position": (
        triangle(),
        {"position": {"latitude": "lat", "y": "lon"}},
        "position",
        "needs latitude and longitude, or x and y, and this has latitude and y",
    ),
    "no position": (triangle(), {"position": {}}, "position", "needs ..., and this has none of them"),
    "a unit of degrees": (
        triangle(),
        {"position": {**ON_THE_GLOBE["position"], "unit_m": 2.0}},
        "position.unit_m",
        "means nothing with latitude and longitude; remove it",
    ),
    # nodes
    "an unknown cloud": (
        triangle(),
        {"clouds": ["Graz", "Wienna"]},
        "clouds.1",
        "zoo.json has no node 'Wienna'; did you mean 'Vienna'?",
    ),
    "a cloud twice": (triangle(), {"clouds": ["Graz"] * 2}, "clouds.1", "'Graz' stands twice; name each cloud once"),
    "no cloud": (
        triangle(),
        {"clouds": []},
        "clouds",
        "no node of zoo.json is a cloud, and at least one must be: it holds the global model; name it",
    ),
    "no such name attribute": (
        ZOO,
        {"name_attribute": "labels"},
        "name_attribute",
        "no node has an attribute 'labels'; did you mean 'label'? "
        "(attributes: Internal, Latitude, id, Longitude, label)",
    ),
    "a node without a name": (
        ZOO.replace("Latitude", "Country").replace(">1.0<", ">2.0<").replace('d29">0.0', 'd29">A', 1),
        {"name_attribute": "Country"},
        "name_attribute",
        "zoo.graphml:34: node '3' has no 'Country'; correct the file, or leave name_attribute out to call ...",
    ),
    "two nodes of one name": (
        ZOO,
        {"name_attribute": "Internal"},
        "name_attribute",
        "zoo.graphml:20: node '1': Internal='1' is also that of node '0'; correct the file, or ...",
    ),
    "a name that cannot be printed": (
        ZOO.replace("Bregenz", "Bre&#10;genz"),
        {"name_attribute": "label"},
        "name_attribute",
        "zoo.graphml:34: node '3': label='Bre\\ngenz' is no name, because it is no text that can be printed; ...",
    ),
    "no such kind attribute": (
        triangle(),
        {"kind_attribute": "kind"},
        "kind_attribute",
        "no node has an attribute 'kind'; ... (attributes: id)",
    ),
    "a value without meaning": (
        placed(Linz=(1.0,)),
        {"kind_attribute": "lat", "kinds": {"2.0": "edge"}},
        "kinds",
        FILE + "node 'Linz': lat=1.0 is none of 2.0; say in kinds what it means; did you mean '2.0'?",
    ),
    "a value that is no kind": (
        ZOO,
        {"clouds": ["0"], "kind_attribute": "label"},
        "kinds",
        "zoo.graphml:13: node '0': label='Vienna' is none of sensor, base_station, edge, cloud; say in kinds what ...",
    ),
    "no sensors": (
        triangle(),
        {"sensors_per_station": None},
        "sensors_per_station",
        "zoo.json has no sensors, and there must be some: they hold the data; set "
        "sensors_per_station to the number at each base station",
    ),
    "no base stations": (
        triangle(),
        {"kind": "edge"},
        "sensors_per_station",
        "no node of zoo.json is a base station, where sensors could be added; set kind, leaf_kind or kinds",
    ),
    "too many sensors": (
        triangle(),
        {"sensors_per_station": 500_001},
        "sensors_per_station",
        "makes 1,000,002 sensors in all, and at most 1,000,000 are simulated; lower it",
    ),
    "a sensor's name that is taken": (
        nx.path_graph(["Vienna", "Linz", "Linz/sensor-1"]),
        {},
        "path",
        FILE + "there is another node called 'Linz/sensor-1', and names must differ; rename one",
    ),
    # places
    "half a place": (
        placed(Linz=(1.0,), Graz=(1.0, 2.0)),
        ON_THE_GLOBE,
        "position",
        FILE + "node 'Linz' has no 'lon', and a position needs both; add it",
    ),
    "a place beyond the pole": (
        placed(Linz=(91.0, 0.0)),
        ON_THE_GLOBE,
        "position",
        FILE + "node 'Linz': lat=91.0 must be a number from -90 to 90",
    ),
    "a place that is no number": (
        placed(Linz=(math.inf, 0.0)),
        ON_THE_GLOBE,
        "position",
        FILE + "node 'Linz': lat=inf must be a number from -90 to 90",
    ),
    "no such place": (
        triangle(),
        ON_THE_GLOBE,
        "position",
        "no node has an attribute 'lat' (attributes: id)",
    ),
    "sensors around nowhere": (
        triangle(),
        {"radius_m": 1.0},
        "radius_m",
        "base station 'Linz' has no position without the key position, so no sensors can stand around it; leave it out",
    ),
    "sensors around a station without a place": (
        placed(Linz=(1.0, 1.0)),
        {**ON_THE_GLOBE, "radius_m": 1.0},
        "radius_m",
        "base station 'Graz' has no position in the file, so no sensors can stand around it; leave it out",
    ),
    "a place too far to count": (
        placed(Linz=(1e200, 1e200)),
        {"position": {"x": "lat", "y": "lon", "unit_m": 10.0}},
        "position",
        FILE + "node 'Linz': lat=1e+200 must be a number from -1e+17 to 1e+17",
    ),
    # links
    "no such rate": (
        triangle(bps=1),
        {"rate_attribute": "bsp"},
        "rate_attribute",
        "no link has an attribute 'bsp'; did you mean 'bps'? (attributes: bps, source, target)",
    ),
    "no such delay": (
        triangle(s=1),
        {"delay_attribute": "ms"},
        "delay_attribute",
        "no link has an attribute 'ms'; did you mean 's'? (attributes: s, source, target)",
    ),
    "a rate in words": (
        triangle(bps="1 Gbit/s"),
        RATED,
        "rates",
        FILE + "link 'Vienna' - 'Linz': bps='1 Gbit/s' must be a number; say in rates what else it means, in bit/s",
    ),
    "a rate that is a list": (triangle(bps=[1]), RATED, "rates", FILE + "link 'Vienna' - 'Linz': bps=[1] must be ..."),
    "a rate of nothing": (
        triangle(bps=0),
        RATED,
        "rate_attribute",
        FILE + "link 'Vienna' - 'Linz': bps=0 is 0 bit/s, and must be from 1e-18 to 1e+18; correct the file, or ...",
    ),
    "a rate too small to count": (
        triangle(bps=1e-300),
        {**RATED, "rate_unit_bps": 1e-18},
        "rate_attribute",
        FILE + "link 'Vienna' - 'Linz': bps=1e-300 is 9.99999e-319 bit/s, and must be from 1e-18 to 1e+18; ...",
    ),
    "a rate too large to count": (
        triangle(bps=1e300),
        {**RATED, "rate_unit_bps": 1e9},
        "rate_attribute",
        FILE + "link 'Vienna' - 'Linz': bps=1e+300 is inf bit/s, and must be from 1e-18 to 1e+18; ... rate_unit_bps",
    ),
    "a delay before its cause": (
        triangle(s=-1.0),
        LATE,
        "delay_attribute",
        FILE
        + "link 'Vienna' - 'Linz': s=-1.0 must be a number of at least 0, and at most 1e+18 s; correct the file, ...",
    ),
    "a delay without end": (
        triangle(s=math.inf),
        LATE,
        "delay_attribute",
        FILE + "link 'Vienna' - 'Linz': s=inf must be a number of at least 0, and at most 1e+18 s; ... delay_unit_s",
    ),
    "a link without a rate": (
        triangle(),
        {"rate_attribute": "source", "rates": {"Vienna": 1.0, "Linz": 2.0}, **LATE},
        "delay_attribute",
        "no link has an attribute 's' (attributes: source, target)",
    ),
    "a place of NaN": (
        placed(Linz=(1.0, math.nan)),
        ON_THE_GLOBE,
        "position",
        FILE + "node 'Linz': lon=nan must be a number from -180 to 180",
    ),
    "a link to itself in GraphML": (
        ZOO.replace('target="3"', 'target="1"'),
        {"clouds": ["0"]},
        "path",
        "zoo.graphml:49: '1' is linked to itself, and a link must join two nodes; remove it",
    ),
    "a link to itself": (
        self_loop(),
        {},
        "path",
        FILE + "'Linz' is linked to itself, and a link must join two nodes; remove it",
    ),
    "a direction": (
        triangle().to_directed(),
        {"directed": "refuse"},
        "directed",
        FILE
        + "link 'Vienna' - 'Linz' has a direction, and a wire goes both ways; write directed: merge to drop directions",
    ),
    "another rate on the way back": (
        unlike_ways(),
        RATED,
        "directed",
        FILE + "link 'Vienna' - 'Linz' has rate_bps=1 and no delay_s, and the way back rate_bps=2 and no delay_s; "
        "a wire is the same both ways: correct the file",
    ),
    "one way and both ways": (
        mixed_directions(),
        {"clouds": ["0"]},
        "path",
        "zoo.graphml:52: link '0' - '1': one link between these has a direction and another has none; correct the file",
    ),
    "parallel links": (
        parallels(bps=[1.0, 2.0]),
        {},
        "parallel",
        FILE
        + "link 'Vienna' - 'Linz' is one of 2 links between the same nodes; keep one, or write parallel: fastest ...",
    ),
    "a sum of nothing": (
        parallels(bps=[1.0, 2.0]),
        {"parallel": "sum"},
        "parallel",
        FILE + "link 'Vienna' - 'Linz' is one of 2 links between the same nodes, and without rates there is no sum of "
        "them; set rate_attribute or rate_bps",
    ),
    "a sum too large to count": (
        parallels(bps=[1e18, 1e18]),
        {**RATED, "parallel": "sum"},
        "path",
        FILE + "link 'Vienna' - 'Linz' is one of 2 links between the same nodes, and the sum of their rates is larger "
        "than 1e+18 bit/s",
    ),
    "an island": (
        nx.union(triangle(), nx.path_graph(["Oslo", "Bergen"])),
        {},
        "path",
        FILE + "sensor 'Oslo/sensor-1' (and 3 more) has no way to the cloud 'Vienna', and must have one; ...",
    ),
    # the file
    "another format": (ZOO, {"path": "zoo.gml"}, "path", "zoo.gml: a graph file must end in .json or .graphml; ..."),
    "no file": (
        ZOO,
        {"path": "zoe.graphml"},
        "path",
        "zoe.graphml: there is no such file; did you mean 'zoo.graphml'?",
    ),
}


@pytest.mark.parametrize(("content", "keys", "blamed", "message"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_clear_meaning_is_refused(
    content: nx.Graph[Any] | str, keys: dict[str, Any], blamed: str, message: str
) -> None:
    file = {} if isinstance(content, str) else {"path": "zoo.json"}
    if isinstance(content, str) and "path" in keys:
        Path("zoo.graphml").write_text(content, encoding="utf-8")
        with pytest.raises(ValidationError) as refused:
            Imported.model_validate({"name": "imported", **keys})
        [details] = refused.value.errors()
        key, said = ".".join(details["ctx"]["error"].key), str(details["ctx"]["error"])
    else:
        key, said = refusal(content, **file, **keys)
    pattern = ".*".join(re.escape(part) for part in message.split("..."))
    assert re.fullmatch(pattern, said), said
    assert key == blamed


# In a scenario


def towns_with_a_sensor_of_that_name() -> nx.Graph[str]:
    graph = triangle()
    graph.add_edge("Linz", "Linz/sensor")
    return graph


@pytest.mark.parametrize(
    ("content", "keys", "entries"),
    [
        (ZOO, {**ON_A_MAP, "sensors_per_station": 1}, 4 + 3),
        (ZOO, {"name_attribute": "label", "sensors_per_station": 200, "device": "camera"}, 4 + 3),
        (ZOO, {**ON_A_MAP, "radius_m": 9.0, "leaf_kind": "edge", "sensors_per_station": 2}, 4 + 4),
        (towns_with_a_sensor_of_that_name(), {"leaf_kind": "edge", "sensors_per_station": 3}, 4 + 2 * 3),
        (typed(), {"clouds": [], "sensors_per_station": None, "kind_attribute": "type"}, 3),
    ],
    ids=["one each", "many alike", "each in a place", "a name that is taken", "none but those of the file"],
)
def test_a_copy_without_the_file_is_the_same_network(
    content: nx.Graph[Any] | str, keys: dict[str, Any], entries: int
) -> None:
    settings = imported(content, **keys)
    Path("zoo.graphml").unlink()
    written = self_contained(settings)
    assert isinstance(written, Explicit)
    assert len(written.nodes) == entries
    again = Explicit.model_validate(json.loads(json.dumps(written.model_dump(mode="json"))))
    assert again.build() == settings.build()
    assert self_contained(written) is written


PLANT = """\
name: towns
stop: {rounds: 2}
learn: false
topology:
  name: imported
  path: graphs/zoo.graphml
  clouds: [Vienna]
  name_attribute: label
  sensors_per_station: 2
  rate_attribute: LinkSpeedRaw
  rate_bps: 1.0e+9
  position: {latitude: Latitude, longitude: Longitude}
  delay_from_distance: {}
  delay_s: 0.001
network:
  cell:
    radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
data: {name: declared, samples_per_client: 100, sample_bytes: 785}
model: {name: declared, parameters: 1000, training_flops_per_sample: 1.0e+6}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 0.5}
"""


@pytest.fixture
def plant() -> Path:
    Path("graphs").mkdir()
    Path("graphs/zoo.graphml").write_text(ZOO, encoding="utf-8")
    path = Path("plant.yaml")
    path.write_text(PLANT, encoding="utf-8")
    return path


def test_the_scenario_in_a_run_folder_repeats_the_run_without_the_file(plant: Path) -> None:
    scenario = load(plant)
    results = run(scenario, out=Path("runs/first"))
    Path("graphs/zoo.graphml").unlink()
    again = load(Path("runs/first/scenario.yaml"))
    assert again == scenario
    assert written_out(again) == written_out(scenario)
    pd.testing.assert_frame_equal(run(again, out=Path("runs/second")).rounds, results.rounds)


def test_a_changed_file_is_another_scenario(plant: Path) -> None:
    scenario = load(plant)
    graph = Path("graphs/zoo.graphml")
    graph.write_text(ZOO.replace("10000000000.0", "2.5e9"), encoding="utf-8")
    assert load(plant) != scenario
    assert load(plant).topology.build().graph.edges["Vienna", "Linz"]["rate_bps"] == 2.5e9


def test_the_path_is_relative_to_the_file_that_it_stands_in(plant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = load(plant).topology
    by_override = ["topology.path=graphs/other.graphml"]
    Path("graphs/other.graphml").write_text(ZOO, encoding="utf-8")
    assert load(plant, overrides=by_override).topology == network

    lines = PLANT.splitlines()
    own = "\n".join(line.removeprefix("  ") for line in lines[4:14]).replace("graphs/", "")
    Path("graphs/towns.yaml").write_text(own, encoding="utf-8")
    split = "\n".join([*lines[:3], "topology: graphs/towns.yaml", *lines[14:]])
    Path("split.yaml").write_text(split, encoding="utf-8")
    monkeypatch.chdir("graphs")
    assert load(Path("../split.yaml")).topology == network
    by_override[0] = by_override[0].replace("graphs/", "graphs/../graphs/")
    assert load(Path("../split.yaml"), overrides=by_override).topology == network


def test_what_is_wrong_is_said_with_the_key_and_its_place(plant: Path) -> None:
    def said(*overrides: str) -> str:
        with pytest.raises(UserError) as refused:
            load(plant, overrides=overrides)
        return str(refused.value)

    assert said("topology.clouds=[Wienna]") == (
        "--set topology.clouds=[Wienna]: topology.clouds[0]: graphs/zoo.graphml has no node 'Wienna'; "
        "did you mean 'Vienna'?"
    )
    graph = Path("graphs/zoo.graphml")
    graph.write_text(ZOO.replace("1000000000.0", "fast", 1), encoding="utf-8")
    assert said("topology.rates={slow: 1}") == (
        "--set topology.rates={slow: 1}: topology.rates: graphs/zoo.graphml:44: link '0' - '2': "
        "LinkSpeedRaw='fast' must be a number; say in rates what else it means, in bit/s"
    )
    graph.write_text("<graphml>", encoding="utf-8")
    assert said() == "plant.yaml:6: topology.path: graphs/zoo.graphml:1:10: this is not GraphML: no element found"
