"""What `fedsim.topology` relies on inside of networkx: mappings that are private there, and that it fills itself."""

from __future__ import annotations

import networkx as nx


def test_what_is_put_into_the_private_mappings_is_what_the_public_views_show() -> None:
    """`Sketch`, `Topology` and its infrastructure write to ``_node`` and ``_adj``. Should networkx change those, fill
    graphs by its public methods (`add_node`, `add_edge`), and look at what a ring of 100,000 factories costs then."""
    graph: nx.Graph[str] = nx.Graph()
    nodes, neighbours = graph._node, graph._adj  # type: ignore[attr-defined]
    link = {"rate_bps": 1.0}
    for name in ("a", "b", "c"):
        nodes[name], neighbours[name] = {"kind": name}, {}
    for one, other in (("a", "b"), ("b", "c")):
        neighbours[one][other] = neighbours[other][one] = link
    assert list(graph) == ["a", "b", "c"] and "b" in graph and len(graph) == 3
    assert graph.nodes["b"] is nodes["b"] and dict(graph.nodes(data="kind")) == {"a": "a", "b": "b", "c": "c"}
    assert graph["a"]["b"] is link and graph.edges["b", "c"] is link
    assert list(graph.edges) == [("a", "b"), ("b", "c")] and graph.number_of_edges() == 2
    assert list(graph.neighbors("b")) == ["a", "c"] and graph.degree["b"] == 2
    assert nx.shortest_path(graph, "a", "c") == ["a", "b", "c"]


def test_leaves_may_share_one_private_mapping_of_neighbours() -> None:
    """As all sensors of a base station do."""
    graph: nx.Graph[str] = nx.Graph([("hall", "one"), ("hall", "two")])
    neighbours = graph._adj  # type: ignore[attr-defined]
    neighbours["two"] = neighbours["one"]
    assert list(graph.edges) == [("hall", "one"), ("hall", "two")]
    assert nx.utils.graphs_equal(graph, nx.Graph([("hall", "one"), ("hall", "two")]))
    assert nx.utils.graphs_equal(nx.freeze(graph).copy(), graph)
