"""Node-link JSON and GraphML of any tool become the explicit form: nothing is lost, merged, invented or blown up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from some_topologies import plant, plant_written_out, topologies
from topology_texts import GRAPHML, JSON, SMALL, graphml, node_link, refusal, xml

from fedsim.topology.explicit import Explicit, to_explicit
from fedsim.topology.graph import Topology
from fedsim.topology.imported import read_topology_data


def build(mapping: dict[str, Any]) -> Topology:
    return Explicit.model_validate(mapping).build()


@given(topologies(), st.sampled_from(["edges", "links"]))
def test_nothing_is_lost_in_node_link_json(topology: Topology, edges: str) -> None:
    read = read_topology_data(JSON, json.dumps(node_link(topology.graph, edges)))
    assert read == to_explicit(topology)
    assert build(read) == topology


@given(topologies())
def test_nothing_is_lost_in_graphml(topology: Topology) -> None:
    read = read_topology_data(GRAPHML, graphml(topology.graph))
    assert read == to_explicit(topology)
    assert build(read) == topology


def test_directions_and_multigraphs_do_not_matter() -> None:
    for form in (nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        graph = form()
        graph.add_nodes_from(plant().nodes(data=True))
        graph.add_edges_from(plant().edges)
        assert build(read_topology_data(JSON, json.dumps(node_link(graph)))) == Topology(plant())
        assert build(read_topology_data(GRAPHML, graphml(graph))) == Topology(plant())


def test_what_other_tools_store_is_passed_over() -> None:
    graph = plant()
    nx.set_node_attributes(graph, {"cam": "#ff0000", "bs-1": "blue"}, "color")
    nx.set_node_attributes(graph, 3, "size")
    nx.set_edge_attributes(graph, 0.5, "weight")
    graph.graph["title"] = "the plant"
    for path, text in ((JSON, json.dumps(node_link(graph))), (GRAPHML, graphml(graph))):
        assert read_topology_data(path, text) == plant_written_out()


def test_the_sensors_keep_the_files_order() -> None:
    graph = plant()
    for name in ("z", "a", "m"):
        graph.add_node(name, kind="sensor")
        graph.add_edge(name, "bs-2")
    for path, text in ((JSON, json.dumps(node_link(graph))), (GRAPHML, graphml(graph))):
        assert build(read_topology_data(path, text)).sensors == ("cam", "z", "a", "m")


def test_json_may_place_by_x_and_y_and_number_its_nodes() -> None:
    data = node_link(nx.relabel_nodes(plant(), {name: number for number, name in enumerate(plant())}))
    data["nodes"][1] |= {"x": 3, "y": -4.5}
    topology = build(read_topology_data(JSON, json.dumps(data)))
    assert topology.sensors == ("4",)
    assert topology.graph.nodes["1"]["position_m"] == (3.0, -4.5)


def test_null_is_absent() -> None:
    data = node_link(plant())
    data["nodes"][0] |= {"device": None, "x": None, "position_m": None}
    data["edges"][0] |= {"rate_bps": None}
    assert read_topology_data(JSON, json.dumps(data)) == plant_written_out()


def test_graphml_defaults_hold_where_nothing_is_said() -> None:
    keys = (
        '<key id="d" for="node" attr.name="device" attr.type="string"><default>camera</default></key>'
        '<key id="r" for="edge" attr.name="delay_s" attr.type="double"><default>0.5</default></key>'
    )
    body = (
        '<node id="c"><data key="k">cloud</data></node>'
        '<node id="b"><data key="k">base_station</data><data key="d">mast</data></node>'
        '<edge source="c" target="b"/>'
    )
    read = read_topology_data(GRAPHML, xml(body, keys))
    assert read["nodes"] == {
        "c": {"kind": "cloud", "device": "camera"},
        "b": {"kind": "base_station", "device": "mast"},
    }
    assert read["links"] == [{"between": ["c", "b"], "delay_s": 0.5}]


@pytest.mark.parametrize("declared", ['attr.type="string"', 'attr.type="double"', 'attr.type="complex"', ""])
def test_a_graphml_number_is_one_whatever_it_is_declared(declared: str) -> None:
    body = f'{SMALL}<edge source="c" target="b"><data key="r">1000</data></edge>'
    text = xml(body, f'<key id="r" for="edge" attr.name="rate_bps" {declared}/>')
    assert read_topology_data(GRAPHML, text)["links"] == [{"between": ["c", "b"], "rate_bps": 1000}]


def test_a_link_that_stands_twice_is_passed_on_to_be_refused() -> None:
    twice = f'{SMALL}<edge source="c" target="b"/><edge source="b" target="c"/>'
    data = node_link(plant())
    data["edges"].append({"source": "edge", "target": "cloud"})
    for read in (read_topology_data(GRAPHML, xml(twice)), read_topology_data(JSON, json.dumps(data))):
        with pytest.raises(ValueError, match="are linked already, and a link goes both ways; keep one"):
            Explicit.model_validate(read)


def test_a_sensor_at_two_base_stations_is_passed_on_to_be_refused() -> None:
    graph = plant()
    graph.add_edge("cam", "bs-2")
    with pytest.raises(ValueError, match="sensor 'cam' is linked to 2 nodes"):
        Explicit.model_validate(read_topology_data(JSON, json.dumps(node_link(graph))))


def test_a_rate_of_the_air_is_passed_on_to_be_refused() -> None:
    graph = plant()
    graph.edges["bs-1", "cam"]["rate_bps"] = 1e6
    with pytest.raises(ValueError, match="link 'cam' - 'bs-1' is air: rate_bps=1000000.0 belongs to wires"):
        Explicit.model_validate(read_topology_data(JSON, json.dumps(node_link(graph))))


def test_a_suffix_may_be_in_capitals() -> None:
    assert read_topology_data(Path("PLANT.JSON"), json.dumps(node_link(plant()))) == plant_written_out()


@pytest.mark.parametrize("domain", ['for="node"', 'for="all"', ""])
def test_a_default_may_be_for_nodes_or_for_all(domain: str) -> None:
    key = f'<key id="d" {domain} attr.name="device"><default>camera</default></key>'
    read = read_topology_data(GRAPHML, xml('<node id="a"><data key="k">edge</data></node>', key))
    assert read["nodes"] == {"a": {"kind": "edge", "device": "camera"}}


def test_graphml_without_a_namespace_is_read() -> None:
    assert read_topology_data(GRAPHML, xml(SMALL).replace(' xmlns="http://graphml.graphdrawing.org/xmlns"', "")) == (
        read_topology_data(GRAPHML, xml(SMALL))
    )


def test_a_key_without_a_name_is_called_by_its_id() -> None:
    text = '<graphml><key id="kind"/><graph><node id="a"><data key="kind">edge</data></node></graph></graphml>'
    assert read_topology_data(GRAPHML, text)["nodes"] == {"a": {"kind": "edge"}}


def test_white_space_around_a_value_does_not_count_and_nothing_else_is_no_value() -> None:
    key = '<key id="d" for="node" attr.name="device" attr.type="string"><default>camera</default></key>'
    body = '<node id="a"><data key="k">\n  edge\n</data><data key="d"> </data></node>'
    assert read_topology_data(GRAPHML, xml(body, key))["nodes"] == {"a": {"kind": "edge"}}


# Adjacency data: each link of an undirected graph stands in the lists of both its ends


def adjacency(graph: nx.Graph[str]) -> dict[str, Any]:
    data: dict[str, Any] = nx.adjacency_data(graph)
    return data


@given(topologies())
def test_nothing_is_lost_in_adjacency_data(topology: Topology) -> None:
    read = read_topology_data(JSON, json.dumps(adjacency(topology.graph)))
    assert build(read) == topology


def test_adjacency_data_may_number_its_nodes_and_have_directions() -> None:
    numbered = nx.relabel_nodes(plant(), {name: number for number, name in enumerate(plant())})
    for form in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        graph = form()
        graph.add_nodes_from(numbered.nodes(data=True))
        graph.add_edges_from(numbered.edges)
        assert build(read_topology_data(JSON, json.dumps(adjacency(graph)))).sensors == ("4",)


def test_parallel_links_in_adjacency_data_are_told_apart_by_their_keys() -> None:
    graph: nx.MultiGraph[str] = nx.MultiGraph(plant())
    graph.add_edge("cloud", "edge", rate_bps=1e9)
    links = read_topology_data(JSON, json.dumps(adjacency(graph)))["links"]
    assert links[:2] == [{"between": ["cloud", "edge"]}, {"between": ["cloud", "edge"], "rate_bps": 1e9}]


def test_adjacency_data_that_contradicts_itself_is_refused() -> None:
    data = adjacency(plant())
    data["adjacency"][0][0]["rate_bps"] = 1e9
    assert (
        refusal(JSON, json.dumps(data)) == "the link 'cloud' - 'edge' differs in the lists of its ends; make them equal"
    )
    data["adjacency"][0].clear()
    data["adjacency"].pop()
    assert refusal(JSON, json.dumps(data)) == (
        "'adjacency' has 4 lists for 5 nodes, and each node needs one of its own"
    )
    data["adjacency"].append({})
    assert refusal(JSON, json.dumps(data)) == "adjacency[4]={} must be a list of objects with the key 'id'"
    data["adjacency"][4] = ["edge"]
    assert refusal(JSON, json.dumps(data)) == "adjacency[4][0]='edge' must be an object with the key 'id'"
