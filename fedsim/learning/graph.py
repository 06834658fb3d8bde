"""The graph: an expression is a node with a key; a handle is one of its outputs, pending or computed.

A key is a hash of the operation with its version and fields, its inputs' keys, its random stream and the numeric
family, so equal keys mean equal numbers, in this process or in another. A pending handle keeps its node, and with it
the whole expression, alive; a computed one keeps only its value. A value therefore lives exactly as long as somebody
can still ask for it, and memory needs no bookkeeping of its own. Nothing here knows tensors or the simulated clock.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedsim.kernel.streams import Stream
from fedsim.learning.keyed import described
from fedsim.learning.operations.operation import Inputs, Operation, Slot, Value

__all__ = ["Chunk", "Graph", "Handle", "Node", "digest_of"]

_as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def digest_of(content: Any) -> str:
    """A 128-bit hash of JSON-able content, independent of the order of its keys."""
    return hashlib.blake2b(_as_text(content).encode(), digest_size=16).hexdigest()


class Handle:
    """One output of an expression."""

    __slots__ = ("__weakref__", "_value", "computed", "node", "output")

    def __init__(self, node: Node, output: str) -> None:
        self.node = node
        self.output = output
        self.computed = False
        self._value: Value = None

    @property
    def reference(self) -> tuple[str, str]:
        """The node's key and the output's name."""
        return self.node.key, self.output

    @property
    def stored_name(self) -> str:
        """What a store calls its value, once it is planned: by its key, its plan and which output it is."""
        assert self.node.chunk is not None, "only what has been planned is stored"
        return f"{self.node.key}-{self.node.chunk.digest[:8]}-{self.output}"

    @property
    def scalar(self) -> bool:
        """Whether its value is a number or metrics, kept for ever."""
        return self.output in self.node.operation.scalars

    @property
    def value(self) -> Value:
        """The computed value; asking for a pending one is a mistake of the caller."""
        assert self.computed, f"{self!r} is pending"
        return self._value

    @value.setter
    def value(self, value: Value) -> None:
        self._value, self.computed = value, True

    def __repr__(self) -> str:
        return f"Handle({self.node.operation.name}:{self.output} {self.node.key[:8]})"


class Node:
    """An expression. Once computed it forgets its inputs."""

    __slots__ = (
        "__weakref__",
        "_outputs",
        "chunk",
        "done",
        "input_keys",
        "inputs",
        "key",
        "operation",
        "stream",
        "tags",
    )

    def __init__(
        self,
        operation: Operation,
        inputs: dict[Slot, Handle],
        stream: Stream | None,
        family: str,
        tags: Mapping[str, Any],
    ) -> None:
        self.operation = operation
        self.inputs = inputs
        self.stream = stream
        self.tags = tags
        """For the ledger only: round and client. Not in the key."""
        self.key = digest_of(
            {
                "operation": described(operation),
                "inputs": {slot.text: handle.reference for slot, handle in inputs.items()},
                "stream": stream.text if stream else None,
                "family": family,
            }
        )
        self.input_keys = tuple(dict.fromkeys(handle.node.key for handle in inputs.values()))
        self.chunk: Chunk | None = None
        """The nodes that it is computed together with; None until it is planned."""
        self.done = False
        self._outputs: dict[str, weakref.ref[Handle]] = {}

    @property
    def description(self) -> dict[str, Any]:
        """What the ledger says of it."""
        return {"operation": self.operation.name, "inputs": list(self.input_keys), **self.tags}

    @property
    def sources(self) -> Inputs[Handle]:
        """Its inputs by role, as handles."""
        return Inputs(self.inputs)

    @property
    def values(self) -> Inputs[Value]:
        """Its inputs by role, computed."""
        return Inputs({slot: handle.value for slot, handle in self.inputs.items()})

    def output(self, name: str) -> Handle:
        """The handle of an output; the same object for everybody who holds it."""
        held = self._outputs.get(name)
        handle = held() if held else None
        if handle is None:
            handle = Handle(self, name)
            self._outputs[name] = weakref.ref(handle)
        return handle

    def held_outputs(self) -> list[Handle]:
        """The outputs that somebody holds."""
        return [handle for held in self._outputs.values() if (handle := held())]

    def finish(self, values: Mapping[str, Value]) -> None:
        """Hand the outputs to those who still hold them, and let go of the inputs."""
        for handle in self.held_outputs():
            if not handle.computed:
                handle.value = values[handle.output]
        self.let_go()

    def let_go(self) -> None:
        """Forget the inputs: nobody will compute it any more."""
        self.inputs, self.done = {}, True


@dataclass(eq=False, slots=True)
class Chunk:
    """Nodes that are computed together; trainings and the sum of their models reach a trainer as one `Wave`.

    ``digest`` covers the nodes and the chunks of their inputs.
    """

    sequence: int
    """Chunks are computed in the order of these numbers."""
    digest: str
    nodes: tuple[Node, ...]
    """Empty once computed, so that no node keeps another one alive."""

    @property
    def folds(self) -> bool:
        """Whether it is one node that takes its terms as they are made elsewhere."""
        return bool(self.nodes) and self.nodes[0].operation.folds

    @property
    def ready(self) -> bool:
        """Whether all that comes from other chunks has its value, and nothing has to be taken one at a time."""
        return not self.folds and all(
            handle.computed or handle.node.chunk is self for node in self.nodes for handle in node.inputs.values()
        )

    def settle(self) -> None:
        """Let go of everything behind the chunk if all that others hold of it has its value, from wherever it came."""
        waiting = [self]
        while waiting:
            chunk = waiting.pop()
            behind = {handle.node.chunk for node in chunk.nodes for handle in node.inputs.values()}
            if chunk._let_go():
                waiting.extend(other for other in behind if other is not None)

    def _let_go(self) -> bool:
        """Forget all inputs, unless somebody else holds an output that has no value yet; whether that was done."""
        inside = [
            (node, name, handle.node, handle.output)
            for node in self.nodes
            for name, handle in node.inputs.items()
            if handle.node.chunk is self
        ]
        for node, name, _, _ in inside:  # what only the chunk itself holds does not count
            del node.inputs[name]
        if not all(handle.computed for node in self.nodes for handle in node.held_outputs()):
            for node, name, maker, output in inside:
                node.inputs[name] = maker.output(output)
            return False
        for node in self.nodes:
            node.finish({})
        self.nodes = ()
        return True


class Graph:
    """All expressions of one run that somebody still holds; equal expressions that are pending are one node."""

    def __init__(self, family: str) -> None:
        self.family = family
        """The numeric family: all that may change a bit of a result, beside the expression itself."""
        self._pending: weakref.WeakValueDictionary[str, Node] = weakref.WeakValueDictionary()
        self._nodes: weakref.WeakSet[Node] = weakref.WeakSet()

    def node(
        self,
        operation: Operation,
        inputs: dict[Slot, Handle],
        *,
        stream: Stream | None = None,
        tags: Mapping[str, Any] | None = None,
    ) -> Node:
        """The node of an expression, made or found."""
        made = Node(operation, inputs, stream, self.family, tags or {})
        found = self._pending.get(made.key)
        if found is not None and not found.done:
            return found
        self._pending[made.key] = made
        self._nodes.add(made)
        return made

    def live(self) -> Iterator[Handle]:
        """Every handle that somebody still holds, in no particular order: what a checkpoint has to consider."""
        for node in list(self._nodes):
            yield from node.held_outputs()
