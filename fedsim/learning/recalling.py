"""Recalling: a value is asked for and read from a store that is only read, or there is a refusal; nothing is computed.

What is asked for is planned as if it were computed, so that it has the name that the run has stored it under which
computed it. What stands behind a value that was found is known to have been computed, and is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedsim.learning.graph import Handle, Node
from fedsim.learning.planning import Grouping, Planner
from fedsim.learning.read_only_store import ReadOnlyStore

__all__ = ["Recaller"]


class Recaller:
    """Gives handles of one graph their values, as a `fedsim.learning.forcing.Forcer` does that finds all in its store.

    *refusal* makes the error that is raised for the first number that is not there.
    """

    def __init__(self, grouping: Grouping, store: ReadOnlyStore, refusal: Callable[[Handle], Exception]) -> None:
        self._planner = Planner(grouping)
        self._store = store
        self._refusal = refusal

    def force(self, *handles: Handle, also: Sequence[Handle] = ()) -> bool:
        """Give each number its value. Tensors stay pending, and so do numbers that may be needed *also*, if not there.

        Returns whether something was computed: it was not.
        """
        pending = [handle for handle in (*handles, *also) if not handle.computed]
        self._planner.plan(pending)
        for handle in pending:
            if handle.scalar and not self._recalled(handle) and handle in handles:
                raise self._refusal(handle)
        return False

    def keep(self) -> None:
        """Nothing was computed."""

    def look_up(self, *handles: Handle) -> None:
        """Plan them."""
        self._planner.plan([handle for handle in handles if not handle.computed])

    def _recalled(self, handle: Handle) -> bool:
        """Whether the store has it; if so, it is read."""
        value = self._store.scalar(handle)
        if value is None:
            return False
        handle.value = value
        _forget(handle.node)
        return True


def _forget(node: Node) -> None:
    """Let *node* and all that it needs let go of their inputs: so a long run needs no more memory than a short one."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        waiting.extend(handle.node for handle in node.inputs.values())
        node.let_go()
        if node.chunk is not None:
            node.chunk.nodes = ()
