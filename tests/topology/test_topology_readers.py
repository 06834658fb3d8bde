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

from fedsim.errors import UserError
from fedsim.topology.explicit import Explicit, to_explicit
from fedsim.topology.graph import Topology
from fedsim.topology.readers import read_topology_data

JSON, GRAPHML = Path("plant.json"), Path("plant.graphml")


def build(mapping: dict[str, Any]) -> Topology:
    return Explicit.model_validate(mapping).build()


def node_link(graph: nx.Graph[str], edges: str = "edges") -> dict[str, Any]:
    data: dict[str, Any] = nx.node_link_data(graph, edges=edges)
    return data


def graphml(graph: nx.Graph[str]) -> str:
    """As networkx writes it; GraphML has no lists and no None: a position is x and y, and None is left out."""
    plain: nx.Graph[str] = type(graph)()
    for name, node in graph.nodes(data=True):
        position = {} if node.get("position_m") is None else dict(zip("xy", node["position_m"], strict=True))
        others = {key: value for key, value in node.items() if key != "position_m" and value is not None}
        plain.add_node(name, **{**others, "kind": str(node["kind"])} if "kind" in node else others, **position)
    for a, b, link in graph.edges(data=True):
        plain.add_edge(a, b, **{key: value for key, value in link.items() if value is not None})
    return "\n".join(nx.generate_graphml(plain))


def refusal(path: Path, text: str) -> str:
    with pytest.raises(UserError) as refused:
        read_topology_data(path, text)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# What is read


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


def xml(body: str, keys: str = "") -> str:
    return (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="k" for="node" attr.name="kind" attr.type="string"/>'
        f'{keys}<graph edgedefault="undirected">{body}</graph></graphml>'
    )


SMALL = (
    '<node id="c"><data key="k">cloud</data></node><node id="b"><data key="k">base_station</data></node>'
    '<node id="s"><data key="k">sensor</data></node><edge source="b" target="s"/>'
)


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


@pytest.mark.parametrize("declared", ['attr.type="string"', 'attr.type="double"', 'attr.type="long"', ""])
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


# What is refused


@pytest.mark.parametrize("name", ["plant.txt", "plant.xml", "plant", "plant.json.gz"])
def test_other_suffixes_are_refused(name: str) -> None:
    assert refusal(Path(name), "{}") == ("a topology file must end in .yaml, .json or .graphml; rename or convert it")


def test_a_suffix_may_be_in_capitals() -> None:
    assert read_topology_data(Path("PLANT.JSON"), json.dumps(node_link(plant()))) == plant_written_out()


KINDS = "sensor, base_station, edge, cloud"


@pytest.mark.parametrize("path", [JSON, GRAPHML])
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, f"node 'new' has no kind, and must have one of {KINDS}; give it the attribute kind"),
        ({"kind": "Sensor"}, f"node 'new': kind='Sensor' must be one of {KINDS}; did you mean 'sensor'?"),
        ({"kind": "router"}, f"node 'new': kind='router' must be one of {KINDS}"),
        (
            {"kind": "edge", "x": 1.0},
            "node 'new' has only one of x and y, and a position needs both; add the other one",
        ),
        (
            {"kind": "edge", "devices": "a"},
            "node 'new': 'devices' is not read; did you mean 'device'? Rename or remove it",
        ),
    ],
    ids=["no kind", "kind in capitals", "unknown kind", "x alone", "near miss"],
)
def test_a_node_that_cannot_be_understood_is_refused(path: Path, attributes: dict[str, Any], message: str) -> None:
    graph = plant()
    graph.add_node("new", **attributes)
    text = json.dumps(node_link(graph)) if path == JSON else graphml(graph)
    assert refusal(path, text) == message


def test_two_ways_to_say_a_position_are_refused() -> None:
    graph = plant()
    graph.nodes["edge"].update(position_m=[0, 0], x=0, y=0)
    assert refusal(JSON, json.dumps(node_link(graph))) == (
        "node 'edge' has position_m, x and y, and must have one place; remove position_m"
    )


@pytest.mark.parametrize("misspelt", ["rate_bsp", "rates_bps", "delay", "delay_ms"])
def test_a_near_miss_is_refused_because_the_default_would_stand_in(misspelt: str) -> None:
    graph = plant()
    graph.edges["cloud", "edge"][misspelt] = 1.0
    meant = "delay_s" if misspelt.startswith("delay") else "rate_bps"
    message = f"link 'cloud' - 'edge': {misspelt!r} is not read; did you mean {meant!r}? Rename or remove it"
    assert refusal(JSON, json.dumps(node_link(graph))) == message
    assert refusal(GRAPHML, graphml(graph)) == message


NODE_LINK = "node-link JSON holds the lists 'nodes' and 'edges' (or 'links'), as networkx.node_link_data returns it; "

