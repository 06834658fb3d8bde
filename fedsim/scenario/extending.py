"""``extends: other.yaml``: a scenario is another one in the same folder, with some keys of its own.

Mappings are laid over each other key by key, unless they name different things: ``{name: femnist}`` over ``{name:
glyphs}`` begins anew, and so does ``{path: my_data.py:Mine}``. Everything else, lists too, is replaced. Errors are told
with the file that the value stands in.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from fedsim.errors import UserError, nearest
from fedsim.scenario.document import Document, Mark, SourceLocations
from fedsim.scenario.scalars import kind_of, message_line, show
from fedsim.scenario.yaml_reader import read_yaml

__all__ = ["KEY", "read_extended"]

KEY = "extends"
MOST = 10
"""Files that may stand behind each other."""
MOST_COMPARED = 1_000
"""Names of files that are looked through for the one that was meant."""


def read_extended(path: Path) -> Document:
    """The document in *path*, laid over those that it extends, one after the other.

    Raises `UserError` when one of them cannot be read, stands elsewhere, or extends itself.
    """
    layers = [read_yaml(path)]
    while KEY in layers[-1].data:
        layers.append(read_yaml(_named(layers[-1], [Path(layer.source) for layer in layers])))
    document = layers.pop()
    while layers:
        document = _laid_over(document, layers.pop())
    return document


def _named(document: Document, before: list[Path]) -> Path:
    """The file that *document* extends."""
    name = document.data[KEY]
    where = document.where((KEY,))

    def refusal(problem: str) -> UserError:
        return UserError(message_line(f"{where}: {KEY}: {problem}"))

    if not isinstance(name, str):
        raise refusal(f"{kind_of(name)} ({show(name)}) is no file name")
    if not name or Path(name).name != name:
        raise refusal(f"{show(name)} must be the name of a file in the same folder, without a way to it")
    path = Path(document.source).with_name(name)
    if path in before:
        raise refusal(f"{show(name)} is the scenario itself, or extends it")
    if len(before) > MOST:
        raise refusal(f"more than {MOST} files stand behind each other")
    if not os.path.isfile(path):  # unlike Path.is_file, False also for what is no name of a file
        beside = sorted(other.name for other in path.parent.glob("*.y*ml"))[:MOST_COMPARED]
        raise refusal(f"{show(name)} is no file beside it{nearest(name, beside)}")
    return path


def _laid_over(below: Document, above: Document) -> Document:
    own = {key: value for key, value in above.data.items() if key != KEY}
    root = _from(below.source, below.locations.root)
    data, mark = _merged_mappings(below.data, root, own, above.locations.root)
    return replace(above, data=data, locations=SourceLocations(mark))


def _from(source: str | None, mark: Mark) -> Mark:
    """*mark* as one of the document *source*, unless it says where it is from."""
    return mark if mark.origin is not None else mark._replace(origin=source)


def _merged(below: object, below_mark: Mark, above: object, above_mark: Mark) -> tuple[object, Mark]:
    if isinstance(below, dict) and isinstance(above, dict) and _is_more_of(below, above):
        return _merged_mappings(below, below_mark, above, above_mark)
    return above, above_mark


def _is_more_of(below: dict[str, object], above: dict[str, object]) -> bool:
    """Whether *above* names no other thing than *below*."""
    is_key_of_a_name = {"name", "path"} <= below.keys() and "name" not in above
    return is_key_of_a_name or _thing(above) in (None, _thing(below))


def _thing(mapping: dict[str, object]) -> object:
    """What says which component it is: the name, or the path of a class."""
    path = mapping.get("path")
    return mapping.get("name", path if isinstance(path, str) and ":" in path else None)


def _merged_mappings(
    below: dict[str, object], below_mark: Mark, above: dict[str, object], above_mark: Mark
) -> tuple[dict[str, object], Mark]:
    data = dict(below)
    parts: dict[str | int, Mark] = {key: _from(below_mark.origin, mark) for key, mark in below_mark.parts.items()}
    for key, value in above.items():
        mark = above_mark.parts.get(key, above_mark)
        if key in below:
            value, mark = _merged(below[key], parts.get(key, below_mark), value, mark)
        data[key], parts[key] = value, mark
    return data, above_mark._replace(parts=parts)
