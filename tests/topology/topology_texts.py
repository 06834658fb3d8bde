"""Networks as the text of files: node-link JSON and GraphML, as networkx and as hands write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from fedsim.errors import UserError
from fedsim.topology.imported import read_topology_data

JSON, GRAPHML = Path("plant.json"), Path("plant.graphml")


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
    said = re.fullmatch(rf"{re.escape(str(path))}((?::\d+){{0,2}}): (.*)", message)
    assert said is not None, message
    place, problem = said.groups()
    assert not place or path == GRAPHML
    return str(problem)


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
