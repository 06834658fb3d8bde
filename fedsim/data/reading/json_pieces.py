"""A JSON text (RFC 8259) that is read piece by piece, so that of a large one only a small part is ever in memory.

Whoever reads steps into the objects and lists that are large, and takes all others as `json` reads them. Left out: a
single value of more than 8 million characters.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

__all__ = ["LONGEST", "JsonPieces"]

LONGEST = 8_000_000
"""Characters of what is taken at once: what they say takes up to 30 times the memory."""
BLANK = " \t\n\r"
BLANKS = re.compile(f"[{BLANK}]*")
TAIL = "e-1"
"""So much must follow what may be a number, or it may go on."""
LONGEST_BEGINNING = 4  # bytes that tell the encoding


class JsonPieces:
    """The text in *pieces*, and the place up to which it has been read.

    All methods raise `ValueError` for what is no JSON text, and `RecursionError` for what is nested too deep.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = _decoded(pieces)
        self._decode = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._before = 0
        """Characters before ``_text``."""

    def peek(self) -> str:
        """The next character that is not blank; nothing at the end."""
        while (character := self._text[self._at : self._at + 1]) in BLANK:  # nothing is in it, too
            blanks = BLANKS.match(self._text, self._at)
            assert blanks is not None, "it matches nothing too"
            self._at = blanks.end()
            if self._at == len(self._text) and not self._more():
                return ""
        return character

    def value(self) -> Any:
        """The next value, whole, as `json` reads it."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > LONGEST:
                    raise ValueError(f"{error.msg}, or more than {LONGEST} characters in one value") from error
                if not self._more():
                    raise ValueError(f"{error.msg} at character {self._before + error.pos}") from error
            else:
                if end + len(TAIL) <= len(self._text) or not self._more():
                    self._at = end
                    return value

    def upcoming(self, closing: str) -> str:
        """What stands before the next *closing*; nothing when that is not among what has been read from the source."""
        self.peek()
        end = self._text.find(closing, self._at)
        return self._text[self._at : max(end, self._at)]

    def skip(self, characters: int) -> None:
        """So many *characters* of what is `upcoming`, and what closes it, are no longer needed."""
        self._at += characters

    def names(self) -> Iterator[str]:
        """The names in the next value, an object; each one's value must be read before the next name is asked for."""
        for _ in self._parts("{", "}"):
            if self.peek() != '"':
                raise self._wrong("a name in double quotes")
            name = self.value()
            self._take(":")
            yield name

    def items(self) -> Iterator[None]:
        """Once for each item of the next value, a list; it must be read before the next one is asked for."""
        return self._parts("[", "]")

    def end(self) -> None:
        """There must be nothing more."""
        if self.peek():
            raise self._wrong("the end")

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self.peek() == closing:
            self._at += 1
            return
        found = ","
        while found == ",":
            yield
            found = self.peek()
            if found not in (",", closing):
                raise self._wrong(f"',' or {closing!r}")
            self._at += 1

    def _take(self, character: str) -> None:
        if self.peek() != character:
            raise self._wrong(repr(character))
        self._at += 1

    def _wrong(self, expected: str) -> ValueError:
        return ValueError(f"Expecting {expected} at character {self._before + self._at}")

    def _more(self) -> bool:
        """Twice as much text as is unread, if there is more; what has been read is left behind."""
        unread = self._text[self._at :]
        more: list[str] = []
        while sum(map(len, more)) <= len(unread) and (piece := next(self._pieces, "")):
            more.append(piece)
        if more:
            self._before += self._at
            self._text = "".join([unread, *more])
            self._at = 0
        return bool(more)


def _decoded(pieces: Iterable[bytes]) -> Iterator[str]:
    """The text of *pieces*, in the encoding that its first bytes tell, as `json` does."""
    pieces = iter(pieces)
    first = next(pieces, b"")
    decode = codecs.getincrementaldecoder(json.detect_encoding(first[:LONGEST_BEGINNING]))("surrogatepass").decode
    for piece in chain([first], pieces):
        if text := decode(piece):
            yield text
    if text := decode(b"", True):
        yield text
