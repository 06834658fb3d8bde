"""The store: what has been computed, by key, on disk. JSON and safetensors only: nothing that executes.

Layout (several runs may share one store)::

    metrics/RUN.jsonl    metrics for ever, a line each as they are made
    ledger/RUN.jsonl     a line for each node computed, each tensor loaded, each checkpoint
    tensors/             one safetensors file for each kept output
    index/RUN.json       by label (a protocol on a seed): the tensors that it needs to go on, or its final weights;
                         replaced atomically

A file in ``tensors`` that no index names may be deleted at any checkpoint; that is done under the store's lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock

from fedsim.errors import UserError
from fedsim.files import write_atomically
from fedsim.learning.graph import Handle, Value

__all__ = ["Store", "TensorFiles"]


class TensorFiles(Protocol):
    """Writing and reading one part; the executor knows its tensors, the store does not."""

    def dump(self, value: Value) -> bytes:
        """The safetensors bytes of a part; equal parts, equal bytes."""

    def load(self, path: Path) -> Value:
        """The part in a safetensors file."""


class Store:
    """A run's view of a store on disk, for one of its labels: one protocol on one seed."""

    def __init__(
        self, folder: Path, run: str, files: TensorFiles, *, label: str, metrics: dict[str, Value] | None = None
    ) -> None:
        self.folder = folder
        self._files = files
        self._label = label
        for name in ("metrics", "ledger", "tensors", "index"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._tensor_folder = folder / "tensors"
        self._lock = FileLock(folder / "lock")
        self.all_metrics = self._read_metrics() if metrics is None else metrics
        """By name: what the store had when it was opened (or *metrics*, read before), and what has been added since."""
        self._index_path = folder / "index" / f"{run}.json"
        index = _read_index(self._index_path)
        self._frontiers: dict[str, list[str]] = index.get("frontiers", {})
        self._finals: dict[str, dict[str, str]] = index.get("finals", {})
        self._metrics_file = _LineFile(folder / "metrics" / f"{run}.jsonl")
        self._ledger_file = _LineFile(folder / "ledger" / f"{run}.jsonl")

    # -- metrics, for ever ------------------------------------------------------------------------------------------

    def metrics(self, handle: Handle) -> Value | None:
        """The stored metrics of a planned evaluation, or None."""
        return self.all_metrics.get(_name(handle))

    def keep_metrics(self, handle: Handle) -> None:
        """Store the metrics of a computed evaluation for ever."""
        name = _name(handle)
        self.all_metrics[name] = handle.value
        self._metrics_file.append({"key": name, "value": handle.value})

    def log(self, *rows: Mapping[str, Any]) -> None:
        """Add rows to the ledger."""
        self._ledger_file.append(*rows)

    # -- tensors, while they are needed -----------------------------------------------------------------------------

    def read_tensors(self, handle: Handle) -> bool:
        """Read an output from disk, if it is there and was computed by the same plan; returns whether it was."""
        name = _name(handle)
        if not os.path.exists(self._tensor_file(name)):  # each forcing asks, mostly in vain
            return False
        try:
            handle.value = self._files.load(Path(self._tensor_file(name)))
        except FileNotFoundError:  # another run that shares the store has deleted it just now
            return False
        self.log({"event": "loaded", "key": handle.node.key, "output": handle.output})
        return True

    def checkpoint(self, live: Iterable[Handle]) -> None:
        """Make the live outputs the ones that the label can go on from; forget those that nobody needs.

        A pending output counts too if it is on disk: it was computed before a kill and may still be asked for.
        """
        with self._lock:
            frontier = sorted(name for handle in live if (name := self._keep_tensors(handle)))
            self._frontiers[self._label] = frontier
            self._write_index()
        self.log({"event": "checkpoint", "tensors": len(frontier)})

    def keep_final(self, model: Mapping[str, Handle]) -> dict[str, str]:
        """Keep the label's finished model for ever, and nothing else of it; returns part -> path inside the store."""
        with self._lock:
            names = {part: self._keep_tensors(handle) for part, handle in model.items()}
            final = self._finals[self._label] = {part: name for part, name in names.items() if name}
            self._frontiers.pop(self._label, None)
            self._write_index()
        return {part: f"tensors/{name}.safetensors" for part, name in final.items()}

    def _keep_tensors(self, handle: Handle) -> str | None:
        """The name under which an output is on disk, written now if need be; None if it has no tensors yet."""
        if handle.node.operation.scalar or handle.node.chunk is None:
            return None
        name = _name(handle)
        path = Path(self._tensor_file(name))
        if not path.exists():
            if not handle.computed:
                return None
            write_atomically(path, self._files.dump(handle.value))
        return name

    def close(self) -> None:
        """Close the files that are being appended to."""
        self._metrics_file.close()
        self._ledger_file.close()

    def _write_index(self) -> None:
        # A run that goes on comes by every label before the one it was killed in, whose frontier has to survive that.
        index = {"frontiers": self._frontiers, "finals": self._finals}
        write_atomically(self._index_path, json.dumps(index, indent=1, sort_keys=True).encode())
        self._delete_unreachable()

    def _delete_unreachable(self) -> None:
        reachable: set[str] = set()
        for path in (self.folder / "index").glob("*.json"):
            index = _read_index(path)
            reachable.update(name for frontier in index.get("frontiers", {}).values() for name in frontier)
            reachable.update(name for parts in index.get("finals", {}).values() for name in parts.values())
        for path in self._tensor_folder.iterdir():  # also what a kill left half-written
            if path.suffix != ".safetensors" or path.stem not in reachable:
                path.unlink(missing_ok=True)

    def _tensor_file(self, name: str) -> str:
        return f"{self._tensor_folder}/{name}.safetensors"

    def _read_metrics(self) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for path in sorted((self.folder / "metrics").glob("*.jsonl")):
            try:
                found.update((row["key"], row["value"]) for row in _complete_lines(path))
            except (ValueError, KeyError, TypeError):
                raise UserError(
                    f"{path}: not readable as metrics of a store; delete it to compute them again"
                ) from None
        return found


def _name(handle: Handle) -> str:
    """An output's name on disk: its key, its plan and which output it is."""
    assert handle.node.chunk is not None, "only what has been planned is stored"
    return f"{handle.node.key}-{handle.node.chunk.digest[:8]}-{handle.output}"


def _read_index(path: Path) -> dict[str, Any]:
    try:
        index = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        index = None
    if not isinstance(index, dict):
        raise UserError(f"{path}: not readable as an index of a store; delete it to train again")
    return index


def _complete_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file; a last line that was cut off by a kill does not count."""
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1] if line]


_as_text = json.JSONEncoder(separators=(",", ":")).encode


class _LineFile:
    """A JSON-lines file; a last line that was cut off by a kill is removed before the first append."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content.rfind(b"\n") + 1
        self._file = path.open("ab")
        if whole < len(content):
            self._file.truncate(whole)

    def append(self, *rows: Mapping[str, Any]) -> None:
        self._file.write(b"".join(_as_text(row).encode() + b"\n" for row in rows))
        self._file.flush()

    def close(self) -> None:
        self._file.close()
