"""Which nodes are computed together: a pure function of the graph.

A partial sum and the trainings whose models it takes are one wave, with the trainings behind those that hand their
models on to them (a chain of clients in sequence), and with the other sums of the same models, of other segments. So no
single client's model need ever be made. Samples of some
clients that pass through the same frozen extractor are one chunk. Whatever does not fit, as models of different tables
do not, is a chunk of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fedsim.learning.graph import Handle, Node
from fedsim.learning.operations.extract import Extract
from fedsim.learning.operations.partial_sum import TERM
from fedsim.learning.operations.train import Train, TrainSelecting

__all__ = ["waves"]


def waves(nodes: Sequence[Node]) -> list[Sequence[Node]]:
    """Group *nodes*, which come inputs first, into chunks in an order in which they can be computed."""
    planner = _Planner(nodes)
    wave_of: dict[Node, Sequence[Node]] = {}
    first_sums: set[Node] = set()
    for node in nodes:
        if node.operation.folds and node not in wave_of and (trainings := planner.trainings_of(node)):
            wave = (*trainings, node, *planner.other_sums_of(node, trainings))
            wave_of.update(dict.fromkeys(wave, wave))
            first_sums.add(node)
    # A wave stands where its first sum stood: after all that it needs, before all that needs it.
    chunks = [wave_of.get(node, (node,)) for node in nodes if node not in wave_of or node in first_sums]
    return _extracted_together(chunks)


EXTRACTED_TOGETHER = 8
"""Clients whose samples pass through one frozen extractor together."""


def _extracted_together(chunks: Sequence[Sequence[Node]]) -> list[Sequence[Node]]:
    """Forward passes of samples through one extractor, some clients' at a time; they need nothing but the extractor.

    They stand where the first of them stood.
    """
    made: list[Sequence[Node]] = []
    open_for: dict[tuple[str, tuple[Handle, ...]], list[Node]] = {}
    for chunk in chunks:
        node = chunk[0]
        if not isinstance(node.operation, Extract) or "remembered" in node.sources:
            made.append(chunk)
            continue
        extractor = node.operation.model, tuple(node.sources.model("model").values())
        together = open_for.get(extractor)
        if together is None or len(together) == EXTRACTED_TOGETHER:
            together = open_for[extractor] = []
            made.append(together)
        together.append(node)
    return made


class _Planner:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self._order = {node: number for number, node in enumerate(nodes)}
        self._takers: defaultdict[Node, set[Node]] = defaultdict(set)
        for node in nodes:
            for handle in node.inputs.values():
                self._takers[handle.node].add(node)

    def trainings_of(self, total: Node) -> list[Node]:
        """The trainings of the wave that *total* ends, chain by chain; none if they cannot be one wave."""
        chains = [self._chain(last) for last in _last_trainings(total)]
        trainings = [node for chain in chains for node in chain]
        once = len(set(trainings)) == len(trainings) and _bases(total).isdisjoint(trainings)
        of_one_table = len({node.operation.model for node in trainings if isinstance(node.operation, Train)}) == 1
        return trainings if once and of_one_table and all(self._free(chain, total) for chain in chains) else []

    def other_sums_of(self, first: Node, trainings: Sequence[Node]) -> list[Node]:
        """The sums of other parts of the same models, as far as what else they need is there before *first*."""
        last, place = _last_trainings(first), self._order[first]
        takers = [taker for node in last if node is not None for taker in self._takers[node]]
        others = {taker for taker in takers if taker.operation.folds and self._order[taker] > place}
        return [
            total
            for total in sorted(others, key=self._order.__getitem__)
            if _last_trainings(total) == last
            and all(self._order.get(base, -1) < place and base not in trainings for base in _bases(total))
        ]

    def _chain(self, last: Node | None) -> list[Node]:
        """A training and those before it that handed their model on to it, first to last."""
        chain: list[Node] = []
        while last is not None and self._is_training(last):
            chain.insert(0, last)
            last = self._handed_on_from(last)
        return chain

    def _handed_on_from(self, node: Node) -> Node | None:
        """The one training that made parts of the model that *node* starts from, if the others stay as they were.

        It has the same options and objective: a chain follows one recipe. What is sent of a training that chooses
        filters is no model that another one could go on from.
        """
        if isinstance(node.operation, TrainSelecting):
            return None
        model = node.sources.model("model")
        before = {handle.node for handle in model.values() if self._is_training(handle.node)}
        if len(before) != 1:
            return None
        (maker,) = before
        received = maker.sources.model("model")
        same = all(handle.node is maker or received.get(part) is handle for part, handle in model.items())
        return maker if same and _recipe(maker) == _recipe(node) else None

    def _is_training(self, node: Node) -> bool:
        return node in self._order and isinstance(node.operation, Train)

    def _free(self, chain: Sequence[Node], total: Node) -> bool:
        """Whether nothing that the wave needs needs a part of *chain*: who else takes something of it comes later."""
        followers = (*chain[1:], total)
        return bool(chain) and all(
            taker is follower or self._order[taker] > self._order[total]
            for node, follower in zip(chain, followers, strict=True)
            for taker in self._takers[node]
        )


def _last_trainings(total: Node) -> list[Node | None]:
    """For each term the training that made all of it; None where there is no such training."""
    makers: defaultdict[int, set[Node | None]] = defaultdict(set)
    for slot, handle in total.inputs.items():
        if slot.role == TERM:
            makers[slot.number].add(handle.node if handle.output == slot.part else None)
    return [nodes.pop() if len(nodes) == 1 else None for nodes in makers.values()]


def _bases(total: Node) -> set[Node]:
    return {handle.node for slot, handle in total.inputs.items() if slot.role == "base"}


def _recipe(node: Node) -> object:
    operation = node.operation
    assert isinstance(operation, Train)
    return operation.model, operation.training, operation.objective, operation.codec
