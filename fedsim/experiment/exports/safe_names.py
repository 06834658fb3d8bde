"""Names that users chose, as names of files and folders: safe on every file system, and different where they are."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

__all__ = ["file_names"]

MOST_BYTES = 120
_ALSO_SAFE = frozenset("-_+,() .")


def file_names(names: Iterable[str]) -> dict[str, str]:
    r"""A file's name for each of *names*, which are to stand in one folder.

    Letters, digits and some signs stay. A slash becomes ``~``, and anything else the bytes of its UTF-8 in hexadecimal,
    each behind ``%``. Where that is too long, or where two would differ in capitals only, a digest is behind ``=``.

    >>> file_names(["fedavg", "runs/a", "..", "50 %", "<b>", "Z\u00fcrich"])
    {'fedavg': 'fedavg', 'runs/a': 'runs~a', '..': '%2E%2E', '50 %': '50 %25', '<b>': '%3Cb%3E', 'Zürich': 'Zürich'}
    >>> list(file_names(["FedAvg", "fedavg"]).values())
    ['FedAvg=c6ec1b45b90b0c57', 'fedavg=093126d47a689c67']
    """
    encoded = {name: _encoded(name) for name in names}
    alike = Counter(code.casefold() for code in encoded.values())
    return {
        name: code if alike[code.casefold()] == 1 and len(code.encode()) <= MOST_BYTES else _with_digest(code, name)
        for name, code in encoded.items()
    }


def _encoded(name: str) -> str:
    inner = name.strip(". ")  # at an end, a file system may hide or drop these
    start = name.find(inner)
    plain = range(start, start + len(inner))
    return "".join(_one(letter, plain=at in plain) for at, letter in enumerate(name)) or "%"


def _one(letter: str, *, plain: bool) -> str:
    if letter == "/":
        return "~"
    if plain and (letter.isalnum() or letter in _ALSO_SAFE):
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _with_digest(code: str, name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    short = code.encode()[: MOST_BYTES - 17].decode(errors="ignore")
    return f"{short}={digest}"
