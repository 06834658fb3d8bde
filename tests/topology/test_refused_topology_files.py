"""Node-link JSON and GraphML that are no network are refused, with the place, the rule and the nearest name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from some_topologies import plant, plant_written_out
from topology_texts import GRAPHML, JSON, SMALL, graphml, node_link, refusal, xml

from fedsim.errors import UserError
from fedsim.topology.imported import read_topology_data


@pytest.mark.parametrize("name", ["plant.txt", "plant.xml", "plant", "plant.json.gz"])
def test_other_suffixes_are_refused(name: str) -> None:
    assert refusal(Path(name), "{}") == ("a topology file must end in .yaml, .json or .graphml; rename or convert it")


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


@pytest.mark.parametrize(("domain", "owner"), [("node", "node 'c'"), ("edge", "link 'b' - 's'")])
def test_a_default_that_is_a_near_miss_is_refused_too(domain: str, owner: str) -> None:
    meant = {"node": "device", "edge": "delay_s"}[domain]
    key = f'<key id="d" for="{domain}" attr.name="{meant}x"><default>1</default></key>'
    assert refusal(GRAPHML, xml(SMALL, key)) == (
        f"{owner}: '{meant}x' is not read; did you mean {meant!r}? Rename or remove it"
    )


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
