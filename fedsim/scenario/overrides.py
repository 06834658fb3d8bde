"""``--set key.path=value`` on the command line changes one value of a scenario; the same spelling as in the file.

A path's segments are joined by points. In a list, a whole number is a position counted from 0, and any other segment is
an item's title in results (its `label`, or its `name` if it has none), or else its name: ``protocols.fedprox.mu=0.1``.
Keys that are not there yet are created; the settings decide whether they may be there. Left out: keys that contain a
point; adding items to a list (write the list).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fedsim.errors import UserError, nearest
from fedsim.scenario.document import Document, KeyPath, SourceLocation, dotted
from fedsim.scenario.scalars import kind_of, message_line, show, show_text
from fedsim.scenario.yaml_reader import YamlError, comment_in, parse_value

__all__ = ["apply", "path_of", "put", "refused_comment", "segments_of"]

MOST_TITLES = 10

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


def put(document: Document, key: str, value: object, origin: str) -> Document:
    """*document* with *value* at the path *key*, spelt as in ``--set``; messages say that *origin* has put it there.

    Raises `UserError` when the path leads nowhere.

    >>> from fedsim.scenario.yaml_reader import parse_yaml
    >>> put(parse_yaml("protocols: [{name: fedprox}]", "park.yaml"), "protocols.fedprox.mu", 0.1, "--vary mu=0.1").data
    {'protocols': [{'name': 'fedprox', 'mu': 0.1}]}
    """

    path = path_of(document, key, origin)
    data = _replaced(document.data, path, value)
    assert isinstance(data, dict)  # the path is not empty, so the root is only copied
    return Document(data, document.source, document.locations.replaced(path, SourceLocation(0, 0, origin)))


def path_of(document: Document, key: str, origin: str) -> KeyPath:
    """The path that *key* stands for, whichever way it is spelt.

    Raises `UserError` when it leads nowhere; messages say that *origin* has named it.

    >>> from fedsim.scenario.yaml_reader import parse_yaml
    >>> park = parse_yaml("protocols: [{name: fedprox}]", "park.yaml")
    >>> path_of(park, "protocols.fedprox.mu", "") == path_of(park, "protocols[0].mu", "")
    True
    """

    def refusal(problem: str) -> UserError:
        return UserError(message_line(f"{origin}: {problem}"))

    return _path(document.data, segments_of(key), refusal)


def segments_of(key: str) -> list[str]:
    """The segments of a path; ``protocols[0].mu``, as messages write it, is ``protocols.0.mu``."""
    return re.sub(r"\[(\d+)\]", r".\1", key.strip()).split(".")


def _applied(document: Document, assignment: str) -> Document:
    origin = f"--set {show_text(assignment)}"

    def refusal(problem: str) -> UserError:
        return UserError(message_line(f"{origin}: {problem}"))

    key, equals, text = assignment.partition("=")
    if not equals or not all(segments_of(key)):
        example = re.sub(r"^\s*([\w.\[\]-]+)\s*:\s*(\S.*)$", r"\1=\2", assignment) if ":" in key else assignment
        known = "for example training.epochs=2" if example == assignment else f"write {show_text(example)}"
        raise refusal(f"is not of the form key.path=value, {known}")
    if not text.strip():
        raise refusal("has no value; write null for none")
    try:
        value, _ = parse_value(text)
    except YamlError as error:
        raise refusal(f"the value is not YAML: {error.problem}") from error
    if (comment := comment_in(text)) is not None:
        raise refusal(refused_comment(comment))
    return put(document, key, value, origin)


def refused_comment(comment: str) -> str:
    """What to say of a *comment* in a value that was given in a command: without a word it would be lost."""
    return f"{show(comment)} is a comment in YAML, and would be left out; put quotes around a text that has a #"


def _path(data: object, segments: Sequence[str], refusal: _Refusal) -> KeyPath:
    """The steps that *segments* stand for; the last ones may lead through mappings that are still to be created."""
    path: KeyPath = ()
    for segment in segments:
        if isinstance(data, dict):
            path, data = (*path, segment), data.get(segment)
        elif isinstance(data, list):
            index = _index(data, segment, path, refusal)
            path, data = (*path, index), data[index]
        elif data is None and not segment.isdecimal():
            path = (*path, segment)
        elif data is None:
            raise refusal(f"{dotted(path)} is empty or missing and has no item {show_text(segment)}; write all of it")
        else:
            raise refusal(f"{dotted(path)} is {kind_of(data)} ({show(data)}) and has no keys")
    return path


def _index(items: list[object], segment: str, path: KeyPath, refusal: _Refusal) -> int:
    """The position that *segment* stands for: a position itself, a title in results, or else a name."""
    if re.fullmatch(r"-?[0-9]{1,18}", segment):
        index = int(segment)
        if not 0 <= index < len(items):
            known = f"positions 0 to {len(items) - 1}" if items else "no items"
            raise refusal(f"{dotted(path)} has {known}, and none at {index}")
        return index
    for key, called in (("title", _title), ("name", _name)):
        matches = [index for index, item in enumerate(items) if called(item) == segment]
        if len(matches) == 1:
            return matches[0]
        if matches:
            positions = " or ".join(".".join(map(str, (*path, index))) for index in matches)
            raise refusal(f"{dotted(path)} has {len(matches)} items with the {key} {show(segment)}; write {positions}")
    titles = list(dict.fromkeys(title for item in items if isinstance(title := _title(item), str)))
    known = ", ".join(map(show_text, titles[:MOST_TITLES])) or "none has a name"
    more = f" and {len(titles) - MOST_TITLES} more" if len(titles) > MOST_TITLES else ""
    raise refusal(
        f"{dotted(path)} has no item called {show(segment)}{nearest(show_text(segment), titles)}"
        f" (known: {known}{more}; or a position counted from 0)"
    )


def _name(item: object) -> object:
    """Of a class of one's own, what it is called where it stands."""
    return item.get("name", str(item.get("path", "")).rpartition(":")[2] or None) if isinstance(item, dict) else None


def _title(item: object) -> object:
    """What results call it."""
    return (item.get("label") or _name(item)) if isinstance(item, dict) else None


def _replaced(data: object, path: KeyPath, value: object) -> object:
    """*data* with *value* at *path*; only what lies on the path is copied, and mappings that are not there are made."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(data, dict) or data is None:
        inside = data or {}
        return {**inside, step: _replaced(inside.get(step), rest, value)}
    assert isinstance(data, list) and isinstance(step, int)  # `_path` has walked here
    return [*data[:step], _replaced(data[step], rest, value), *data[step + 1 :]]
