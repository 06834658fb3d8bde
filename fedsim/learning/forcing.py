"""Forcing: a value is asked for, so what it needs is computed, and nothing else.

First the pending ancestry is planned, as if the store were empty: the plan is a function of the graph alone. Then a
walk goes back from the value and stops at whatever is in memory or in the store. What is left is claimed, as another
run may be about to compute the same, and runs chunk by chunk; it
ends in the planned order, though the executor may begin a few chunks ahead. A checkpoint is written between chunks once
its interval has passed; the interval grows where checkpoints take long. All walks are loops, so the graph may be any
depth.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from fedsim.learning.executors.executor import Executor, Fold
from fedsim.learning.graph import Chunk, Graph, Handle, Node
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.partial_sum import TERM
from fedsim.learning.planning import Planner
from fedsim.learning.store import Store

__all__ = ["Forcer"]

_AHEAD = 64  # chunks that are looked through for what can begin
_LONG_S = 1.0
_LEAST_PAUSE = 4
"""Times as long as a long checkpoint has taken is the least time until the next: so they take a fifth at most."""


class Forcer:
    """Computes handles of one graph with one executor, from and into one store."""

    def __init__(
        self,
        graph: Graph,
        executor: Executor,
        store: Store,
        *,
        checkpoint_interval_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._graph = graph
        self._executor = executor
        self._store = store
        self._interval_s = checkpoint_interval_s
        self._monotonic = monotonic
        self._checkpoint_due_s = monotonic() + checkpoint_interval_s
        self._planner = Planner(executor.chunks)
        self._claimed = False
        self._kept = True
        """Whether all that was computed here is on disk, as far as the label needs it to go on."""

    def force(self, *handles: Handle, also: Sequence[Handle] = ()) -> bool:
        """Give each its value: from memory, from the store, or by computing what it needs; whether it did that.

        Those that may be needed *also* get theirs, at the same time.
        """
        pending = [handle for handle in (*handles, *also) if not handle.computed]
        self._planner.plan(pending)
        chunks = self._needed(pending)
        if chunks and self._claims():
            chunks = self._needed(pending)
        folding = _Folding(self._executor, chunks)
        try:
            for number, chunk in enumerate(chunks):
                self._begin_ahead(chunks[number : number + 1 + _AHEAD])
                self._compute(chunk, folding)
                if self._monotonic() >= self._checkpoint_due_s and not folding.half_done:
                    self._checkpoint()
        except BaseException:
            self._executor.forget()
            raise
        return bool(chunks)

    def look_up(self, *handles: Handle) -> None:
        """Give each its value if the store has it; compute nothing. They are planned as if all were to be computed."""
        pending = [handle for handle in handles if not handle.computed]
        self._planner.plan(pending)
        for handle in pending:
            if not handle.computed:  # it may be asked for twice
                self._stored(handle)

    def keep(self) -> None:
        """Write a checkpoint, unless nothing was computed since the last one: it may be of a later round than this."""
        if not self._kept:
            self._checkpoint()

    def _claims(self) -> bool:
        """Claim what is to be computed, once for all of it; whether others may have computed some of it meanwhile."""
        if self._claimed or self._planner.beginning is None:
            return False
        self._store.claim(self._planner.beginning)
        self._claimed = True
        return True

    def _begin_ahead(self, chunks: Sequence[Chunk]) -> None:
        """Let the executor begin what it will be asked for next, as far as the inputs are there."""
        ahead = 0
        for chunk in chunks:
            if chunk.ready:
                self._executor.begin(chunk.nodes)
                ahead += 1
                if ahead > self._executor.lookahead:
                    return

    def _needed(self, handles: Sequence[Handle]) -> list[Chunk]:
        """The chunks to compute, in order; on the way, whatever the store has is read from it."""
        needed: set[Chunk] = set()
        waiting = list(handles)
        while waiting:
            wanted = waiting.pop()
            chunk = wanted.node.chunk
            assert chunk is not None
            if chunk in needed or wanted.computed or self._stored(wanted):
                continue
            needed.add(chunk)
            waiting.extend(source for node in chunk.nodes for source in node.inputs.values())
        return sorted(needed, key=lambda chunk: chunk.sequence)

    def _stored(self, handle: Handle) -> bool:
        """Whether the store has it; if so, it is read."""
        if not handle.scalar:
            found = self._store.read_tensors(handle)
        elif (scalar := self._store.scalar(handle)) is not None:
            handle.value, found = scalar, True
        else:
            found = False
        if found and handle.node.chunk is not None:
            handle.node.chunk.settle()
        return found

    def _compute(self, chunk: Chunk, folding: _Folding) -> None:
        nodes = chunk.nodes
        self._kept = False
        outputs = [folding.finish(nodes[0])] if chunk.folds else self._executor.compute(nodes)
        chunk.nodes = ()
        for node, values in zip(nodes, outputs, strict=True):
            node.finish(values)
        self._store.log(*({"event": "computed", "key": node.key, **node.description} for node in nodes))
        for handle in [handle for node in nodes if node.operation.scalars for handle in node.held_outputs()]:
            if handle.scalar:
                self._store.keep_scalar(handle)
        folding.advance(nodes)

    def _checkpoint(self) -> None:
        began_s = self._monotonic()
        self._store.checkpoint(self._graph.live())
        self._kept = True
        ended_s = self._monotonic()
        took_s = ended_s - began_s
        pause_s = _LEAST_PAUSE * took_s if took_s > _LONG_S else 0.0
        self._checkpoint_due_s = ended_s + max(self._interval_s, pause_s)


class _Folding:
    """Feeds each folding node with its terms as they are made, in their order, and lets go of them."""

    def __init__(self, executor: Executor, chunks: list[Chunk]) -> None:
        self._executor = executor
        self._folds: dict[Node, Fold] = {}
        self._taken: dict[Node, int] = {}
        self._takers: defaultdict[Node, list[Node]] = defaultdict(list)
        for chunk in chunks:
            if chunk.folds:
                (node,) = chunk.nodes
                self._taken[node] = 0
                for source in {handle.node for handle in node.inputs.values()}:
                    self._takers[source].append(node)

    @property
    def half_done(self) -> bool:
        """Whether some terms are in a sum that is not finished, and so in no value that could be stored."""
        return bool(self._folds)

    def advance(self, made: tuple[Node, ...]) -> None:
        """Let the folding nodes take what has just been made."""
        for source in made:
            for taker in self._takers.pop(source, ()):
                self._take(taker)

    def finish(self, node: Node) -> dict[str, object]:
        self._take(node)
        return self._folds.pop(node).result()

    def _take(self, node: Node) -> None:
        if not all(handle.computed for slot, handle in node.inputs.items() if slot.role != TERM):
            return
        while slots := self._next_term(node):
            if node not in self._folds:
                self._folds[node] = self._executor.fold(node)
            self._folds[node].add({slot.part: node.inputs[slot].value for slot in slots})
            for slot in slots:
                del node.inputs[slot]
            self._taken[node] += 1

    def _next_term(self, node: Node) -> list[Slot]:
        """Where the parts of the next term are, if all of them are there."""
        slots = [slot for slot in node.inputs if slot.role == TERM and slot.number == self._taken[node]]
        return slots if all(node.inputs[slot].computed for slot in slots) else []
