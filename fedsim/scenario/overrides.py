"""``--set key.path=value`` on the command line changes one value of a scenario; the same spelling as in the file.

A path's segments are joined by points. In a list, a whole number is a position counted from 0, and any other segment is
an item's `label`, or else its `name`: ``protocols.fedprox.mu=0.1``. A last key that is not there yet is created; the
settings decide whether it may be there. Left out: keys that contain a point; adding items to a list (write the list).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fedsim.errors import UserError, nearest
from fedsim.scenario.document import Document, KeyPath, Place, dotted
from fedsim.scenario.scalars import kind_of, show, show_text
from fedsim.scenario.yaml_reader import YamlError, parse_value

__all__ = ["apply"]

_Refusal = Callable[[str], UserError]


def apply(document: Document, assignments: Sequence[str]) -> Document:
    """*document* after the *assignments* ``key.path=value``, one after the other; the document itself stays as it is.

    Raises `UserError` when one has a wrong syntax or a path that leads nowhere.

    >>> from fedsim.scenario.yaml_reader import parse_yaml
    >>> document = parse_yaml("protocols: [{name: fedavg}, {name: fedprox, mu: 1}]", "park.yaml")
    >>> changed = apply(document, ["protocols.fedprox.mu=0.1"])
    >>> changed.data, changed.where(("protocols", 1, "mu"))
    ({'protocols': [{'name': 'fedavg'}, {'name': 'fedprox', 'mu': 0.1}]}, '--set protocols.fedprox.mu=0.1')
    """
    for assignment in assignments:
        document = _applied(document, assignment)
    return document


def _applied(document: Document, assignment: str) -> Document:
    origin = f"--set {show_text(assignment)}"

    def refusal(problem: str) -> UserError:
        return UserError(f"{origin}: {problem}")

    key, equals, text = assignment.partition("=")
    segments = re.sub(r"\[(\d+)\]", r".\1", key.strip()).split(".")  # protocols[0].mu, as messages write it
    if not equals or not all(segments):
        raise refusal("is not of the form key.path=value, for example training.epochs=2")
    if not text.strip():
        raise refusal("has no value; write null for none")
    try:
        value, _ = parse_value(text)
    except YamlError as error:
        raise refusal(f"the value is not YAML: {error.problem}") from error
    path = _path(document.data, segments, text.strip(), refusal)
    data = _replaced(document.data, path, value)
    assert isinstance(data, dict)  # the path is not empty, so the root is only copied
    return Document(data, document.source, document.places.replaced(path, Place(0, 0, origin)))


def _path(data: object, segments: Sequence[str], text: str, refusal: _Refusal) -> KeyPath:
    path: KeyPath = ()
    for position, segment in enumerate(segments):
        is_last = position == len(segments) - 1
        if isinstance(data, dict):
            if segment not in data and not is_last:
                near, add = nearest(show_text(segment), data), _whole_mapping(segments, position + 1, text)
                raise refusal(f"there is no key {dotted((*path, segment))}{near}{add}")
            path, data = (*path, segment), data.get(segment)
        elif isinstance(data, list):
            index = _index(data, segment, path, refusal)
            path, data = (*path, index), data[index]
        else:
            fill = _whole_mapping(segments, position, text) if data is None else ""
            raise refusal(f"{dotted(path)} is {kind_of(data)} ({show(data)}) and has no keys{fill}")
    return path


def _whole_mapping(segments: Sequence[str], position: int, text: str) -> str:
    """The way to write a mapping whose first key is ``segments[position]``, when there is none to add a key to."""
    inner = segments[position:]
    if any(segment.isdecimal() for segment in inner):
        return ""
    mapping = "".join(f"{{{segment}: " for segment in inner) + text + "}" * len(inner)
    return f"; to add it: --set '{show_text('.'.join(segments[:position]) + '=' + mapping)}'"


def _index(items: list[object], segment: str, path: KeyPath, refusal: _Refusal) -> int:
    if re.fullmatch(r"-?[0-9]{1,18}", segment):
        index = int(segment)
        if not 0 <= index < len(items):
            known = f"positions 0 to {len(items) - 1}" if items else "no items"
            raise refusal(f"{dotted(path)} has {known}, and none at {index}")
        return index
    for key in ("label", "name"):
        called = [item.get(key) if isinstance(item, dict) else None for item in items]
        matches = [index for index, name in enumerate(called) if name == segment]
        if len(matches) == 1:
            return matches[0]
        if matches:
            positions = " or ".join(f"{dotted((*path, index))}" for index in matches)
            raise refusal(f"{dotted(path)} has {len(matches)} items with the {key} {show(segment)}; write {positions}")
    names = [str(item[key]) for item in items if isinstance(item, dict) for key in ("label", "name") if key in item]
    known = ", ".join(names) or "none has a name"
    raise refusal(
        f"{dotted(path)} has no item called {show(segment)}{nearest(show_text(segment), names)}"
        f" (known: {show_text(known)}; or a position counted from 0)"
    )


def _replaced(data: object, path: KeyPath, value: object) -> object:
    """*data* with *value* at *path*; only what lies on the path is copied."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(data, dict):
        return {**data, step: _replaced(data.get(step), rest, value)}
    assert isinstance(data, list) and isinstance(step, int)  # `_path` has walked here
    return [*data[:step], _replaced(data[step], rest, value), *data[step + 1 :]]
