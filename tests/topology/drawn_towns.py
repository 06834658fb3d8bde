"""Graphs of a few towns, as other tools write them, and the network that settings make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from pydantic import ValidationError

from fedsim.topology.graph import Topology
from fedsim.topology.imported import Imported

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


GLOBE = {"latitude": "Latitude", "longitude": "Longitude"}
ON_A_MAP = {"name_attribute": "label", "position": GLOBE}


def parallels(**attributes: list[float]) -> nx.MultiGraph[str]:
    """Vienna = Linz, with one link for each of the values."""
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    for values in zip(*attributes.values(), strict=True):
        graph.add_edge("Vienna", "Linz", **dict(zip(attributes, values, strict=True)))
    return graph
