"""Every interchangeable thing has a name; this module finds the class behind it, and loads it only when asked.

A kind's names live in one dictionary, ``REGISTRY``, in the module or the package that owns the kind:
``{"fedavg": "fedsim.protocols.fedavg:FedAvg"}``. One new thing is one new class, mostly in a file of its own, and one
such line. An installed package offers things by entry points, ``[project.entry-points."fedsim.protocols"]``; fedsim's
own names go first.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from fedsim.errors import UserError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["KINDS", "Alike", "alike", "all_names", "first_sentence", "hint", "load", "names", "offers", "origin"]

KINDS: dict[str, str] = {  # kind -> module or package that holds the kind's REGISTRY
    "protocols": "fedsim.protocols",
    "cohorts": "fedsim.protocols.cohorts",
    "schedules": "fedsim.protocols.schedules",
    "exchanges": "fedsim.protocols.exchanges",
    "objectives": "fedsim.learning.objectives",
    "rules": "fedsim.learning.rules",
    "codecs": "fedsim.learning.codecs",
    "selections": "fedsim.learning.selections",
    "topologies": "fedsim.topology",
    "radios": "fedsim.radio",
    "snrs": "fedsim.radio.snr",
    "path_losses": "fedsim.radio.propagation",
    "disciplines": "fedsim.network.disciplines",
    "computes": "fedsim.devices",
    "datasets": "fedsim.data",
    "partitions": "fedsim.data.partition",
    "feature_skews": "fedsim.data.feature_skew",
    "drifts": "fedsim.data.stream.drift",
    "groupings": "fedsim.grouping",
    "growths": "fedsim.grouping.growth",
    "subsets": "fedsim.grouping.subset",
    "models": "fedsim.models",
    "executors": "fedsim.learning.executors",
    "cost_models": "fedsim.metrics.cost_models",
    "paper_tables": "fedsim.paper",
    "exporters": "fedsim.experiment.exports",
}


def _registry(kind: str) -> dict[str, str]:
    if kind not in KINDS:
        homes = [other for other in KINDS if kind in names(other)]
        hand = f"; it stands under {homes[0]}" if homes else nearest(kind, KINDS)
        raise UserError(f"nothing is registered under {kind!r}{hand} (kinds: {', '.join(KINDS)})")
    registry: dict[str, str] = importlib.import_module(KINDS[kind]).REGISTRY
    return registry


def names(kind: str) -> tuple[str, ...]:
    """The names of *kind* that come with fedsim, in the order in which they were registered.

    Raises `UserError` when there is no such kind.
    """
    return tuple(_registry(kind))


@cache
def offers(kind: str) -> Mapping[str, Sequence[EntryPoint]]:
    """What installed packages offer under *kind*, by name: entry points of the group ``fedsim.KIND``.

    To look for them takes longer than all else here, so ask for a name of fedsim first.
    """
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=f"fedsim.{kind}"):
        found.setdefault(entry.name, []).append(entry)
    return found


def all_names(kind: str) -> tuple[str, ...]:
    """`names`, and those that only installed packages offer."""
    return tuple(dict.fromkeys((*names(kind), *offers(kind))))


def origin(kind: str, name: str) -> str:
    """The packages that offer *name*, in words."""
    return " and ".join(sorted(entry.dist.name if entry.dist else entry.value for entry in offers(kind)[name]))


class Alike(NamedTuple):
    """What to write for a word that is not known here, and *why* that is alike in meaning."""

    write: str
    why: str


@cache
def alike(kind: str) -> Mapping[str, Alike]:
    """Words that users bring along for things of *kind* (also: keys, options, commands), from ``fedsim/alike.csv``.

    A word that has become a name has no place in that table.

    >>> alike("profiles")["5g"].write
    'nr_100mhz_private'
    """
    with (resources.files("fedsim") / "alike.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == kind]
    return {word: Alike(row["write"], row["why"]) for row in rows for word in row["words"].split()}


def hint(kind: str, word: str, names: Iterable[str]) -> str:
    """A helping hand for a *word* that is none of the *names* of *kind*: what is alike in meaning, or in spelling.

    >>> hint("profiles", "5G", []), hint("protocols", "fedvag", ["fedavg"]), hint("protocols", "ditto", ["fedavg"])
    ("; write 'nr_100mhz_private'", "; did you mean 'fedavg'?", '')
    """
    known = alike(kind).get(word.lower().replace("-", "_"))
    if known is None:
        return nearest(word, names) or nearest(word.lower(), names)
    return f"; {known.why}: write {known.write}" if known.why else f"; write {known.write!r}"


def load(kind: str, name: str) -> Any:
    """The class (or function) registered as *name* under *kind*; of fedsim's own, else of an installed package's.

    A name with a colon is an import path, ``my_protocol.py:Mine``, and leads there. Raises `UserError` with the nearest
    name when there is none, and when what is not fedsim's own cannot be imported.
    """
    if ":" not in name and name in _registry(kind):
        return _own(kind, name)
    from fedsim.imports import load_function

    if ":" in name:
        return load_function(name, what=f"a class for {kind}")[0]
    if name not in offers(kind):
        known = all_names(kind)
        raise UserError(f"{kind} has no {name!r}{hint(kind, name, known)} (known: {', '.join(known) or 'none'})")
    entry, *others = offers(kind)[name]
    if others:
        raise UserError(f"{name!r} of {kind} is offered by {origin(kind, name)}; uninstall all of them but one")
    return load_function(entry.value, what=f"{name!r}, which {origin(kind, name)} offers under {kind},")[0]


@cache
def _own(kind: str, name: str) -> Any:
    module, _, attribute = _registry(kind)[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def first_sentence(kind: str, name: str) -> str:
    """The first line of the docstring of *name*: what `fedsim list` prints."""
    return ((load(kind, name).__doc__ or "").strip() or "(no docstring)").splitlines()[0]
