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
    if thing is None or isinstance(thing, str | int | float | bool):
        return thing
    if isinstance(thing, BaseModel):
        return _of_class(type(thing)) | _dumped(thing)
    if is_dataclass(thing):
        content = {field.name: described(getattr(thing, field.name)) for field in fields(thing)}
        return _of_class(type(thing)) | content
    if isinstance(thing, Mapping):
        return {key: described(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [described(value) for value in thing]
    raise TypeError(f"a key cannot hold {thing!r}: make it a number, a text, or a dataclass of them")


@lru_cache(maxsize=256)
def _dumped(settings: BaseModel) -> dict[str, Any]:
    parts = {name: described(value) for name, value in settings if _has_settings(value)}  # of their versions, too
    return settings.model_dump(mode="json") | parts


def _has_settings(value: Any) -> bool:
    return isinstance(value, BaseModel) or (isinstance(value, list | tuple) and any(map(_has_settings, value)))


def _of_class(kind: type) -> dict[str, Any]:
    facts = {name: getattr(kind, name, None) for name in ("name", "version")}
    facts["source"] = source_digest(kind)  # code from outside of fedsim raises no version when it is edited
    return {name: fact for name, fact in facts.items() if isinstance(fact, str | int)}
