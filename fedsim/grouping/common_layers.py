"""Which layers clients have in common whose models differ, and with whom each layer is averaged (FlexiFed: Wang et al.,
*FlexiFed: Personalized federated learning for edge clients with heterogeneous model architectures*, WWW 2023).

A model is here the sequence of its layers' signatures, first to last. Two models have the layers in common in which
they begin alike: a layer behind the first difference never counts, even if it is equal. All models together are a trie;
a *node* of it stands for a layer and all layers before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from fedsim.models.signatures import Signatures, common_start

__all__ = ["RULES", "Partners", "Rule", "Trie", "averaged_with", "partners"]

Partners: TypeAlias = frozenset[Signatures]
"""The models whose clients a layer is averaged over; empty: each client keeps its own."""

NOBODY: Partners = frozenset()


class Trie:
    """Models by what they begin with."""

    def __init__(self, models: Iterable[Signatures]) -> None:
        self.models = tuple(dict.fromkeys(models))
        self.common_to_all = common_start(self.models) if self.models else 0
        self._below: dict[Signatures, set[Signatures]] = {}
        for model in self.models:
            for end in range(1, len(model) + 1):
                self._below.setdefault(model[:end], set()).add(model)

    def below(self, model: Signatures, layer: int) -> Partners:
        """The models that have the first layers of *model* in common with it, up to number *layer*, counted from 0."""
        return frozenset(self._below[model[: layer + 1]])


Rule: TypeAlias = Callable[[Trie, Signatures, int], Partners]
"""The models over whose clients a layer, counted from 0, of a model is averaged."""


def nobody(trie: Trie, model: Signatures, layer: int) -> Partners:
    """No layer (Standalone)."""
    return NOBODY


def identical(trie: Trie, model: Signatures, layer: int) -> Partners:
    """All layers, over those who have the same model (Clustered-FL)."""
    return frozenset([model])


def basic(trie: Trie, model: Signatures, layer: int) -> Partners:
    """The layers that all models have in common, over everybody (Basic-Common, algorithm 2)."""
    return frozenset(trie.models) if layer < trie.common_to_all else NOBODY


def clustered(trie: Trie, model: Signatures, layer: int) -> Partners:
    """As basic, and the layers behind over those who have the same model (Clustered-Common, algorithm 3)."""
    return basic(trie, model, layer) or identical(trie, model, layer)


def maximal(trie: Trie, model: Signatures, layer: int) -> Partners:
    """Each layer over everybody whose model begins with the same layers up to it (Max-Common, algorithm 1).

    The algorithm averages what all have in common, splits them by the layer that follows, and does the same in each
    group: that is the same.
    """
    return trie.below(model, layer)


RULES: Mapping[str, Rule] = {
    "nobody": nobody,
    "identical": identical,
    "basic": basic,
    "clustered": clustered,
    "max": maximal,
}


def partners(rule: Rule, models: Iterable[Signatures]) -> dict[Signatures, tuple[Partners, ...]]:
    """For each of *models*, layer by layer, the models over whose clients the layer is averaged."""
    trie = Trie(models)
    return {model: tuple(rule(trie, model, layer) for layer in range(len(model))) for model in trie.models}


def averaged_with(rule: Rule, models: Sequence[Signatures]) -> list[list[tuple[int, ...]]]:
    """For each client, whose model is at its place in *models*, layer by layer, the clients that it is averaged over.

    They are in their order, and the client is one of them; a layer that nobody else has is the client's own.

    >>> a, b = ("conv", "head"), ("conv", "conv", "head")
    >>> averaged_with(maximal, [a, b, b])
    [[(0, 1, 2), (0,)], [(0, 1, 2), (1, 2), (1, 2)], [(0, 1, 2), (1, 2), (1, 2)]]
    >>> averaged_with(basic, [a, b, b])
    [[(0, 1, 2), (0,)], [(0, 1, 2), (1,), (1,)], [(0, 1, 2), (2,), (2,)]]
    """
    clients: dict[Signatures, list[int]] = {}
    for client, model in enumerate(models):
        clients.setdefault(model, []).append(client)
    layers = {
        model: [tuple(sorted(client for one in some for client in clients[one])) for some in of_layers]
        for model, of_layers in partners(rule, models).items()
    }
    return [[some or (client,) for some in layers[model]] for client, model in enumerate(models)]
