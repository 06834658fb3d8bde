"""A network while it is being drawn: each node and each link is checked when it is added, and nothing is copied later.

Leaves out what only the whole network shows, such as a sensor without a base station: that is for `Topology`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import networkx as nx

from fedsim.errors import UserError, nearest
from fedsim.topology.checks import checked_link, checked_node

__all__ = ["Sketch", "most_nodes"]

_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def most_nodes(most: int) -> Iterator[None]:
    """Inside, a network of more than *most* nodes is refused while it is drawn, before it fills the memory."""
    before = _most.set(most)
    try:
        yield
    finally:
        _most.reset(before)


class Sketch:
    """Nodes and links, of which `Topology.of` makes a network.

    >>> sketch = Sketch()
    >>> sketch.add_node("cloud", "cloud")
    >>> sketch.add_node("hall", "base_station", position_m=(0.0, 0.0))
    >>> sketch.add_link("cloud", "hall", rate_bps=1e9)
    >>> "hall" in sketch
    True
    """

    def __init__(self) -> None:
        self._most = _most.get()
        self._begin()

    def _begin(self) -> None:
        self._graph: nx.Graph[str] = nx.Graph()
        # networkx's own methods make more mappings: hundreds of thousands in a large network
        self._nodes: dict[str, dict[str, Any]] = self._graph._node  # type: ignore[attr-defined]
        self._neighbours: dict[str, dict[str, Any]] = self._graph._adj  # type: ignore[attr-defined]
        self._links: dict[tuple[float | None, float | None], dict[str, float | None]] = {}
        """What links alike have in common: one mapping for all of them, as most of a large network are alike."""

    @classmethod
    def of(cls, graph: nx.Graph[str]) -> Sketch:
        """A copy of *graph* with exactly the attributes that fedsim knows, absent ones as None.

        Raises `UserError` for directed and parallel links, and whatever `add_node` and `add_link` refuse.
        """
        if graph.is_directed() or graph.is_multigraph():
            raise UserError(
                f"the topology is a {type(graph).__name__}: links go both ways and join two nodes once; "
                "use networkx.Graph"
            )
        sketch = cls()
        for name, node in graph.nodes(data=True):
            sketch.add_node(name, node.get("kind"), position_m=node.get("position_m"), device=node.get("device"))
        for a, b, link in graph.edges(data=True):
            sketch.add_link(a, b, rate_bps=link.get("rate_bps"), delay_s=link.get("delay_s"))
        return sketch

    def add_node(self, name: str, kind: Any, *, position_m: Any = None, device: Any = None) -> None:
        """Add a node.

        Raises `UserError` when the name is taken or no text, an attribute is out of range, or there are `most_nodes`.
        """
        if name in self._graph:
            raise UserError(f"there is another node called {name!r}, and names must differ; rename one")
        if self._most is not None and len(self._nodes) >= self._most:
            raise UserError(f"the network has more than {self._most:,} nodes; allow more with --most-nodes")
        self._nodes[name] = checked_node(name, kind, position_m, device)
        self._neighbours[name] = {}

    def add_link(self, a: str, b: str, *, rate_bps: Any = None, delay_s: Any = None) -> None:
        """Add a link, both ways. Raises `UserError` for unknown ends, a second link, and numbers out of range."""
        for end in (a, b):
            if end not in self._graph:
                raise UserError(f"no node is called {end!r}{nearest(end, self._graph) or '; add it to nodes'}")
        neighbours = self._neighbours
        if b in neighbours[a]:
            raise UserError(f"{a!r} and {b!r} are linked already, and a link goes both ways; keep one")
        link = checked_link(a, b, rate_bps, delay_s)
        neighbours[a][b] = neighbours[b][a] = self._links.setdefault((link["rate_bps"], link["delay_s"]), link)

    def release(self) -> nx.Graph[str]:
        """The graph, which is the caller's alone: the sketch is empty again."""
        graph = self._graph
        self._begin()
        return graph

    def __contains__(self, name: object) -> bool:
        return name in self._nodes
