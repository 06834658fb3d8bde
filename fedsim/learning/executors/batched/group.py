"""What of a wave goes through its steps together: chains that begin with one model and follow one recipe."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedsim.learning.executors.batched.course import Chain, Stage
from fedsim.learning.executors.trainer import Part
from fedsim.learning.executors.wave import Made, Source, Wave

__all__ = ["Change", "Group", "groups", "recipe_text"]


@dataclass(frozen=True, eq=False)
class Group:
    """Chains, and what they have in common."""

    chains: tuple[Chain, ...]
    base: Mapping[str, Part]
    """The model that they begin with, by part."""
    summed: tuple[str, ...] = ()
    """The parts of which the wave wants a weighted sum."""
    weights: Mapping[int, float] | None = None
    """Of a chain's last model in that sum, by the number of its training."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those of a node whose options of training and objective are everybody's."""
        return self.chains[0][0].training.parameters

    @property
    def on_rows(self) -> bool:
        """Whether it trains on rows of semantics, not on samples."""
        return "rows" in self.parameters

    @property
    def stages(self) -> list[Stage]:
        """All trainings, chain by chain."""
        return [stage for chain in self.chains for stage in chain]


class Change(NamedTuple):
    """``sum of weight_c (model_c - base)`` over a group's chains."""

    parts: dict[str, Part]
    weight: float
    """The sum of the weights."""


def groups(wave: Wave, values: Sequence[Part]) -> Iterator[Group]:
    """The wave's groups, one after the other."""
    total = wave.sum
    summed = () if total is None else tuple(total.base)
    weights = None if total is None else dict(zip(total.trainings, total.weights, strict=True))
    found: defaultdict[tuple[frozenset[tuple[str, Source]], str], list[Chain]] = defaultdict(list)
    for chain in _chains(wave):
        first = chain[0].training
        found[frozenset(first.sources("model").items()), recipe_text(first.parameters)].append(chain)
    for chains in found.values():
        model = chains[0][0].training.sources("model")
        base = {part: values[source] for part, source in model.items() if isinstance(source, int)}
        yield Group(tuple(chains), base, summed, weights)


def recipe_text(parameters: Mapping[str, Any]) -> str:
    """The options of training and objective: the same text, the same recipe."""
    return json.dumps([parameters[name] for name in ("training", "objective")], sort_keys=True)


def _chains(wave: Wave) -> list[Chain]:
    needed = [set(training.wanted) for training in wave.trainings]
    for training in wave.trainings:
        for name, source in training.inputs.items():
            if isinstance(source, Made) and not name.startswith("model."):
                needed[source.training].add(source.output)
    chains: dict[int, list[Stage]] = {}
    for number, training in enumerate(wave.trainings):
        model = training.sources("model")
        before = {source.training for source in model.values() if isinstance(source, Made)}
        restarts = (
            frozenset(part for part, source in model.items() if isinstance(source, int)) if before else frozenset()
        )
        chain = chains.pop(before.pop()) if before else []
        chains[number] = [*chain, Stage(number, training, restarts, frozenset(needed[number]))]
    return [tuple(chain) for chain in chains.values()]
