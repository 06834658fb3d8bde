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
from itertools import pairwise
from typing import Any

from fedsim.learning.operations.evaluate import METRICS, MOST_CLASSES_COUNTED
from fedsim.learning.operations.operation import Value

__all__ = [
    "NAME",
    "Damaged",
    "Impossible",
    "Index",
    "check_tensors",
    "index_bytes",
    "metrics_line",
    "read_index",
    "read_metrics",
    "with_digest",
]

ROUNDING = 1e-9  # of a mean of clients' accuracies
MOST_SAMPLES = 2**53  # that a float counts
NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{8}-[^/\0]+")
"""A value's name: its key, its plan and which output it is."""
_as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Damaged(Exception):
    """Not what was written: says what is wrong, in words that follow the file's name."""


class Impossible(Exception):
    """What was written, as its digest says, and still no such value: says why, in words that follow the file's name."""


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
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
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
    """The name and the metrics in a line. Raises `Damaged` or `Impossible` when there are none."""
    row = _row(line)
    name, metrics = row.get("key"), row.get("value")
    _check_digest(row.get("digest"), [name, metrics])
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Impossible("is no name of a value")
    if type(metrics) in (int, float) and not name.endswith(f"-{METRICS}"):
        return name, metrics
    if not isinstance(metrics, dict):
        raise Impossible("has metrics that are no numbers")
    is_evaluation = name.endswith(f"-{METRICS}")
    numbers = {metric: value for metric, value in metrics.items() if not is_evaluation or metric != "confusion"}
    if not {type(number) for number in numbers.values()} <= {int, float, type(None)}:
        raise Impossible("has metrics that are no numbers")
    if is_evaluation:
        _check_evaluation(numbers, metrics.get("confusion"))
    return name, metrics


def _check_evaluation(metrics: Mapping[str, float | None], counts: object) -> None:
    """Raise `Impossible` unless an evaluation can come to these numbers, and to the *counts*, if there are any."""
    accuracy = metrics.get("accuracy")
    if accuracy is not None and not 0 <= accuracy <= 1:
        raise Impossible(f"has accuracy={accuracy}, which must be from 0 to 1")
    for metric, value in metrics.items():
        if value is not None and value < 0:
            raise Impossible(f"has {metric}={value}, which must not be below 0")
    if counts is not None:
        _check_counts(counts, metrics)


def _check_counts(counts: object, metrics: Mapping[str, Any]) -> None:
    """Raise `Impossible` unless *counts* can be the ``confusion`` of an evaluation with these *metrics*."""
    if not isinstance(counts, list) or len(counts) % 3 or any(type(number) is not int for number in counts):
        raise Impossible("has a confusion that is no list of triples of whole numbers")
    pairs, numbers = list(zip(counts[::3], counts[1::3], strict=True)), counts[2::3]
    labels_are_known = all(0 <= label < MOST_CLASSES_COUNTED for pair in pairs for label in pair)
    if not labels_are_known or not all(1 <= number <= MOST_SAMPLES for number in numbers):
        raise Impossible("has a confusion with a class, or a number of samples, that cannot be")
    if any(later <= earlier for earlier, later in pairwise(pairs)):
        raise Impossible("has a confusion whose classes do not ascend")
    right = sum(number for (true, predicted), number in zip(pairs, numbers, strict=True) if true == predicted)
    samples, accuracy = metrics.get("samples"), metrics.get("accuracy")
    if not samples or sum(numbers) != samples or accuracy is None or abs(right / samples - accuracy) > ROUNDING:
        raise Impossible(f"has a confusion that does not fit accuracy={accuracy} and samples={samples}")


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
    """The index of the run called *run*. Raises `Damaged` or `Impossible` when *content* is none."""
    row = _row(content)
    _check_digest(row.pop("digest", None), [run, row])
    try:
        index = Index(**row)
        lists = all(isinstance(frontier, list) for frontier in index.frontiers.values())
        if lists and all(NAME.fullmatch(name) for name in index.names):
            return index
    except (TypeError, AttributeError):
        pass
    raise Impossible("is no index of a store")


def _row(text: bytes) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise Damaged("is no JSON with a digest")
    return row


def _check_digest(found: object, content: object) -> None:
    try:
        fits = found == _digest(content)
    except RecursionError:  # brackets in brackets, just not too deep to be read
        fits = False
    if not fits:
        raise Damaged("does not fit its digest")


def _digest(content: object) -> str:
    return hashlib.blake2b(_as_text(content).encode(), digest_size=16).hexdigest()
