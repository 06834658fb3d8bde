"""Networks drawn elsewhere: node-link JSON and GraphML, the two formats that networkx and most graph tools write.

Node-link JSON is what `networkx.node_link_data` returns; GraphML is http://graphml.graphdrawing.org. Both become the
mapping of the `explicit` topology, so that a scenario can carry them inline. Of the attributes, nodes' ``kind``
(required), ``device``, ``position_m`` or ``x`` and ``y`` (metres) and links' ``rate_bps`` and ``delay_s`` are read;
what else a tool stores (labels, colours) is passed over. Leaves out directions (a link goes both ways), nested graphs
and ports.
"""

from __future__ import annotations

import difflib
import json
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
from networkx.readwrite.graphml import GraphMLReader

from fedsim.errors import UserError, nearest
from fedsim.topology.checks import known_kind
from fedsim.topology.explicit import explicit_form

__all__ = ["read_topology_data"]

Attributes = dict[str, Any]
Nodes = list[tuple[str, Attributes]]
Links = list[tuple[str, str, Attributes]]

NODE_ATTRIBUTES = ("kind", "device", "position_m", "x", "y")
LINK_ATTRIBUTES = ("rate_bps", "delay_s")
NUMBERS = ("x", "y", "rate_bps", "delay_s")
OTHER_WORDS = {
    **dict.fromkeys(("rate", "bandwidth", "capacity", "throughput", "bitrate", "datarate", "speed"), "rate_bps"),
    **dict.fromkeys(("delay", "latency"), "delay_s"),
}
"""How other tools begin the names of what fedsim reads."""


def read_topology_data(path: Path, text: str) -> dict[str, Any]:
    """The content *text* of the file *path* (``.json`` or ``.graphml``) as the mapping that `Explicit` takes.

    Raises `UserError` when the text is not of the format that the suffix says, a node lacks its kind, two share a name,
    a link ends nowhere, or an attribute is nearly, but not quite, one that fedsim reads. `Explicit` checks the values.
    """
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise UserError(f"{path}: a topology file must end in .yaml, {' or '.join(READERS)}; rename or convert it")
    try:
        nodes, links = READERS[suffix](text)
        written: dict[str, Attributes] = {}
        for name, attributes in nodes:
            if name in written:
                raise UserError(f"two nodes are called {name!r}, and names must differ; rename one")
            written[name] = _node(name, attributes)
        for a, b, _ in links:
            _require_ends(a, b, written)
        return explicit_form(written, [(a, b, _known(f"link {a!r} - {b!r}", x, LINK_ATTRIBUTES)) for a, b, x in links])
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _require_ends(a: str, b: str, nodes: Collection[str]) -> None:
    for end in (a, b):
        if end not in nodes:
            hand = nearest(str(end), nodes) or "; add it to the nodes"
            raise UserError(f"link {a!r} - {b!r}: no node is called {end!r}{hand}")


def _node(name: str, attributes: Mapping[str, Any]) -> Attributes:
    node = _known(f"node {name!r}", attributes, NODE_ATTRIBUTES)
    node["kind"] = str(known_kind(name, node.get("kind")))
    x, y = node.pop("x", None), node.pop("y", None)
    if (x is None) != (y is None):
        raise UserError(f"node {name!r} has only one of x and y, and a position needs both; add the other one")
    if x is not None:
        if "position_m" in node:
            raise UserError(f"node {name!r} has position_m, x and y, and must have one place; remove position_m")
        node["position_m"] = [x, y]
    return node


def _known(owner: str, attributes: Mapping[str, Any], known: tuple[str, ...]) -> Attributes:
    """The *known* ones of *attributes* that have a value. A near miss would change results silently: it is refused."""
    for attribute in attributes:
        close = difflib.get_close_matches(str(attribute), known, n=1, cutoff=0.8)
        plain = str(attribute).lower().replace("_", "").replace(" ", "")
        close += [meant for word, meant in OTHER_WORDS.items() if plain.startswith(word) and meant in known]
        if close and attribute not in known:
            raise UserError(f"{owner}: {attribute!r} is not read; did you mean {close[0]!r}? Rename or remove it")
    return {attribute: attributes[attribute] for attribute in known if attributes.get(attribute) is not None}


