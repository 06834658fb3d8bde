"""From pydantic's ``loc`` to the path in the scenario.

A ``loc`` has steps that no scenario has: the tag of a tagged union and the label of a union's branch. Walking the
settings classes beside the ``loc`` tells them apart from keys; where the classes end, the data decides.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fedsim import registry
from fedsim.scenario.document import KeyPath
from fedsim.settings import OneOf

__all__ = ["Spot", "keys_of", "locate", "sections_with"]


@dataclass(frozen=True)
class Spot:
    """Where an error is: the path in the scenario, and what the settings say about it."""

    path: KeyPath
    owner: type[BaseModel] | None
    """The settings whose key the path's last step is."""
    kind: str | None
    """What the registry calls the things that may stand here."""
    has_default: bool
    unions: tuple[tuple[KeyPath, str], ...]
    """The unions on the way, outermost first: the path of each, and pydantic's label of the branch it tried."""
    is_key: bool
    """The error is about the last key itself, not about its value."""
    items: int | None
    """How many items the list that may stand here has, where that is fixed."""
    keys: tuple[str, ...]
    """The keys of the mapping that may stand here, where they are fixed."""


def keys_of(settings: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys that *settings* has in a scenario."""
    return {field.alias or name: field for name, field in settings.model_fields.items()}


def sections_with(settings: type[BaseModel], key: str) -> list[str]:
    """Those keys of *settings* that are mappings with a *key* of this name."""
    return [name for name, field in keys_of(settings).items() if key in _fixed_keys(field.annotation)]


def _fixed_keys(annotation: object) -> tuple[str, ...]:
    """The keys of a mapping that is annotated so, where they are fixed."""
    walk = _Walk(annotation, None)
    walk.unwrap()
    return tuple(keys_of(walk.here)) if _is_settings(walk.here) else ()


def locate(loc: Sequence[str | int], root: type[BaseModel], data: object) -> Spot:
    """The spot of a pydantic error at *loc*, raised by validating *data* as *root*."""
    walk = _Walk(root, data)
    for position, step in enumerate(loc):
        walk.take(step, is_last=position == len(loc) - 1)
    walk.unwrap()
    kind = walk.marker.kind if walk.marker else None
    keys = tuple(keys_of(walk.here)) if _is_settings(walk.here) else ()
    return Spot(walk.path, walk.owner, kind, walk.has_default, walk.unions, walk.is_key, _length(walk.here), keys)


class _Walk:
    """A step of a ``loc`` at a time, with the annotation and the value where it stands."""

    def __init__(self, annotation: object, value: object) -> None:
        self.here = annotation
        self.value = value
        self.path: KeyPath = ()
        self.marker: OneOf | None = None
        self.owner: type[BaseModel] | None = None
        self.has_default = False
        self.unions: tuple[tuple[KeyPath, str], ...] = ()
        self.is_key = False

    def unwrap(self) -> None:
        """Look through ``Annotated``, type aliases and ``X | None``; remember a `OneOf` on the way."""
        while True:
            if get_origin(self.here) is Annotated:
                self.here, *metadata = get_args(self.here)
                self.marker = next((item for item in metadata if isinstance(item, OneOf)), self.marker)
            elif hasattr(self.here, "__value__"):
                self.here = self.here.__value__
            elif len(members := _members(self.here)) == 1:
                self.here = members[0]
            else:
                return

    def take(self, step: str | int, *, is_last: bool) -> None:
        self.unwrap()
        if step == "[key]" and is_last and not _holds(self.value, step):
            self.is_key = True
        elif self.marker:
            self._choose_tag(str(step))
        elif members := _members(self.here):
            self._choose_branch(members, str(step))
        elif _is_settings(self.here):
            self._enter_settings(self.here, step, is_last=is_last)
        else:
            self._enter_collection(step)

    def _choose_tag(self, tag: str) -> None:
        marker, self.marker = self.marker, None
        self.here = registry.load(marker.kind, tag) if marker else None

    def _choose_branch(self, members: Sequence[object], label: str) -> None:
        self.unions = (*self.unions, (self.path, label))
        self.here = next((member for member in members if _is_labelled(member, label)), None)

    def _enter_settings(self, settings: type[BaseModel], step: str | int, *, is_last: bool) -> None:
        field = keys_of(settings).get(str(step))
        if field is None and not is_last and not _holds(self.value, step):
            return  # a label
        self._enter(step, field.annotation if field else None)
        self.owner = settings
        if field:
            self.marker = next((item for item in field.metadata if isinstance(item, OneOf)), None)
            self.has_default = not field.is_required()

    def _enter_collection(self, step: str | int) -> None:
        if _holds(self.value, step):
            self._enter(step, _item(self.here, step))

    def _enter(self, step: str | int, annotation: object) -> None:
        self.path = (*self.path, step)
        self.marker = None
        self.value = _inside(self.value, step)
        self.here = annotation
        self.owner = None
        self.has_default = False


def _is_settings(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _members(annotation: object) -> list[object]:
    if get_origin(annotation) not in (Union, types.UnionType):
        return []
    return [member for member in get_args(annotation) if member is not type(None)]


def _is_labelled(member: object, label: str) -> bool:
    """Does pydantic call this *member* of a union *label*? (Where it is wrong, the data decides.)"""
    walk = _Walk(member, None)
    walk.unwrap()
    if walk.marker:
        return label.startswith("function-wrap[one_of()")  # what `OneOf` calls it
    if _is_settings(walk.here):
        return re.sub(r"^(function-\w+\[.*?\(\), )*", "", label).rstrip("]") == walk.here.__name__
    origin = get_origin(walk.here)
    return isinstance(origin, type) and label.startswith(f"{origin.__name__}[")


def _item(collection: object, step: str | int) -> object:
    """The annotation of one item of an annotated list, tuple or dict."""
    arguments = get_args(collection)
    origin = get_origin(collection)
    if not arguments or not isinstance(origin, type):
        return None
    if issubclass(origin, Mapping):
        return arguments[-1]
    if origin is tuple and Ellipsis not in arguments and isinstance(step, int):
        return arguments[min(step, len(arguments) - 1)]
    return arguments[0]


def _length(collection: object) -> int | None:
    """The number of items of an annotated tuple, if it is always the same."""
    arguments = get_args(collection)
    return len(arguments) if get_origin(collection) is tuple and Ellipsis not in arguments else None


def _holds(value: object, step: str | int) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)


def _inside(value: Any, step: str | int) -> object:
    return value[step] if _holds(value, step) else None
