"""A scenario file is YAML 1.2: one mapping with text keys, read into plain data that remembers its places.

Source: YAML 1.2.2, core schema (see `scalars`). PyYAML only parses; its events are put together by `composer`, because
duplicate keys, tags and cyclic or exploding aliases must be refused, and ``on`` must stay text.
Left out: tags, merge keys, keys that are not text, several documents in a file.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from fedsim.errors import UserError
from fedsim.files import read_text_file, shown
from fedsim.quick import check_work
from fedsim.scenario.composer import Composer, YamlError
from fedsim.scenario.document import Document, Mark, SourceLocation, SourceLocations
from fedsim.scenario.scalars import kind_of, message_line

__all__ = ["MAX_FILE_BYTES", "YamlError", "comment_in", "parse_value", "parse_yaml", "read_yaml"]

MAX_FILE_BYTES = 20_000_000
MOST_BYTES_IN_SECONDS = 6_000_000
"""100,000 devices, each attached to a base station, are 5.1 MB."""

_HANDS = {  # what PyYAML says -> what is mostly the reason
    "did not find expected key": "keys of one mapping begin in the same column",
    "did not find expected '-' indicator": "items of one list begin in the same column",
    "could not find expected ':'": "write key: value, with a space after the colon",
    "mapping values are not allowed": "text with a colon goes into quotes, '- ' has a space behind it, and keys of one "
    "mapping begin in the same column",
    "found unexpected end of stream": "close the quotes",
    "did not find expected ',' or '}'": "close the brace with }, and put commas between its keys",
    "did not find expected ',' or ']'": "close the bracket with ], and put commas between its items",
}

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # YAML 1.2.2, 5.1


def read_yaml(path: Path, *, holds: str = "a scenario") -> Document:
    """The scenario, or whatever else the file *path* *holds*.

    Raises `UserError` naming file, line and column when it cannot be read or is not a mapping in YAML 1.2.
    """
    text = read_text_file(path, what="a YAML file", most_bytes=MAX_FILE_BYTES)
    check_work(len(text) / 1e6, MOST_BYTES_IN_SECONDS / 1e6, "MB of YAML (JSON is read faster)", shown(path))
    return parse_yaml(text, str(path), holds=holds)


def parse_yaml(text: str, source: str, *, holds: str = "a scenario") -> Document:
    """The scenario (or whatever it *holds*) written in *text*; *source* is its path, which messages name.

    Raises `UserError` naming source, line and column when it is not a mapping in YAML 1.2.

    >>> document = parse_yaml("name: park\\nseeds: [1, 2]", "park.yaml")
    >>> document.data, document.where(("seeds", 1))
    ({'name': 'park', 'seeds': [1, 2]}, 'park.yaml:2')
    """
    try:
        data, mark = parse_value(text)
        if not isinstance(data, dict):
            raise YamlError(
                SourceLocation(mark.line, mark.column), f"{holds} is a mapping (key: value); this is {kind_of(data)}"
            )
    except YamlError as error:
        location = f"{source}:{error.location.line}:{error.location.column}"
        raise UserError(message_line(f"{location}: {error.problem}")) from error
    return Document(data, source, SourceLocations(mark))


def parse_value(text: str) -> tuple[object, Mark]:
    """Any one value written in *text* (None if there is none), and its mark. Raises `YamlError`."""
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        start = unprintable.start()
        location = SourceLocation(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
        raise YamlError(
            location, f"the character U+{ord(unprintable[0]):04X} cannot stand in YAML; is this a text file?"
        )
    composer = Composer()
    try:
        with _no_collection():
            for event in _events(text):
                composer.take(event)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter: PyYAML's own chr() of an escape
        raise _syntax_error(error, text) from error
    return composer.result()


def comment_in(text: str, *, items: bool = False) -> str | None:
    """The comment that ends the one line *text* of YAML, a value or the *items* of a list; None when there is none.

    In one line it was mostly meant as a part of the value. Several lines are a piece of a file, with its comments.

    >>> comment_in("a #b"), comment_in("'a #b'"), comment_in("[1], #b", items=True)
    ('#b', None, '#b')
    """
    if "#" not in text or len(text.splitlines()) > 1:
        return None
    whole = f"[{text}\n]" if items else text
    marks = ((each.start_mark, each.end_mark) for each in _events(whole) if isinstance(each, yaml.ScalarEvent))
    inside = [(first.index, end.index) for first, end in marks if first and end]
    signs = (found.start() for found in re.finditer("#", whole))
    start = next((sign for sign in signs if not any(first <= sign < end for first, end in inside)), None)
    return None if start is None else whole[start:].partition("\n")[0].strip()


def _events(text: str) -> Iterator[yaml.Event]:
    parser = _LOADER(text)
    try:
        while event := parser.get_event():
            yield event
    finally:
        parser.dispose()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing that is composed is garbage, and looking for some would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _syntax_error(error: Exception, text: str) -> YamlError:
    if not isinstance(error, yaml.MarkedYAMLError) or not error.problem_mark:
        return YamlError(SourceLocation(1, 1), " ".join(str(error).split()))
    location = SourceLocation(error.problem_mark.line + 1, error.problem_mark.column + 1)
    problem = " ".join((error.problem or "the YAML cannot be read").split())
    if error.context and error.context_mark and error.context_mark.line + 1 != location.line:
        problem += f" ({error.context} that starts in line {error.context_mark.line + 1})"
    hand = _hand(problem, text, location)
    return YamlError(location, f"{problem}; {hand}" if hand else problem)


def _hand(problem: str, text: str, location: SourceLocation) -> str:
    """What mostly leads to what PyYAML found at *location*."""
    lines = text.split("\n", location.line)
    line = lines[location.line - 1] if len(lines) >= location.line else ""
    before, here = line[: location.column - 1], line[location.column - 1 : location.column]
    if here == "\t":
        return "YAML indents with spaces, not with tabs"
    if problem.startswith("did not find expected key") and (before.strip() or here in ("]", "}")):
        return ""  # it is not about indentation
    return next((hand for words, hand in _HANDS.items() if problem.startswith(words)), "")
