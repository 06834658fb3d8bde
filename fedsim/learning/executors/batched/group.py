"""What of a wave goes through its steps together: chains that begin with one model and follow one recipe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fedsim.learning.executors.batched.course import Chain, Stage
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.executors.wave import Made, Source, Wave
from fedsim.learning.operations.train import Train

__all__ = ["Change", "Group", "groups", "recipe_of"]


@dataclass(frozen=True, eq=False)
class Group:
    """Chains, and what they have in common."""

    chains: tuple[Chain, ...]
    base: Mapping[str, TensorDict]
    """The model that they begin with, by part."""
    summed: tuple[str, ...] = ()
    """The parts of which the wave wants a weighted sum."""
    weights: Mapping[int, float] | None = None
    """Of a chain's last model in that sum, by the number of its training."""

    @property
    def about(self) -> Train:
        """A training whose options and objective are everybody's."""
        return self.chains[0][0].training.about

    @property
    def on_rows(self) -> bool:
        """Whether it trains on rows of semantics, not on samples."""
        return self.about.rows is not None

    @property
    def stages(self) -> list[Stage]:
        """All trainings, chain by chain."""
        return [stage for chain in self.chains for stage in chain]


class Change(NamedTuple):
    """``sum of weight_c (model_c - base)`` over a group's chains."""

    parts: dict[str, TensorDict]
    weight: float
    """The sum of the weights."""


def groups(wave: Wave, values: Sequence[TensorDict]) -> Iterator[Group]:
    """The groups of a wave with one sum at most, one after the other."""
    (total,) = wave.sums or (None,)
    summed = () if total is None else total.parts
    weights = None if total is None else dict(zip(total.trainings, total.weights, strict=True))
    found: defaultdict[tuple[frozenset[tuple[str, Source]], Hashable], list[Chain]] = defaultdict(list)
    for chain in _chains(wave):
        first = chain[0].training
        found[frozenset(first.sources.model("model").items()), recipe_of(first.about)].append(chain)
    for chains in found.values():
        model = chains[0][0].training.sources.model("model")
        base = {part: values[source] for part, source in model.items() if isinstance(source, int)}
        yield Group(tuple(chains), base, summed, weights)


def recipe_of(about: Train) -> Hashable:
    """The options of training and the objective: if equal, so are the steps."""
    return about.training, about.objective


def _chains(wave: Wave) -> list[Chain]:
    needed = [set(training.wanted) for training in wave.trainings]
    for training in wave.trainings:
        for slot, source in training.inputs.items():
            if isinstance(source, Made) and slot.role != "model":
                needed[source.training].add(source.output)
    chains: dict[int, list[Stage]] = {}
    for number, training in enumerate(wave.trainings):
        model = training.sources.model("model")
        before = {source.training for source in model.values() if isinstance(source, Made)}
        restarts = (
            frozenset(part for part, source in model.items() if isinstance(source, int)) if before else frozenset()
        )
        chain = chains.pop(before.pop()) if before else []
        chains[number] = [*chain, Stage(number, training, restarts, frozenset(needed[number]))]
    return [tuple(chain) for chain in chains.values()]
