"""A document becomes a scenario, or the list of its mistakes; of a very large document, that list is kept short.

A script can make a hundred thousand mistakes at once, and each of them takes a kilobyte where it is recorded. So the
check of a document of very many values does not go on in a list or mapping after the first wrong item.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic_core import SchemaValidator

from fedsim.scenario.document import Document
from fedsim.scenario.schema import Scenario

__all__ = ["checked"]

MANY_VALUES = 50_000

_COLLECTIONS = ("list", "tuple", "set", "frozenset", "dict")  # of pydantic's schemas


def checked(document: Document) -> Scenario:
    """The scenario that *document* describes. Raises pydantic's `ValidationError`."""
    if not _has_more_values(document.data, MANY_VALUES):
        return Scenario.model_validate(document.data, context=document)
    scenario: Scenario = _hasty().validate_python(document.data, context=document)
    return scenario


def _has_more_values(data: object, most: int) -> bool:
    pending, found = [data], 0
    while pending and found <= most:
        value = pending.pop()
        found += 1
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return found > most


@cache
def _hasty() -> SchemaValidator:
    """The same check as a scenario's own, which ends at the first wrong item of a list or mapping."""
    schema = _stopping_early(Scenario.__pydantic_core_schema__)
    try:
        return SchemaValidator(schema, _use_prebuilt=False)  # of the settings inside, which do not end so early
    except TypeError:  # an older pydantic has no such option
        return SchemaValidator(schema)


def _stopping_early(schema: Any) -> Any:
    if isinstance(schema, dict):
        inner = {key: _stopping_early(part) for key, part in schema.items()}
        return {**inner, "fail_fast": True} if schema.get("type") in _COLLECTIONS else inner
    return type(schema)(map(_stopping_early, schema)) if isinstance(schema, list | tuple) else schema
