"""In which key two scenarios differ, as plain data."""

from __future__ import annotations

import json

from fedsim.scenario.document import KeyPath, dotted
from fedsim.scenario.scalars import show

__all__ = ["first_difference"]


def first_difference(there: object, here: object, *key: str) -> str | None:
    """The first key in which *here* differs from *there*, and its values; None when they are equal.

    Both stand under *key* in their scenarios.

    >>> first_difference({"epochs": 1}, {"epochs": 2}, "training")
    'training.epochs is 1 there and 2 here'
    """
    if _are_alike(there, here):
        return None
    path, old, new = _found(key, there, here)
    if old == new:
        return f"{dotted(path)} stands in another order there"
    return f"{dotted(path)} is {_shown(old)} there and {_shown(new)} here"


def _are_alike(there: object, here: object) -> bool:
    """Equal, and in the same order: sensors are numbered as they stand."""
    return json.dumps(there) == json.dumps(here)


def _shown(value: object) -> str:
    is_long = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    return f"a list of {len(value)}" if is_long and isinstance(value, list) else show(value)


def _found(path: KeyPath, there: object, here: object) -> tuple[KeyPath, object, object]:
    pairs: dict[str | int, tuple[object, object]] = {}
    if isinstance(there, dict) and isinstance(here, dict):
        pairs = {key: (there.get(key), here.get(key)) for key in {**here, **there}}
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = dict(enumerate(zip(there, here, strict=True)))
    for step, (old, new) in pairs.items():
        if not _are_alike(old, new):
            return _found((*path, step), old, new)
    return path, there, here