def _read_node_link(text: str) -> tuple[Nodes, Links]:
    """Without `networkx.node_link_graph`, which merges nodes of one name and invents nodes that are only linked."""
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UserError(f"this is not JSON: {error}") from error
    nodes = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(nodes, list):
        raise UserError(
            "node-link JSON holds the lists 'nodes' and 'edges' (or 'links'), as networkx.node_link_data returns it; "
            "fedsim's own form belongs in a .yaml file"
        )
    if ("edges" in data) == ("links" in data):
        found = "both" if "edges" in data else "neither"
        raise UserError(f"node-link JSON holds either 'edges' or 'links', and this has {found}; give one list")
    links = data["edges"] if "edges" in data else data["links"]
    if not isinstance(links, list):
        raise UserError(f"the links are a {type(links).__name__}, and must be a list of objects with source and target")
    return (
        [(_name(node, "id", f"nodes[{i}]"), node) for i, node in enumerate(nodes)],
        [
            (_name(link, "source", f"links[{i}]"), _name(link, "target", f"links[{i}]"), link)
            for i, link in enumerate(links)
        ],
    )


def _unique(pairs: Iterable[tuple[str, Any]]) -> Attributes:
    found: Attributes = {}
    for key, value in pairs:
        if key in found:
            raise UserError(f"the key {key!r} stands twice in one object; keep one")
        found[key] = value
    return found


def _name(item: Any, key: str, where: str) -> str:
    if not isinstance(item, dict):
        raise UserError(f"{where}={item!r} must be an object with the key {key!r}")
    name = item.get(key)
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise UserError(f"{where}: {key}={name!r} must be the name of a node, a text or a whole number")
    return str(name)


def _read_graphml(text: str) -> tuple[Nodes, Links]:
    for declaration in ("<!DOCTYPE", "<!ENTITY"):  # entities can unfold a small file into gigabytes
        if declaration in text:
            raise UserError(f"a GraphML file must not contain {declaration}; remove the document type declaration")
    try:
        with warnings.catch_warnings(action="ignore"):  # about ports, and keys without a type: the drawing's matter
            graphs = list(_NothingLost()(string=text))
    except (ParseError, nx.NetworkXError, ValueError, KeyError, AttributeError, TypeError) as error:
        # the last three are how networkx fails on a key with an unknown type, name or default
        raise UserError(f"this is not GraphML that networkx reads: {type(error).__name__}: {error}") from error
    if len(graphs) != 1:
        raise UserError(
            f"the file holds {len(graphs)} graphs, and must hold one, in an element "
            f'<graphml xmlns="{GraphMLReader.NS_GRAPHML}">'
        )
    [graph] = graphs
    node_default, edge_default = graph.graph["node_default"], graph.graph["edge_default"]
    return (
        [(name, _as_numbers({**node_default, **attributes})) for name, attributes in graph.nodes(data=True)],
        [(a, b, _as_numbers({**edge_default, **attributes})) for a, b, attributes in graph.edges(data=True)],
    )


class _NothingLost(GraphMLReader):
    """Networkx's reader, but it refuses what that one merges, invents or skips."""

    def add_node(self, G: Any, node_xml: Any, graphml_keys: Any, defaults: Any) -> None:  # noqa: N803 (networkx's name)
        name = node_xml.get("id")
        if name in G:
            raise UserError(f"two nodes are called {name!r}, and names must differ; rename one")
        if node_xml.find(f"{{{self.NS_GRAPHML}}}graph") is not None:
            raise UserError(f"node {name!r} contains a graph, and only flat ones are read; take its nodes out of it")
        super().add_node(G, node_xml, graphml_keys, defaults)

    def add_edge(self, G: Any, edge_element: Any, graphml_keys: Any) -> None:  # noqa: N803
        _require_ends(edge_element.get("source"), edge_element.get("target"), G)
        super().add_edge(G, edge_element, graphml_keys)


def _as_numbers(attributes: Mapping[str, Any]) -> Attributes:
    """GraphML is text, and some tools declare every attribute a string: what spells a number is one."""
    return {key: _number(value) if key in NUMBERS else value for key, value in attributes.items()}


def _number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value  # and `Explicit` says where it stands


READERS: dict[str, Callable[[str], tuple[Nodes, Links]]] = {".json": _read_node_link, ".graphml": _read_graphml}
