"""The helping hand for a name that is not known where it stands: a key, or the name of a thing or of a choice."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel

from fedsim import registry
from fedsim.errors import nearest, some
from fedsim.protocols.open_keys import protocol_that_takes
from fedsim.scenario.locate import Spot, keys_of, sections_with
from fedsim.settings import Component

__all__ = ["LONGEST_WORD", "fixed_part_hint", "hand", "nearest_key"]

LONGEST_WORD = 60
"""Characters of a word that are compared with others."""


def hand(word: str, choices: Iterable[str]) -> str:
    """Which of the *choices* is spelled much like *word*, if there is one."""
    short, choices = word[:LONGEST_WORD], list(choices)
    return nearest(short, choices) or nearest(short.lower(), choices)


def nearest_key(spot: Spot) -> str:
    """What the unknown key at *spot* may be meant for, and the keys that there are."""
    if spot.owner is None:
        return ""
    word, keys = str(spot.path[-1]), list(keys_of(spot.owner))
    stem = word.rpartition("_")[0]
    other_unit = [key for key in keys if key.startswith(f"{word}_") or (stem and key.rpartition("_")[0] == stem)]
    meant = [word, *_alike(word)]
    one_or_many = [key for key in keys if key in (f"{word}s", word.removesuffix("s"))]
    likely = one_or_many or (other_unit if len(other_unit) == 1 else [key for key in meant if key in keys])
    likely = likely or [f"{section}.{key}" for key in meant for section in sections_with(spot.owner, key)]
    near = f"; did you mean {likely[0]!r}?" if likely else _owners_hint(word, spot.owner) or hand(word, keys)
    foreign = next((letter for letter in word if letter.isprintable() and not letter.isascii()), None)
    letter = f" ({foreign!r} is U+{ord(foreign):04X})" if near and foreign else ""  # it may look like another one
    return f"{near}{letter} (keys: {', '.join(keys) or 'none'})"


def _alike(word: str) -> list[str]:
    """Keys that mean what *word* means elsewhere, wherever they may stand."""
    known = registry.alike("keys").get(word.lower())
    return known.write.split() if known else []


def _owners_hint(key: str, settings: type[BaseModel]) -> str:
    """Which other things of the kind of *settings* have such a *key*."""
    kind = _kind_of_component(settings) if issubclass(settings, Component) else None
    owners = [name for name in registry.names(kind) if key in keys_of(registry.load(kind, name))] if kind else []
    return f"; {some(owners)} {'has' if len(owners) == 1 else 'have'} it" if owners else ""


def _kind_of_component(settings: type[Component]) -> str | None:
    """The kind that *settings*, or what they are a variant of, are registered under."""
    name = settings.model_fields["name"].default
    for kind in registry.KINDS:
        if name in registry.names(kind):  # nothing else is loaded: with some kinds comes torch
            found = registry.load(kind, name)
            if isinstance(found, type) and issubclass(settings, found):
                return kind
    return None


def fixed_part_hint(name: str, spot: Spot) -> str:
    """The way out where a protocol has one server rule, say, for good, and the scenario names another one."""
    if len(spot.path) < 2 or spot.path[0] != "protocols" or spot.path[-1] != "name":
        return ""
    part = str(spot.path[-2])
    protocol = protocol_that_takes(part, name)
    return f", which this protocol always has; use {protocol} for {part}: {{name: {name}}}" if protocol else ""
