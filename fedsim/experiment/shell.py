"""Commands for people to copy: words as a shell takes them, and as a terminal can show them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

__all__ = ["command_line"]


def command_line(words: Iterable[str]) -> str:
    r"""The *words* of a command, quoted where that is needed; what cannot be printed is escaped (POSIX 2024, 2.2.4).

    >>> print(command_line(["fedsim", "run", "my plant.yaml", "--out", "a\nb"]))
    fedsim run 'my plant.yaml' --out $'a\x0ab'
    """
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    plain = bytes(byte for byte in range(0x20, 0x7F) if byte not in b"'\\")
    return "$'" + "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in os.fsencode(word)) + "'"
