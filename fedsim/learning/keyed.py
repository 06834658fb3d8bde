"""What a key says of a thing that changes numbers: its name, its version and its fields, down to the last number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from fedsim.imports import source_digest

__all__ = ["described"]


def described(thing: Any) -> Any:
    """*thing* as JSON-able content: equal things, equal content, and nothing in it that changes no number.

    Of an object it has the class's ``name`` and ``version``, if there are any, the digest of its source if it does not
    come with fedsim, and every field. Raises `TypeError` for what is no number, text, list, mapping, settings or
    dataclass: no key could tell two of them apart.
    """
    if thing is None or isinstance(thing, (str, int, float)):
        return thing
    if isinstance(thing, BaseModel):
        return _of_settings(thing)
    if is_dataclass(thing):
        kind: type = type(thing)
        facts, names = _of_class(kind)
        return facts | {name: described(getattr(thing, name)) for name in names}
    if isinstance(thing, Mapping):
        return {key: described(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [described(value) for value in thing]
    raise TypeError(f"a key cannot hold {thing!r}: make it a number, a text, or a dataclass of them")


# Thousands of nodes have the same settings and classes, so what is said of these is made once, and nobody changes it.


@lru_cache(maxsize=256)
def _of_settings(settings: BaseModel) -> dict[str, Any]:
    parts = {name: described(value) for name, value in settings if _has_settings(value)}  # of their versions, too
    return _of_class(type(settings))[0] | settings.model_dump(mode="json") | parts


def _has_settings(value: Any) -> bool:
    return isinstance(value, BaseModel) or (isinstance(value, list | tuple) and any(map(_has_settings, value)))


@lru_cache(maxsize=256)
def _of_class(kind: type) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What tells the class from others, and the names of a dataclass's fields."""
    facts = {name: getattr(kind, name, None) for name in ("name", "version")}
    facts["source"] = source_digest(kind)  # code from outside of fedsim raises no version when it is edited
    names = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return {name: fact for name, fact in facts.items() if isinstance(fact, str | int)}, names
