"""The weighted change of all updates: what most server rules begin with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from fedsim.learning.learner import Learner, Model
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.rules.update import Update

__all__ = ["PARTIAL_SUM", "SUMMATION", "base_of", "partial_sums", "weighted_change"]

PARTIAL_SUM = 8
"""Updates in one partial sum, at most. It decides the order of additions, so the family has it."""

SUMMATION = f"even-work{PARTIAL_SUM}"
"""What the rule of `partial_sums` is called in the numeric family."""


def partial_sums(work: Sequence[float]) -> list[list[int]]:
    """Which updates are in which partial sum, and in which order, where each took so much *work*.

    There is an even number of sums (or one), so that two workers, or four, have the same to do. Where all updates took
    as much, they stay in their order, and sums have as many as can be. Otherwise the one that took most comes first:
    each goes to the sum with the least work so far that has room. A function of *work* alone, never of the workers.

    >>> partial_sums([1, 1, 1, 1, 1]), partial_sums([3, 1, 9, 2, 2]), partial_sums([7])
    ([[0, 1, 2], [3, 4]], [[2], [0, 3, 4, 1]], [[0]])
    """
    number = min(len(work), 2 * math.ceil(len(work) / (2 * PARTIAL_SUM)))
    if len(set(work)) == 1:
        size, longer = divmod(len(work), number)
        ends = [at * size + min(at, longer) for at in range(number + 1)]
        return [list(range(first, last)) for first, last in pairwise(ends)]
    lightest: list[tuple[float, int, int]] = [(0, 0, at) for at in range(number)]  # work so far, updates, which sum
    sums: list[list[int]] = [[] for _ in range(number)]
    for update in sorted(range(len(work)), key=lambda update: -work[update]):
        so_far, updates, at = heappop(lightest)
        sums[at].append(update)
        if updates + 1 < PARTIAL_SUM:
            heappush(lightest, (so_far + work[update], updates + 1, at))
    return sorted(sums, key=lambda some: -sum(work[update] for update in some))


def base_of(state: Mapping[str, Model], updates: Sequence[Update]) -> Model:
    """The parts of the server's model that these *updates* are of."""
    return {part: state["model"][part] for part in updates[0].model}


def weighted_change(
    learner: Learner,
    base: Model,
    updates: Sequence[Update],
    *,
    round_number: int,
    name: str = "model",
    weights: Sequence[float] | None = None,
) -> Model:
    """``sum of w_i (model_i - base)`` of the models called *name*; an empty *base* is zero.

    The ``w_i`` are the updates' shares in the sum of their weights, or *weights*, one for each update. The order of
    senders, and how many samples each update was trained on, say which `partial_sums` add them up; these are added in
    their order. Those of models of one table come together, as only these are trained together.
    """
    order = sorted(range(len(updates)), key=lambda number: updates[number].sender)  # whoever was faster
    if weights is None:
        total_weight = sum(updates[number].weight for number in order)
        weights = [update.weight / total_weight for update in updates]
    by_table: dict[str, list[int]] = {}
    for number in order:
        by_table.setdefault(updates[number].table, []).append(number)
    total: Model = {}
    for some in (numbers for alike in by_table.values() for numbers in _cut(updates, alike)):
        terms = [updates[number].models[name] for number in some]
        operation = PartialSum(tuple(weights[number] for number in some))
        change = learner.apply(operation, {"base": base, TERM: terms}, terms[0], round_number=round_number)
        given = {"base": total, "change": change}
        total = learner.apply(Add(), given, total, round_number=round_number) if total else change
    return total


def _cut(updates: Sequence[Update], alike: Sequence[int]) -> list[list[int]]:
    """The numbers of those that are *alike*, by the partial sum that they are in."""
    return [[alike[at] for at in some] for some in partial_sums([updates[number].samples for number in alike])]
