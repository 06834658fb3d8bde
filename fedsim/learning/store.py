"""The store: what has been computed, by key, on disk. JSON and safetensors only: nothing that executes.

Layout (several runs may share one store)::

    store.json           the mark of a store, without which nothing here is touched
    metrics/RUN.jsonl    metrics for ever, a line each as they are made
    ledger/RUN.jsonl     a line for each node computed, each tensor loaded, each checkpoint
    tensors/             one safetensors file for each kept output
    claims/              a lock for each beginning of trainings, held by the run that trains what begins so
    index/RUN.json       by label (a protocol on a seed): the tensors that it needs to go on, or its final weights;
                         replaced atomically
    damaged/             what did not fit its digest when it was read; nobody reads or deletes it

A file in ``tensors`` that no index names may be deleted at any checkpoint; that is done under the store's lock. What
does not fit its digest counts as absent, so it is computed again.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from fedsim.errors import UserError
from fedsim.files import read_own_file, shown, write_atomically
from fedsim.learning.claims import Claim, Wait, just_wait
from fedsim.learning.graph import Handle
from fedsim.learning.operations.operation import Value
from fedsim.learning.store_folder import ELSEWHERE, StoreFolder
from fedsim.learning.stored_metrics import LineFile, StoredMetrics
from fedsim.learning.stored_values import (
    Damaged,
    Index,
    check_tensors,
    index_bytes,
    read_index,
    with_digest,
)

__all__ = ["Store", "TensorFiles"]


class TensorFiles(Protocol):
    """Parts as bytes and back; the executor knows its tensors, the store does not."""

    def dump(self, value: Value) -> bytes:
        """The safetensors bytes of a part; equal parts, equal bytes."""

    def load(self, content: bytes, handle: Handle) -> Value:
        """The part that *handle* stands for, from safetensors bytes. Raises `ValueError` when it cannot be that one."""


def _say_nothing(text: str) -> None:
    """What is wrong interests nobody."""


class Store:
    """A run's view of a store on disk, for one of its labels: one protocol on one seed. *tell* hears of damage.

    *wait* is called when another run trains what this one is about to train: see `fedsim.learning.claims`.

    Raises `UserError` when the folder is no store, and nothing that can be made one.
    """

    def __init__(
        self,
        folder: Path,
        run: str,
        files: TensorFiles,
        *,
        label: str,
        tell: Callable[[str], None] = _say_nothing,
        wait: Wait = just_wait,
    ) -> None:
        self.folder = folder
        self._files = files
        self._label = label
        self._tell = tell
        self._place = StoreFolder(folder)
        self._run = run
        self._index_path = folder / "index" / f"{run}.json"
        self._sound: set[str] = set()
        """Tensors on disk that this process has written, or read whole."""
        self._mistrusted: set[Path] = set()
        self._others: dict[Path, tuple[tuple[int, ...], Index | None]] = {}
        """Indices of other runs, and when and where they were written."""
        self._claim = Claim(folder / "claims", wait)
        with self._place.lock:
            self._metrics = StoredMetrics(self._place, run, tell)
            self._index = self._read_own_index()
        self._ledger_file = LineFile(folder / "ledger" / f"{run}.jsonl")
        self._metrics.open()

    def labelled(self, label: str, files: TensorFiles) -> Self:
        """The same run's view for another label, in another executor's hands. What was claimed for this one is over."""
        self._claim.release()
        view = copy.copy(self)
        view._label, view._files = label, files
        return view

    def claim(self, beginning: str) -> None:
        """Claim all trainings of the label, which begin so, and read what others have added to the store by then.

        Others that begin so wait until the label has its final model, or the next label has come.
        """
        self._claim.take(beginning)
        with self._place.lock:
            self._metrics.read_of_others()

    # -- metrics and numbers, for ever ------------------------------------------------------------------------------

    def scalar(self, handle: Handle) -> Value | None:
        """The stored metrics, or the number, that a planned *handle* stands for; None when there is none."""
        return self._metrics.get(handle.stored_name)

    def keep_scalar(self, handle: Handle) -> None:
        """Store computed metrics, or a number, for ever."""
        self._metrics.add(handle.stored_name, handle.value)

    def log(self, *rows: Mapping[str, Any]) -> None:
        """Add rows to the ledger."""
        self._ledger_file.append(*rows)

    # -- tensors, while they are needed -----------------------------------------------------------------------------

    def read_tensors(self, handle: Handle) -> bool:
        """Read an output from disk, if it is there, whole, and was computed by the same plan; returns whether it was.

        Raises `UserError` for what is no file, and for what fits its digest and yet cannot be that output.
        """
        name = handle.stored_name
        if not os.path.lexists(self._tensor_file(name)):  # each forcing asks, mostly in vain
            return False
        if (content := self._whole_tensors(name)) is None:
            return False
        try:
            handle.value = self._files.load(content, handle)
        except ValueError as error:
            problem = f"is not that part of the model ({error}), and fits its digest all the same"
            raise UserError(f"{shown(Path(self._tensor_file(name)))}: {problem}; {ELSEWHERE}") from None
        self.log({"event": "loaded", "key": handle.node.key, "output": handle.output})
        return True

    def checkpoint(self, live: Iterable[Handle]) -> None:
        """Make the live outputs the ones that the label can go on from; forget those that nobody needs.

        A pending output counts too if it is on disk: it was computed before a kill and may still be asked for.
        """
        with self._place.lock:
            frontier = sorted(name for handle in live if (name := self._keep_tensors(handle)))
            self._index.frontiers[self._label] = frontier
            self._write_index()
        self.log({"event": "checkpoint", "tensors": len(frontier)})

    def keep_final(self, model: Mapping[str, Handle]) -> dict[str, str]:
        """Keep the label's finished model for ever, and nothing else of it; returns part -> path inside the store."""
        with self._place.lock:
            names = {part: self._keep_tensors(handle) for part, handle in model.items()}
            final = self._index.finals[self._label] = {part: name for part, name in names.items() if name}
            self._index.frontiers.pop(self._label, None)
            self._write_index()
        self._claim.release()
        return {part: f"tensors/{name}.safetensors" for part, name in final.items()}

    def _keep_tensors(self, handle: Handle) -> str | None:
        """The name under which an output is on disk, written now if need be; None if it has no tensors yet."""
        if handle.scalar or handle.node.chunk is None:
            return None
        name = handle.stored_name
        path = Path(self._tensor_file(name))
        is_there = os.path.lexists(path)
        if not handle.computed:
            return name if is_there else None
        if not (is_there and (name in self._sound or self._whole_tensors(name) is not None)):
            write_atomically(path, *with_digest(name, self._files.dump(handle.value)))
            self._sound.add(name)
        return name

    def _whole_tensors(self, name: str) -> bytes | None:
        """The content of a tensor file; None when it is gone. What does not fit its digest is put aside."""
        path = Path(self._tensor_file(name))
        content = read_own_file(path)
        try:
            if content is not None:
                check_tensors(name, content)
        except Damaged as damage:
            self._put_aside(path, damage)
            return None
        if content is not None:
            self._sound.add(name)
        return content

    def close(self) -> None:
        """Close the files that are being appended to, and let others train."""
        self._claim.release()
        self._metrics.close()
        self._ledger_file.close()

    def _tensor_file(self, name: str) -> str:
        return f"{self.folder}/tensors/{name}.safetensors"

    # -- the index --------------------------------------------------------------------------------------------------

    def _write_index(self) -> None:
        # A run that goes on comes by every label before the one it was killed in, whose frontier has to survive that.
        write_atomically(self._index_path, index_bytes(self._run, self._index))
        needed = self._index.names.union(*(index.names for index in self._indices_of_others()))
        self._place.delete_tensors(needed)
        self._sound &= needed

    def _indices_of_others(self) -> list[Index]:
        """Each is read again when it has changed: a store may have thousands."""
        found = []
        for path in self._place.files("index"):
            try:
                if path != self._index_path and (index := self._index_of(path)) is not None:
                    found.append(index)
            except Damaged as damage:
                self._place.complete = False
                if path not in self._mistrusted:
                    self._mistrusted.add(path)
                    self._tell(f"{shown(path)}: {damage}; as nobody knows what it needs, nothing is deleted there")
        return found

    def _index_of(self, path: Path) -> Index | None:
        found = os.lstat(path)
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if path not in self._others or self._others[path][0] != stamp:
            self._others[path] = stamp, _read_index(path)
        return self._others[path][1]

    def _read_own_index(self) -> Index:
        try:
            return _read_index(self._index_path) or Index()
        except Damaged as damage:
            self._place.complete = False
            self._put_aside(self._index_path, damage)
            return Index()

    # -- what is damaged ---------------------------------------------------------------------------------------------

    def _put_aside(self, path: Path, damage: Damaged) -> None:
        place = self._place.put_aside(path)
        self._tell(f"{shown(path)}: {damage}; what it held is computed again, and it is {shown(place)} now")


def _read_index(path: Path) -> Index | None:
    """None when it is not there."""
    content = read_own_file(path)
    return None if content is None else read_index(path.stem, content)
