"""Keys in words: what each takes, its default, and what it means."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Iterator
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
from pydantic import AllowInfNan, JsonValue
from pydantic.fields import FieldInfo

from fedsim.settings import Component, OneOf, Settings, descriptions
from writers.layout import hints, page_of, places
from writers.markdown import one_line, table

TITLES = ["key", "value", "default", "meaning"]
NO_KEYS = "No keys of its own.\n"


def key_table(rows: Iterable[tuple[str, type[Settings]]]) -> str:
    """A table of keys, each as its class has it."""
    written = [key_row(key, settings) for key, settings in rows]
    return table(TITLES, written) if written else NO_KEYS


def key_row(key: str, settings: type[Settings]) -> list[str]:
    field = settings.model_fields[key]
    meaning = one_line(descriptions(settings).get(field.alias or key, ""))
    return [f"`{key}`", type_text(hints(settings)[key]), default_text(field), meaning]


def type_text(hint: Any) -> str:
    """What a key takes, in words.

    >>> from fedsim.settings import Count, Fraction, Several
    >>> type_text(Count), type_text(Several[Fraction])
    ('whole number, at least 1, at most 1,000,000,000', 'list of: number, above 0, at most 1')
    """
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        for extra in extras:
            if isinstance(extra, OneOf):
                return f"one of the [{extra.kind}](/{page_of(extra.kind)})"
        words = [rule for extra in extras for rule in rules(extra)]
        if get_origin(inner) is tuple and NOT_EMPTY in words:
            return type_text(inner).replace("list", f"list, {NOT_EMPTY},", 1)
        return ", ".join([type_text(inner), *sorted(words, key=MAY_BE_INFINITE.__eq__)])
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(type_text(part) for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is Literal:
        return " or ".join(f"`{word}`" for word in get_args(hint))
    if get_origin(hint) is tuple:
        first, *others = get_args(hint)
        return f"list of: {type_text(first)}" if others == [...] else f"list of {1 + len(others)}: {type_text(first)}"
    if get_origin(hint) is dict:
        return f"mapping of names to: {type_text(get_args(hint)[1])}"
    if hint is JsonValue:
        return "anything that JSON can hold"
    if issubclass(hint, Enum):
        return " or ".join(f"`{member.value}`" for member in hint)
    if issubclass(hint, Settings):
        written = next(places()[base] for base in hint.__mro__ if base in places())  # of a component's variant: its own
        return f"[mapping]({written})"
    return {str: "text", bool: "`true` or `false`", int: "whole number", float: "number"}[hint]


NOT_EMPTY = "not empty"
MAY_BE_INFINITE = "may be `.inf`"


def rules(extra: Any) -> Iterator[str]:
    """The rules that a type's annotation adds."""
    parts: Iterable[Any] = extra if isinstance(extra, at.GroupedMetadata) else [extra]
    for part in parts:
        match part:
            case at.Gt(gt=limit):
                yield f"above {bound(limit)}"
            case at.Ge(ge=limit):
                yield f"at least {bound(limit)}"
            case at.Lt(lt=limit):
                yield f"below {bound(limit)}"
            case at.Le(le=limit):
                yield f"at most {bound(limit)}"
            case at.MinLen(min_length=1):
                yield NOT_EMPTY
            case AllowInfNan():
                yield MAY_BE_INFINITE


def bound(limit: float) -> str:
    """
    >>> bound(0.25), bound(20_000), bound(-1e18)
    ('0.25', '20,000', '-1e18')
    """
    if abs(limit) < 1e12:
        return f"{limit:,}" if limit % 1 else f"{limit:,.0f}"
    return f"{limit:g}".replace("e+", "e")


def default_text(field: FieldInfo) -> str:
    """The default as a scenario would write it."""
    if field.is_required():
        return "**needed**"
    if field.default_factory_takes_validated_data:  # other keys decide, and the factory says which
        made = one_line(inspect.getdoc(field.default_factory) or "")
        return made[:1].lower() + made[1:].rstrip(".")
    value = field.get_default(call_default_factory=True)
    return "none" if value is None else f"`{yaml_text(value)}`"


def yaml_text(value: Any) -> str:
    if isinstance(value, Component):
        return f"{{name: {value.name}}}"
    if isinstance(value, Settings):
        return "{}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(yaml_text, value))}]"
    if isinstance(value, float) and math.isinf(value):
        return ".inf"
    if isinstance(value, float) and value >= 1e6:
        return f"{value:g}"
    return value if isinstance(value, str) and value else json.dumps(value)
