"""The weighted change of all updates: what most server rules begin with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from fedsim.learning.learner import Learner, Model
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.rules.update import Update

__all__ = ["PARTIAL_SUM", "SUMMATION", "base_of", "partial_sums", "weighted_change"]

PARTIAL_SUM = 8
"""Updates in one partial sum, at most. It decides the order of additions, so the family has it."""

SUMMATION = f"even-sums{PARTIAL_SUM}"
"""What the rule of `partial_sums` is called in the numeric family."""


def partial_sums(updates: int) -> list[slice]:
    """Which updates are in which partial sum: an even number of sums (or one), as equal as can be.

    Even, so that two workers, or four, have the same to do. A function of the number alone, never of the workers.

    >>> [some.stop - some.start for some in partial_sums(30)], [some.stop - some.start for some in partial_sums(1)]
    ([8, 8, 7, 7], [1])
    """
    sums = min(updates, 2 * math.ceil(updates / (2 * PARTIAL_SUM)))
    size, longer = divmod(updates, sums)
    ends = [number * size + min(number, longer) for number in range(sums + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


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

    The ``w_i`` are the updates' shares in the sum of their weights, or *weights*, one for each update. Updates are
    added in the order of their senders, in `partial_sums`, and the partial sums in their order; those of models of
    one table come together, as only these are trained together.
    """
    order = sorted(range(len(updates)), key=lambda number: updates[number].sender)  # whoever was faster
    if weights is None:
        total_weight = sum(updates[number].weight for number in order)
        weights = [update.weight / total_weight for update in updates]
    by_table: dict[str, list[int]] = {}
    for number in order:
        by_table.setdefault(updates[number].table, []).append(number)
    total: Model = {}
    for some in (alike[some_of_them] for alike in by_table.values() for some_of_them in partial_sums(len(alike))):
        terms = [updates[number].models[name] for number in some]
        operation = PartialSum(tuple(weights[number] for number in some))
        change = learner.apply(operation, {"base": base, TERM: terms}, terms[0], round_number=round_number)
        given = {"base": total, "change": change}
        total = learner.apply(Add(), given, total, round_number=round_number) if total else change
    return total
