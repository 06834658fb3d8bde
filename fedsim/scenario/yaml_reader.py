"""A scenario file is YAML 1.2: one mapping with text keys, read into plain data that remembers its places.

Source: YAML 1.2.2, core schema (see `scalars`). PyYAML only parses; its events are put together by `composer`, because
duplicate keys, tags and cyclic or exploding aliases must be refused, and ``on`` must stay text.
Left out: tags, merge keys, keys that are not text, several documents in a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from fedsim.errors import UserError, nearest
from fedsim.scenario.composer import Composer, YamlError
from fedsim.scenario.document import Document, KeyPath, Mark, Place, Places
from fedsim.scenario.scalars import kind_of

__all__ = ["Document", "KeyPath", "Mark", "Place", "YamlError", "parse_value", "parse_yaml", "read_text", "read_yaml"]

MAX_FILE_BYTES = 10_000_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # YAML 1.2.2, 5.1


def read_yaml(path: Path, *, holds: str = "a scenario") -> Document:
    """The scenario, or whatever else the file *path* *holds*.

    Raises `UserError` naming file, line and column when it cannot be read or is not a mapping in YAML 1.2.
    """
    return parse_yaml(read_text(path, "a YAML file", MAX_FILE_BYTES), str(path), holds=holds)


def read_text(path: Path, kind: str, most_bytes: int = -1) -> str:
    """The text of the file *path*, which messages call *kind*. Raises `UserError` when it is none that can be read."""
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1 if most_bytes >= 0 else -1)
    except FileNotFoundError as error:
        raise UserError(_missing(path)) from error
    except IsADirectoryError as error:
        inside = path / "scenario.yaml"
        hand = f"; did you mean {str(inside)!r}?" if inside.is_file() else ""
        raise UserError(f"{path}: is a folder; the path of {kind} is needed{hand}") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if 0 <= most_bytes < len(content):
        raise UserError(
            f"{path}: is too large: a scenario is at most {most_bytes // 10**6} MB; put data into another file"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}:{line}: is not UTF-8 text (byte 0x{content[error.start]:02x}); save the file as UTF-8"
        ) from error


def _missing(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"{path}: there is no such file, and no folder {str(folder)!r}"
    try:
        siblings = [sibling.name for sibling in folder.iterdir()]
    except OSError:
        siblings = []
    return f"{path}: there is no such file{nearest(path.name, siblings)}"


def parse_yaml(text: str, source: str, *, holds: str = "a scenario") -> Document:
    """The scenario (or whatever it *holds*) written in *text*; *source* names it in messages.

    Raises `UserError` naming source, line and column when it is not a mapping in YAML 1.2.

    >>> document = parse_yaml("name: park\\nseeds: [1, 2]", "park.yaml")
    >>> document.data, document.where(("seeds", 1))
    ({'name': 'park', 'seeds': [1, 2]}, 'park.yaml:2')
    """
    try:
        data, mark = parse_value(text.removeprefix("\ufeff"))
        if not isinstance(data, dict):
            raise YamlError(mark.place, f"{holds} is a mapping (key: value); this is {kind_of(data)}")
    except YamlError as error:
        raise UserError(f"{source}:{error.place.line}:{error.place.column}: {error.problem}") from error
    return Document(data, source, Places(mark))


def parse_value(text: str) -> tuple[object, Mark]:
    """Any one value written in *text* (None if there is none), and its mark. Raises `YamlError`."""
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        start = unprintable.start()
        place = Place(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
        raise YamlError(place, f"the character U+{ord(unprintable[0]):04X} cannot stand in YAML; is this a text file?")
    composer = Composer()
    try:
        for event in _events(text):
            composer.take(event)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter: PyYAML's own chr() of an escape
        raise _syntax_error(error, text) from error
    return composer.result()


def _events(text: str) -> Iterator[yaml.Event]:
    parser = _LOADER(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    finally:
        parser.dispose()


def _syntax_error(error: Exception, text: str) -> YamlError:
    if not isinstance(error, yaml.MarkedYAMLError) or not error.problem_mark:
        return YamlError(Place(1, 1), " ".join(str(error).split()))
    place = Place(error.problem_mark.line + 1, error.problem_mark.column + 1)
    problem = " ".join((error.problem or "the YAML cannot be read").split())
    if error.context and error.context_mark and error.context_mark.line + 1 != place.line:
        problem += f" ({error.context} that starts in line {error.context_mark.line + 1})"
    lines = text.split("\n", place.line)
    if len(lines) >= place.line and lines[place.line - 1][place.column - 1 : place.column] == "\t":
        problem += "; YAML indents with spaces, not with tabs"
    return YamlError(place, problem)
