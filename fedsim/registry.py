"""Every interchangeable thing has a name; this module finds the class behind it, and loads it only when asked.

A kind's names live in one dictionary, ``REGISTRY``, in the ``__init__.py`` of the package that owns the kind:
``{"fedavg": "fedsim.protocols.fedavg:FedAvg"}``. One new thing is one new file and one such line.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from fedsim.errors import UserError, nearest

__all__ = ["KINDS", "first_sentence", "load", "names"]

KINDS: dict[str, str] = {  # kind -> package whose __init__ holds the kind's REGISTRY
    "protocols": "fedsim.protocols",
    "cohorts": "fedsim.protocols.cohorts",
    "schedules": "fedsim.protocols.schedules",
    "exchanges": "fedsim.protocols.exchanges",
    "objectives": "fedsim.learning.objectives",
    "rules": "fedsim.learning.rules",
    "codecs": "fedsim.learning.codecs",
    "topologies": "fedsim.topology",
    "radios": "fedsim.radio",
    "snrs": "fedsim.radio.snr",
    "path_losses": "fedsim.radio.path_loss",
    "disciplines": "fedsim.network.disciplines",
    "computes": "fedsim.devices",
    "datasets": "fedsim.data",
    "partitions": "fedsim.data.partition",
    "feature_skews": "fedsim.data.feature_skew",
    "drifts": "fedsim.data.stream.drift",
    "groupings": "fedsim.grouping",
    "growths": "fedsim.grouping.growth",
    "models": "fedsim.models",
    "executors": "fedsim.learning.executors",
    "cost_models": "fedsim.metrics.cost_models",
    "paper_tables": "fedsim.paper",
}


def _registry(kind: str) -> dict[str, str]:
    if kind not in KINDS:
        raise UserError(f"nothing is registered under {kind!r}{nearest(kind, KINDS)} (kinds: {', '.join(KINDS)})")
    registry: dict[str, str] = importlib.import_module(KINDS[kind]).REGISTRY
    return registry


def names(kind: str) -> tuple[str, ...]:
    """The registered names of *kind*, in the order in which they were registered.

    Raises `UserError` when there is no such kind.
    """
    return tuple(_registry(kind))


@cache
def load(kind: str, name: str) -> Any:
    """The class (or function) registered as *name* under *kind*.

    Raises `UserError` with the nearest name when there is none.
    """
    registry = _registry(kind)
    if name not in registry:
        raise UserError(f"{kind} has no {name!r}{nearest(name, registry)} (known: {', '.join(registry) or 'none'})")
    module, _, attribute = registry[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def first_sentence(kind: str, name: str) -> str:
    """The first line of the docstring of *name*: what `fedsim list` prints."""
    return (load(kind, name).__doc__ or "").strip().splitlines()[0]
