"""Graphs in JSON: node-link data and adjacency data, as networkx and what speaks to it write them.

Formats: `networkx.node_link_data` ("nodes", and "edges" or "links") and `networkx.adjacency_data` ("nodes" and
"adjacency"). Read without networkx, which merges nodes of one name and invents nodes that are only linked.
Leaves out other layouts of JSON, such as Cytoscape's "elements".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from fedsim.errors import UserError
from fedsim.topology.files.drawn import MOST_VALUES, Attributes, Drawn, shown

__all__ = ["read_json"]


def read_json(path: str, text: str) -> Drawn:
    """The graph in *text*, the content of the file *path*. Raises `UserError` when it is none.

    >>> drawn = read_json("plant.json", '{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]}')
    >>> list(drawn.nodes), str(drawn.links[0])
    (['1', '2'], "link '1' - '2'")
    """
    drawn = Drawn(path, only_text=False)
    data = _parsed(drawn, text)
    nodes = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(nodes, list):
        raise drawn.error(
            "node-link JSON holds the lists 'nodes' and 'edges' (or 'links'), as networkx.node_link_data returns it; "
            "fedsim's own form belongs in a .yaml file"
        )
    directed = data.get("directed", False)
    if not isinstance(directed, bool):
        raise drawn.error(f"directed={shown(directed)} must be true or false")
    names = [_name(drawn, node, "id", f"nodes[{i}]") for i, node in enumerate(nodes)]
    for name, node in zip(names, nodes, strict=True):
        drawn.add_node(name, node)
    lists = [key for key in ("edges", "links", "adjacency") if key in data]
    if len(lists) != 1:
        found = " and ".join(map(repr, lists)) or "none"
        raise drawn.error(
            f"JSON of a graph holds one of 'edges', 'links' and 'adjacency', and this has {found}; give one list"
        )
    [key] = lists
    if not isinstance(data[key], list):
        content = "lists, one for each node" if key == "adjacency" else "objects with the keys 'source' and 'target'"
        raise drawn.error(f"{key}={shown(data[key])} must be a list of {content}")
    if key == "adjacency":
        _add_neighbours(drawn, names, data[key], directed=directed)
    else:
        for i, link in enumerate(data[key]):
            source, target = (_name(drawn, link, end, f"{key}[{i}]") for end in ("source", "target"))
            drawn.add_link(source, target, link, directed=directed)
    drawn.check_ends()
    return drawn


def _add_neighbours(drawn: Drawn, names: list[str], neighbours: list[Any], *, directed: bool) -> None:
    """A link of an undirected graph stands in the lists of both its ends, and is the same there."""
    if len(neighbours) != len(names):
        raise drawn.error(
            f"'adjacency' has {len(neighbours)} lists for {len(names)} nodes, and each node needs one of its own"
        )
    seen_once: dict[tuple[str, str, str], Attributes] = {}
    for i, (name, row) in enumerate(zip(names, neighbours, strict=True)):
        if not isinstance(row, list):
            raise drawn.error(f"adjacency[{i}]={shown(row)} must be a list of objects with the key 'id'")
        for j, entry in enumerate(row):
            other = _name(drawn, entry, "id", f"adjacency[{i}][{j}]")
            attributes = {key: value for key, value in entry.items() if key != "id"}
            key = repr(attributes.get("key"))
            there = None if directed else seen_once.pop((other, name, key), None)
            if there is None:
                drawn.add_link(name, other, attributes, directed=directed)
                if not directed and other != name:
                    seen_once[name, other, key] = attributes
            elif there != attributes:
                raise drawn.error(f"the link {other!r} - {name!r} differs in the lists of its ends; make them equal")


def _parsed(drawn: Drawn, text: str) -> object:
    if text.count(",") + text.count("[") + text.count("{") > MOST_VALUES:
        raise drawn.error(f"there are more than {MOST_VALUES:,} values, which is too many for a file")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_float=_finite)
    except UserError as error:
        raise drawn.error(str(error)) from error
    except RecursionError as error:
        raise drawn.error("this is not JSON of a graph: lists and objects are nested too deep") from error
    except ValueError as error:
        raise drawn.error(f"this is not JSON: {error}") from error


def _unique(pairs: Iterable[tuple[str, Any]]) -> Attributes:
    found: Attributes = {}
    for key, value in pairs:
        if key in found:
            raise UserError(f"the key {shown(key)} stands twice in one object; keep one")
        found[key] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise UserError(f"the number {shown(text)[1:-1]} is too large; write Infinity for no limit")
    return value


def _name(drawn: Drawn, item: Any, key: str, where: str) -> str:
    if not isinstance(item, dict):
        raise drawn.error(f"{where}={shown(item)} must be an object with the key {key!r}")
    if key not in item:
        raise drawn.error(f"{where}={shown(item)} needs the key {key!r}, the name of a node")
    name = item[key]
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise drawn.error(f"{where}: {key}={shown(name)} must be the name of a node, a text or a whole number")
    return str(name)
