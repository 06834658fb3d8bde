"""What a store writes down, with a digest each, so that no value that has changed since becomes a result.

Tensors are plain safetensors, which any reader opens; the digest stands in their metadata. A digest covers a value's
name too: a file in the place of another one is as wrong as one of other bytes. Left out: who wrote a value. A digest is
no signature.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedsim.learning.operations.operation import Value

__all__ = [
    "NAME",
    "Damaged",
    "Index",
    "check_tensors",
    "index_bytes",
    "metrics_line",
    "read_index",
    "read_metrics",
    "with_digest",
]

NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{8}-[^/\0]+")
"""A value's name: its key, its plan and which output it is."""
_as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Damaged(Exception):
    """Not what was written: says what is wrong, in words that follow the file's name."""


# -- tensors ----------------------------------------------------------------------------------------------------------


def with_digest(name: str, content: bytes) -> tuple[bytes, memoryview]:
    """The safetensors bytes *content*, with a digest under *name*: a new beginning and the tensors, not copied."""
    header, data = _taken_apart(content)
    header["__metadata__"] = {"digest": _digest_of_tensors(name, header, data)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text, data


def check_tensors(name: str, content: bytes) -> None:
    """Raise `Damaged` unless *content* is what `with_digest` has made under *name*."""
    try:
        header, data = _taken_apart(content)
        found = header.pop("__metadata__")["digest"]
        fits = found == _digest_of_tensors(name, header, data)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise Damaged("is no safetensors file with a digest") from None
    if not fits:
        raise Damaged("does not fit its digest")


def _taken_apart(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """The header of safetensors, and the bytes of all tensors."""
    begin = 8 + int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8:begin])
    return header, memoryview(content)[begin:]


def _digest_of_tensors(name: str, header: Mapping[str, Any], data: memoryview) -> str:
    tensors = [(tensor, entry["dtype"], entry["shape"], entry["data_offsets"]) for tensor, entry in header.items()]
    tensors.sort(key=lambda tensor: tensor[0])
    made = hashlib.blake2b(_as_text([name, [tensor[:3] for tensor in tensors]]).encode(), digest_size=16)
    for *_, (begin, end) in tensors:
        made.update(data[begin:end])
    return made.hexdigest()


# -- lines of metrics -------------------------------------------------------------------------------------------------


def metrics_line(name: str, metrics: Value) -> dict[str, Any]:
    """The row that keeps the *metrics* called *name*."""
    return {"key": name, "value": metrics, "digest": _digest([name, metrics])}


def read_metrics(line: bytes) -> tuple[str, Value]:
    """The name and the metrics in a line. Raises `Damaged` when there are none."""
    row = _row(line)
    name, metrics = row.get("key"), row.get("value")
    _check_digest(row.get("digest"), [name, metrics])
    return str(name), metrics


# -- the index --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Index:
    """The tensors that a run needs, by label."""

    frontiers: dict[str, list[str]] = field(default_factory=dict)
    """Names of what a label can go on from."""
    finals: dict[str, dict[str, str]] = field(default_factory=dict)
    """Part -> name, of the models at the end."""

    @property
    def names(self) -> set[str]:
        """All names in it."""
        return {name for frontier in self.frontiers.values() for name in frontier}.union(
            *(parts.values() for parts in self.finals.values())
        )


def index_bytes(run: str, index: Index) -> bytes:
    """The file of a run's index."""
    content = {"frontiers": index.frontiers, "finals": index.finals}
    return json.dumps({"digest": _digest([run, content]), **content}, indent=1, sort_keys=True).encode()


def read_index(run: str, content: bytes) -> Index:
    """The index of the run called *run*. Raises `Damaged` when *content* is none."""
    row = _row(content)
    _check_digest(row.pop("digest", None), [run, row])
    return Index(**row)


def _row(text: bytes) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise Damaged("is no JSON with a digest")
    return row


def _check_digest(found: object, content: object) -> None:
    if found != _digest(content):
        raise Damaged("does not fit its digest")


def _digest(content: object) -> str:
    return hashlib.blake2b(_as_text(content).encode(), digest_size=16).hexdigest()
