"""Node-link JSON and GraphML of any tool become the explicit form: nothing is lost, merged, invented or blown up."""

from __future__ import annotations

import json
import re
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
from fedsim.topology.imported import read_topology_data

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
    """What is said of the text, after the file's name and, for GraphML, the line."""
    with pytest.raises(UserError) as refused:
        read_topology_data(path, text)
    message = str(refused.value)
    assert "\n" not in message
    place, problem = re.fullmatch(rf"{re.escape(str(path))}((?::\d+){{0,2}}): (.*)", message).groups()  # type: ignore[union-attr]
    assert not place or path == GRAPHML
    return str(problem)


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
        (
            {},
            f"node 'new' has no kind, and must have one of {KINDS}; give it the attribute kind, or say what the nodes "
            "are with the topology {name: imported, path: ...}",
        ),
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
        "JSON of a graph holds one of 'edges', 'links' and 'adjacency', and this has none; give one list",
    ),
    "edges and links": (
        '{"nodes": [], "edges": [], "links": []}',
        "JSON of a graph holds one of 'edges', 'links' and 'adjacency', and this has 'edges' and 'links'; "
        "give one list",
    ),
    "edges by name": (
        '{"nodes": [], "edges": {}}',
        "edges={} must be a list of objects with the keys 'source' and 'target'",
    ),
    "lists of neighbours by name": (
        '{"nodes": [], "adjacency": {}}',
        "adjacency={} must be a list of lists, one for each node",
    ),
    "edge as a pair": (
        '{"nodes": [], "edges": [["a", "b"]]}',
        "edges[0]=['a', 'b'] must be an object with the key 'source'",
    ),
    "node by name": ('{"nodes": ["a"], "edges": []}', "nodes[0]='a' must be an object with the key 'id'"),
    "node without id": (
        '{"nodes": [{"kind": "edge"}], "edges": []}',
        "nodes[0]={'kind': 'edge'} needs the key 'id', the name of a node",
    ),
    "id that is a truth": (
        '{"nodes": [{"id": true}], "edges": []}',
        "nodes[0]: id=True must be the name of a node, a text or a whole number",
    ),
    "link without target": (
        '{"nodes": [], "links": [{"source": "a"}]}',
        "links[0]={'source': 'a'} needs the key 'target', the name of a node",
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


@pytest.mark.parametrize("text", ["", "{", "nodes: {}", f'{{"nodes": {"9" * 5000}}}'])
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
        "the file holds 0 graphs, and must hold one <graph>",
    ),
    "two graphs": (
        xml('</graph><graph edgedefault="undirected">'),
        "the file holds 2 graphs, and must hold one <graph>",
    ),
    "another format": (
        '<gexf xmlns="http://gexf.net/1.3"/>',
        "this is not GraphML: the file begins with <gexf>, and must begin with "
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ),
    "empty": ("", "this is not GraphML: no element found"),
    "hyperedge": (xml("<hyperedge/>"), "a <hyperedge> joins any number of nodes; replace it by a node with links"),
    "another file": (
        xml('<node id="a"><locator href="b"/></node>'),
        "a <locator> leads to another file; put its content here",
    ),
    "unknown element": (xml("<nod/>"), "<nod> is no element of GraphML; correct or remove it"),
    "element in a wrong place": (
        '<graphml><node id="a"/></graphml>',
        "<node> stands in <graphml>, and must stand in <graph>",
    ),
    "text in a wrong place": (
        xml('<node id="a">cloud</node>'),
        "the text 'cloud' stands outside of <data>; remove it",
    ),
    "unknown key": (
        xml('<node id="a"><data key="unknown">1</data></node>'),
        "there is no key 'unknown' above this <data>; declare it with <key>",
    ),
    "data without key": (xml('<node id="a"><data>1</data></node>'), "a <data> has no key; add it"),
    "two keys alike": (xml("", '<key id="k" for="edge"/>'), "two keys have the id 'k'; rename one"),
    "an attribute twice": (
        xml('<node id="a"><data key="k">edge</data><data key="k">edge</data></node>'),
        "the attribute 'kind' stands twice in one place; keep one",
    ),
    "node without id": (xml("<node/>"), "a <node> has no id; add it"),
    "edge without end": (xml(f'{SMALL}<edge source="c"/>'), "an <edge> has no target; add it"),
    "unknown direction": (
        '<graphml><graph edgedefault="both"/></graphml>',
        "edgedefault='both' must be directed or undirected",
    ),
    "text for a number": (
        xml(
            '<node id="a"><data key="k">edge</data><data key="x">east</data></node>',
            '<key id="x" for="node" attr.name="x" attr.type="double"/>',
        ),
        "node 'a': x='east' must be a number",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED_GRAPHML.values(), ids=REFUSED_GRAPHML)
def test_graphml_that_is_no_network_is_refused(text: str, message: str) -> None:
    assert refusal(GRAPHML, text) == message


@pytest.mark.parametrize("domain", ['for="node"', 'for="all"', ""])
def test_a_default_may_be_for_nodes_or_for_all(domain: str) -> None:
    key = f'<key id="d" {domain} attr.name="device"><default>camera</default></key>'
    read = read_topology_data(GRAPHML, xml('<node id="a"><data key="k">edge</data></node>', key))
    assert read["nodes"] == {"a": {"kind": "edge", "device": "camera"}}


@pytest.mark.parametrize(("domain", "owner"), [("node", "node 'c'"), ("edge", "link 'b' - 's'")])
def test_a_default_that_is_a_near_miss_is_refused_too(domain: str, owner: str) -> None:
    meant = {"node": "device", "edge": "delay_s"}[domain]
    key = f'<key id="d" for="{domain}" attr.name="{meant}x"><default>1</default></key>'
    assert refusal(GRAPHML, xml(SMALL, key)) == (
        f"{owner}: '{meant}x' is not read; did you mean {meant!r}? Rename or remove it"
    )


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


def test_the_line_of_what_is_wrong_is_said() -> None:
    text = xml('\n<node id="a"><data key="k">edge</data></node>\n\n<node id="b"><data key="k">egde</data></node>\n')
    with pytest.raises(UserError, match=r"^plant\.graphml:4: node 'b': kind='egde' must be one of .*'edge'\?$"):
        read_topology_data(GRAPHML, text)
    with pytest.raises(UserError, match=r"^plant\.graphml:2:3: this is not GraphML: mismatched tag$"):
        read_topology_data(GRAPHML, "<graphml>\n</graph>")


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


@pytest.mark.parametrize("rate", ["fast", "1e999", "nan", "1_000", "\u0663"])
def test_a_number_that_is_none_is_refused(rate: str) -> None:
    body = f'{SMALL}<edge source="c" target="b"><data key="r">{rate}</data></edge>'
    text = xml(body, '<key id="r" for="edge" attr.name="rate_bps" attr.type="string"/>')
    assert refusal(GRAPHML, text) == f"link 'c' - 'b': rate_bps={rate!r} must be a number"


def test_a_number_too_large_for_one_is_refused_in_json_too() -> None:
    text = json.dumps(node_link(plant())).replace('"kind": "edge"', '"kind": "edge", "x": 1e999, "y": 0')
    assert refusal(JSON, text) == "the number 1e999 is too large; write Infinity for no limit"


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
