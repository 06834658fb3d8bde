"""Plain data becomes a YAML file that `yaml_reader` reads back, or is refused before anything of it is written.

The data are mappings with text keys, lists, text, numbers, truth values and None. They become parsing events one by
one, as they are made of such by `composer`, so that a large scenario takes little memory. What other tools would read
as something else (YAML 1.1: ``on``, ``1:30``) is quoted too. Left out: comments, anchors and every other kind of data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from io import StringIO
from typing import Any

import yaml

from fedsim.errors import Misfit
from fedsim.scenario.composer import MAX_ENTRIES, MAX_KEY, MAX_TEXT, MAX_VALUES, UNUSABLE
from fedsim.scenario.document import KeyPath
from fedsim.scenario.scalars import scalar, show
from fedsim.scenario.yaml_reader import MAX_FILE_BYTES

__all__ = ["OneLine", "yaml_text"]

WIDTH = 110
FEWER = "describe it by fewer entries, such as one with a count for all sensors that are alike"

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_RESOLVER: Any = yaml.resolver.Resolver()
_TEXT_TAG = "tag:yaml.org,2002:str"


class OneLine(dict[str, object]):
    """A mapping that is written on one line, as are the lists and mappings in it."""


def yaml_text(data: Mapping[str, object]) -> str:
    """*data* as YAML.

    Raises `Misfit` about the key whose value is larger than `parse_yaml` and `read_yaml` take it, or no text to them.

    >>> print(yaml_text({"name": "1e6", "seeds": [1, 2], "nodes": {"cam": OneLine(kind="sensor", count=3)}}), end="")
    name: '1e6'
    seeds:
    - 1
    - 2
    nodes:
      cam: {kind: sensor, count: 3}
    """
    stream = StringIO()
    dumper = _DUMPER(stream, allow_unicode=True, width=WIDTH)
    try:
        _Emitter(dumper.emit).document(data)
    finally:
        dumper.dispose()
    text = stream.getvalue()
    if (size_bytes := len(text.encode())) > MAX_FILE_BYTES:
        largest = max(data, key=lambda key: len(str(data[key])))
        problem = f"makes a file of {size_bytes / 1e6:g} MB, and at most {MAX_FILE_BYTES / 1e6:g} MB are read back"
        raise Misfit(f"{problem}; {FEWER}", largest)
    return text


class _Emitter:
    """Emits the parsing events of one document, and counts what it consists of."""

    def __init__(self, emit: Callable[[yaml.Event], None]) -> None:
        self._emit = emit
        self._values = 0

    def document(self, data: Mapping[str, object]) -> None:
        self._emit(yaml.StreamStartEvent())
        self._emit(yaml.DocumentStartEvent(explicit=False))
        self._value((), data, flow=False)
        self._emit(yaml.DocumentEndEvent(explicit=False))
        self._emit(yaml.StreamEndEvent())

    def _value(self, path: KeyPath, value: object, *, flow: bool) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise Misfit(f"has too many values, as of all at most {MAX_VALUES} are read back; {FEWER}", *path[:1])
        if isinstance(value, str):
            self._emit(_text(path, value, MAX_TEXT))
        elif isinstance(value, dict):
            _check_collection(path, value)
            flow = flow or isinstance(value, OneLine)
            self._emit(yaml.MappingStartEvent(None, None, True, flow_style=flow))
            for key, item in value.items():
                inside = (*path, key)
                self._emit(_text(inside, key, MAX_KEY))
                self._value(inside, item, flow=flow)
            self._emit(yaml.MappingEndEvent())
        elif isinstance(value, list):
            _check_collection(path, value)
            self._emit(yaml.SequenceStartEvent(None, None, True, flow_style=flow))
            for position, item in enumerate(value):
                self._value((*path, position), item, flow=flow)
            self._emit(yaml.SequenceEndEvent())
        else:
            self._emit(yaml.ScalarEvent(None, None, (True, True), _plain(value)))


def _check_collection(path: KeyPath, value: dict[str, object] | list[object]) -> None:
    if len(value) > MAX_ENTRIES:
        raise Misfit(f"has {len(value)} entries, and at most {MAX_ENTRIES} are read back; {FEWER}", *path)


def _text(path: KeyPath, text: str, longest: int) -> yaml.ScalarEvent:
    if UNUSABLE.search(text):
        problem = f"{show(text)} holds a null character or half a character (a byte that is no UTF-8), and no text can"
        raise Misfit(f"{problem}; rename it", *path)
    if len(text) > longest:
        raise Misfit(f"{show(text)} has {len(text)} characters, and at most {longest} are read back; cut it", *path)
    style = _style(text)
    return yaml.ScalarEvent(None, None, (style is None, True), text, style=style)


@lru_cache(maxsize=1_000)  # a few words make up most of a large file
def _style(text: str) -> str | None:
    """The quotes that *text* needs, if any."""
    return None if _is_plain(text) else "'" if text.replace("\n", "").isprintable() else '"'


def _is_plain(text: str) -> bool:
    """Whether it is text for YAML 1.2 and YAML 1.1 without quotes; the emitter sees to the rest, such as brackets."""
    if not text.replace("\n", "").isprintable():
        return False
    try:
        return bool(scalar(text) == text and _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT_TAG)
    except ValueError:
        return False


def _plain(value: object) -> str:
    """A number, a truth value or None; numbers with an exponent get the point that YAML 1.1 wants.

    >>> [_plain(value) for value in (None, True, 12, 1e-7, float("inf"))]
    ['null', 'true', '12', '1.0e-07', '.inf']
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    assert isinstance(value, int | float), value
    text = repr(value)
    if text.lstrip("-") in ("inf", "nan"):
        return text.replace("inf", ".inf").replace("nan", ".nan")
    return text if "." in text else text.replace("e", ".0e")