REFUSED_JSON: dict[str, tuple[str, str]] = {
    "a list": ("[]", NODE_LINK + "fedsim's own form belongs in a .yaml file"),
    "own form": (
        json.dumps(plant_written_out()),
        NODE_LINK + "fedsim's own form belongs in a .yaml file",
    ),
    "no edges": (
        '{"nodes": []}',
        "node-link JSON holds either 'edges' or 'links', and this has neither; give one list",
    ),
    "edges and links": (
        '{"nodes": [], "edges": [], "links": []}',
        "node-link JSON holds either 'edges' or 'links', and this has both; give one list",
    ),
    "edges by name": (
        '{"nodes": [], "edges": {}}',
        "the links are a dict, and must be a list of objects with source and target",
    ),
    "node by name": ('{"nodes": ["a"], "edges": []}', "nodes[0]='a' must be an object with the key 'id'"),
    "node without id": (
        '{"nodes": [{"kind": "edge"}], "edges": []}',
        "nodes[0]: id=None must be the name of a node, a text or a whole number",
    ),
    "id that is a truth": (
        '{"nodes": [{"id": true}], "edges": []}',
        "nodes[0]: id=True must be the name of a node, a text or a whole number",
    ),
    "link without target": (
        '{"nodes": [], "links": [{"source": "a"}]}',
        "links[0]: target=None must be the name of a node, a text or a whole number",
    ),
    "duplicate name": (
        '{"nodes": [{"id": "a", "kind": "edge"}, {"id": "a", "kind": "cloud"}], "edges": []}',
        "two nodes are called 'a', and names must differ; rename one",
    ),
    "names that differ in type only": (
        '{"nodes": [{"id": 1, "kind": "edge"}, {"id": "1", "kind": "cloud"}], "edges": []}',
        "two nodes are called '1', and names must differ; rename one",
    ),
    "unknown end": (
        '{"nodes": [{"id": "edge", "kind": "edge"}], "edges": [{"source": "edge", "target": "egde"}]}',
        "link 'edge' - 'egde': no node is called 'egde'; did you mean 'edge'?",
    ),
    "duplicate key": (
        '{"nodes": [{"id": "a", "id": "b"}], "edges": []}',
        "the key 'id' stands twice in one object; keep one",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED_JSON.values(), ids=REFUSED_JSON)
def test_json_that_is_no_network_is_refused(text: str, message: str) -> None:
    assert refusal(JSON, text) == message


@pytest.mark.parametrize("text", ["", "{", "nodes: {}", "[" * 200_000, f'{{"nodes": {"9" * 5000}}}'])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    assert refusal(JSON, text).startswith("this is not JSON: ")


REFUSED_GRAPHML: dict[str, tuple[str, str]] = {
    "duplicate name": (
        xml(f'{SMALL}<node id="s"><data key="k">sensor</data></node>'),
        "two nodes are called 's', and names must differ; rename one",
    ),
    "unknown end": (
        xml('<node id="edge"><data key="k">edge</data></node><edge source="edge" target="egde"/>'),
        "link 'edge' - 'egde': no node is called 'egde'; did you mean 'edge'?",
    ),
    "nested graph": (
        xml(f'<node id="hall"><data key="k">edge</data><graph edgedefault="undirected">{SMALL}</graph></node>'),
        "node 'hall' contains a graph, and only flat ones are read; take its nodes out of it",
    ),
    "no graph": (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>',
        "the file holds 0 graphs, and must hold one, in an element "
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ),
    "two graphs": (
        xml('</graph><graph edgedefault="undirected">'),
        "the file holds 2 graphs, and must hold one, in an element "
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED_GRAPHML.values(), ids=REFUSED_GRAPHML)
def test_graphml_that_is_no_network_is_refused(text: str, message: str) -> None:
    assert refusal(GRAPHML, text) == message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "<graphml>",
        xml("<hyperedge/>"),
        xml('<node id="a"><data key="unknown">1</data></node>'),
        xml(
            '<node id="a"><data key="x">east</data></node>', '<key id="x" for="node" attr.name="x" attr.type="double"/>'
        ),
        xml("", '<key id="z" for="node" attr.name="z" attr.type="complex"/>'),
        xml("", '<key id="z" for="node" attr.type="double"/>'),
        xml("", '<key id="z" for="node" attr.name="z" attr.type="boolean"><default/></key>'),
        xml("", '<key id="z" for="node" attr.name="z" attr.type="double"><default/></key>'),
    ],
    ids=[
        "empty",
        "json",
        "unclosed",
        "hyperedge",
        "unknown key",
        "text for a number",
        "unknown type",
        "key without name",
        "empty truth",
        "empty number",
    ],
)
def test_text_that_is_no_graphml_is_refused(text: str) -> None:
    assert refusal(GRAPHML, text).startswith("this is not GraphML that networkx reads: ")


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
BOMB = f'<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY e0 "ha">{ENTITIES}]>\n<graphml>&e9;</graphml>'


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE graphml SYSTEM "file:///etc/hostname"><graphml/>',
        '<!DOCTYPE graphml [<!ENTITY x SYSTEM "file:///etc/hostname">]><graphml>&x;</graphml>',
    ],
    ids=["entity bomb", "external document type", "external entity"],
)
def test_an_entity_bomb_is_refused_before_it_is_parsed(text: str) -> None:
    assert refusal(GRAPHML, text) == ("a GraphML file must not contain <!DOCTYPE; remove the document type declaration")


def test_a_number_that_is_none_is_refused_in_its_place() -> None:
    body = f'{SMALL}<edge source="c" target="b"><data key="r">fast</data></edge>'
    read = read_topology_data(GRAPHML, xml(body, '<key id="r" for="edge" attr.name="rate_bps" attr.type="string"/>'))
    with pytest.raises(ValueError, match=r"links\.0\.rate_bps\n  Input should be a valid number"):
        Explicit.model_validate(read)
