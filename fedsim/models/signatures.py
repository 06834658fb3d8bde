"""A model as the sequence of its layers' signatures: what two models have in common is what they begin alike with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from fedsim.models.table import LayerTable, ModelTable

__all__ = ["Signatures", "common_start", "first_connected", "signatures"]

Signatures: TypeAlias = tuple[str, ...]
"""Of a model's layers with parameters, first to last."""


def signatures(table: ModelTable) -> Signatures:
    """Those of the layers of *table*; of a model whose layers are not known, one for all of it."""
    if not isinstance(table, LayerTable):
        return (f"model {table.digest}",)
    return tuple(layer.signature for layer in table.signed_layers())


def common_start(models: Iterable[Signatures]) -> int:
    """How many layers all *models*, of which there is one at least, have in common; what follows does not count.

    >>> common_start([("a", "b", "c"), ("a", "b"), ("a", "x", "c")])
    1
    """
    first, *others = models
    shortest = min((len(other) for other in others), default=len(first))
    alike = (all(other[at] == layer for other in others) for at, layer in enumerate(first[:shortest]))
    return next((at for at, same in enumerate(alike) if not same), min(shortest, len(first)))


def first_connected(model: Signatures) -> int | None:
    """How many layers come before the first fully connected one; None where there is none."""
    return next((at for at, layer in enumerate(model) if layer.startswith("linear(")), None)
