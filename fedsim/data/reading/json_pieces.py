"""JSON text (RFC 8259) piece by piece: Python's objects of a whole text take many times its memory.

A reader goes through the text once, from front to back. Python's own `json` reads each value that is asked for whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["JsonPieces"]

_BLANK = re.compile(r"[ \t\n\r]*")


class JsonPieces:
    """A place in a JSON text. Each method raises `ValueError` for what is no JSON, or cut short.

    >>> pieces = JsonPieces('{"a": [1, [2]], "b": {}}')
    >>> [(name, [pieces.value() for _ in pieces.items()] if name == "a" else pieces.value()) for name in pieces.names()]
    [('a', [1, [2]]), ('b', {})]
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder()
        self._at = 0
        self._skip_blank()

    @property
    def begins(self) -> str:
        """The first character of the value that comes next: ``{`` of an object, ``[`` of an array; "" at the end."""
        return self._text[self._at : self._at + 1]

    def value(self) -> Any:
        """The value that comes next, whole."""
        value, self._at = self._decoder.raw_decode(self._text, self._at)
        self._skip_blank()
        return value

    def names(self) -> Iterator[str]:
        """Those in the object that comes next; after each, its value must be taken."""
        for _ in self._members("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise self._error("Expecting a name in double quotes before this place")
            self._take(":")
            yield name

    def items(self) -> Iterator[None]:
        """One turn for each item of the array that comes next, in which it must be taken."""
        yield from self._members("[", "]")

    def end(self) -> None:
        """Nothing but blanks may come."""
        if self.begins:
            raise self._error("Extra data")

    def _members(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self.begins != closing:
            yield
            while self.begins != closing:
                self._take(",")
                yield
        self._take(closing)

    def _take(self, character: str) -> None:
        if self.begins != character:
            raise self._error(f"Expecting {character!r}")
        self._at += 1
        self._skip_blank()

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        assert blank is not None  # it may be empty
        self._at = blank.end()

    def _error(self, problem: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(problem, self._text, self._at)
