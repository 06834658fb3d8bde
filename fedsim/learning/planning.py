"""Planning: which nodes are computed together, decided once for each node, as if the store were empty.

A plan is a function of the graph and of what was asked for before, so whoever asks for the same values in the same
order plans alike, whether the values are computed then or read from a store.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from fedsim.learning.graph import Chunk, Handle, Node, digest_of

__all__ = ["Grouping", "Planner", "ancestry"]

Grouping = Callable[[Sequence[Node]], Iterable[Sequence[Node]]]
"""What `fedsim.learning.executors.executor.Executor.chunks` is."""


class Planner:
    """Gives each node of one graph its chunk."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping
        self._sequence = itertools.count()
        self.beginning: str | None = None
        """The digest of the first trainings: whatever two graphs have in common afterwards is made of those."""

    def plan(self, handles: Sequence[Handle]) -> None:
        """Plan what *handles* need and what has no plan yet."""
        for nodes in self._grouping(ancestry(handles, until=lambda node: node.chunk is not None)):
            inputs = {name.node.chunk.digest for node in nodes for name in node.inputs.values() if name.node.chunk}
            digest = digest_of([[node.key for node in nodes], sorted(inputs)])
            chunk = Chunk(next(self._sequence), digest, tuple(nodes))
            if self.beginning is None and any(node.inputs and node.stream for node in nodes):  # samples are drawn there
                self.beginning = digest
            for node in nodes:
                node.chunk = chunk


def ancestry(handles: Sequence[Handle], *, until: Callable[[Node], bool] = lambda _: False) -> list[Node]:
    """Nodes that *handles* need, inputs first (depth-first, all in their order).

    Without those that *until* is true of, and what only they need.
    """
    ordered: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(handle.node, False) for handle in reversed(handles)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            ordered.append(node)
        elif node not in seen and not until(node):
            seen.add(node)
            stack.append((node, True))
            stack.extend((source.node, False) for source in reversed(node.inputs.values()))
    return ordered
